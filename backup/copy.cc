#include "backup/copy.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "util/file.h"

namespace braiddb {

namespace {

Status Rename(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str()) == 0 ? Status::OK() : StatusFromErrno(errno, to);
}

// Busy if somebody has it open.
Status CheckClosed(const std::string& path) {
  std::unique_ptr<FileLock> lock;
  return FileExists(path + "/LOCK") ? FileLock::Acquire(path + "/LOCK", &lock) : Status::OK();
}

// STEPS   1 what is at `target` becomes `target`.old  2 the copy gets its name  3 that is durable  4 the old one is removed.
// CRASH   Between 1 and 2: nothing is at `target`, and both are beside it, whole.
// What is in the way of 1 or 2 leaves everything as it was.
Status PutInPlace(const Options& options, const std::string& temporary, const std::string& target) {
  const std::string old = target + ".old";
  const bool replaces = FileExists(target);
  if (replaces && FileExists(old)) return Status::InvalidArgument(old + " is in the way; move it elsewhere");
  Status status = replaces ? CheckClosed(target) : Status::OK();
  if (status.ok() && replaces) status = Rename(target, old);
  if (!status.ok()) return status;
  status = Rename(temporary, target);
  if (!status.ok()) {
    const Status back = replaces ? Rename(old, target) : Status::OK();
    return back.ok() ? status : back;
  }
  const std::string parent = std::filesystem::path(target).parent_path();
  status = SyncDir(parent.empty() ? "." : parent);
  if (!status.ok() || !replaces) return status;
  status = DB::Destroy(options, old);
  (void)RemoveDir(old);  // files of others stay there
  return status;
}

}  // namespace

// ORDER   The copy is closed, so all of it is durable, before anything is done to what was there.
Status MakeDatabase(Options options, const std::string& path, bool replaces, const std::function<Status(DB*)>& fill) {
  std::string target = path;
  while (target.size() > 1 && target.back() == '/') target.pop_back();
  const std::string temporary = target + ".tmp";
  options.create_if_missing = true;
  options.error_if_exists = true;
  if (!replaces && FileExists(target)) return Status::InvalidArgument(target + " is there already; choose another directory");
  Status status = DB::Destroy(options, temporary);  // what a crash left
  if (status.ok()) status = CheckClosed(target);
  if (!status.ok()) return status;
  std::unique_ptr<DB> copy;
  status = DB::Open(options, temporary, &copy);
  if (status.ok()) status = fill(copy.get());
  if (status.ok()) status = copy->Close();
  copy.reset();
  if (status.ok()) status = PutInPlace(options, temporary, target);
  if (!status.ok()) (void)DB::Destroy(options, temporary);
  return status;
}

}  // namespace braiddb
