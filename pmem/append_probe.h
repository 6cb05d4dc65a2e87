// AppendProbe: chooses the faster method of appending a small record to persistent memory on this CPU.
//
// METHODS  cached     the record is stored through the caches, and its lines are written back with CLWB
//          streamed   the record is stored with non-temporal stores, which bypass the caches
//          A fence follows in both. The record is durable when the fence has passed.
// WHY      CPUs differ. Some execute other instructions while a CLWB is under way; some do so for a non-temporal store. A
//          record that was streamed is in no cache afterwards, so the next reader loads it from memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "util/check.h"

namespace braiddb {

// Copies `bytes` bytes by non-temporal 8-byte stores (MOVNTI). The stores are weakly ordered: only a fence (SFENCE) orders them
// before later stores, and makes them durable. No flush is needed.
// REQUIRES: both addresses are aligned to 8 bytes, and `bytes` is a multiple of 8.
inline void StreamWords(void* to, const void* from, size_t bytes) {
  BRAIDDB_DCHECK(reinterpret_cast<uintptr_t>(to) % 8 == 0 && reinterpret_cast<uintptr_t>(from) % 8 == 0 && bytes % 8 == 0);
  using Word [[gnu::may_alias]] = uint64_t;  // the bytes may have been stored as another type
  auto* const target = static_cast<Word*>(to);
  const auto* const source = static_cast<const Word*>(from);
  for (size_t i = 0; i < bytes / 8; ++i) asm volatile("movnti %1, %0" : "=m"(target[i]) : "r"(source[i]));
}

// Copies whole cache lines, as StreamWords. `from` may have any alignment. REQUIRES: `to` is aligned to a line, and `bytes` is a
// multiple of the size of a line.
inline void StreamLines(void* to, const void* from, size_t bytes) {
  BRAIDDB_DCHECK(reinterpret_cast<uintptr_t>(to) % 64 == 0 && bytes % 64 == 0);
  using Word [[gnu::may_alias]] = uint64_t;
  auto* const target = static_cast<Word*>(to);
  const auto* const source = static_cast<const char*>(from);
  for (size_t i = 0; i < bytes / 8; ++i) {
    uint64_t word;
    std::memcpy(&word, source + 8 * i, 8);
    asm volatile("movnti %1, %0" : "=m"(target[i]) : "r"(word));
  }
}

// Returns true if a streamed record of one line is durable clearly sooner than a cached one. The first call measures both
// methods on DRAM in less than a millisecond; later calls return the same result. Returns false if the CPU has no CLWB, or if
// the probe cannot allocate memory. Thread-safe.
bool StreamingIsFaster();

}  // namespace braiddb
