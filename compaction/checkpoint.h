// Checkpoint: makes the pointers of flushed tables durable, in bulk (lazy group checkpointing, ListDB 3.2).
#pragma once

#include <cstdint>

#include "braiddb/status.h"
#include "lsm/pm_table.h"
#include "pmem/persistence.h"

namespace braiddb {

// GOAL   After it, the MANIFEST may list the table and move the log boundary past it.
// STEPS  Flush the log space that holds the table's entries, in address order, a fence at the end of each stretch.
// CRASH  Anywhere: the MANIFEST does not list the table yet; its entries are replayed.
// COST   One flush per cache line of log space (clean lines cost little), one fence per stretch.
// REQUIRES: the table is linked, and this thread sees all of it. Adds to *flushed_lines.
Status PersistTablePointers(const PmTable& table, Persistence* persistence, uint64_t* flushed_lines);

}  // namespace braiddb
