// Zipper: merges tables of L0 into the braided skiplist of the last level, in place (zipper compaction, ListDB 3.4).
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

// What a merge works with; all of it outlives the run.
struct ZipperContext {
  RegionSet* regions;
  const KeyOrder* order;
  const SegmentAllocator* segments;
  const BraidedList* l1;
  uint64_t l1_entries;    // estimate, sets how far searches reach
  MergeJournal* journal;  // begun for this merge
  const VersionFilter* filter;
  uint32_t threads;                             // that scan, this one included
  const std::atomic<bool>* stop;                // ends the run between two batches, resumable; may be null
  std::atomic<uint64_t>* settled;               // counts entries of the tables that were merged or dropped; may be null
  const MovedEntries* moved;                    // may be null
  EntryFilter* entry_filter = nullptr;          // may be null
  const TallIndex* index = nullptr;             // made since the last merge or sweep of l1, for RunZipper; may be null
  IndexChanges* index_changes = nullptr;        // to be noted by RunZipper for the index after it; may be null
  const TableOrder* order_of_tables = nullptr;  // of all that the tables have; may be null
  KeyFilterWriter* keys = nullptr;              // gets those of what RunZipper links; may be null
  bool knows_keys_below = false;                // … that the last level has not: keys need no others
};

// GOAL   Every entry of `tables` that somebody can see is in the last level; what nobody can see is unlinked on all layers and
//        marked dead.
// STEPS  Chunks of keys are scanned by several threads at once, and merged by this one in descending order: from the tail to the
//        head, as published, over all tables of the merge together.
//        For each key, newest version last: unlink the obsolete versions that the last level has; link the entries, E.next =
//        X.next on all layers before X.next = E, bottom layer first.
// CRASH  Between two batches of the journal: the last level is a list; the tables' entries from `progress` on are in it. Inside a
//        batch: redo makes it whole. Then the merge is resumed from `progress`. [CC-4]
// WHAT A READER SEES  Every entry is reachable from its table's head or from the last level's, at every instant: an entry's
//        pointer is turned towards the last level only when all greater entries of its table have been linked there. A reader on
//        a node that is unlinked follows its pointers, which stay, to everything that was behind it.
// COST   Two fences per batch of about 2,000 entries; about three stores and three flushed lines per entry, and 16 journal bytes
//        per store.
//
// `progress`: in: where an interrupted run of the same merge got to, or null. Aborted if stopped.
Status RunZipper(const ZipperContext& context, const std::vector<const PmTable*>& tables, PmPtr progress, MergeStats* stats);

// Unlinks what nobody can see of the user keys in the ranges from the last level, without merging anything.
Status SweepLastLevel(const ZipperContext& context, const KeyRanges& ranges, MergeStats* stats);

}  // namespace braiddb
