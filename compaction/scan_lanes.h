// ScanLanes: walks the pieces of a chunk in an interleaved order, so that their cache misses overlap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "compaction/merge_plan.h"
#include "compaction/zipper_scan.h"

namespace braiddb {

// Requirements on Lane: Begin(piece) starts a piece. Step() continues to the next memory access that is likely to miss, and
// prefetches it. idle() is true when the piece ends. Lanes run round robin, 16 at most: while one lane waits for its prefetch,
// the others work. The walk ends early if the lanes set result.damaged.
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
