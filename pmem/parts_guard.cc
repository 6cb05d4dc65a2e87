#include "pmem/parts_guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cstdlib>
#include <memory>
#include <set>
#include <utility>

#include "util/fork_guard.h"

namespace braiddb {

void PartsGuard::Guard(const std::vector<std::string>& parts) {
  std::set<std::pair<dev_t, ino_t>> files;
  for (const std::string& part : parts) {
    struct stat file;
    if (stat(part.c_str(), &file) == 0) files.emplace(file.st_dev, file.st_ino);
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> all(opendir("/proc/self/fd"), closedir);
  if (!all) return;  // without /proc children share the locks of parts
  while (const dirent* entry = readdir(all.get())) {
    const int fd = std::atoi(entry->d_name);
    struct stat found;
    if (entry->d_name[0] == '.' || fstat(fd, &found) != 0 || !files.contains({found.st_dev, found.st_ino})) continue;
    if ((fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDWR) continue;  // of a reader in this process, who closes it by himself
    GuardDescriptor(fd);
    descriptors_.push_back(fd);
  }
}

void PartsGuard::Release() {
  for (const int fd : descriptors_) {
    if (UnguardDescriptor(fd)) flock(fd, LOCK_UN);
  }
  descriptors_.clear();
}

}  // namespace braiddb
