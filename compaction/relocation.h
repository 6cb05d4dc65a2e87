// Relocation: copies what lives in sparse segments of the log, so that a merge can put the copies in its place and the segments
// come back.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "braiddb/status.h"
#include "index/ordered_level.h"
#include "lsm/pm_table.h"
#include "lsm/table_order.h"
#include "pmem/region_set.h"
#include "pmem/segment_allocator.h"

namespace braiddb {

// Where the log may take more space than what lives in it.
struct SpaceLimits {
  double amplification;      // at least 1
  uint64_t slack;            // bytes
  uint64_t boundary;         // only segments whose sequence numbers are all below it count: what lives there is in the last level
  uint64_t most_copied;      // bytes of one relocation, or one segment
  bool copies_only = false;  // what holds no copies is garbage, and on its way out
};

// The segments to relocate, the sparsest first; none while the log keeps within the limits, or if nothing would come back.
std::vector<Segment*> ChooseSparseSegments(const SegmentAllocator& segments, const SpaceLimits& limits);

struct RelocationJob {
  // A column family; by id.
  struct Family {
    const KeyOrder* order = nullptr;           // null: there is no such family
    const OrderedLevel* last_level = nullptr;  // no merge is changing it; the caller has a pin
    uint64_t boundary = 0;                     // above all sequence numbers in it
  };
  RegionSet* regions;
  SegmentAllocator* segments;
  std::vector<Family> families;
  const std::atomic<bool>* stop;
};

struct Relocation {
  struct Move {
    const LogEntry* from;
    PmPtr to;
  };
  struct Table {
    std::shared_ptr<PmTable> table;
    std::shared_ptr<const TableOrder> in_order;  // null if there was no memory
  };
  std::vector<Table> tables;     // of all copies, one for each family; durable, and named by nothing yet
  std::vector<Segment*> copies;  // kCopies
  std::vector<Move> moves;       // in entry order, by family
  uint64_t bytes = 0;            // of log space that the copies take
  uint64_t flushed_lines = 0;
};

// What is copied: an entry, as it is, or what it amounts to (collapse.h).
struct Copied {
  const LogEntry* from;
  EntryType type;
  Slice value;
};

// GOAL   Tables, one for each family, that can be listed as the oldest of L0: of each key that has a live entry in the segments,
//        that entry and all newer versions in the last level, with the same sequence numbers. So a get that comes upon it there
//        comes upon its newest version below the other tables. Merging it replaces the originals.
// STEPS  1 find what lives  2 find these keys in the last level  3 write the copies, in key order, each in its original's region
//        4 link them  5 flush all of it, one fence.
// CRASH  Anywhere: the copies are in kCopies segments, and no table has them: an open discards them. [CC-47]
// COST   One search in the last level per key; the copies' lines are flushed once.
// What is damaged stays where it is. Aborted if stopped; NoSpace; MemoryLimit by std::bad_alloc. Then no segment was kept.
Status CopyLiveEntries(const RelocationJob& job, const std::vector<Segment*>& from, Relocation* result);

// Steps 3 to 5, for whoever has chosen what is copied: `entries` of one family, in entry order.
Status WriteCopies(const RelocationJob& job, uint32_t family, const std::vector<Copied>& entries, Relocation* result);

// Of an open: seals the copies that a listed table has, discards all others. [CC-47]
Status FinishRelocation(SegmentAllocator* segments, bool is_listed);
// Releases what CopyLiveEntries or WriteCopies has made. REQUIRES: the MANIFEST does not list the tables.
void DiscardCopies(SegmentAllocator* segments, Relocation* relocation) noexcept;
// Seals what CopyLiveEntries has made. REQUIRES: the MANIFEST lists the table.
Status SealCopies(SegmentAllocator* segments, const std::vector<Segment*>& copies);

}  // namespace braiddb
