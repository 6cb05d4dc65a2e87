// LbTreeIndex: adapter of LB+-Tree for index_bench.
#pragma once

#include <memory>

#include "index_bench/ordered_index.h"
#include "lb_tree/lb_tree.h"

namespace braiddb {

class LbTreeIndex final : public OrderedIndex {
 public:
  static Status Create(RegionSet* regions, SegmentAllocator* segments, uint32_t node_bytes, bool move_entries,
                       std::unique_ptr<OrderedIndex>* index);

  Status Insert(uint64_t key, uint64_t value) override { return tree_->Put(key, value); }
  Status Update(uint64_t key, uint64_t value) override { return tree_->Update(key, value); }
  Status Remove(uint64_t key) override { return tree_->Remove(key); }
  Status BulkLoad(std::span<const std::pair<uint64_t, uint64_t>> entries, double fill) override;
  bool Search(uint64_t key, uint64_t* value) const override { return tree_->Get(key, value); }
  IndexStats GetStats() const override { return {0, 0, tree_->GetStats().inner.bytes}; }

 private:
  std::unique_ptr<LbTree> tree_;
};

}  // namespace braiddb
