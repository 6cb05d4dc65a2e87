// Files and directories: what a database does with them besides mapping pools. Every error names the path.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/status.h"

namespace braiddb {

// NoSpace for a full disk or quota, NotFound for ENOENT, otherwise IOError: "<what>: <the system's words>".
Status StatusFromErrno(int error, std::string_view what);

// Opens a file of ours: a regular one, and no symbolic link, so that nobody can make us write elsewhere. With O_CREAT a new one
// can be read and written by its owner alone, whatever the umask. O_TRUNC empties it once it is known to be regular. `guarded`:
// in children of a fork it is /dev/null (util/fork_guard.h). -1 and errno if it fails: EINVAL for what is no regular file, ELOOP
// for a symbolic link.
int OpenOwnFile(const std::string& path, int flags, bool guarded = false);

// Creates the directory, which only its owner may use, whatever the umask, and its missing parents, durably. OK if it is there.
Status CreateDir(const std::string& path);
// Makes creations, renames and removals in the directory durable.
Status SyncDir(const std::string& path);
// Names in the directory, without "." and "..", sorted.
Status ListDir(const std::string& path, std::vector<std::string>* names);

bool FileExists(const std::string& path);
// OK if it is not there.
Status RemoveFile(const std::string& path);
// OK if it is not there; an error if it is not empty.
Status RemoveDir(const std::string& path);

// Corruption if the file is larger than `max_bytes`.
Status ReadSmallFile(const std::string& path, size_t max_bytes, std::string* data);
// After a crash the file has the old bytes or the new, whole; the new ones once this has returned OK.
Status WriteSmallFile(const std::string& path, std::string_view data);

// flock(2) with LOCK_NB: 0, or an errno; EWOULDBLOCK if it is held, and not just about to be given up (util/patience.h).
int LockFile(int fd, int operation);

// A file that one owner at a time holds locked, between processes and inside one. The lock ends with its object or with the
// process, however that ends, whatever children it has (util/fork_guard.h). Thread safety: Acquire may be called concurrently.
class FileLock {
 public:
  // Busy if it is held; the message says by which process, where the system tells. The file is created if missing, and stays.
  static Status Acquire(const std::string& path, std::unique_ptr<FileLock>* lock);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  explicit FileLock(int fd) : fd_(fd) {}

  const int fd_;
};

}  // namespace braiddb
