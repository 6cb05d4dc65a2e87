// SharedMemory: memory that a process can pass to other processes as a file descriptor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace braiddb {

// A mapped memfd. The owner reads and writes it. A process that gets the descriptor maps it for reading only, or for writing if
// the owner wants that. The memory lives until the last process has unmapped it.
//
// FORK  A child of the owner gets a private mapping at the fork, so its stores do not reach the owner (util/fork_guard.h).
class SharedMemory {
 public:
  // Zeroed memory of `bytes`, rounded up to pages. Pages take memory when they are touched. The size never changes: the file is
  // sealed against it, so no process can make another one fault. Null if the system refuses.
  static std::unique_ptr<SharedMemory> Create(uint64_t bytes);
  // Maps the memory behind a descriptor from another process, and takes the descriptor over. Null if the descriptor is no sealed
  // memfd of at least `least_bytes`, or if the system refuses. `guard_bytes`: so much address space behind the memory reads as
  // zeros.
  static std::unique_ptr<SharedMemory> Attach(int fd, bool writable, uint64_t least_bytes, uint64_t guard_bytes = 0);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  int fd() const { return fd_; }
  uint8_t* base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  // A new descriptor of the same memory that cannot be used to write; -1 if the system refuses.
  int OpenToRead() const;
  // Gives pages back to the system. They are zero when touched again.
  void Release(uint64_t offset, uint64_t bytes);

 private:
  SharedMemory(int fd, uint8_t* base, uint64_t bytes, uint64_t guard_bytes, bool is_owner)
      : fd_(fd), base_(base), bytes_(bytes), guard_bytes_(guard_bytes), is_owner_(is_owner) {}

  const int fd_;
  uint8_t* const base_;
  const uint64_t bytes_;
  const uint64_t guard_bytes_;
  const bool is_owner_;
};

// A range of a SharedHeap.
struct SharedRange {
  uint64_t offset = 0;  // 0: none
  uint64_t bytes = 0;
};

// SharedHeap: a heap of page ranges in shared memory. A range is named by its offset, so a process that maps the memory elsewhere
// finds it. The bookkeeping is in private memory of the owner.
// Thread safety: all methods may be called concurrently.
class SharedHeap {
 public:
  // Reserves address space for as much memory as the machine has, or less if the system gives less. Null if that is less than 256
  // MiB.
  static std::unique_ptr<SharedHeap> Create();

  // Returns the offset of `bytes` zeroed bytes, page-aligned, or aligned to 2 MiB if there are as many; 0 if there is no room.
  uint64_t Allocate(uint64_t bytes);
  // The same for what could also be in private memory: returns 0 if less than half of the heap would be free afterwards.
  uint64_t AllocateOptional(uint64_t bytes);
  bool HasRoomToSpare(uint64_t bytes) const;
  // Frees a range that Allocate returned for the same number of bytes.
  void Free(uint64_t offset, uint64_t bytes);
  // From now on no memory is given back or used again, so readers keep what they see.
  void Freeze();
  bool is_frozen() const;
  // Gives whole pages of an allocated range back to the system; they are zero when touched again. False after Freeze.
  bool Empty(uint64_t offset, uint64_t bytes);

  uint8_t* At(uint64_t offset) const { return memory_->base() + offset; }
  const SharedMemory& memory() const { return *memory_; }

 private:
  explicit SharedHeap(std::unique_ptr<SharedMemory> memory);
  static uint64_t RoundUp(uint64_t bytes);
  // REQUIRES: mutex_ is held.
  uint64_t AllocateLocked(uint64_t bytes);
  bool HasRoomLocked(uint64_t bytes) const;

  const std::unique_ptr<SharedMemory> memory_;
  mutable std::mutex mutex_;
  std::map<uint64_t, uint64_t> free_;  // by offset: bytes; neighbours are joined
  uint64_t free_bytes_ = 0;
  bool is_frozen_ = false;
};

}  // namespace braiddb
