// FetchEntry, FetchEntryEnd: prefetch the start and the end of a log entry. TypicalEntryBytes: chooses the number of bytes to
// prefetch of entries whose sizes are not known yet.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "log/log_entry.h"
#include "util/prefetch.h"

namespace braiddb {

// Prefetches the lines of the header and of a short key. Does not read the entry. An entry may begin in the middle of a line;
// then the end of a key of 16 bytes behind two pointers lies in the next line. So two lines are prefetched.
[[gnu::always_inline]] inline void FetchEntry(const LogEntry* entry) {
  Prefetch(entry);
  Prefetch(reinterpret_cast<const char*>(entry) + sizeof(LogEntry) + 2 * sizeof(uint64_t) + 15);
}

// Prefetches the last line of the entry. Reads the header of the entry, so that should be in the cache already.
[[gnu::always_inline]] inline void FetchEntryEnd(const LogEntry* entry) {
  Prefetch(reinterpret_cast<const char*>(entry) + LogEntrySize(*entry) - 1);
}

// Estimates the third quartile of the sizes of the entries at(0) … at(count - 1), from a sample of up to 16. Returns at most
// kMostTypicalBytes: the CPU prefetches the rest of a large value by itself. Returns 0 if `count` is 0.
// COST  The cache misses of the sampled headers, side by side.
inline constexpr uint64_t kMostTypicalBytes = 4 * kCacheLine;
template <class At>
uint64_t TypicalEntryBytes(uint64_t count, const At& at) {
  constexpr uint64_t kLooks = 16;
  std::array<const LogEntry*, kLooks> entries;
  const uint64_t looks = std::min(count, kLooks);
  if (looks == 0) return 0;
  for (uint64_t i = 0; i < looks; ++i) FetchEntry(entries[i] = at(count / looks * i));
  std::array<uint64_t, kLooks> sizes;
  for (uint64_t i = 0; i < looks; ++i) sizes[i] = std::min(LogEntrySize(*entries[i]), kMostTypicalBytes);
  const auto typical = sizes.begin() + looks * 3 / 4;
  std::nth_element(sizes.begin(), typical, sizes.begin() + looks);
  return *typical;
}

}  // namespace braiddb
