// Comparison and copy of short strings without a function call. Most keys have 8 to 16 bytes, and many values are hardly longer.
// For these a call of memcmp or memcpy takes longer than the work.
#pragma once

#include <cstdint>
#include <cstring>

#include "braiddb/slice.h"

namespace braiddb {

[[gnu::always_inline]] inline bool SameBytes(Slice a, Slice b) {
  const size_t size = a.size();
  if (size != b.size()) return false;
  if (size < 8 || size > 16) return size == 0 || std::memcmp(a.data(), b.data(), size) == 0;  // an empty slice may be null
  // Compares the first and the last eight bytes, which may overlap.
  uint64_t a_first, a_last, b_first, b_last;
  std::memcpy(&a_first, a.data(), 8);
  std::memcpy(&b_first, b.data(), 8);
  std::memcpy(&a_last, a.data() + size - 8, 8);
  std::memcpy(&b_last, b.data() + size - 8, 8);
  return ((a_first ^ b_first) | (a_last ^ b_last)) == 0;
}

// REQUIRES: the two ranges do not overlap.
[[gnu::always_inline]] inline void CopyBytes(char* to, Slice from) {
  const char* const begin = from.data();
  const size_t size = from.size();
  if (size < 8 || size > 16) {
    if (size != 0) std::memcpy(to, begin, size);  // the address of an empty slice may be null
    return;
  }
  uint64_t first, last;
  std::memcpy(&first, begin, 8);
  std::memcpy(&last, begin + size - 8, 8);
  std::memcpy(to, &first, 8);
  std::memcpy(to + size - 8, &last, 8);
}

}  // namespace braiddb
