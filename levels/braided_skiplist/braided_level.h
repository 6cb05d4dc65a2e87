// BraidedLevel: the last level as a braided skiplist. Zipper compaction changes it, through the merge journal.
#pragma once

#include <memory>
#include <mutex>

#include "compaction/last_level.h"
#include "compaction/zipper.h"
#include "skiplist/braided_skiplist.h"

namespace braiddb {

// INDEX  The tall index describes the list at the last Refresh. A merge records its changes, and the next Refresh builds the new
//        index from the previous index and these changes. After a resumed merge the changes are not known, and Refresh
//        walks the list. A close may store the index, and the next open then takes it.
// CONCURRENCY  `mutex_` guards only the pointer `list_`. One thread runs jobs and Refresh; any thread calls View and DramBytes.
class BraidedLevel final : public LastLevel {
 public:
  static const LevelKind kKind;

  static Status Create(RegionSet* regions, const LevelPlace& place);
  // Repeats the newest journal batch of the job.
  static Status Open(const Options& options, const Parts& parts, uint64_t job, std::unique_ptr<LastLevel>* result);
  static Status Attach(const RegionSet& regions, const KeyOrder& order, const LevelPlace& place,
                       std::shared_ptr<const OrderedLevel>* level);
  static std::shared_ptr<const OrderedLevel> AttachIndex(const OrderedLevel& attached, const SharedMemory& memory,
                                                         std::span<const uint64_t> shared);

  std::shared_ptr<const OrderedLevel> View() const override;
  void Refresh(uint64_t l1_entries) override;
  std::optional<uint64_t> Entries() const override;
  bool Share() override;
  Status Merge(const MergeJob& job, const std::vector<const PmTable*>& tables, MergeStats* stats) override;
  Status Sweep(const MergeJob& job, const KeyRanges& ranges, MergeStats* stats) override;
  Status Discard() override { return Status::OK(); }
  bool Owns(const Segment*) const override { return false; }
  Status Close() override { return Status::OK(); }
  uint64_t StorableBytes() const override {
    const std::shared_ptr<const BraidedSkipList> list = Current();
    return index_is_current_ && !index_was_stopped_ && list->index().IsWhole() ? list->index().bytes() : 0;
  }
  void StoreIndex(BlockFileWriter* file) const override { Current()->index().Store(file); }
  bool LoadIndex(const BlockFileReader& file, uint64_t offset) override;
  uint64_t DramBytes() const override;
  std::string Describe() const override;

 private:
  BraidedLevel(const Options& options, const Parts& parts)
      : parts_(parts), index_bytes_(options.l1_index_size), threads_(options.recovery_threads) {}
  SharedHeap* shared_heap() const {
    return parts_.shared_heap == nullptr ? nullptr : parts_.shared_heap->load(std::memory_order_acquire);
  }
  void Install(std::shared_ptr<const BraidedSkipList> fresh);
  ZipperContext ContextFor(const MergeJob& job);
  static std::unique_ptr<EntryFilter> NewFilter(const MergeJob& job);
  std::shared_ptr<const BraidedSkipList> Current() const {
    std::lock_guard lock(mutex_);
    return list_;
  }

  const Parts parts_;
  const uint64_t index_bytes_;
  const uint32_t threads_;  // that read a stored index
  std::shared_ptr<MergeJournal> journal_;
  uint64_t resumed_job_ = 0;  // the job that progress_ belongs to
  PmPtr progress_;
  bool is_count_lost_ = false;             // since Refresh; what a job that was cut short has linked is not in the estimate
  bool index_was_stopped_ = false;         // a close came while the index was built: it may lack what makes it faster
  bool index_is_current_ = false;          // the list has not changed since the index was built
  std::unique_ptr<IndexChanges> changes_;  // changes since the index was built; null: unknown
  mutable std::mutex mutex_;
  std::shared_ptr<const BraidedSkipList> list_;
};

}  // namespace braiddb
