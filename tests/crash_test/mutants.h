// The bugs that can be put in, see util/mutant.h.
#pragma once

#include <span>
#include <string_view>

#include "braiddb/options.h"

namespace braiddb::test {

struct Mutant {
  const char* name;
  const char* bug_class;
  const char* place;

  // The last level that it is a bug of; the skiplist if it is one of what both have.
  L1Kind l1() const {
    const std::string_view in(place);
    if (in.starts_with("levels/sorted_runs/") || in.starts_with("skiplist/sorted_runs")) return L1Kind::kSortedRuns;
    if (in.starts_with("levels/hybrid/") || in.starts_with("hash_index/")) return L1Kind::kHybrid;
    if (in.starts_with("levels/lb_tree/") || in.starts_with("lb_tree/")) return L1Kind::kLbTree;
    return in.starts_with("nvtree/") || in.starts_with("leaf_tree/") || in.starts_with("compaction/key_merger") ||
                   in.starts_with("levels/nv_tree/") || in.starts_with("index/leaf_space")
               ? L1Kind::kNvTree
               : L1Kind::kBraidedSkipList;
  }
};

std::span<const Mutant> Mutants();
// Null if there is none.
const Mutant* FindMutant(std::string_view name);

}  // namespace braiddb::test
