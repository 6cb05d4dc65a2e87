// SortedRunsLevel: the last level as sorted runs. A merge rewrites the runs that it touches.
#pragma once

#include <memory>

#include "compaction/last_level.h"
#include "levels/sorted_runs/run_merge.h"
#include "skiplist/sorted_runs.h"

namespace braiddb {

class SortedRunsLevel final : public LastLevel {
 public:
  static const LevelKind kKind;

  static Status Open(const Options& options, const Parts& parts, std::unique_ptr<LastLevel>* result);

  std::shared_ptr<const OrderedLevel> View() const override { return runs_; }
  void Refresh(uint64_t) override { runs_->Refresh(sizes_.index_bytes, parts_.stop); }
  Status Merge(const MergeJob& job, const std::vector<const PmTable*>& tables, MergeStats* stats) override;
  Status Sweep(const MergeJob& job, const KeyRanges& ranges, MergeStats* stats) override;
  Status Discard() override { return runs_->ReleaseSegments(); }
  bool Owns(const Segment* segment) const override { return runs_->Owns(segment); }
  Status Close() override { return Status::OK(); }
  uint64_t DramBytes() const override { return runs_->GetStats().index_bytes; }
  std::string Describe() const override;

 private:
  SortedRunsLevel(const Parts& parts, const RunSizes& sizes) : parts_(parts), sizes_(sizes) {}

  const Parts parts_;
  const RunSizes sizes_;
  std::shared_ptr<SortedRuns> runs_;
};

}  // namespace braiddb
