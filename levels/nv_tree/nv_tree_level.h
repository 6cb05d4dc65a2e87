// NvTreeLevel: the last level as an NV-Tree, merged without a journal.
#pragma once

#include <memory>

#include "compaction/last_level.h"
#include "levels/nv_tree/nv_merge.h"

namespace braiddb {

class NvTreeLevel final : public LastLevel {
 public:
  static const LevelKind kKind;

  static Status Open(const Options& options, const Parts& parts, std::unique_ptr<LastLevel>* result);

  std::shared_ptr<const OrderedLevel> View() const override { return level_; }
  void Refresh(uint64_t) override {}
  Status Merge(const MergeJob& job, const std::vector<const PmTable*>& tables, MergeStats* stats) override;
  Status Sweep(const MergeJob& job, const KeyRanges& ranges, MergeStats* stats) override;
  Status Discard() override { return level_->tree()->ReleaseSegments(); }
  bool Owns(const Segment* segment) const override { return level_->tree()->Owns(segment); }
  Status Close() override { return level_->tree()->Close(); }
  uint64_t DramBytes() const override { return level_->tree()->GetStats().inner.bytes; }
  std::string Describe() const override;

 private:
  explicit NvTreeLevel(const Parts& parts) : parts_(parts) {}

  const Parts parts_;
  std::shared_ptr<NvLevel> level_;
};

}  // namespace braiddb
