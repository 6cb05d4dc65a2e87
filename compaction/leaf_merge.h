// LeafMerge: merges L0 tables into a LeafTree of a last level, leaf by leaf (NV-Tree, FAST '15, 3.2). Uses the chunks and pieces
// of zipper compaction's MergePlan.
#pragma once

#include <vector>

#include "braiddb/status.h"
#include "compaction/last_level.h"
#include "compaction/merge_stats.h"
#include "leaf_tree/entry_keys.h"
#include "leaf_tree/leaf_tree.h"
#include "lsm/pm_table.h"

namespace braiddb {

// GOAL   The tree has every entry of `tables` that a reader or snapshot can see. Every other entry is marked dead and is not in
//        the tree.
// STEPS  For each chunk of keys: read the chunk's entries from all tables, sort them, and join them with the elements of the
//        leaves. Then:
//        M1 Mark dead the versions to drop, except tombstones that are the newest version of their key or have only operands
//           above them.
//        M2 Mark these tombstones dead.
//        M3 LeafTree::Apply adds the kept versions and removes the dropped versions, leaf by leaf.
// CRASH AFTER EACH STEP  There is no journal. Until the MANIFEST forgets the tables they are complete, because the merge stores
//                        nothing to their pointers. Recovery runs the merge again from its beginning, and skips the elements that
//                        the tree already has. [CC-45]
//        M1: M1 is durable before M2. So when a tombstone's mark lets readers pass it, the versions that it hid are marked too.
//        M2: both are durable before M3, by a fence of their own. So a version that is not in the tree is marked.
//        M3, some leaves: a version that is marked and still in the tree is removed by the next run.
// WHAT A READER SEES  The tables stay in the reader's view until the merge ends, and a newer version hides the versions that M1
//                     marks. A search that passed the level of the newer version too early finds the mark, or finds the newer
//                     version in the leaf.
// COST   Per leaf: two fences and the lines of its new elements. Per dropped entry: one line. Per chunk: one fence, two with
//        tombstones.
//
// Returns Aborted if stopped.
Status RunLeafMerge(const LastLevel::Parts& parts, LeafTree* tree, const EntryKeys& keys, const MergeJob& job,
                    const std::vector<const PmTable*>& tables, MergeStats* stats);

// Removes from `ranges` the versions that no reader or snapshot can see. Also removes versions that an interrupted run has marked
// dead and left in the tree.
Status SweepLeafTree(const LastLevel::Parts& parts, LeafTree* tree, const EntryKeys& keys, const MergeJob& job,
                     const KeyRanges& ranges, MergeStats* stats);

}  // namespace braiddb
