// HybridMerge: merges L0 tables into the hash index of a hybrid level, key by key. Uses the chunks and pieces of zipper
// compaction's MergePlan.
#pragma once

#include <vector>

#include "braiddb/status.h"
#include "compaction/last_level.h"
#include "compaction/merge_stats.h"
#include "levels/hybrid/hybrid_view.h"
#include "lsm/pm_table.h"

namespace braiddb {

// GOAL   The hash index has every entry of `tables` that a reader or snapshot can see. Every other entry is marked dead and is
//        not in the index.
// STEPS  For each chunk of keys: read the chunk's entries from all tables and sort them. For each key: M1, find its versions in
//        the index, and mark dead those to drop (compaction/key_merger.h). For each chunk: M2, mark tombstones; a fence; M3,
//        change the slots of the index.
// CRASH AFTER EACH STEP  As for an NV-Tree (levels/nv_tree/nv_merge.h). There is no journal: recovery runs the merge again from
//                        its
//        beginning, and skips the entries that the index already has. [CC-45]
// WHAT A READER SEES  levels/hybrid/hybrid_view.h.
// COST   Per key: two buckets of one page. Per added, removed or replaced entry: one line. Per chunk: two fences.
//
// Returns Aborted if stopped. `view`: of the level before the job. Adds the changes of the ordered index to *changes, in entry
// order, unless it is null.
Status RunHybridMerge(const LastLevel::Parts& parts, const HybridView& view, const MergeJob& job,
                      const std::vector<const PmTable*>& tables, MergeStats* stats, std::vector<OrderedIndex::Change>* changes);

// Removes from `ranges` the versions that no reader or snapshot can see. Also removes versions that an interrupted run has marked
// dead and left in the index. REQUIRES: the view's ordered index is built, and has all entries of the hash index.
Status SweepHybrid(const LastLevel::Parts& parts, const HybridView& view, const MergeJob& job, const KeyRanges& ranges,
                   MergeStats* stats, std::vector<OrderedIndex::Change>* changes);

}  // namespace braiddb
