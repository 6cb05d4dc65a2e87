// NvTreeIndex: adapter of the database's NV-Tree for index_bench.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "index_bench/ordered_index.h"
#include "nvtree/nv_tree.h"

namespace braiddb {

class NvTreeIndex final : public OrderedIndex {
 public:
  static Status Create(RegionSet* regions, SegmentAllocator* segments, uint32_t node_bytes, std::unique_ptr<OrderedIndex>* index);

  Status Insert(uint64_t key, uint64_t value) override;
  Status Update(uint64_t key, uint64_t value) override;
  Status Remove(uint64_t key) override;
  Status BulkLoad(std::span<const std::pair<uint64_t, uint64_t>> entries, double fill) override;
  bool Search(uint64_t key, uint64_t* value) const override;
  IndexStats GetStats() const override;

 private:
  const KeyOrder order_{BytewiseComparator()};
  const PlainKeys keys_;
  static constexpr uint32_t kSearchesPerGuard = 64;

  Status Apply(std::span<const LeafChange> changes) const;

  mutable EpochManager epochs_;
  std::unique_ptr<NvTree> tree_;
  // Readers of many keys hold one epoch guard for several lookups. Writers hold none.
  struct Inside {
    explicit Inside(EpochManager* epochs) : guard(epochs->Enter()) {}
    EpochManager::Guard guard;
  };
  mutable std::optional<Inside> inside_;
  mutable uint32_t searches_ = 0;
};

}  // namespace braiddb
