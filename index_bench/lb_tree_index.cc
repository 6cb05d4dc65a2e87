#include "index_bench/lb_tree_index.h"

#include <vector>

namespace braiddb {

Status LbTreeIndex::Create(RegionSet* regions, SegmentAllocator* segments, uint32_t node_bytes, bool move_entries,
                           std::unique_ptr<OrderedIndex>* index) {
  Status status = LbTree::Create(regions, segments, node_bytes);
  if (!status.ok()) return status;
  auto result = std::make_unique<LbTreeIndex>();
  status = LbTree::Open({regions, segments, {}, move_entries}, 1, &result->tree_);
  if (status.ok()) *index = std::move(result);
  return status;
}

Status LbTreeIndex::BulkLoad(std::span<const std::pair<uint64_t, uint64_t>> entries, double fill) {
  std::vector<LbEntry> sorted;
  sorted.reserve(entries.size());
  for (const auto& [key, value] : entries) sorted.push_back({key, value});
  return tree_->BulkLoad(sorted, fill, 1);
}

}  // namespace braiddb
