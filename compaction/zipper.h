// Zipper: merges L0 tables into the braided skiplist of the last level, in place (zipper compaction, ListDB 3.4).
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "braiddb/status.h"
#include "compaction/entry_filter.h"
#include "compaction/key_range.h"
#include "compaction/merge_journal.h"
#include "compaction/merge_stats.h"
#include "compaction/moved_entries.h"
#include "compaction/version_filter.h"
#include "lsm/key_filter.h"
#include "lsm/pm_table.h"
#include "lsm/table_order.h"
#include "pmem/segment_allocator.h"
#include "skiplist/braided_list.h"
#include "skiplist/index_changes.h"
#include "skiplist/tall_index.h"

namespace braiddb {

// Everything that a merge works with. All pointers stay valid until the run ends.
struct ZipperContext {
  RegionSet* regions;
  const KeyOrder* order;
  const SegmentAllocator* segments;
  const BraidedList* l1;
  uint64_t l1_entries;    // estimate; decides on which layer searches start
  MergeJournal* journal;  // begun for this merge
  const VersionFilter* filter;
  uint32_t threads;                       // number of threads that scan, the calling thread included
  const std::atomic<bool>* stop;          // stops the run between two batches; the run can be resumed; may be null
  std::atomic<uint64_t>* settled;         // incremented for each entry of the tables that was merged or dropped; may be null
  const MovedEntries* moved;              // original entries of earlier relocations; may be null
  EntryFilter* entry_filter = nullptr;    // may be null
  const TallIndex* index = nullptr;       // built after the last merge or sweep of l1; used by RunZipper; may be null
  IndexChanges* index_changes = nullptr;  // RunZipper records its changes here for the next index; may be null
  const TableOrder* order_of_tables = nullptr;  // sorted array of the addresses of all entries of the tables; may be null
  KeyFilterWriter* keys = nullptr;              // receives the keys that RunZipper links; may be null
  bool knows_keys_below = false;                // `keys` already has all keys of the last level: only new keys are added
};

// GOAL   Every entry of `tables` that a reader or snapshot can see is in the last level. Every other entry is unlinked on all
//        layers and marked dead.
// STEPS  Z1 Scanner threads find the predecessors of each entry, chunk by chunk. A chunk is a range of user keys.
//        Z2 This thread merges the chunks in descending key order, over all tables together. ListDB calls this "tail to head".
//        Z3 For each key: unlink the obsolete versions of the last level. Then link the tables' versions, oldest first. For each
//           version E with predecessor X: E.next = X.next on all layers, then X.next = E, bottom layer first.
//        Z4 The stores are collected into batches. The merge journal makes each batch atomic.
// CRASH AFTER EACH STEP
//        Z1: nothing was stored to persistent memory.
//        Z3: the stores of the batch are in DRAM only. The last level is the list of the previous batch.
//        Z4, record not durable: no store of the batch was made. The merge resumes from the `progress` of the previous batch.
//        Z4, record durable: recovery repeats the stores of the batch. Then the last level is a well-formed list, all entries of
//           the tables at or after `progress` are in it or dropped, and the merge resumes from `progress`. [CC-4]
// WHAT A READER SEES  At every instant every entry is reachable from the head of its table or from the head of the last level.
//                     The reason is the descending order: when E's pointer is redirected into the last level, all larger entries
//                     of E's table are already linked there. A reader that stands on an unlinked node follows the node's
//                     pointers. They stay unchanged and lead to all successors of the node.
// A TABLE DURING ITS MERGE  The table's list from its head has the entries before `progress`, with unchanged pointers. The last
//        of these leads to an entry that is merged or dropped already. The pointers of a merged entry lead into the last level,
//        so a reader that walks the table may pass into the last level. A resumed merge finds the remaining entries in the same
//        list and stops at `progress`.
// COST   Two fences per batch. A batch has at most 4,096 stores, about 1,300 entries, and ends with its chunk. Per entry: about
//        three stores, three flushed lines, and 16 journal bytes for each store.
//
// `progress`: where an interrupted run of the same merge stopped, or null. Returns Aborted if `stop` became true.
Status RunZipper(const ZipperContext& context, const std::vector<const PmTable*>& tables, PmPtr progress, MergeStats* stats);

// Unlinks from the last level the versions in `ranges` that no reader or snapshot can see. Merges nothing.
Status SweepLastLevel(const ZipperContext& context, const KeyRanges& ranges, MergeStats* stats);

}  // namespace braiddb
