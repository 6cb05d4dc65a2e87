#include "levels/nv_tree/nv_tree_level.h"

#include "compaction/leaf_tree_level.h"
#include "levels/nv_tree/nv_tree_media.h"
#include "nvtree/nv_level.h"

namespace braiddb {
namespace {

// Opens the tree. Its inner nodes are loaded, or rebuilt from the leaves after a crash. An interrupted merge is run again by the
// caller.
Status Open(const Options& options, const LastLevel::Parts& parts, uint64_t /*job*/, std::unique_ptr<LastLevel>* result) {
  std::shared_ptr<NvLevel> level;
  Status status =
      NvLevel::Open(parts.regions, parts.segments, parts.epochs, parts.order, parts.place, options.recovery_threads, &level);
  if (status.ok()) *result = std::make_unique<LeafTreeLevel>(parts, level, level->tree(), &level->keys());
  return status;
}

}  // namespace

constinit const LevelKind NvTreeLevel::kKind = {
    .id = L1Kind::kNvTree,
    .name = "nv_tree",
    .constant = "kNvTree",
    .dram = LevelDram::kGrows,
    .create = [](const Options& options, RegionSet* regions, SegmentAllocator* segments,
                 const LevelPlace& place) { return NvTree::Create(regions, segments, options.nv_leaf_size, place); },
    .open = Open,
    .new_media = []() -> std::unique_ptr<LevelMedia> { return std::make_unique<NvTreeMedia>(); },
};

}  // namespace braiddb
