// The registry's built-in kinds of last level: one line for each.
#include "index/level_kind.h"
#include "levels/braided_skiplist/braided_level.h"
#include "levels/hybrid/hybrid_level.h"
#include "levels/lb_tree/lb_tree_level.h"
#include "levels/nv_tree/nv_tree_level.h"
#include "levels/sorted_runs/sorted_runs_level.h"

namespace braiddb {

std::span<const LevelKind* const> BuiltInLevelKinds() {
  static constexpr const LevelKind* kKinds[] = {&BraidedLevel::kKind, &NvTreeLevel::kKind, &SortedRunsLevel::kKind,
                                                &HybridLevel::kKind, &LbTreeLevel::kKind};
  return kKinds;
}

}  // namespace braiddb
