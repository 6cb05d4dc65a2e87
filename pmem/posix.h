// posix: small files and directories of a region, through the system's calls. Every failure names the path and what to do.
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

// An open file, closed on destruction; -1 is none. `guarded`: of OpenGuarded, so that its lock ends then (util/fork_guard.h).
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

// "cannot <action> <path>: <why>; <advice>". NoSpace for a full disk or quota, NotFound for ENOENT, otherwise IOError.
Status ErrnoStatus(int error, std::string_view action, const std::string& path);

std::string JoinPath(const std::string& directory, std::string_view name);
bool Exists(const std::string& path);
bool IsSymbolicLink(const std::string& path);

// NotFound if there is none, Corruption if it is larger than `max_bytes`.
Status ReadSmallFile(const std::string& path, size_t max_bytes, std::string* contents);
// After a crash the file has the old bytes or the new, whole; the new ones, durably, once this has returned OK.
Status ReplaceSmallFile(const std::string& directory, const std::string& name, std::string_view contents);
// The same of a file that is not there, but a crash may leave it with a part of its bytes, from the first one on, and zeros
// behind them.
Status CreateSmallFile(const std::string& directory, const std::string& name, std::string_view contents);
// OK if it is not there.
Status Remove(const std::string& path);
Status SyncDirectory(const std::string& path);
// Names in the directory, sorted. NotFound if it does not exist.
Status List(const std::string& path, std::vector<std::string>* names);
// mkdir -p, for the owner alone whatever the umask; what it made is appended to `created`, outermost first, also if it fails.
Status MakeDirectories(const std::string& path, std::vector<std::string>* created);
// Absolute and without symbolic links. REQUIRES: exists.
Status Canonical(const std::string& path, std::string* canonical);

}  // namespace braiddb::posix
