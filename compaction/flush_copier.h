// FlushCopier: writes what a flush keeps once more, into segments of its own: a database without index-unified logging.
#pragma once

#include <cstdint>
#include <vector>

#include "braiddb/status.h"
#include "log/log_entry.h"
#include "lsm/pm_table.h"
#include "pmem/region_set.h"
#include "pmem/segment_allocator.h"

namespace braiddb {

// GOAL   A table of L0 that does not need the log: entries and pointers are durable before the MANIFEST lists it, and then all of
//        the log below its boundary is garbage.
// STEPS  1 a copy of each entry, in its original's region, with the same sequence number, marked LogEntry::kCopy; the caller
//        links it  2 flush all copies, one fence  3 seal their segments.
// CRASH  Before 3 the segments are kFlushed, and an open discards them. After it, and before the MANIFEST lists the table, they
//        are sealed and hold numbers behind the log boundary: an open discards them, too. The log's entries still count in both
//        cases. Afterwards they are garbage: below the boundary, and no copies. [CC-53]
// COST   Each entry is written and flushed twice; one fence a flush, and two for each segment that is taken and sealed.
// Thread safety: none; the flush thread's, or an open's.
class FlushCopier {
 public:
  FlushCopier(const RegionSet* regions, SegmentAllocator* segments);
  // Discards what was not sealed.
  ~FlushCopier();
  FlushCopier(const FlushCopier&) = delete;
  FlushCopier& operator=(const FlushCopier&) = delete;

  // *entry and *pointer become the copy's; nothing is flushed. False if there is no space, or a copy before failed: status() then
  // has the reason, and the table is of no use.
  bool Copy(LogEntry** entry, PmPtr* pointer);
  // Steps 2 and 3, of all tables that were linked from the copies. Adds to *flushed_lines. REQUIRES: their pointers are stored.
  Status Finish(uint64_t* flushed_lines);
  const Status& status() const { return status_; }

 private:
  struct Writer {
    Segment* segment = nullptr;
    uint64_t tail = 0;
  };

  Status SealCopies();

  const RegionSet* const regions_;
  SegmentAllocator* const segments_;
  std::vector<Writer> writers_;   // by region
  std::vector<Segment*> copies_;  // kFlushed
  Status status_;
};

// Copies what a table of L0 links, as a flush would have: what an open has replayed. Adds nothing to table.moves.
Status CopyTable(const PmTable& from, FlushCopier* copier, PmTable* to);

// Of an open, before the log is replayed: discards copies that no listed table has, and finds out which sealed segments hold
// copies. [CC-53]
Status FinishFlushes(SegmentAllocator* segments, uint64_t log_boundary);

}  // namespace braiddb
