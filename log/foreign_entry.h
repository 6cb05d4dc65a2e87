// Entries that a process finds in memory of another process.
#pragma once

#include "log/log_entry.h"
#include "pmem/region_set.h"

namespace braiddb {

// What stands for an entry that lies in no region: zeros.
alignas(64) inline constexpr uint8_t kNoForeignEntry[4096] = {};

// The entry that memory of the database's owner names. The word is not trusted, since the memory may be in use for something else
// if this reader has expired (db/live_reader.h). The result can be read in any case; it is all zeros if `place` is in no region.
inline const LogEntry* ForeignEntry(const RegionSet& regions, PmPtr place) {
  const PmPtr aligned(place.raw() & ~uint64_t{alignof(LogEntry) - 1});
  if (__builtin_expect(regions.Holds(aligned), 1)) return regions.Resolve<LogEntry>(aligned);
  return reinterpret_cast<const LogEntry*>(kNoForeignEntry);
}

}  // namespace braiddb
