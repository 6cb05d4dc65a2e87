// The thread indexes in use, for waits that concern living threads only.
#pragma once

#include <atomic>
#include <cstdint>

#include "util/thread_index.h"

namespace braiddb {

namespace internal {

// One bit per index. Set before ThreadIndex returns the index for the first time, cleared after the thread has ended.
extern constinit std::atomic<uint64_t> taken_thread_indexes[kMaxThreads / 64];

}  // namespace internal

inline bool IsThreadIndexTaken(uint32_t index) {
  return (internal::taken_thread_indexes[index / 64].load(std::memory_order_seq_cst) >> index % 64 & 1) != 0;
}

// Calls `visit` for every index in use, in order. An index that is taken or returned concurrently may or may not be visited.
// GUARANTEE  Suppose a thread stored a value after it got its index. If the caller is sure to see that store, it sees the bit as
//            well, because both are sequentially consistent or ordered by the same fence.
template <class Visit>
void ForEachTakenThreadIndex(Visit&& visit) {
  for (uint32_t word = 0; word < kMaxThreads / 64; ++word) {
    uint64_t taken = internal::taken_thread_indexes[word].load(std::memory_order_seq_cst);
    for (; taken != 0; taken &= taken - 1) visit(word * 64 + static_cast<uint32_t>(__builtin_ctzll(taken)));
  }
}

}  // namespace braiddb
