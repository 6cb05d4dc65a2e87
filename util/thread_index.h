// ThreadIndex: a small number of the calling thread, unique among living threads, returned when the thread ends.
#pragma once

#include <cstdint>

namespace braiddb {

inline constexpr uint32_t kMaxThreads = 4096;
inline constexpr uint32_t kNoThreadIndex = UINT32_MAX;

// The smallest free index in [0, kMaxThreads); kNoThreadIndex if all are in use, and for a thread whose thread_local objects are
// being destroyed. The stores of a thread that ended happen before the loads of the next owner of its index.
inline uint32_t ThreadIndex();
// The same, but kNoThreadIndex if the thread has not called ThreadIndex yet.
inline uint32_t PeekThreadIndex();

namespace internal {

// A trivial type with a constant initializer: access is one load without a guard, also while the thread's other thread_local
// objects are destroyed.
extern constinit thread_local uint32_t t_thread_index;
uint32_t AssignThreadIndex();

}  // namespace internal

inline uint32_t ThreadIndex() {
  const uint32_t index = internal::t_thread_index;
  return __builtin_expect(index != kNoThreadIndex, 1) ? index : internal::AssignThreadIndex();
}

inline uint32_t PeekThreadIndex() { return internal::t_thread_index; }

}  // namespace braiddb
