// ForkGuard: what a child of fork(2) must not have of an open database: its locks, and the belief that it may write.
//
// GOAL    A lock ends when its owner closes it or ends, whatever children the owner has. A child that uses a database of its
//         parent gets an error instead of writing beside its parent.
// HOW     Locks are of flock(2). They belong to the open file: two opens in one process exclude each other, and closing another
//         descriptor of the file drops none, as it would with the locks of fcntl(2). But children share the open file. So its
//         owner unlocks before it closes, which ends the lock for all who share it. And in each child of fork(2) a handler of
//         pthread_atfork replaces the descriptors by /dev/null, so that a child keeps no lock of a parent that was killed.
//         A mapping keeps the open file, and so its lock, also when the descriptor is closed: PMDK's mappings of parts do. In
//         each child the handler replaces these by private mappings of the same file, opened anew. Reads in a child go on; its
//         stores stay in the child.
// LIMITS  A child made by clone(2) itself, which runs no handlers, keeps locks of a killed parent until it ends or runs another
//         program.
// Thread safety: all functions may be called concurrently.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace braiddb {

// open(2), and in children the descriptor is /dev/null from the fork on. -1 and errno if it fails.
int OpenGuarded(const char* path, int flags, unsigned mode = 0);
// Ends the lock of flock(2) that the open file has, if any, and closes the descriptor. Nothing in a child.
void CloseGuarded(int fd);

// In children the memory is a private mapping of the file from the fork on; it cannot be read there if the file cannot be mapped
// privately. `file` is mapped at `memory` from its first byte on. UnguardMapping comes before the memory is unmapped.
void GuardMapping(const std::string& file, void* memory, size_t bytes);
void UnguardMapping(void* memory);

// How many forks there are between this process and the one that loaded the library.
inline std::atomic<uint32_t> fork_generation{0};

// Tells the process that made the object from its children. In these `*mark` becomes true at the fork.
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
