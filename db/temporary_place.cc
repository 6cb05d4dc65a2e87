#include "db/temporary_place.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "pmem/database_file.h"
#include "util/file.h"

namespace braiddb {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = "/COPYING";
constexpr size_t kMaxMarkBytes = 64u << 10;

bool IsThere(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

}  // namespace

Status TemporaryPlace::Resolve(const std::string& path, std::string* target) {
  *target = path;
  while (target->size() > 1 && target->back() == '/') target->pop_back();
  std::error_code error;
  if (!fs::is_symlink(*target, error)) return Status::OK();
  const std::string resolved = fs::canonical(*target, error).string();
  if (error) {
    return Status::InvalidArgument(*target + " is a symbolic link that leads nowhere: " + error.message() + "; remove it");
  }
  *target = resolved;
  return Status::OK();
}

TemporaryPlace::TemporaryPlace(const std::string& target, Destroy destroy)
    : path_(target + ".tmp"), destroy_(std::move(destroy)) {}

// An empty directory is as good as none.
bool TemporaryPlace::IsOurs() const {
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(path_, error))) return false;
  std::string mark;
  if (ReadSmallFile(path_ + kMark, kMaxMarkBytes, &mark).ok()) return mark == EscapePath(AbsolutePath(path_));
  std::vector<std::string> names;
  if (!ListDir(path_, &names).ok()) return false;
  return names.empty() || names == std::vector<std::string>{"COPYING.tmp"};
}

Status TemporaryPlace::Make() {
  if (IsThere(path_)) {
    if (!IsOurs()) return Status::InvalidArgument(path_ + " is in the way, and no copy left it; move it elsewhere");
    if (Status status = destroy_(path_); !status.ok()) return status;
  }
  Status status = CreateDir(path_);
  return status.ok() ? WriteSmallFile(path_ + kMark, EscapePath(AbsolutePath(path_))) : status;
}

Status TemporaryPlace::Remove() {
  if (!IsThere(path_) || !IsOurs()) return Status::OK();
  Status status = destroy_(path_);
  for (const char* name : {"/LOG", "/LOCK", kMark}) {
    if (status.ok()) status = RemoveFile(path_ + name);
  }
  return status.ok() ? RemoveDir(path_) : status;
}

void TemporaryPlace::Finish(const std::string& directory) {
  std::string mark;
  const bool is_there = ReadSmallFile(directory + kMark, kMaxMarkBytes, &mark).ok();
  if (is_there && mark != EscapePath(AbsolutePath(directory))) (void)RemoveFile(directory + kMark);
}

}  // namespace braiddb
