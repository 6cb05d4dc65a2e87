// LeafTreeLevel: a last level whose entries are in a LeafTree, merged without a journal.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compaction/last_level.h"
#include "leaf_tree/entry_keys.h"
#include "leaf_tree/leaf_tree.h"

namespace braiddb {

class LeafTreeLevel final : public LastLevel {
 public:
  // `view`: the read interface of the tree. Owns the tree and the keys.
  LeafTreeLevel(const Parts& parts, std::shared_ptr<const OrderedLevel> view, LeafTree* tree, const EntryKeys* keys)
      : parts_(parts), view_(std::move(view)), tree_(*tree), keys_(*keys) {}

  std::shared_ptr<const OrderedLevel> View() const override { return view_; }
  void Refresh(uint64_t) override {}
  std::optional<uint64_t> Entries() const override { return tree_.elements(); }
  Status Merge(const MergeJob& job, const std::vector<const PmTable*>& tables, MergeStats* stats) override;
  Status Sweep(const MergeJob& job, const KeyRanges& ranges, MergeStats* stats) override;
  Status Discard() override { return tree_.ReleaseSegments(); }
  bool Owns(const Segment* segment) const override { return tree_.Owns(segment); }
  Status Close() override { return tree_.Close(); }
  uint64_t DramBytes() const override { return tree_.GetStats().inner.bytes; }
  std::string Describe() const override;

 private:
  const Parts parts_;
  const std::shared_ptr<const OrderedLevel> view_;
  LeafTree& tree_;
  const EntryKeys& keys_;
};

}  // namespace braiddb
