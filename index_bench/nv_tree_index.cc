#include "index_bench/nv_tree_index.h"

#include <vector>

namespace braiddb {

Status NvTreeIndex::Create(RegionSet* regions, SegmentAllocator* segments, uint32_t node_bytes,
                           std::unique_ptr<OrderedIndex>* index) {
  Status status = NvTree::Create(regions, segments, node_bytes);
  if (!status.ok()) return status;
  auto result = std::make_unique<NvTreeIndex>();
  status = NvTree::Open({regions, segments, &result->epochs_, &result->order_, &result->keys_}, 1, false, &result->tree_);
  if (status.ok()) *index = std::move(result);
  return status;
}

Status NvTreeIndex::Apply(std::span<const LeafChange> changes) const {
  inside_.reset();
  return tree_->Apply(changes);
}

Status NvTreeIndex::Insert(uint64_t key, uint64_t value) {
  const LeafChange change = {{key, value}};
  return Apply({&change, 1});
}

// As in the paper (3.2.3): the old element with NEGATIVE and the new element are published together.
Status NvTreeIndex::Update(uint64_t key, uint64_t value) {
  uint64_t before = 0;
  if (!Search(key, &before)) return Status::NotFound("no such key");
  const LeafChange changes[] = {{{key, before}, true}, {{key, value}}};
  return Apply(changes);
}

Status NvTreeIndex::Remove(uint64_t key) {
  uint64_t value = 0;
  if (!Search(key, &value)) return Status::NotFound("no such key");
  const LeafChange change = {{key, value}, true};
  return Apply({&change, 1});
}

Status NvTreeIndex::BulkLoad(std::span<const std::pair<uint64_t, uint64_t>> entries, double /*fill*/) {
  std::vector<LeafChange> changes;
  changes.reserve(entries.size());
  for (const auto& [key, value] : entries) changes.push_back({{key, value}});
  return Apply(changes);
}

bool NvTreeIndex::Search(uint64_t key, uint64_t* value) const {
  if (searches_++ % kSearchesPerGuard == 0) inside_.reset();
  if (!inside_) inside_.emplace(&epochs_);
  bool found = false;
  tree_->VisitKey(SearchKey(key, Slice(), 0), [&](const Element& element) {
    *value = element.value;
    found = true;
    return Visited::kEnough;
  });
  return found;
}

IndexStats NvTreeIndex::GetStats() const {
  const InnerNodes::Stats stats = tree_->GetStats().inner;
  return {stats.rebuilds, stats.rebuild_ns, stats.bytes};
}

}  // namespace braiddb
