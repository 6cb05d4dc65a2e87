// RunWriter: copies entries, given in order, into a new run of the last level.
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

// GOAL   A run (skiplist/sorted_runs.h) that nothing leads to yet.
// STEPS  1 each copy goes behind the last one of its original's region  2 ListBuilder links it  3 the record names all of it, and
//        everything is flushed: durable after the next fence.
// CRASH  Anywhere: the segments are nobody's, and the next open releases them. [CC-52]
// COST   The lines of the run, each flushed once.
class RunWriter {
 public:
  RunWriter(RegionSet* regions, SegmentAllocator* segments, const KeyOrder* order, const LevelPlace& place);
  // Releases the segments, unless somebody has taken over the run.
  ~RunWriter();
  RunWriter(const RunWriter&) = delete;
  RunWriter& operator=(const RunWriter&) = delete;

  // `at`: where the entry lies. NoSpace; Corruption if the entry is damaged: a copy would hide that.
  Status Append(const LogEntry& entry, PmPtr at, PmPtr* copy);
  // Bytes of entries so far.
  uint64_t bytes() const { return bytes_; }
  uint64_t entries() const { return table_.entries; }

  // REQUIRES: there are entries. Nothing is appended any more.
  Status Finish(RunRecord** record);
  const std::vector<Segment*>& segments() const { return segments_; }
  // They are somebody else's from now on. REQUIRES: Finish.
  void Take() { segments_.clear(); }
  uint64_t flushed_lines() const { return flushed_lines_; }

 private:
  struct Tail {
    size_t segment = SIZE_MAX;  // of segments_
    uint64_t end = 0;
  };
  Status Reserve(uint32_t region, uint64_t bytes, uint64_t offset);

  RegionSet* const regions_;
  SegmentAllocator* const allocator_;
  const LevelPlace place_;
  PmTable table_;  // whose heads become the record's
  ListBuilder builder_;
  std::vector<Segment*> segments_;
  std::vector<uint64_t> used_;  // bytes of entries, by segment
  std::vector<Tail> tails_;     // by region
  uint64_t bytes_ = 0;
  uint64_t flushed_lines_ = 0;
};

}  // namespace braiddb
