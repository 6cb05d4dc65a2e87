// MergePlan: cuts the tables of one merge into key ranges (chunks) and these into pieces that can be scanned side by side.
#pragma once

#include <cstdint>
#include <vector>

#include "lsm/pm_table.h"
#include "pmem/pm_ptr.h"
#include "util/mutant.h"

namespace braiddb {

// A run of consecutive entries of one table: from `begin` along the bottom list until `end` (exclusive; null: the end of the
// list).
struct MergePiece {
  PmPtr begin;
  PmPtr end;
};

// Entries per chunk, about; a plan takes a search for each chunk and table.
inline constexpr uint64_t kChunkEntries = kCrashTest ? 4 : 2048;

// Chunks are disjoint ranges of user keys in ascending order; all versions of a key are in one chunk. Together they hold every
// entry of the tables that has not been merged yet.
class MergePlan {
 public:
  // `progress`: entries at or after it have been merged already (null: none have). REQUIRES: no merge of these tables is running.
  MergePlan(const std::vector<const PmTable*>& tables, const RegionSet* regions, const KeyOrder* order, PmPtr progress);

  size_t chunks() const { return chunks_.size(); }
  const std::vector<MergePiece>& pieces(size_t chunk) const { return chunks_[chunk]; }
  // Entries of the tables; when resuming, also those already merged.
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
