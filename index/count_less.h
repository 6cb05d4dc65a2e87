// CountLess: a linear search in a few sorted numbers without data-dependent branches.
#pragma once

#include <cstddef>
#include <cstdint>

namespace braiddb {

// The number of key(0) … key(kCount - 1) that are less than `target`.
template <size_t kCount, class KeyAt>
[[gnu::always_inline]] inline size_t CountLess(uint64_t target, const KeyAt& key) {
  size_t count = 0;
#pragma GCC unroll 16
  for (size_t i = 0; i < kCount; ++i) count += key(i) < target ? 1 : 0;
  return count;
}

}  // namespace braiddb
