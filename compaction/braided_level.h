// BraidedLevel: the last level as a braided skiplist, changed by zipper compaction through the merge journal.
#pragma once

#include <memory>
#include <mutex>

#include "compaction/last_level.h"
#include "compaction/zipper.h"
#include "skiplist/braided_skiplist.h"

namespace braiddb {

class BraidedLevel final : public LastLevel {
 public:
  static Status Create(RegionSet* regions, const LevelPlace& place);
  // Does the newest journal batch of the job again.
  static Status Open(const Options& options, const Parts& parts, uint64_t job, std::unique_ptr<LastLevel>* result);

  std::shared_ptr<const OrderedLevel> View() const override;
  void Refresh(uint64_t l1_entries) override;
  Status Merge(const MergeJob& job, const std::vector<const PmTable*>& tables, MergeStats* stats) override;
  Status Sweep(const MergeJob& job, const KeyRanges& ranges, MergeStats* stats) override;
  Status Discard() override { return Status::OK(); }
  bool Owns(const Segment*) const override { return false; }
  Status Close() override { return Status::OK(); }
  uint64_t DramBytes() const override;
  std::string Describe() const override;

 private:
  BraidedLevel(const Options& options, const Parts& parts) : parts_(parts), index_bytes_(options.l1_index_size) {}
  ZipperContext ContextFor(const MergeJob& job);
  static std::unique_ptr<EntryFilter> NewFilter(const MergeJob& job);
  std::shared_ptr<const BraidedSkipList> Current() const {
    std::lock_guard lock(mutex_);
    return list_;
  }

  const Parts parts_;
  const uint64_t index_bytes_;
  std::shared_ptr<MergeJournal> journal_;
  uint64_t resumed_job_ = 0;  // whose progress this is
  PmPtr progress_;
  bool index_is_current_ = false;          // it has been made since the list was changed last
  std::unique_ptr<IndexChanges> changes_;  // since it was made; null: not known
  mutable std::mutex mutex_;
  std::shared_ptr<const BraidedSkipList> list_;
};

}  // namespace braiddb
