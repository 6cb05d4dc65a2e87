#include "db/temporary_place.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "pmem/database_file.h"
#include "util/file.h"
#include "util/no_path.h"

namespace braiddb {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = "/COPYING";
constexpr const char* kUnfinishedMark = "/COPYING.tmp";
constexpr size_t kMaxMarkBytes = 64u << 10;

bool IsThere(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

// Whether the file COPYING in the directory contains this path.
bool Says(const std::string& directory, const std::string& path) {
  std::error_code error;
  std::string mark;
  return fs::is_directory(fs::symlink_status(directory, error)) && ReadSmallFile(directory + kMark, kMaxMarkBytes, &mark).ok() &&
         mark == EscapePath(AbsolutePath(path));
}

// Whether a copy or a restore has written this text: it is the path of a temporary or an old database. Other programs have files
// named COPYING, too.
bool IsMarkOfOurs(const std::string& mark) {
  std::string path;
  return UnescapePath(mark, &path) && EscapePath(path) == mark && path.starts_with('/') &&
         (path.ends_with(".tmp") || path.ends_with(TemporaryPlace::OldOf("")));
}

// Whether COPYING contains the directory's own path.
bool IsMarked(const std::string& directory) { return Says(directory, directory); }

}  // namespace

Status TemporaryPlace::Resolve(const std::string& path, std::string* target) {
  if (path.empty()) return NoPath();
  *target = path;
  while (target->size() > 1 && target->back() == '/') target->pop_back();
  std::error_code error;
  const std::string last = fs::path(*target).filename();
  const bool has_name = last != "." && last != "..";
  if (has_name && !fs::is_symlink(*target, error)) return Status::OK();
  const std::string resolved = fs::canonical(*target, error).string();
  if (error && !has_name) return Status::InvalidArgument(*target + " is not there: " + error.message() + "; name a directory");
  if (error) {
    // A restore that was interrupted between its two renames leaves such a link. The restore can be repeated.
    std::error_code ignored;
    const fs::path led = fs::path(*target).parent_path() / fs::read_symlink(*target, ignored);
    if (fs::is_directory(OldOf(led.string()), ignored)) {
      *target = led.lexically_normal().string();
      return Status::OK();
    }
    return Status::InvalidArgument(*target + " is a symbolic link that leads nowhere: " + error.message() + "; remove it");
  }
  *target = resolved;
  return Status::OK();
}

TemporaryPlace::TemporaryPlace(const std::string& target, Destroy destroy)
    : path_(target + ".tmp"), destroy_(std::move(destroy)) {}

// An empty directory counts as ours.
bool TemporaryPlace::IsOurs() const {
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(path_, error))) return false;
  std::string mark;
  if (ReadSmallFile(path_ + kMark, kMaxMarkBytes, &mark).ok()) return mark == EscapePath(AbsolutePath(path_));
  std::vector<std::string> names;
  if (!ListDir(path_, &names).ok()) return false;
  return names.empty() || names == std::vector<std::string>{kUnfinishedMark + 1};
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
  // The mark goes last, so an interrupted call can be repeated.
  for (const char* name : {"/LOG", "/LOCK", "/CREATING.tmp", kUnfinishedMark, kMark}) {
    if (status.ok()) status = RemoveFile(path_ + name);
  }
  return status.ok() ? RemoveDir(path_) : status;
}

Status TemporaryPlace::RemoveUnfinished(const std::string& path, const Destroy& destroy) {
  std::string target;
  Status status = Resolve(path, &target);
  if (!status.ok()) return status;
  TemporaryPlace place(target, destroy);
  status = place.FinishReplacement(target);
  if (status.ok()) status = place.Remove();
  if (status.ok() && !IsThere(OldOf(target))) Finish(target);
  return status;
}

namespace {

// Moves what is not of the database from its old directory to the new one. What has a name of the new directory's files stays.
// The marks go last, so an interrupted call is repeated.
Status MoveFilesOfOthers(const std::string& old, const std::string& target) {
  std::vector<std::string> names;
  Status status = ListDir(old, &names);
  for (const std::string& name : names) {
    if (!status.ok()) return status;
    if (name == kMark + 1 || name == "LOCK" || IsThere(target + "/" + name)) continue;
    std::error_code error;
    fs::rename(old + "/" + name, target + "/" + name, error);
    if (error) status = Status::IOError("cannot move " + old + "/" + name + " back to " + target + ": " + error.message());
  }
  return status.ok() && !names.empty() ? SyncDir(target) : status;
}

}  // namespace

// A removal that was interrupted may leave an empty lock file without a database.
Status TemporaryPlace::RemoveOld(const std::string& old, const std::string& target) const {
  Status status = destroy_(old);
  if (status.ok() && IsThere(old)) status = MoveFilesOfOthers(old, target);
  std::error_code error;
  std::vector<std::string> names;
  if (status.ok() && ListDir(old, &names).ok() && names == std::vector<std::string>{kMark + 1, "LOCK"} &&
      fs::is_empty(old + "/LOCK", error)) {
    status = RemoveFile(old + "/LOCK");
  }
  if (status.ok()) status = RemoveFile(old + kMark);
  fs::remove(old, error);
  return status;
}

void TemporaryPlace::Finish(const std::string& directory) {
  const std::string path = AbsolutePath(directory);
  std::string mark;
  const bool is_there = ReadSmallFile(directory + kMark, kMaxMarkBytes, &mark).ok();
  if (is_there && IsMarkOfOurs(mark) && mark != EscapePath(path)) (void)RemoveFile(directory + kMark);
  // A killed MarkOld leaves a part of its mark.
  if (ReadSmallFile(directory + kUnfinishedMark, kMaxMarkBytes, &mark).ok() && EscapePath(OldOf(path)).starts_with(mark))
    (void)RemoveFile(directory + kUnfinishedMark);
}

// `given` may end with slashes, or lead to the database by links. A mark that contains the path of the old database is left by a
// restore that was interrupted before its first rename.
void TemporaryPlace::KeepOld(const std::string& given) {
  const std::string directory = AbsolutePath(given);
  const bool is_old = directory.ends_with(OldOf("")) && IsMarked(directory);
  if (is_old || Says(directory, OldOf(directory))) (void)RemoveFile(directory + kMark);
}

Status TemporaryPlace::CheckMarkable(const std::string& target) {
  const std::string path = target + kMark;
  std::string mark;
  const bool is_free = !IsThere(path) || (ReadSmallFile(path, kMaxMarkBytes, &mark).ok() && IsMarkOfOurs(mark));
  return is_free ? Status::OK()
                 : Status::InvalidArgument(path + " is not of BraidDB, and a restore needs the name; move the file elsewhere");
}

Status TemporaryPlace::MarkOld(const std::string& target) {
  const Status status = CheckMarkable(target);
  return status.ok() ? WriteSmallFile(target + kMark, EscapePath(AbsolutePath(OldOf(target)))) : status;
}

// The copy that replaced the old database has its temporary path in COPYING until the old database is removed. If COPYING is
// missing or contains another path, the database was made by somebody else later, and nothing is removed.
Status TemporaryPlace::FinishReplacement(const std::string& target) {
  const std::string old = OldOf(target);
  std::vector<std::string> names;
  const bool is_empty = IsThere(target) && ListDir(old, &names).ok() && names.empty();  // an empty directory counts as ours
  if (!IsMarked(old) && !is_empty) return Status::OK();
  std::error_code error;
  if (IsThere(target)) {
    if (IsThere(path_) || (!is_empty && !Says(target, path_))) return Status::OK();
    Status status = RemoveOld(old, target);
    if (status.ok()) Finish(target);
    return status;
  }
  fs::rename(old, target, error);
  if (error) return Status::IOError("cannot rename " + old + " to " + target + ": " + error.message());
  Finish(target);
  const std::string parent = fs::path(target).parent_path().string();
  return SyncDir(parent.empty() ? "." : parent);
}

}  // namespace braiddb
