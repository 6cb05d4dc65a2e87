// MergePlan: cuts the tables of one merge into chunks (ranges of user keys), and each chunk into pieces that can be scanned in
// parallel.
#pragma once

#include <cstdint>
#include <vector>

#include "lsm/pm_table.h"
#include "pmem/pm_ptr.h"
#include "util/mutant.h"

namespace braiddb {

// Consecutive entries of one table, along the bottom list: from `begin` up to `end`, exclusive. If `end` is null, up to the end
// of the list.
struct MergePiece {
  PmPtr begin;
  PmPtr end;
};

// Target number of entries per chunk. A plan costs one search for each pair of chunk and table.
inline constexpr uint64_t kChunkEntries = kCrashTest ? 4 : 2048;

// GOAL   Chunks are disjoint ranges of user keys in ascending order. All versions of a key are in one chunk. Together the chunks
//        have every entry of the tables that is not merged yet.
// STEPS  1 Collect samples: the tables' entries that reach layer 4, about one in 81. Sort them.
//        2 Take evenly spaced samples as the chunk boundaries.
//        3 Search each boundary in each table. The results are the ends of the pieces.
//        4 Cut the pieces of each chunk further, at all samples inside.
// CONCURRENCY  Immutable after construction. A merge redirects pointers of the tables, so all searches in the tables are done
//              before it begins.
// COST   One search per chunk and table, and one cache miss per sample.
class MergePlan {
 public:
  // `progress`: entries at or after `progress` are merged already; null if none are. REQUIRES: no merge of these tables is
  // running.
  MergePlan(const std::vector<const PmTable*>& tables, const RegionSet* regions, const KeyOrder* order, PmPtr progress);

  size_t chunks() const { return chunks_.size(); }
  const std::vector<MergePiece>& pieces(size_t chunk) const { return chunks_[chunk]; }
  // Number of entries of the tables. After a resume this number includes merged entries.
  uint64_t entries() const { return entries_; }

 private:
  struct Sample;
  std::vector<Sample> CollectSamples(const std::vector<const PmTable*>& tables, PmPtr progress) const;

  const RegionSet* regions_;
  const KeyOrder* order_;
  uint64_t entries_ = 0;
  std::vector<std::vector<MergePiece>> chunks_;
};

}  // namespace braiddb
