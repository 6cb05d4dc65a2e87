#include "log/foreign_entry.h"

namespace braiddb {

const LogEntry* ForeignEntry(const RegionSet& regions, PmPtr place) {
  alignas(64) static const uint8_t zeros[4096] = {};
  const PmPtr aligned(place.raw() & ~uint64_t{alignof(LogEntry) - 1});
  return regions.Holds(aligned) ? regions.Resolve<LogEntry>(aligned) : reinterpret_cast<const LogEntry*>(zeros);
}

}  // namespace braiddb
