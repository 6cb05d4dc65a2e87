// FetchEntry: gets the start of a log entry into the caches, its header, and the key if that is short; FetchEntryEnd: the end.
// TypicalEntryBytes: how much to fetch (PrefetchAll) of entries that are wanted whole, before their sizes are known.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "log/log_entry.h"
#include "util/prefetch.h"

namespace braiddb {

// An entry may begin in the middle of a line, and its key, or what of a key of 16 bytes is behind two pointers, is in the next
// one then.
[[gnu::always_inline]] inline void FetchEntry(const LogEntry* entry) {
  Prefetch(entry);
  Prefetch(reinterpret_cast<const char*>(entry) + sizeof(LogEntry) + 2 * sizeof(uint64_t) + 15);
}

// Of a value that does not end where the entry was fetched. Looks at the entry.
[[gnu::always_inline]] inline void FetchEntryEnd(const LogEntry* entry) {
  Prefetch(reinterpret_cast<const char*>(entry) + LogEntrySize(*entry) - 1);
}

// Of the entries at(0) … at(count - 1) three in four are not larger, by a look at a few; not more than kMostTypicalBytes: what
// follows in a large value, the CPU fetches by itself. 0 if there are none.
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
