#include "levels/nv_tree/nv_tree_level.h"

#include "levels/nv_tree/nv_tree_media.h"
#include "util/format.h"

namespace braiddb {

constinit const LevelKind NvTreeLevel::kKind = {
    .id = L1Kind::kNvTree,
    .name = "nv_tree",
    .constant = "kNvTree",
    .dram = LevelDram::kGrows,
    .create = [](const Options& options, RegionSet* regions, SegmentAllocator* segments,
                 const LevelPlace& place) { return NvTree::Create(regions, segments, options.nv_leaf_size, place); },
    .open = [](const Options& options, const Parts& parts, uint64_t /*job*/,
               std::unique_ptr<LastLevel>* result) { return Open(options, parts, result); },
    .new_media = []() -> std::unique_ptr<LevelMedia> { return std::make_unique<NvTreeMedia>(); },
};

// Opens the tree. Its inner nodes are loaded, or rebuilt from the leaves after a crash. An interrupted merge is run again by the
// caller.
Status NvTreeLevel::Open(const Options& options, const Parts& parts, std::unique_ptr<LastLevel>* result) {
  std::unique_ptr<NvTreeLevel> level(new NvTreeLevel(parts));
  Status status = NvLevel::Open(parts.regions, parts.segments, parts.epochs, parts.order, parts.place, options.recovery_threads,
                                &level->level_);
  if (status.ok()) *result = std::move(level);
  return status;
}

Status NvTreeLevel::Merge(const MergeJob& job, const std::vector<const PmTable*>& tables, MergeStats* stats) {
  // Versions that an interrupted sweep has marked dead stay in the tree until it is swept again.
  return tables.empty() ? Sweep(job, {KeyRange()}, stats) : RunNvMerge(parts_, *level_, job, tables, stats);
}

Status NvTreeLevel::Sweep(const MergeJob& job, const KeyRanges& ranges, MergeStats* stats) {
  return SweepNvTree(parts_, *level_, job, ranges, stats);
}

std::string NvTreeLevel::Describe() const {
  const NvTree::Stats stats = level_->tree()->GetStats();
  return Format(
      "NV-Tree, leaves of %u bytes: %llu, and %llu free; %llu splits, %llu replaces, %llu merges of leaves; "
      "inner nodes: %llu bytes, %llu rebuilds in %.3f s%s\n",
      level_->tree()->leaf_bytes(), static_cast<unsigned long long>(stats.inner.leaves),
      static_cast<unsigned long long>(stats.free_leaves), static_cast<unsigned long long>(stats.splits),
      static_cast<unsigned long long>(stats.replaces), static_cast<unsigned long long>(stats.merges),
      static_cast<unsigned long long>(stats.inner.bytes), static_cast<unsigned long long>(stats.inner.rebuilds),
      static_cast<double>(stats.inner.rebuild_ns) / 1e9, stats.from_image ? ", opened from their image" : "");
}

}  // namespace braiddb
