#include "backup/copy.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "util/file.h"

namespace braiddb {

// ORDER   1 the copy is closed, so all of it is durable  2 what was there is removed  3 the copy has its name  4 that is durable.
//         A crash between 2 and 3 leaves the copy, whole, under its temporary name, where the next attempt begins anew.
Status MakeDatabase(Options options, const std::string& path, bool replaces, const std::function<Status(DB*)>& fill) {
  std::string target = path;
  while (target.size() > 1 && target.back() == '/') target.pop_back();
  const std::string temporary = target + ".tmp";
  options.create_if_missing = true;
  options.error_if_exists = true;
  Status status = DB::Destroy(options, temporary);  // what a crash left
  if (!status.ok()) return status;
  std::unique_ptr<DB> copy;
  status = DB::Open(options, temporary, &copy);
  if (status.ok()) status = fill(copy.get());
  if (status.ok()) status = copy->Close();
  copy.reset();
  if (status.ok() && replaces) status = DB::Destroy(options, target);
  // An empty directory may be in the way.
  if (status.ok()) status = RemoveDir(target);
  if (status.ok() && std::rename(temporary.c_str(), target.c_str()) != 0) status = StatusFromErrno(errno, target);
  if (!status.ok()) {
    (void)DB::Destroy(options, temporary);
    return status;
  }
  const std::string parent = std::filesystem::path(target).parent_path();
  return SyncDir(parent.empty() ? "." : parent);
}

}  // namespace braiddb
