// DramBudget: how Options::dram_budget is shared among what a database keeps in DRAM.
#pragma once

#include <cstdint>

#include "braiddb/options.h"
#include "db/write_pace.h"

namespace braiddb {

// SHARES  An eighth  memtables (the active one, those that wait for their flush, two that are kept for reuse, and the sorted runs
//                    that iterators make of them), and the indexes and orders over L0
//         An eighth  the working memory of relocations and merges
//         An eighth  the index over the last level, and the one that takes its place (skiplist)
//         Constant   12 MiB for each region, of which PMDK takes 1 for an open pool, and 6 MiB: threads, what an allocator keeps
//         The rest   the lookup cache; a quarter of it the filter; the inner nodes of an NV-Tree take what they need, first from
//                    the cache, then from the filter; range tombstones take from the cache, up to a sixteenth of the budget
// Options are upper limits, but for the size of the lookup cache, which takes all of the rest.
struct DramBudget {
  static uint64_t Least(uint32_t regions) { return (44ull + 20ull * regions) << 20; }
  static constexpr uint64_t kMost = uint64_t{1} << 50;

  // Options::dram_budget, and the options that it sets. REQUIRES: options->regions is known, and the budget is 0 or from Least to
  // kMost.
  static DramBudget Share(Options* options);

  bool is_set() const { return total != UINT64_MAX; }

  uint64_t total = UINT64_MAX;
  uint64_t cached = UINT64_MAX;           // lookup cache, filter and inner nodes together
  uint64_t filter = UINT64_MAX;           // of that, at most
  uint64_t ranges = UINT64_MAX;           // of that, range tombstones: writers that delete ranges wait beyond it
  uint64_t kept_arena = UINT64_MAX;       // bytes of a memtable that are kept for another one
  uint64_t most_relocated = 16ull << 20;  // bytes of one relocation
  WritePace::Slope pace{36, 190, true};
};

}  // namespace braiddb
