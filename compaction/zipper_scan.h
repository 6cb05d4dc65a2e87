// ZipperScan: the scan phase of zipper compaction. Finds the predecessors in the last level of each L0 entry of a chunk.
#pragma once

#include <cstdint>
#include <vector>

#include "compaction/merge_plan.h"
#include "skiplist/braided_list.h"

namespace braiddb {

// An L0 entry and its predecessors: the towers (PmPtr of next[0]) that lead past its insertion point, on layers 0 … layers-1 of
// its region.
struct MergeItem {
  uint64_t prefix;
  LogEntry* entry;
  PmPtr pointer;
  uint32_t before;  // index of the first tower in ScanResult::towers
  uint32_t layers;  // at least the entry's height; for a key's newest version also the heights of its versions in the last level
  bool key_below;   // the last level has versions of this key
  PmPtr behind{};   // newest version only: successor of the key's versions in the last level, if known
};

struct ScanResult {
  bool damaged = false;          // a list is damaged; the other members are then invalid
  std::vector<MergeItem> items;  // in entry order
  std::vector<PmPtr> towers;
};

// GOAL   Finds the predecessors of all entries of the chunk. Changes nothing (ListDB 3.4, scan phase).
// STEPS  1 Up to 16 lanes walk the pieces, each from head to tail. A lane keeps the rightmost visited tower per [region][layer].
//        Entries of a piece ascend, so a search starts there and never moves left.
//        2 A lane prefetches the next node and then yields to the next lane. So the cache misses of the lanes overlap.
//        3 The results of all pieces are sorted.
// CRASH  Nothing is stored to persistent memory.
// COST   About one cache miss for each visited node, overlapped between lanes.
// DAMAGE Every pointer is checked before it is followed, and every entry before it is compared. A damaged pointer to a
//        well-formed entry can lead to a wrong insertion point, but never outside the regions and never in a circle.
// CONCURRENCY  Chunks may be scanned concurrently with each other and with the merge of later chunks. That merge changes
//              only next pointers of nodes with keys of later chunks, and of the predecessors of such nodes. It unlinks no
//              predecessor of this chunk's entries.
// `start_layer`: the layer on which neighbours in the last level are about as far apart as consecutive entries of the chunk.
void ScanChunk(const std::vector<MergePiece>& pieces, const BraidedList& l1, uint32_t start_layer, ScanResult* result);

}  // namespace braiddb
