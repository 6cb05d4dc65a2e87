// The sizes of the pages of x86-64.
#pragma once

#include <cstdint>

namespace braiddb {

inline constexpr uint64_t kPageBytes = 4096;
inline constexpr uint64_t kHugePageBytes = 2ull << 20;

constexpr uint64_t RoundUpToPage(uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

}  // namespace braiddb
