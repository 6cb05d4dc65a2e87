// Checkpoint: makes the pointers of flushed tables durable in bulk (lazy group checkpointing, ListDB 3.2).
#pragma once

#include <cstdint>

#include "braiddb/status.h"
#include "lsm/pm_table.h"
#include "pmem/persistence.h"

namespace braiddb {

// GOAL   After it, the MANIFEST may list the table and move the log boundary past it.
// STEPS  For each extent of log space that holds entries of the table: flush its lines in address order, then fence.
// CRASH  Anywhere: the MANIFEST does not list the table yet, so its entries are replayed.
// WHAT A READER SEES  No change. The pointers are visible since the flush.
// COST   One flush per cache line of log space, and one fence per extent. Flushing a clean line is cheap.
// REQUIRES: the table is linked, and this thread sees all its pointers. Adds to *flushed_lines.
Status PersistTablePointers(const PmTable& table, Persistence* persistence, uint64_t* flushed_lines);

}  // namespace braiddb
