// IndexedScan: the scan phase of zipper compaction where an index in DRAM has every node of the last level.
#pragma once

#include <vector>

#include "compaction/merge_plan.h"
#include "compaction/zipper_scan.h"
#include "lsm/table_order.h"
#include "skiplist/tall_index.h"

namespace braiddb {

// GOAL   As ScanChunk, and the same result.
// STEPS  The pieces' lists are walked in turns, so that their misses overlap; what they have is put in order. Then entries and
//        index go on side by side: an entry's place is found by prefixes, and the nodes before it on each layer by their heights,
//        without a look at the last level. Last, the towers so found are looked at, which have been fetched by then.
// COST   A miss for each entry, which overlaps with others, and one for each tower that the merge is to store to, which it would
//        have anyway. ScanChunk waits for every node on the way to the place as well.
// DAMAGE As ScanChunk. What a tower leads to must be what the index has next on its layer; or else, where the merge has been at
//        work on greater keys, an entry that belongs behind this one.
// REQUIRES: one region; the index has every node that the list had when the merge began (TallIndex::HasEveryNode), and only the
// merge of later chunks has changed the list since. Thread safety: as ScanChunk.
void ScanChunkByIndex(const std::vector<MergePiece>& pieces, const BraidedList& l1, const TallIndex& index, ScanResult* result);

// The same of what an order of all tables of the merge has from `begin` on, before `end`: the tables' lists are not walked.
void ScanOrderByIndex(const TableOrder& tables, uint64_t begin, uint64_t end, const BraidedList& l1, const TallIndex& index,
                      ScanResult* result);

}  // namespace braiddb
