// FlushJob: turns an immutable memtable into an L0 table, by linking the entries in place or by copying them.
#pragma once

#include <cstdint>
#include <memory>

#include "compaction/flush_copier.h"
#include "compaction/version_filter.h"
#include "lsm/key_filter.h"
#include "lsm/memtable.h"
#include "lsm/pm_table.h"
#include "lsm/table_order.h"
#include "pmem/segment_allocator.h"

namespace braiddb {

struct FlushResult {
  std::shared_ptr<PmTable> table;
  std::shared_ptr<const TableOrder> in_order;  // sorted array of the entries' addresses; null if DRAM was short
  uint64_t dropped = 0;                        // versions that a newer version in the memtable hides from all readers
  uint64_t dropped_bytes = 0;                  // log space of the dropped versions
};

// GOAL   The visible entries of the memtable are an L0 table: a braided list, plus its sorted array, L0 index, and filter in
//        DRAM.
// STEPS  One pass in entry order: drop hidden versions, link the others (list_builder.h).
// CRASH  Anywhere: the log still has all entries, and recovery replays them. The stored pointers mean nothing until a checkpoint.
// WHAT A READER SEES  Readers use the memtable until the caller installs a view with the table.
// COST   One cache miss per entry, prefetched. No flush instruction and no fence, unless entries are copied.
// REQUIRES: no writer is inside `memtable`, now or later.
// `index`: the L0 index that receives the table; may be null. `keys`: the filter that receives its keys; may be null. `copier`:
// if null, entries are linked where they lie. Otherwise their copies are linked, and the table has no extents. If the copier's
// status is then an error, the table must not be used.
FlushResult FlushMemtable(Memtable* memtable, const RegionSet* regions, const KeyOrder* order, const SegmentAllocator& segments,
                          const VersionFilter& filter, L0IndexWriter* index = nullptr, KeyFilterWriter* keys = nullptr,
                          FlushCopier* copier = nullptr);
// The same for the memtable that another family has beside `memtable`, which is the default family's. The default family's table
// keeps the extents of both.
FlushResult FlushSibling(const Memtable& memtable, uint32_t family, const RegionSet* regions, const KeyOrder* order,
                         const SegmentAllocator& segments, const VersionFilter& filter, L0IndexWriter* index,
                         KeyFilterWriter* keys, FlushCopier* copier = nullptr);

}  // namespace braiddb
