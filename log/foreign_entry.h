// Entries that a process finds in memory of another process.
#pragma once

#include "log/log_entry.h"
#include "pmem/region_set.h"

namespace braiddb {

// The entry that memory of the database's owner names. The word is not trusted, since the memory may be in use for something else
// if this reader has expired (db/live_reader.h). The result can be read in any case; it is all zeros if `place` is in no region.
const LogEntry* ForeignEntry(const RegionSet& regions, PmPtr place);

}  // namespace braiddb
