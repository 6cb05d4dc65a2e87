// DramBudget: divides Options::dram_budget among the structures that a database keeps in DRAM.
#pragma once

#include <cstdint>

#include "braiddb/options.h"
#include "db/write_pace.h"

namespace braiddb {

// SHARES  An eighth  memtables: the active one, those that wait for their flush, two arenas that are kept for reuse, and
//                    the sorted runs that iterators create in memtables; indexes and sorted runs over L0
//         An eighth  the working memory of relocations and merges
//         An eighth  the index over the last level and its successor during a merge (skiplist)
//         Constant   12 MiB for each region, of which PMDK takes 1 MiB for an open pool; 6 MiB for threads and the allocator
//         The rest   the lookup cache; a quarter of the rest is the filter. The inner nodes of an NV-Tree take memory first from
//                    the cache, then from the filter. Range tombstones take from the cache, up to a sixteenth of the budget.
// Sizes in Options are upper limits, except for the size of the lookup cache: the cache gets all of the rest.
struct DramBudget {
  static uint64_t Least(uint32_t regions) { return (44ull + 20ull * regions) << 20; }
  static constexpr uint64_t kMost = uint64_t{1} << 50;

  // Divides options->dram_budget, and lowers the sizes in *options accordingly. Without a budget (0) all members keep their
  // defaults.
  // REQUIRES: options->regions is known, and the budget is 0 or from Least to kMost.
  static DramBudget Share(Options* options);

  bool is_set() const { return total != UINT64_MAX; }

  uint64_t total = UINT64_MAX;
  uint64_t cached = UINT64_MAX;           // lookup cache, filter and inner nodes together
  uint64_t filter = UINT64_MAX;           // of `cached`: the filter, at most
  uint64_t ranges = UINT64_MAX;           // of `cached`: range tombstones; writers that delete ranges wait beyond it
  uint64_t kept_arena = UINT64_MAX;       // bytes of a memtable's arena that are kept for reuse
  uint64_t most_relocated = 16ull << 20;  // bytes of one relocation
  WritePace::Slope pace{36, 190, true};
};

}  // namespace braiddb
