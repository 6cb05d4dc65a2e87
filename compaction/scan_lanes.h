// ScanLanes: walks the pieces of a chunk side by side.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "compaction/merge_plan.h"
#include "compaction/zipper_scan.h"

namespace braiddb {

// A lane has Begin(piece), Step(), which goes on to the next memory access that is likely to miss and prefetches it, and idle(),
// when its piece is at its end. So many take turns that each one's access is hidden behind the others' work. Ends early if
// `result`, which the lanes write to, says that a list is damaged.
template <class Lane>
void WalkPieces(const std::vector<MergePiece>& pieces, const Lane& prototype, const ScanResult& result) {
  constexpr size_t kLanes = 16;
  std::vector<Lane> lanes(std::min(kLanes, pieces.size()), prototype);
  size_t next_piece = 0;
  size_t running = lanes.size();
  for (Lane& lane : lanes) lane.Begin(pieces[next_piece++]);
  while (running > 0 && !result.damaged) {
    for (Lane& lane : lanes) {
      if (lane.idle()) continue;
      lane.Step();
      if (!lane.idle() || result.damaged) continue;
      if (next_piece < pieces.size()) {
        lane.Begin(pieces[next_piece++]);
      } else {
        --running;
      }
    }
  }
}

}  // namespace braiddb
