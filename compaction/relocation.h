// Relocation: copies the live entries of sparse segments. After the next merge has replaced the originals by the copies, the
// sparse segments can be released.
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

// Limits for the space that the log takes beyond its live bytes.
struct SpaceLimits {
  double amplification;      // allowed log space / live bytes; at least 1
  uint64_t slack;            // allowed bytes on top of that
  uint64_t boundary;         // only segments with all sequence numbers below it count: their live entries are in the last level
  uint64_t most_copied;      // limit for one relocation, bytes; at least one segment is copied
  bool copies_only = false;  // count only segments of copies: other segments are garbage and will be released
};

// The segments to relocate, sparsest first. Empty if the log is within the limits, or if relocation would free no segment.
std::vector<Segment*> ChooseSparseSegments(const SegmentAllocator& segments, const SpaceLimits& limits);

struct RelocationJob {
  // A column family. The vector is indexed by family id.
  struct Family {
    const KeyOrder* order = nullptr;           // null: the family does not exist
    const OrderedLevel* last_level = nullptr;  // no merge changes it; the caller holds a pin
    uint64_t boundary = 0;                     // larger than all sequence numbers in the last level
  };
  RegionSet* regions;
  SegmentAllocator* segments;
  std::vector<Family> families;
  const std::atomic<bool>* stop;
  SharedHeap* heap = nullptr;  // for the sorted arrays; null: private memory
};

struct Relocation {
  struct Move {
    const LogEntry* from;
    PmPtr to;
  };
  struct Table {
    std::shared_ptr<PmTable> table;
    std::shared_ptr<const TableOrder> in_order;  // sorted array of the copies' addresses; null if DRAM was short
  };
  std::vector<Table> tables;     // one per family, with all copies; durable, but not yet listed
  std::vector<Segment*> copies;  // segments of the copies, in state kCopies
  std::vector<Move> moves;       // original and copy; in entry order within a family
  uint64_t bytes = 0;            // log space of the copies
  uint64_t flushed_lines = 0;
};

// An entry to copy. Type and value are the entry's own, or the result of a collapse (collapse.h).
struct Copied {
  const LogEntry* from;
  EntryType type;
  Slice value;
};

// GOAL   One table per family that can be listed as the oldest table of L0. For each key with a live entry in the segments, the
//        table has that entry and all newer versions of the last level, with the same sequence numbers. So the table's newest
//        version of a key is the newest below all other tables, and a get may stop there. Merging the table replaces the
//        originals.
// STEPS  1 Find the live entries of the segments.
//        2 Find the newer versions of their keys in the last level.
//        3 Write the copies in key order, each in its original's region.
//        4 Link the copies into tables.
//        5 Flush all copies, one fence.
// CRASH  Anywhere: the copies are in kCopies segments and the MANIFEST lists no table with them. An open discards the segments.
//        [CC-47]
// WHAT A READER SEES  No change until the caller installs a view with the tables. The originals stay in the last level until a
//                     merge.
// COST   One search in the last level per key. Each line of the copies is flushed once.
// LIFETIME  The copies' segments: kCopies, then kSealed after the MANIFEST lists the tables. The originals count as live until
//        the merge of the tables marks them moved. When all entries of a sparse segment are dead or moved, and readers have left,
//        the segment is released.
// A segment with a damaged entry stays where it is. Returns Aborted if stopped, NoSpace, or MemoryLimit after std::bad_alloc.
// Then all segments of copies are discarded.
Status CopyLiveEntries(const RelocationJob& job, const std::vector<Segment*>& from, Relocation* result);

// Steps 3 to 5 for entries that the caller has chosen: `entries` of one family, in entry order.
Status WriteCopies(const RelocationJob& job, uint32_t family, const std::vector<Copied>& entries, Relocation* result);

// Called by an open. If the table is listed, seals the segments of copies; otherwise discards them. [CC-47]
Status FinishRelocation(SegmentAllocator* segments, bool is_listed);
// Releases the segments that CopyLiveEntries or WriteCopies has written. REQUIRES: the MANIFEST does not list the tables.
void DiscardCopies(SegmentAllocator* segments, Relocation* relocation) noexcept;
// Seals the segments that CopyLiveEntries has written. REQUIRES: the MANIFEST lists the tables.
Status SealCopies(SegmentAllocator* segments, const std::vector<Segment*>& copies);

}  // namespace braiddb
