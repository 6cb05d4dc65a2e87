// ChunkReader: collects the entries of one chunk of a merge from all tables.
#pragma once

#include <cstdint>
#include <vector>

#include "compaction/merge_plan.h"
#include "index/key_order.h"
#include "log/log_entry.h"
#include "pmem/region_set.h"

namespace braiddb {

struct ChunkItem {
  uint64_t prefix;  // of the entry's key
  LogEntry* entry;
  PmPtr pointer;
};

// GOAL   All entries of a chunk, sorted in entry order.
// STEPS  1 Up to 16 lanes walk the pieces, interleaved, each with the next entry prefetched  2 The entries of all pieces are
//        sorted.
// COST   One cache miss per entry, overlapped between lanes.
// Thread safety: one thread at a time. Several readers may read chunks of one plan concurrently.
class ChunkReader {
 public:
  ChunkReader(const RegionSet* regions, const KeyOrder* order) : regions_(*regions), order_(*order) {}

  // The entries of the chunk, in entry order. Returns false if a list of the tables is damaged.
  bool Read(const std::vector<MergePiece>& pieces, std::vector<ChunkItem>* items);

 private:
  struct Lane {
    PmPtr at;
    PmPtr end;
    const LogEntry* before;
  };
  bool Begin(const MergePiece& piece, Lane* lane) const;
  bool Fetch(PmPtr pointer) const;
  bool Step(Lane* lane, std::vector<ChunkItem>* items) const;

  const RegionSet& regions_;
  const KeyOrder& order_;
  std::vector<Lane> lanes_;
};

}  // namespace braiddb
