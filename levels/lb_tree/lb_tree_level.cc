#include "levels/lb_tree/lb_tree_level.h"

#include "compaction/leaf_tree_level.h"
#include "levels/lb_tree/lb_level.h"
#include "levels/lb_tree/lb_tree_media.h"

namespace braiddb {
namespace {

// Opens the tree. Its inner nodes are loaded, or rebuilt from the leaves after a crash. An interrupted merge is run again by the
// caller.
Status Open(const Options& options, const LastLevel::Parts& parts, uint64_t /*job*/, std::unique_ptr<LastLevel>* result) {
  std::shared_ptr<LbLevel> level;
  Status status =
      LbLevel::Open(parts.regions, parts.segments, parts.epochs, parts.order, parts.place, options.recovery_threads, &level);
  if (status.ok()) *result = std::make_unique<LeafTreeLevel>(parts, level, level->tree(), &level->keys());
  return status;
}

}  // namespace

constinit const LevelKind LbTreeLevel::kKind = {
    .id = L1Kind::kLbTree,
    .name = "lb_tree",
    .constant = "kLbTree",
    .dram = LevelDram::kGrows,
    .create = [](const Options&, RegionSet* regions, SegmentAllocator* segments,
                 const LevelPlace& place) { return LbEntryTree::Create(regions, segments, place); },
    .open = Open,
    .new_media = []() -> std::unique_ptr<LevelMedia> { return std::make_unique<LbTreeMedia>(); },
};

}  // namespace braiddb
