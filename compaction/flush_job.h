// FlushJob: turns an immutable memtable into a table of L0, in place, or of copies.
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
  std::shared_ptr<const TableOrder> in_order;  // null if there was no memory
  uint64_t dropped = 0;                        // versions overwritten inside the memtable that no snapshot sees
  uint64_t dropped_bytes = 0;                  // of the log
};

// REQUIRES: no writer is inside `memtable` any more, nor will be. The memtable keeps serving readers meanwhile.
// `index`: enters the table there; `keys`: adds its keys; both may be null. `copier`: null: entries are linked where they lie.
// Else copies are; the table has no extents then, and if the copier's status is an error, is of no use.
FlushResult FlushMemtable(Memtable* memtable, const RegionSet* regions, const KeyOrder* order, const SegmentAllocator& segments,
                          const VersionFilter& filter, L0IndexWriter* index = nullptr, KeyFilterWriter* keys = nullptr,
                          FlushCopier* copier = nullptr);
// The same of what another family has beside `memtable`, which is the default family's. The extents stay with that.
FlushResult FlushSibling(const Memtable& memtable, uint32_t family, const RegionSet* regions, const KeyOrder* order,
                         const SegmentAllocator& segments, const VersionFilter& filter, L0IndexWriter* index,
                         KeyFilterWriter* keys, FlushCopier* copier = nullptr);

}  // namespace braiddb
