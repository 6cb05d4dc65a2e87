#include "util/deferred_syncs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "util/file.h"

namespace braiddb {
namespace {

thread_local DeferredSyncs* current = nullptr;

// "" if the system does not tell.
std::string PathOf(int fd) {
  char path[PATH_MAX];
  const ssize_t bytes = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof(path));
  return bytes > 0 ? std::string(path, static_cast<size_t>(bytes)) : std::string();
}

bool IsIn(const std::string& path, const std::string& directory) {
  return path == directory || directory == "/" || path.starts_with(directory + "/");
}

}  // namespace

DeferredSyncs::DeferredSyncs(std::string directory) : directory_(std::move(directory)) { current = this; }

DeferredSyncs::~DeferredSyncs() {
  if (current == this) current = nullptr;
  CloseFiles();
}

void DeferredSyncs::Suspend() { current = nullptr; }
void DeferredSyncs::Resume() { current = this; }

bool DeferredSyncs::active() { return current != nullptr; }

int DeferredSyncs::Sync(int fd) { return current != nullptr && current->PutOff(fd) ? 0 : fsync(fd); }

bool DeferredSyncs::Concerns(int fd) const {
  const std::string path = PathOf(fd);
  return !path.empty() && (IsIn(path, directory_) || IsIn(directory_, path));
}

// False: it is to be synced at once.
bool DeferredSyncs::PutOff(int fd) {
  struct stat file;
  if (fstat(fd, &file) != 0 || !Concerns(fd)) return false;
  if (known_.contains({file.st_dev, file.st_ino})) return true;
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return false;
  files_.push_back({copy, S_ISDIR(file.st_mode)});
  known_.insert({file.st_dev, file.st_ino});
  return true;
}

Status DeferredSyncs::Add(const std::string& directory) {
  return FileExists(directory) && access(directory.c_str(), R_OK) == 0 ? SyncDir(directory) : Status::OK();
}

// A hint: what fails here, the sync reports.
void DeferredSyncs::WriteBack() const {
  for (const unsigned int how : {SYNC_FILE_RANGE_WRITE, SYNC_FILE_RANGE_WAIT_BEFORE}) {
    for (const File& file : files_) {
      if (!file.is_directory) (void)sync_file_range(file.fd, 0, 0, how);
    }
  }
}

Status DeferredSyncs::SyncFiles() {
  WriteBack();
  Status status;
  for (const bool directories : {false, true}) {
    for (const File& file : files_) {
      struct stat found;
      const bool is_gone = fstat(file.fd, &found) == 0 && found.st_nlink == 0;
      if (file.is_directory != directories || is_gone || !status.ok() || fsync(file.fd) == 0) continue;
      // EINVAL: a file system whose directories need no sync.
      if (!directories || errno != EINVAL) status = StatusFromErrno(errno, "cannot sync " + PathOf(file.fd));
    }
  }
  CloseFiles();
  return status;
}

Status DeferredSyncs::End(const std::function<Status()>& sync_pools) {
  if (current == this) current = nullptr;
  WriteBack();
  Status status = sync_pools();
  const Status files = SyncFiles();
  return status.ok() ? files : status;
}

void DeferredSyncs::CloseFiles() {
  for (const File& file : files_) close(file.fd);
  files_.clear();
  known_.clear();
}

}  // namespace braiddb
