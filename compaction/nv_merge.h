// NvMerge: merges tables of L0 into the NV-Tree of the last level, a leaf's share at a time (NV-Tree, FAST '15, 3.2; the plan
// of chunks and pieces is that of zipper compaction).
#pragma once

#include <vector>

#include "braiddb/status.h"
#include "compaction/last_level.h"
#include "compaction/merge_stats.h"
#include "lsm/pm_table.h"
#include "nvtree/nv_level.h"

namespace braiddb {

// GOAL   Every entry of `tables` that somebody can see is in the tree; what nobody can see is not, and is marked dead.
// STEPS  For each chunk of keys, all its entries in all tables are collected and sorted, and joined with what the leaves have:
//        M1 the versions that go are marked dead, but for a tombstone that is its key's newest version, or has only operands
//           above it
//        M2 those tombstones are marked dead
//        M3 NvTree::Apply: the versions that stay are added, those that go are taken out, leaf by leaf.
// CRASH  There is no journal: until the MANIFEST forgets the tables, they are whole, since nothing stores to their pointers.
//        After a crash anywhere the merge is run again from its beginning, and passes over what the tree has already. [CC-45]
//        M1 is durable before M2: nobody sees what a tombstone hid when its own mark lets readers pass it. Both are durable
//        before M3: what is out of the tree is marked. A version that is marked and still in the tree is taken out by the
//        next run.
// WHAT A READER SEES  The tables are in its view until the merge has ended, and a newer version hides what M1 marks. A search
//        that has passed the newer one's level before it came there meets the mark, or finds the newer version in the leaf.
// COST   Per leaf two fences, and the lines of its new elements; per dead entry one line; one fence per chunk with tombstones.
//
// Aborted if stopped.
Status RunNvMerge(const LastLevel::Parts& parts, const NvLevel& level, const MergeJob& job,
                  const std::vector<const PmTable*>& tables, MergeStats* stats);

// Takes what nobody can see of the user keys in the ranges out of the tree, and what a run that a crash cut short has marked
// there.
Status SweepNvTree(const LastLevel::Parts& parts, const NvLevel& level, const MergeJob& job, const KeyRanges& ranges,
                   MergeStats* stats);

}  // namespace braiddb
