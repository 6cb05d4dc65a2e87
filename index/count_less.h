// CountLess: the last steps of a search in sorted numbers, without a branch that depends on them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace braiddb {

// How many of key(0) … key(kCount - 1) are less than `target`.
template <size_t kCount, class KeyAt>
[[gnu::always_inline]] inline size_t CountLess(uint64_t target, const KeyAt& key) {
  size_t count = 0;
#pragma GCC unroll 16
  for (size_t i = 0; i < kCount; ++i) count += key(i) < target ? 1 : 0;
  return count;
}

}  // namespace braiddb
