#include "util/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

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

Status WriteAndSync(const std::string& path, std::string_view data) {
  const OpenFile file(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (!file.valid()) return StatusFromErrno(errno, "cannot create " + path);
  while (!data.empty()) {
    const ssize_t written = write(file.fd(), data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return StatusFromErrno(errno, "cannot write " + path);
    data.remove_prefix(static_cast<size_t>(written));
  }
  if (fsync(file.fd()) != 0) return StatusFromErrno(errno, "cannot sync " + path);
  return Status::OK();
}

Status HeldBy(int fd, const std::string& path) {
  char text[32];
  const ssize_t bytes = pread(fd, text, sizeof text, 0);
  if (bytes <= 0) return Status::Busy(path + " is locked by another process; close the database there first");
  const std::string holder(text, static_cast<size_t>(bytes));
  const bool own = holder == std::to_string(getpid());
  return Status::Busy(path + " is locked by " + (own ? "this process" : "process " + holder) +
                      "; close the database there first");
}

}  // namespace

Status StatusFromErrno(int error, std::string_view what) {
  const std::string message = std::string(what) + ": " + std::generic_category().message(error);
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

Status CreateDir(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0) return SyncDir(ParentOf(path));
  const int error = errno;
  if (error == ENOENT && ParentOf(path) != path) {
    if (Status status = CreateDir(ParentOf(path)); !status.ok()) return status;
    if (mkdir(path.c_str(), 0755) == 0) return SyncDir(ParentOf(path));
    return StatusFromErrno(errno, "cannot create the directory " + path);
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
  // EINVAL: a file system without it, where directories need no sync.
  if (fsync(directory.fd()) != 0 && errno != EINVAL) return StatusFromErrno(errno, "cannot sync the directory " + path);
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

int LockFile(int fd, int operation) {
  return RetryWhileLocked([&] { return flock(fd, operation | LOCK_NB) == 0 ? 0 : errno; });
}

// flock belongs to the open file, not to the process as fcntl's locks do: so a second open in the same process is refused
// too, and closing some other descriptor of the file does not drop the lock.
Status FileLock::Acquire(const std::string& path, std::unique_ptr<FileLock>* lock) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return StatusFromErrno(errno, "cannot open the lock file " + path);
  std::unique_ptr<FileLock> result(new FileLock(fd));
  if (const int error = LockFile(fd, LOCK_EX); error != 0)
    return error == EWOULDBLOCK ? HeldBy(fd, path) : StatusFromErrno(error, "cannot lock " + path);
  // The holder's id is for the message above only: failing to write it is no error.
  const std::string id = std::to_string(getpid());
  [[maybe_unused]] const bool written = ftruncate(fd, 0) == 0 && pwrite(fd, id.data(), id.size(), 0) > 0;
  *lock = std::move(result);
  return Status::OK();
}

FileLock::~FileLock() { close(fd_); }

}  // namespace braiddb
