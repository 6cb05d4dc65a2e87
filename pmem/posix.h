// posix: reads, writes and lists small files and directories. Every error names the path, the reason and an advice.
//
// DURABILITY  A file is durable when it has been synced and its directory has been synced. ReplaceSmallFile, CreateSmallFile do
//             both. Remove does not: the caller syncs the directory.
// DEFERRED    If the thread defers its syncs (util/deferred_syncs.h), the syncs here are remembered, and happen together later.
// Thread safety: all functions may be called concurrently, for different files.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braiddb/status.h"
#include "util/fork_guard.h"

namespace braiddb::posix {

// Fd: owns an open file and closes it on destruction; -1 is no file. `guarded`: the file was opened by OpenGuarded, and is
// closed by CloseGuarded, which ends its lock in children of this process as well (util/fork_guard.h).
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd, bool guarded = false) : fd_(fd), guarded_(guarded) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)), guarded_(other.guarded_) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(guarded_, other.guarded_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) guarded_ ? CloseGuarded(fd_) : static_cast<void>(close(fd_));
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
  bool guarded_ = false;
};

// Returns "cannot <action> <path>: <reason>; <advice>". NoSpace for ENOSPC and EDQUOT, NotFound for ENOENT, otherwise IOError.
Status ErrnoStatus(int error, std::string_view action, const std::string& path);

// Returns `directory`/`name` with one slash in between.
std::string JoinPath(const std::string& directory, std::string_view name);
// Returns true if a file, a directory or a symbolic link has this name. A link counts even if its target does not exist.
bool Exists(const std::string& path);
// Returns true if the name itself is a symbolic link.
bool IsSymbolicLink(const std::string& path);

// Reads a regular file, not through a symbolic link. NotFound: there is no such file. Corruption: it is larger than
// `max_bytes`. IOError: it is no regular file, or cannot be read.
Status ReadSmallFile(const std::string& path, size_t max_bytes, std::string* contents);
// Replaces or creates a file durably and atomically.
// STEPS  1 write <name>.tmp  2 sync it  3 rename it to <name>  4 sync the directory
// CRASH  Before 3 is durable the file has the old bytes, afterwards the new bytes. Before 3 a file <name>.tmp may remain.
Status ReplaceSmallFile(const std::string& directory, const std::string& name, std::string_view contents);
// Creates a file durably, with one commit of the file system's journal: the rename comes before the sync.
// CRASH  The file may be missing, or have a prefix of its bytes with zeros behind them. The caller must recognize such a file.
// REQUIRES: there is no file of this name.
Status CreateSmallFile(const std::string& directory, const std::string& name, std::string_view contents);
// Removes a file. OK if it does not exist. The removal is durable after SyncDirectory.
Status Remove(const std::string& path);
// Makes creations, renames and removals in the directory durable. OK on a file system whose directories need no sync.
Status SyncDirectory(const std::string& path);
// Lists the names in the directory, sorted, without "." and "..". NotFound: the directory does not exist.
Status List(const std::string& path, std::vector<std::string>* names);
// Creates the directory and its missing parents, with permissions for the owner alone, whatever the umask is. Appends the
// created directories to *created, outermost first, also if it fails. The caller syncs the parents.
Status MakeDirectories(const std::string& path, std::vector<std::string>* created);
// Returns the absolute path without symbolic links. NotFound: the path does not exist.
Status Canonical(const std::string& path, std::string* canonical);

}  // namespace braiddb::posix
