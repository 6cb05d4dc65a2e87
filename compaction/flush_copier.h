// FlushCopier: copies the entries that a flush keeps into segments of their own. A database that uses it has no index-unified
// logging.
#pragma once

#include <cstdint>
#include <vector>

#include "braiddb/status.h"
#include "log/log_entry.h"
#include "lsm/pm_table.h"
#include "pmem/region_set.h"
#include "pmem/segment_allocator.h"

namespace braiddb {

// GOAL   An L0 table that does not need the log. Entries and pointers are durable before the MANIFEST lists the table. Then the
//        whole log below the table's boundary is garbage.
// STEPS  F1 Copy each entry, in its original's region, with its sequence number, marked LogEntry::kCopy. The caller links the
//        copy.
//        F2 Flush all copies, one fence.
//        F3 Seal the segments of the copies.
// CRASH AFTER EACH STEP  In both cases the log's entries still count. [CC-53]
//        F1, F2: the segments are kFlushed. An open discards them.
//        F3, MANIFEST does not list the table: the segments are sealed and have sequence numbers at or above the log boundary.
//           An open releases them.
//        F3, MANIFEST lists the table: the copies count. The log's entries lie below the boundary and are garbage.
// WHAT A READER SEES  Readers use the memtable and its log entries until the view has the table. table.moves maps each original
//        to its copy, for the lookup cache.
// COST   Each entry is written and flushed twice. One fence per flush, and two for each segment that is allocated and sealed.
// Thread safety: none. Used by the flush thread, or by an open.
class FlushCopier {
 public:
  FlushCopier(const RegionSet* regions, SegmentAllocator* segments);
  // Discards the segments that are not sealed.
  ~FlushCopier();
  FlushCopier(const FlushCopier&) = delete;
  FlushCopier& operator=(const FlushCopier&) = delete;

  // Replaces *entry and *pointer by those of the copy. Flushes nothing. Returns false if space is short, or if an earlier copy
  // failed. status() then has the reason, and the table must not be used.
  bool Copy(LogEntry** entry, PmPtr* pointer);
  // Steps F2 and F3, for all tables that link copies of this copier. Adds to *flushed_lines. REQUIRES: all pointers of the tables
  // are stored.
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

// Copies the entries of an L0 table, as a flush that copies would have done. Used for tables that an open has replayed. Adds
// nothing to table.moves.
Status CopyTable(const PmTable& from, FlushCopier* copier, PmTable* to);

// Called by an open before the log is replayed. Discards copies that belong to no listed table, and marks the sealed segments
// that hold copies. [CC-53]
Status FinishFlushes(SegmentAllocator* segments, uint64_t log_boundary);

}  // namespace braiddb
