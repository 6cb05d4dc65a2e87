// CommonBytes: the length of the longest common prefix of two strings. BytesFrom: the end of a string.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "braiddb/slice.h"

namespace braiddb {

inline size_t CommonBytes(Slice a, Slice b) {
  const size_t most = std::min(a.size(), b.size());
  size_t same = 0;
  for (; same + sizeof(uint64_t) <= most; same += sizeof(uint64_t)) {
    uint64_t of_a, of_b;
    std::memcpy(&of_a, a.data() + same, sizeof(of_a));
    std::memcpy(&of_b, b.data() + same, sizeof(of_b));
    if (of_a != of_b) return same + static_cast<size_t>(std::countr_zero(of_a ^ of_b)) / 8;
  }
  while (same < most && a[same] == b[same]) ++same;
  return same;
}

// Empty if the string ends before `offset`.
inline Slice BytesFrom(Slice bytes, size_t offset) { return bytes.substr(std::min(offset, bytes.size())); }

}  // namespace braiddb
