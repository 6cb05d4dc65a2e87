// ZipperScan: the scan phase of zipper compaction for one chunk: where in the last level does each L0 entry belong?
#pragma once

#include <cstdint>
#include <vector>

#include "compaction/merge_plan.h"
#include "skiplist/braided_list.h"

namespace braiddb {

// An L0 entry and the towers (PmPtr of next[0]) that lead past its place, in layers 0 … layers-1 of its region.
struct MergeItem {
  uint64_t prefix;
  LogEntry* entry;
  PmPtr pointer;
  uint32_t before;  // index into ScanResult::towers
  uint32_t layers;  // at least the entry's height; of a key's newest one also that of the last level's versions in its region
  bool key_below;   // the last level has versions of this key
  PmPtr behind{};   // of a key's newest one: the node of the last level behind these, if it is known
};

struct ScanResult {
  bool damaged = false;          // a list is; what follows is then of no use
  std::vector<MergeItem> items;  // in entry order
  std::vector<PmPtr> towers;
};

// GOAL   Predecessors of all entries of the chunk, without changing anything (ListDB 3.4, scan phase).
// STEPS  Each piece is walked head to tail by a lane, which keeps the rightmost nodes per [region][layer] and so never goes back.
//        A lane waits for memory at nearly every node; kLanes of them take turns, each with its next line prefetched, so that the
//        misses overlap.
// DAMAGE Every pointer and entry is looked at before it is followed or compared: what is in order and inside the regions can lead
//        to wrong places, but neither outside nor in a circle.
// `start_layer`: the layer on which consecutive entries of the chunk are about one node of the last level apart.
// Thread safety: chunks may be scanned concurrently with each other and with the merge of later chunks: that only touches nodes
// whose keys are in those chunks, and no predecessor of this one's entries is among them.
void ScanChunk(const std::vector<MergePiece>& pieces, const BraidedList& l1, uint32_t start_layer, ScanResult* result);

}  // namespace braiddb
