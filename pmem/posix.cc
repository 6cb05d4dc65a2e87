#include "pmem/posix.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "util/deferred_syncs.h"
#include "util/file.h"

namespace braiddb::posix {
namespace {

// Returns what a user can do about the error; "" if there is no general advice.
const char* Advice(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
      return "; run as the owner of the database, or grant permission to read, and to write if the open writes";
    case EROFS:
      return "; mount the file system read-write";
    case ENOSPC:
    case EDQUOT:
      return "; free space on the file system or raise the quota";
    case EMFILE:
    case ENFILE:
      return "; raise the limit of open files (ulimit -n)";
    case ENOMEM:
      return "; free memory, or lower max_region_size if address space is limited (ulimit -v)";
    case ENOTDIR:
      return "; choose another path, a file stands there";
    default:
      return "";
  }
}

// Creates a file with these contents, without a sync. An existing regular file of this name is removed, not overwritten: it may
// have another name somewhere.
Status Write(const std::string& path, std::string_view contents, Fd* file) {
  struct stat found;
  if (lstat(path.c_str(), &found) == 0) {
    if (!S_ISREG(found.st_mode)) return Status::IOError(path + " is not a regular file; move it elsewhere");
    if (unlink(path.c_str()) != 0) return ErrnoStatus(errno, "remove", path);
  }
  Fd fd(OpenOwnFile(path, O_WRONLY | O_CREAT | O_EXCL));
  if (!fd.valid()) return ErrnoStatus(errno, "create", path);
  while (!contents.empty()) {
    const ssize_t n = write(fd.get(), contents.data(), contents.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "write", path);
    contents.remove_prefix(static_cast<size_t>(n));
  }
  *file = std::move(fd);
  return Status::OK();
}

// fsync(2), or a note for the batch of a thread that defers its syncs.
Status Sync(const Fd& file, const std::string& path) {
  return DeferredSyncs::Sync(file.get()) == 0 ? Status::OK() : ErrnoStatus(errno, "sync", path);
}

Status Rename(const std::string& temporary, const std::string& path) {
  return rename(temporary.c_str(), path.c_str()) == 0 ? Status::OK() : ErrnoStatus(errno, "rename into place", path);
}

}  // namespace

// An errno of 0 comes from libraries that fail without one.
Status ErrnoStatus(int error, std::string_view action, const std::string& path) {
  const char* const reason = error == 0 ? "the system gave no reason" : std::strerror(error);
  const std::string message = "cannot " + std::string(action) + " " + path + ": " + reason + Advice(error);
  if (error == ENOSPC || error == EDQUOT) return Status::NoSpace(message);
  if (error == ENOENT) return Status::NotFound(message);
  return Status::IOError(message);
}

std::string JoinPath(const std::string& directory, std::string_view name) {
  std::string path = directory;
  if (!path.empty() && path.back() != '/') path += '/';
  return path.append(name);
}

bool Exists(const std::string& path) {
  struct stat st;
  return lstat(path.c_str(), &st) == 0;
}

bool IsSymbolicLink(const std::string& path) {
  struct stat st;
  return lstat(path.c_str(), &st) == 0 && S_ISLNK(st.st_mode);
}

// Reads until the end of the file or one buffer beyond `max_bytes`, so a file that grows meanwhile does not fill the memory.
// EINVAL and ELOOP are OpenOwnFile's errors for a file that is no regular one or a symbolic link.
Status ReadSmallFile(const std::string& path, size_t max_bytes, std::string* contents) {
  contents->clear();
  const Fd fd(OpenOwnFile(path, O_RDONLY));
  if (!fd.valid() && (errno == EINVAL || errno == ELOOP)) {
    return Status::IOError(path + " is not a regular file, and so none of BraidDB; move it elsewhere");
  }
  if (!fd.valid()) return ErrnoStatus(errno, "open", path);
  char buffer[4096];
  while (contents->size() <= max_bytes) {
    const ssize_t n = read(fd.get(), buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "read", path);
    if (n == 0) return Status::OK();
    contents->append(buffer, static_cast<size_t>(n));
  }
  return Status::Corruption(path + " is larger than it can be; restore it from a backup");
}

// ORDER: the synced content before the rename, and the rename before the sync of the directory. After an error the temporary
// file is removed; if only the last sync fails, the new file stays, and may be lost by a crash.
Status ReplaceSmallFile(const std::string& directory, const std::string& name, std::string_view contents) {
  const std::string path = JoinPath(directory, name);
  const std::string temporary = path + ".tmp";
  Fd file;
  Status status = Write(temporary, contents, &file);
  if (status.ok()) status = Sync(file, temporary);
  if (status.ok()) status = Rename(temporary, path);
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  return SyncDirectory(directory);
}

// The sync of the file after the rename commits both in the file system's journal. If that sync or an earlier step fails, both
// names are removed.
Status CreateSmallFile(const std::string& directory, const std::string& name, std::string_view contents) {
  const std::string path = JoinPath(directory, name);
  const std::string temporary = path + ".tmp";
  Fd file;
  Status status = Write(temporary, contents, &file);
  if (status.ok()) status = Rename(temporary, path);
  if (status.ok()) status = Sync(file, path);
  if (status.ok()) return SyncDirectory(directory);
  unlink(temporary.c_str());
  unlink(path.c_str());
  return status;
}

Status Remove(const std::string& path) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return ErrnoStatus(errno, "remove", path);
  return Status::OK();
}

Status SyncDirectory(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "open directory", path);
  // EINVAL: a file system whose directories need no sync.
  if (DeferredSyncs::Sync(fd.get()) != 0 && errno != EINVAL) return ErrnoStatus(errno, "sync directory", path);
  return Status::OK();
}

// readdir(3) reports its errors by errno only, so errno is cleared before each call.
Status List(const std::string& path, std::vector<std::string>* names) {
  names->clear();
  std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  if (!directory) return ErrnoStatus(errno, "list directory", path);
  errno = 0;
  while (const dirent* entry = readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names->emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return ErrnoStatus(errno, "list directory", path);
  std::sort(names->begin(), names->end());
  return Status::OK();
}

// mkdir(2) of each prefix. A prefix that exists is no error; a prefix that cannot be created and does not exist is one.
Status MakeDirectories(const std::string& path, std::vector<std::string>* created) {
  if (path.empty()) return Status::InvalidArgument("the path of a directory is empty; name one");
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string prefix = path.substr(0, end);
    if (mkdir(prefix.c_str(), 0700) == 0) {
      created->push_back(prefix);
      if (chmod(prefix.c_str(), 0700) != 0) return ErrnoStatus(errno, "set permissions of", prefix);
    } else if (const int error = errno; error != EEXIST && !Exists(prefix)) {
      return ErrnoStatus(error, "create directory", prefix);
    }
    if (end == std::string::npos) break;
  }
  struct stat st;
  if (stat(path.c_str(), &st) != 0) return ErrnoStatus(errno, "open directory", path);
  return S_ISDIR(st.st_mode) ? Status::OK() : ErrnoStatus(ENOTDIR, "create directory", path);
}

Status Canonical(const std::string& path, std::string* canonical) {
  const std::unique_ptr<char, void (*)(void*)> resolved(realpath(path.c_str(), nullptr), std::free);
  if (!resolved) return ErrnoStatus(errno, "find", path);
  *canonical = resolved.get();
  return Status::OK();
}

}  // namespace braiddb::posix
