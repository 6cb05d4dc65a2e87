// HybridLevel: the last level as HiKV's hybrid index: a persistent hash index for point reads, and an ordered index in DRAM for
// scans (Xia, Jiang, Xiong, Sun: "HiKV", ATC '17).
//
// LAYOUT       One slot of the hash index for each version in the level. Entries stay where they were written. Of their `next`
//              words only the marks are used.
// DIFFERENCES  HiKV's serving threads write the hash index, and a queue of updates leads to the ordered index. Here a put goes to
//              the log and a memtable, and a merge changes both indexes. Until the merge has ended, readers find its entries in
//              the tables. So a scan waits for no update, and the threads of merges (Options::compaction_threads) are the
//              background threads of section 3.2.2.
// RECOVERY     The hash index serves reads at once. The ordered index is built from it in the background, or by the first cursor.
#pragma once

#include <memory>
#include <mutex>

#include "compaction/last_level.h"
#include "levels/hybrid/entry_signatures.h"
#include "levels/hybrid/hybrid_merge.h"
#include "levels/hybrid/hybrid_view.h"

namespace braiddb {

class HybridLevel final : public LastLevel {
 public:
  static const LevelKind kKind;

  static Status Open(const Options& options, const Parts& parts, uint64_t job, std::unique_ptr<LastLevel>* result);

  std::shared_ptr<const OrderedLevel> View() const override { return Current(); }
  // Builds the next ordered index from the last one and the changes of the last job, or anew. With Options::l1_index_size 0 it is
  // built by the first cursor only.
  void Refresh(uint64_t l1_entries) override;
  std::optional<uint64_t> Entries() const override {
    const std::shared_ptr<const OrderedIndex> index = Current()->BuiltIndex();
    return index == nullptr ? std::nullopt : std::optional(index->nodes().nodes.nodes());
  }
  Status Merge(const MergeJob& job, const std::vector<const PmTable*>& tables, MergeStats* stats) override;
  Status Sweep(const MergeJob& job, const KeyRanges& ranges, MergeStats* stats) override;
  Status Discard() override { return hash_->ReleaseSegments(); }
  bool Owns(const Segment* segment) const override { return hash_->Owns(segment); }
  Status Close() override { return Status::OK(); }
  uint64_t DramBytes() const override;
  std::string Describe() const override;

 private:
  HybridLevel(const Options& options, const Parts& parts, uint64_t job)
      : parts_(parts),
        keys_(parts.regions, HashTreeId(parts.regions->database_id(), parts.place.number)),
        threads_(options.recovery_threads),
        index_bytes_(options.l1_index_size),
        resumed_job_(job) {}

  std::shared_ptr<const HybridView> Current() const {
    const std::lock_guard lock(mutex_);
    return view_;
  }
  std::shared_ptr<const HybridView> NewView(std::shared_ptr<const OrderedIndex> index) const;
  void Install(std::shared_ptr<const HybridView> view);
  // Begins a job. Returns the view that it uses. `needs_index`: its ordered index must be built, and current. Sets *records if
  // the job's changes lead from the view's ordered index to the next one.
  Status Begin(const MergeJob& job, bool needs_index, std::shared_ptr<const HybridView>* view, bool* records);

  // Joins small pages if jobs have removed many entries.
  Status ShrinkIfDue(const MergeJob& job, const MergeStats& stats);

  const Parts parts_;
  const EntrySignatures keys_;
  const uint32_t threads_;
  const uint64_t index_bytes_;
  const uint64_t resumed_job_;
  std::shared_ptr<HashIndex> hash_;
  mutable std::mutex mutex_;
  std::shared_ptr<const HybridView> view_;
  uint64_t removed_ = 0;                        // entries that jobs have removed since the last shrink
  bool is_current_ = true;                      // no job has begun since view_ was installed
  std::shared_ptr<const OrderedIndex> before_;  // the index that changes_ belong to; null: the changes are not known
  std::vector<OrderedIndex::Change> changes_;   // of the last job, in entry order
};

}  // namespace braiddb
