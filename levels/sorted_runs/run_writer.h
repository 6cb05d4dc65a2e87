// RunWriter: copies entries, in ascending order, into a new run of the last level.
#pragma once

#include <vector>

#include "braiddb/status.h"
#include "compaction/list_builder.h"
#include "index/level_place.h"
#include "log/log_entry.h"
#include "lsm/pm_table.h"
#include "pmem/region_set.h"
#include "pmem/segment_allocator.h"
#include "skiplist/sorted_runs.h"

namespace braiddb {

// GOAL   A new run (skiplist/sorted_runs.h) that no link leads to yet.
// STEPS  W1 Append copies each entry behind the last copy of its original's region.
//        W2 ListBuilder links the copy.
//        W3 Finish writes the record, which lists heads and segments, and flushes all lines. The run is durable after the next
//           fence, which SortedRuns::Exchange executes.
// CRASH  Anywhere: no link leads to the segments. The next open releases them. [CC-52]
// WHAT A READER SEES  Nothing before the exchange.
// COST   Each line of the run is flushed once. No fence.
class RunWriter {
 public:
  RunWriter(RegionSet* regions, SegmentAllocator* segments, const KeyOrder* order, const LevelPlace& place);
  // Releases the segments, unless Take was called.
  ~RunWriter();
  RunWriter(const RunWriter&) = delete;
  RunWriter& operator=(const RunWriter&) = delete;

  // `at`: address of the entry. Returns NoSpace, or Corruption if the entry is damaged. A copy gets a new checksum and would hide
  // the damage.
  Status Append(const LogEntry& entry, PmPtr at, PmPtr* copy);
  // Bytes of all entries appended so far.
  uint64_t bytes() const { return bytes_; }
  uint64_t entries() const { return table_.entries; }

  // REQUIRES: at least one entry was appended. No Append may follow.
  Status Finish(RunRecord** record);
  const std::vector<Segment*>& segments() const { return segments_; }
  // Gives up the ownership of the segments. REQUIRES: Finish was called.
  void Take() { segments_.clear(); }
  uint64_t flushed_lines() const { return flushed_lines_; }

 private:
  struct Tail {
    size_t segment = SIZE_MAX;  // index into segments_
    uint64_t end = 0;
  };
  Status Reserve(uint32_t region, uint64_t bytes, uint64_t offset);

  RegionSet* const regions_;
  SegmentAllocator* const allocator_;
  const LevelPlace place_;
  PmTable table_;  // its heads become the record's heads
  ListBuilder builder_;
  std::vector<Segment*> segments_;
  std::vector<uint64_t> used_;  // bytes of entries, by segment
  std::vector<Tail> tails_;     // by region
  uint64_t bytes_ = 0;
  uint64_t flushed_lines_ = 0;
};

}  // namespace braiddb
