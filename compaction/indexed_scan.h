// IndexedScan: the scan phase of zipper compaction for a last level whose nodes are all in a DRAM index.
#pragma once

#include <vector>

#include "compaction/merge_plan.h"
#include "compaction/zipper_scan.h"
#include "lsm/table_order.h"
#include "skiplist/tall_index.h"

namespace braiddb {

// GOAL   As ScanChunk, with the same result.
// STEPS  S1 Walk the lists of the pieces, interleaved, so that their cache misses overlap. Sort the entries.
//        S2 Find the position of each entry in the index, by prefix. Only nodes with an equal prefix are read.
//        S3 Derive the predecessors on each layer from the heights in the index. No node of the last level is read.
//        S4 Check the towers found. Their lines are prefetched by then.
// CRASH  Nothing is stored to persistent memory.
// COST   One overlapped cache miss for each entry, and one for each tower that the merge stores to. The merge would have the
//        second miss anyway. ScanChunk also waits for each node on the search path.
// DAMAGE As ScanChunk. A tower must lead to the next node that the index has on its layer. Where the merge of larger keys has
//        already changed the list, a tower may instead lead to any entry behind the scanned entry.
// REQUIRES: one region. The index has every node that the list had when the merge began (TallIndex::HasEveryNode). Since then
// only the merge of later chunks has changed the list.
// Thread safety: as ScanChunk.
void ScanChunkByIndex(const std::vector<MergePiece>& pieces, const BraidedList& l1, const TallIndex& index, ScanResult* result);

// The same for the entries [begin, end) of the sorted array of all tables of the merge. Skips step S1: the tables' lists are not
// walked.
void ScanOrderByIndex(const TableOrder& tables, uint64_t begin, uint64_t end, const BraidedList& l1, const TallIndex& index,
                      ScanResult* result);

}  // namespace braiddb
