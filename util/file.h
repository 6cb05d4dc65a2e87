// File operations of a database besides the mapping of pools. Every error names the path.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/status.h"

namespace braiddb {

// NoSpace for a full disk or quota, NotFound for ENOENT, otherwise IOError: "<what>: <system message>".
Status StatusFromErrno(int error, std::string_view what);

// Opens a regular file of the database and follows no symbolic link, so that no other user can redirect writes. O_CREAT creates a
// file that only its owner can read and write, independent of the umask. O_TRUNC empties the file after the check that it is
// regular. `guarded`: in children of a fork the descriptor is /dev/null (util/fork_guard.h). Returns -1 and sets errno on
// failure: EINVAL if the file is not regular, ELOOP for a symbolic link.
int OpenOwnFile(const std::string& path, int flags, bool guarded = false);
// Whether the path names the open file. A file that was removed or replaced after it was opened is another one.
bool IsFileAt(int fd, const std::string& path);

// Creates the directory and its missing parents durably. Only the owner may use them, independent of the umask. OK if it exists.
Status CreateDir(const std::string& path);
// Makes creations, renames and removals in the directory durable.
Status SyncDir(const std::string& path);
// The names in the directory, sorted, without "." and "..".
Status ListDir(const std::string& path, std::vector<std::string>* names);

bool FileExists(const std::string& path);
// Whether `path`, which may be missing, is the directory `outer` or lies in it. Follows symbolic links.
bool LiesIn(const std::string& path, const std::string& outer);
// OK if the file does not exist.
Status RemoveFile(const std::string& path);
// OK if the directory does not exist; an error if it is not empty.
Status RemoveDir(const std::string& path);

// Corruption if the file is larger than `max_bytes`.
Status ReadSmallFile(const std::string& path, size_t max_bytes, std::string* data);
// Atomic: after a crash the file has the old or the new contents; the new ones once the call has returned OK.
Status WriteSmallFile(const std::string& path, std::string_view data);

// flock(2) with LOCK_NB. Returns 0 or an errno; EWOULDBLOCK if the lock is held for longer than kLockPatience (util/patience.h).
int LockFile(int fd, int operation);

// A file lock that excludes other processes and other owners in this process. The lock ends with its object or with the process,
// also if the process has children (util/fork_guard.h). Thread safety: Acquire may be called concurrently.
class FileLock {
 public:
  // Busy if the lock is held; the message names the process, if the system tells. Creates the file if it is missing; the file
  // stays.
  static Status Acquire(const std::string& path, std::unique_ptr<FileLock>* lock);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  explicit FileLock(int fd) : fd_(fd) {}

  const int fd_;
};

}  // namespace braiddb
