#include "compaction/leaf_tree_level.h"

#include "compaction/leaf_merge.h"
#include "util/format.h"

namespace braiddb {

Status LeafTreeLevel::Merge(const MergeJob& job, const std::vector<const PmTable*>& tables, MergeStats* stats) {
  // Versions that an interrupted sweep has marked dead stay in the tree until it is swept again.
  return tables.empty() ? Sweep(job, {KeyRange()}, stats) : RunLeafMerge(parts_, &tree_, keys_, job, tables, stats);
}

Status LeafTreeLevel::Sweep(const MergeJob& job, const KeyRanges& ranges, MergeStats* stats) {
  return SweepLeafTree(parts_, &tree_, keys_, job, ranges, stats);
}

std::string LeafTreeLevel::Describe() const {
  const LeafTree::Stats stats = tree_.GetStats();
  return Format(
      "%s, leaves of %u bytes: %llu, and %llu free; %llu splits, %llu replaces, %llu merges of leaves; "
      "inner nodes: %llu bytes, %llu rebuilds in %.3f s%s\n",
      tree_.name(), tree_.leaf_bytes(), static_cast<unsigned long long>(stats.inner.leaves),
      static_cast<unsigned long long>(stats.free_leaves), static_cast<unsigned long long>(stats.splits),
      static_cast<unsigned long long>(stats.replaces), static_cast<unsigned long long>(stats.merges),
      static_cast<unsigned long long>(stats.inner.bytes), static_cast<unsigned long long>(stats.inner.rebuilds),
      static_cast<double>(stats.inner.rebuild_ns) / 1e9, stats.from_image ? ", opened from their image" : "");
}

}  // namespace braiddb
