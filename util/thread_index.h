// ThreadIndex: a small number for the calling thread, unique among living threads, given back when the thread ends.
#pragma once

#include <cstdint>

namespace braiddb {

inline constexpr uint32_t kMaxThreads = 4096;
inline constexpr uint32_t kNoThreadIndex = UINT32_MAX;

// In [0, kMaxThreads), the smallest that is free; kNoThreadIndex when all are taken, and for a thread whose
// thread_local objects are being destroyed. What a thread wrote before it ended
// happens before what the next owner of its index reads.
uint32_t ThreadIndex();

}  // namespace braiddb
