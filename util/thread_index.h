// ThreadIndex: a small number for the calling thread, unique among living threads, given back when the thread ends.
#pragma once

#include <cstdint>

namespace braiddb {

inline constexpr uint32_t kMaxThreads = 4096;
inline constexpr uint32_t kNoThreadIndex = UINT32_MAX;

// In [0, kMaxThreads), the smallest that is free; kNoThreadIndex when all are taken, and for a thread whose
// thread_local objects are being destroyed. What a thread wrote before it ended
// happens before what the next owner of its index reads.
inline uint32_t ThreadIndex();
// The same, but kNoThreadIndex as long as the thread has not asked for one.
inline uint32_t PeekThreadIndex();

namespace internal {

// Of a trivial type with a constant initializer: reading it is one load without a guard, and possible as well while the thread's
// other thread_local objects are destroyed.
extern constinit thread_local uint32_t t_thread_index;
uint32_t AssignThreadIndex();

}  // namespace internal

inline uint32_t ThreadIndex() {
  const uint32_t index = internal::t_thread_index;
  return __builtin_expect(index != kNoThreadIndex, 1) ? index : internal::AssignThreadIndex();
}

inline uint32_t PeekThreadIndex() { return internal::t_thread_index; }

}  // namespace braiddb
