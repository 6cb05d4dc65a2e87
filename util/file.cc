#include "util/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "util/deferred_syncs.h"
#include "util/fork_guard.h"
#include "util/patience.h"

namespace braiddb {

namespace {

class OpenFile {
 public:
  OpenFile(const std::string& path, int flags, mode_t mode = 0) : fd_(open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  bool valid() const { return fd_ >= 0; }
  int fd() const { return fd_; }

 private:
  const int fd_;
};

std::string ParentOf(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  const size_t slash = end == std::string::npos ? 0 : path.rfind('/', end);
  if (slash == std::string::npos) return ".";
  const size_t parent_end = path.find_last_not_of('/', slash);
  return parent_end == std::string::npos ? "/" : path.substr(0, parent_end + 1);
}

// Never writes through a link or into a file with a second name: an existing regular file is removed first.
Status WriteAndSync(const std::string& path, std::string_view data) {
  struct stat found;
  if (lstat(path.c_str(), &found) == 0) {
    if (!S_ISREG(found.st_mode)) return Status::IOError(path + " is not a regular file; move it elsewhere");
    if (unlink(path.c_str()) != 0) return StatusFromErrno(errno, "cannot remove " + path);
  }
  const int fd = OpenOwnFile(path, O_WRONLY | O_CREAT | O_EXCL);
  if (fd < 0) return StatusFromErrno(errno, "cannot create " + path);
  Status status;
  while (status.ok() && !data.empty()) {
    const ssize_t written = write(fd, data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      status = StatusFromErrno(errno, "cannot write " + path);
    } else {
      data.remove_prefix(static_cast<size_t>(written));
    }
  }
  if (status.ok() && DeferredSyncs::Sync(fd) != 0) status = StatusFromErrno(errno, "cannot sync " + path);
  close(fd);
  return status;
}

// The process that holds a flock lock on the file, from the system's list of locks; 0 if unknown.
pid_t HolderOf(int fd) {
  struct stat file;
  if (fstat(fd, &file) != 0) return 0;
  FILE* const locks = fopen("/proc/locks", "re");
  if (locks == nullptr) return 0;
  pid_t holder = 0;
  char line[256];
  while (holder == 0 && fgets(line, sizeof line, locks) != nullptr) {
    long pid = 0;
    unsigned major_number = 0, minor_number = 0;
    unsigned long inode = 0;
    if (sscanf(line, "%*s FLOCK %*s %*s %ld %x:%x:%lu", &pid, &major_number, &minor_number, &inode) != 4) continue;
    if (inode == file.st_ino && makedev(major_number, minor_number) == file.st_dev && pid > 0) holder = static_cast<pid_t>(pid);
  }
  fclose(locks);
  return holder;
}

Status HeldBy(int fd, const std::string& path) {
  const pid_t holder = HolderOf(fd);
  std::string who = holder == 0 ? "another process" : "process " + std::to_string(holder);
  if (holder == getpid()) who = "this process";
  return Status::Busy(path + " is locked by " + who + "; close the database or the backup engine there first");
}

int MakeDir(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0) return errno;
  return chmod(path.c_str(), 0700) == 0 ? 0 : errno;
}

}  // namespace

Status StatusFromErrno(int error, std::string_view what) {
  std::string message = std::string(what) + ": " + std::generic_category().message(error);
  if (error == EMFILE) message += "; raise the limit of open files (ulimit -n)";
  if (error == ENFILE) message += "; raise the system's limit of open files (fs.file-max)";
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return Status::NoSpace(message);
    case ENOENT:
      return Status::NotFound(message);
    default:
      return Status::IOError(message);
  }
}

int OpenOwnFile(const std::string& path, int flags, bool guarded) {
  const int safe = (flags & ~(O_CREAT | O_EXCL | O_TRUNC)) | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const auto open_it = [&](int more) {
    return guarded ? OpenGuarded(path.c_str(), safe | more, 0600) : open(path.c_str(), safe | more, 0600);
  };
  const auto fail = [&](int fd, int error) {
    guarded ? CloseGuarded(fd) : static_cast<void>(close(fd));
    errno = error;
    return -1;
  };
  for (;;) {
    if ((flags & O_EXCL) == 0) {
      const int fd = open_it(0);
      if (fd < 0 && (errno != ENOENT || (flags & O_CREAT) == 0)) return -1;
      struct stat file;
      if (fd >= 0 && fstat(fd, &file) != 0) return fail(fd, errno);
      if (fd >= 0 && !S_ISREG(file.st_mode)) return fail(fd, EINVAL);
      if (fd >= 0 && (flags & O_TRUNC) != 0 && ftruncate(fd, 0) != 0) return fail(fd, errno);
      if (fd >= 0) return fd;
    }
    const int fd = open_it(O_CREAT | O_EXCL);
    if (fd >= 0) return fchmod(fd, 0600) == 0 ? fd : fail(fd, errno);
    if (errno != EEXIST || (flags & O_EXCL) != 0) return -1;
  }
}

Status CreateDir(const std::string& path) {
  const int error = MakeDir(path);
  if (error == 0) return SyncDir(ParentOf(path));
  if (error == ENOENT && ParentOf(path) != path) {
    if (Status status = CreateDir(ParentOf(path)); !status.ok()) return status;
    const int again = MakeDir(path);
    if (again == 0 || again == EEXIST) return SyncDir(ParentOf(path));
    return StatusFromErrno(again, "cannot create the directory " + path);
  }
  struct stat found;
  if (error == EEXIST && stat(path.c_str(), &found) == 0) {
    if (S_ISDIR(found.st_mode)) return Status::OK();
    return Status::IOError("cannot create the directory " + path + ": there is a file of that name");
  }
  return StatusFromErrno(error, "cannot create the directory " + path);
}

Status SyncDir(const std::string& path) {
  const OpenFile directory(path, O_RDONLY | O_DIRECTORY);
  if (!directory.valid()) return StatusFromErrno(errno, "cannot open the directory " + path);
  // EINVAL: the file system has no such sync, because its directories need none.
  if (DeferredSyncs::Sync(directory.fd()) != 0 && errno != EINVAL)
    return StatusFromErrno(errno, "cannot sync the directory " + path);
  return Status::OK();
}

Status ListDir(const std::string& path, std::vector<std::string>* names) {
  names->clear();
  DIR* directory = opendir(path.c_str());
  if (directory == nullptr) return StatusFromErrno(errno, "cannot read the directory " + path);
  errno = 0;
  while (const dirent* entry = readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names->emplace_back(name);
    errno = 0;
  }
  const int error = errno;
  closedir(directory);
  if (error != 0) return StatusFromErrno(error, "cannot read the directory " + path);
  std::sort(names->begin(), names->end());
  return Status::OK();
}

bool FileExists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

Status RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return Status::OK();
  return StatusFromErrno(errno, "cannot remove " + path);
}

Status RemoveDir(const std::string& path) {
  if (rmdir(path.c_str()) == 0 || errno == ENOENT) return Status::OK();
  return StatusFromErrno(errno, "cannot remove the directory " + path);
}

Status ReadSmallFile(const std::string& path, size_t max_bytes, std::string* data) {
  data->clear();
  const OpenFile file(path, O_RDONLY);
  if (!file.valid()) return StatusFromErrno(errno, "cannot open " + path);
  char buffer[4096];
  for (;;) {
    const ssize_t bytes = read(file.fd(), buffer, sizeof buffer);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return StatusFromErrno(errno, "cannot read " + path);
    if (bytes == 0) return Status::OK();
    data->append(buffer, static_cast<size_t>(bytes));
    if (data->size() > max_bytes) {
      return Status::Corruption(path + " is larger than the " + std::to_string(max_bytes) + " bytes it may have");
    }
  }
}

Status WriteSmallFile(const std::string& path, std::string_view data) {
  const std::string temporary = path + ".tmp";
  Status status = WriteAndSync(temporary, data);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = StatusFromErrno(errno, "cannot rename " + temporary + " to " + path);
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  return SyncDir(ParentOf(path));
}

bool LiesIn(const std::string& path, const std::string& outer) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (fs::path at = fs::weakly_canonical(fs::absolute(path, error), error); !at.empty(); at = at.parent_path()) {
    if (fs::equivalent(at, outer, error)) return true;
    if (at == at.parent_path()) break;
  }
  return false;
}

int LockFile(int fd, int operation) {
  return RetryWhileLocked([&] { return flock(fd, operation | LOCK_NB) == 0 ? 0 : errno; });
}

bool IsFileAt(int fd, const std::string& path) {
  struct stat open, found;
  return fstat(fd, &open) == 0 && stat(path.c_str(), &found) == 0 && open.st_ino == found.st_ino && open.st_dev == found.st_dev;
}

// A thread may have waited for the lock of a file that was removed meanwhile. No other thread can find that file, so it locks the
// new one.
Status FileLock::Acquire(const std::string& path, std::unique_ptr<FileLock>* lock) {
  for (;;) {
    const int fd = OpenOwnFile(path, O_RDWR | O_CREAT, true);
    if (fd < 0 && (errno == ELOOP || errno == EINVAL)) return Status::IOError(path + " is not a regular file; move it elsewhere");
    if (fd < 0) return StatusFromErrno(errno, "cannot open the lock file " + path);
    std::unique_ptr<FileLock> result(new FileLock(fd));
    if (const int error = LockFile(fd, LOCK_EX); error != 0)
      return error == EWOULDBLOCK ? HeldBy(fd, path) : StatusFromErrno(error, "cannot lock " + path);
    struct stat locked;
    if (fstat(fd, &locked) != 0) return StatusFromErrno(errno, "cannot examine the lock file " + path);
    if (!IsFileAt(fd, path)) continue;
    // A process that cannot open the file cannot hold its lock. A file of an older version may be open to all.
    if ((locked.st_mode & 0777) != 0600) (void)fchmod(fd, 0600);
    *lock = std::move(result);
    return Status::OK();
  }
}

FileLock::~FileLock() { CloseGuarded(fd_); }

}  // namespace braiddb
