// The thread indexes that are taken, for waits that concern living threads only.
#pragma once

#include <atomic>
#include <cstdint>

#include "util/thread_index.h"

namespace braiddb {

namespace internal {

// One bit for each index. Set before ThreadIndex returns the index for the first time, cleared when the thread has ended.
extern constinit std::atomic<uint64_t> taken_thread_indexes[kMaxThreads / 64];

}  // namespace internal

inline bool IsThreadIndexTaken(uint32_t index) {
  return (internal::taken_thread_indexes[index / 64].load(std::memory_order_seq_cst) >> index % 64 & 1) != 0;
}

// Calls `visit` for every index that is taken, in order. An index that is taken or given back meanwhile is visited or not.
// WHO IS NOT MISSED  If a thread stored something after it got its index, and the caller is sure to see that store, the caller
//                    sees the bit as well: both are sequentially consistent, or ordered by the same fence.
template <class Visit>
void ForEachTakenThreadIndex(Visit&& visit) {
  for (uint32_t word = 0; word < kMaxThreads / 64; ++word) {
    uint64_t taken = internal::taken_thread_indexes[word].load(std::memory_order_seq_cst);
    for (; taken != 0; taken &= taken - 1) visit(word * 64 + static_cast<uint32_t>(__builtin_ctzll(taken)));
  }
}

}  // namespace braiddb
