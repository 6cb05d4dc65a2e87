// RunLocks: memory for the mutexes of libpmemobj's heaps.
//
// Each open of a pool allocates 65528 of them, 3 MB, in one piece with a few other things, and initializes one after the other:
// that was a quarter of a campaign's time. An initialized or released mutex is all zeros, so that memory that was zero at first
// needs no initialization, nor does it when it is used again. malloc and free of libpmemobj come here through the linker's
// --wrap (pmem/pmdk_memory.cc passes them on).
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>

namespace braiddb::test {

class RunLocks {
 public:
  static bool Contain(const void* address) { return reinterpret_cast<uintptr_t>(address) - begin_ < kHeaps * kHeapBytes; }
  // Null: not such a piece, or none is free.
  static void* Allocate(size_t bytes);
  static void Free(void* memory);

 private:
  static constexpr size_t kLocksBytes = 65528 * 48;
  static constexpr size_t kHeapBytes = kLocksBytes + (32 << 10);
  static constexpr size_t kHeaps = 8;  // open at once; more get memory like any other

  static constexpr uintptr_t kNone = UINTPTR_MAX / 2;

  static inline uintptr_t begin_ = kNone;
  static inline bool used_[kHeaps] = {};
};

}  // namespace braiddb::test
