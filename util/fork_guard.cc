#include "util/fork_guard.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <string>
#include <vector>

namespace braiddb {
namespace {

struct Mapping {
  std::string file;
  void* memory;
  size_t bytes;
};

// Never destroyed, since databases may be closed when the program ends.
struct Guarded {
  std::mutex mutex;
  std::vector<int> descriptors;
  std::vector<int> unshared_descriptors;
  std::vector<Mapping> mappings;
  std::vector<std::atomic<bool>*> marks;
};
Guarded& All() {
  static auto* const all = new Guarded();
  return *all;
}

void BeforeFork() { All().mutex.lock(); }
void InParent() { All().mutex.unlock(); }
void MapPrivately(const Mapping& mapping) {
  const int fd = open(mapping.file.c_str(), O_RDONLY | O_CLOEXEC);
  const int flags = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
  if (fd < 0 || mmap(mapping.memory, mapping.bytes, PROT_READ | PROT_WRITE, flags, fd, 0) == MAP_FAILED)
    (void)mmap(mapping.memory, mapping.bytes, PROT_NONE, flags | MAP_ANONYMOUS, -1, 0);
  if (fd >= 0) close(fd);
}
// Uses only calls that are safe after a fork.
void InChild() {
  fork_generation.fetch_add(1, std::memory_order_relaxed);
  const int error = errno;
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : All().descriptors) {
    if (null < 0 || dup3(null, fd, O_CLOEXEC) < 0) close(fd);
  }
  if (null >= 0) close(null);
  All().descriptors.clear();
  for (const int fd : All().unshared_descriptors) close(fd);
  All().unshared_descriptors.clear();
  for (const Mapping& mapping : All().mappings) MapPrivately(mapping);
  All().mappings.clear();
  for (std::atomic<bool>* const mark : All().marks) mark->store(true, std::memory_order_relaxed);
  All().marks.clear();
  errno = error;
  All().mutex.unlock();
}

void HandleForks() {
  static const int handled = pthread_atfork(BeforeFork, InParent, InChild);
  (void)handled;  // if it fails, children share locks; the owner's unlock still ends them
}

}  // namespace

int OpenGuarded(const char* path, int flags, unsigned mode) {
  HandleForks();
  const std::lock_guard lock(All().mutex);
  All().descriptors.reserve(All().descriptors.size() + 1);
  const int fd = open(path, flags, mode);
  if (fd >= 0) All().descriptors.push_back(fd);
  return fd;
}

int OpenUnshared(const std::function<int()>& open) {
  HandleForks();
  const std::lock_guard lock(All().mutex);
  All().unshared_descriptors.reserve(All().unshared_descriptors.size() + 1);
  const int fd = open();
  if (fd >= 0) All().unshared_descriptors.push_back(fd);
  return fd;
}

void CloseUnshared(int fd) {
  const std::lock_guard lock(All().mutex);
  std::erase(All().unshared_descriptors, fd);
  close(fd);
}

void GuardMapping(const std::string& file, void* memory, size_t bytes) {
  HandleForks();
  const std::lock_guard lock(All().mutex);
  All().mappings.push_back({file, memory, bytes});
}

void UnguardMapping(void* memory) {
  const std::lock_guard lock(All().mutex);
  std::erase_if(All().mappings, [memory](const Mapping& mapping) { return mapping.memory == memory; });
}

void CloseGuarded(int fd) {
  const std::lock_guard lock(All().mutex);
  const bool is_own = std::erase(All().descriptors, fd) > 0;  // false in a child
  if (is_own) flock(fd, LOCK_UN);
  close(fd);
}

ForkMark::ForkMark(std::atomic<bool>* mark) : mark_(mark), generation_(fork_generation.load(std::memory_order_relaxed)) {
  HandleForks();
  const std::lock_guard lock(All().mutex);
  All().marks.push_back(mark);
}

ForkMark::~ForkMark() {
  const std::lock_guard lock(All().mutex);
  std::erase(All().marks, mark_);
}

}  // namespace braiddb
