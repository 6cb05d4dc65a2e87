// ForkGuard: keeps children of fork(2) from holding locks of an open database and from writing to it.
//
// GOAL    A lock ends when its owner closes it or ends, whatever children the owner has. A child that uses a database of its
//         parent gets an error and does not write.
// HOW     Locks are flock(2) locks, which belong to the open file: two opens in one process exclude each other, and closing
//         another descriptor of the file drops no lock, unlike with fcntl(2). Children share the open file. The owner therefore
//         unlocks before it closes, which ends the lock for all that share it. In each child of fork(2), a pthread_atfork handler
//         replaces the descriptors by /dev/null, so that a child keeps no lock of a parent that was killed.
//         A mapping also keeps the open file and its lock after the descriptor is closed; PMDK's mappings of parts do. In each
//         child, the handler replaces these by private mappings of the same file, opened again. Reads in a child work; its stores
//         stay in the child.
// LIMITS  A child of a direct clone(2) call runs no handlers. It keeps locks of a killed parent until it ends or runs another
//         program.
// CONCURRENCY  All functions may be called concurrently.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace braiddb {

// open(2); in children the descriptor is /dev/null after the fork. Returns -1 and sets errno on failure.
int OpenGuarded(const char* path, int flags, unsigned mode = 0);
// Unlocks the open file (flock), if it is locked, and closes the descriptor. In a child it only closes.
void CloseGuarded(int fd);

// Calls `open`, which returns a descriptor or -1. No fork happens between the call and the record of its descriptor. In children
// the descriptor is closed after the fork, and its number may name another file. Only the process that opened the descriptor may
// use it and must close it with CloseUnshared. util/unshared_descriptor.h checks that.
int OpenUnshared(const std::function<int()>& open);
void CloseUnshared(int fd);

// In children the memory becomes a private mapping of the file at the fork, or unreadable if the file cannot be mapped. `memory`:
// the mapping of `file` from its first byte on. UnguardMapping must be called before the memory is unmapped.
void GuardMapping(const std::string& file, void* memory, size_t bytes);
void UnguardMapping(void* memory);

// The number of forks between the process that loaded the library and this process.
inline std::atomic<uint32_t> fork_generation{0};

// Distinguishes the process that created the object from its children. In a child `*mark` becomes true at the fork.
class ForkMark {
 public:
  explicit ForkMark(std::atomic<bool>* mark);
  ~ForkMark();
  ForkMark(const ForkMark&) = delete;
  ForkMark& operator=(const ForkMark&) = delete;

  bool is_in_child() const { return fork_generation.load(std::memory_order_relaxed) != generation_; }

 private:
  std::atomic<bool>* const mark_;
  const uint32_t generation_;
};

}  // namespace braiddb
