// RunLocks: memory for the mutexes of libpmemobj's heaps.
//
// Each open of a pool allocates 65528 of them, 3 MB, in one piece with a few other things, initializes one after the other, and
// destroys them with the pool: that was a third of a campaign's time. An initialized or released mutex is all zeros, so that
// memory that was zero at first needs no initialization, nor does it when it is used again. Their number is behind the last of
// them; under valgrind libpmemobj makes do with 1024, and here too. malloc and free of libpmemobj come here through the linker's
// --wrap (pmem/pmdk_memory.cc passes them on).
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>

namespace braiddb::test {

class RunLocks {
 public:
  static bool Contain(const void* address) { return reinterpret_cast<uintptr_t>(address) - begin_ < kHeaps * kHeapBytes; }
  // Says that there are fewer, if `mutex` is the first of them. REQUIRES: Contain(mutex).
  static void LeaveOut(const void* mutex) {
    const uintptr_t count = reinterpret_cast<uintptr_t>(mutex) + kCount * kLockBytes;
    if (!Contain(reinterpret_cast<const void*>(count + sizeof(uint32_t)))) return;
    if (*reinterpret_cast<const uint32_t*>(count) == kCount) *reinterpret_cast<uint32_t*>(count) = kCountUnderValgrind;
  }
  // Null: not such a piece, or none is free.
  static void* Allocate(size_t bytes);
  static void Free(void* memory);

 private:
  static constexpr uint32_t kCount = 65528;
  static constexpr uint32_t kCountUnderValgrind = 1024;
  static constexpr size_t kLockBytes = 48;
  static constexpr size_t kLocksBytes = kCount * kLockBytes;
  static constexpr size_t kHeapBytes = kLocksBytes + (32 << 10);
  static constexpr size_t kHeaps = 8;  // open at once; more get memory like any other

  static constexpr uintptr_t kNone = UINTPTR_MAX / 2;

  static inline uintptr_t begin_ = kNone;
  static inline bool used_[kHeaps] = {};
};

}  // namespace braiddb::test
