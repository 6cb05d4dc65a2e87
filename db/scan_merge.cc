// Merges for scans that pass the same deleted keys again and again.
//
// GOAL   A queue in key order: each consumer seeks to the first key, takes it and deletes it. Every seek passes all keys that
//        were taken since the last merge, so without a merge n takes pass n * n / 2 keys. Nothing else merges a small memtable.
// STEPS  1 iterators, also of live readers, count the deleted keys that one movement passes, where there are many  2 once the sum
//        is large, the compaction thread rotates the memtable  3 the flush thread flushes it  4 tables up to that one are merged,
//        however few.
// COST   The compaction thread spends at most an eighth of its time on such merges: they may be in vain, where a snapshot keeps
//        what was deleted.
#include <chrono>

#include "db/db_impl.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// Deleted keys that scans pass for each merge, some 20 ms of their time.
constexpr uint64_t kHiddenPerMerge = 64 << 10;
constexpr int kShareOfTime = 8;

}  // namespace

void DBImpl::NoteHiddenKeys(uint64_t keys) {
  if (live_reader_ == nullptr && is_read_only()) return;
  if (hidden_keys_.fetch_add(keys, std::memory_order_relaxed) + keys < kHiddenPerMerge) return;
  hidden_keys_.store(0, std::memory_order_relaxed);
  if (live_reader_ != nullptr) return live_reader_->TellOfHiddenKeys();
  WantScanMerge();
}

void DBImpl::WantScanMerge() {
  if (!changing_.MergesByItself()) return;
  if (!scans_wait_.exchange(true, std::memory_order_acq_rel)) NotifyWork();
}

// REQUIRES: compaction_mutex_
void DBImpl::BeginScanMerge(std::chrono::steady_clock::duration last_merge) {
  if (!scans_wait_.exchange(false, std::memory_order_acq_rel)) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_scan_merge_ || write_failed_.load(std::memory_order_acquire)) return;
  next_scan_merge_ = now + kShareOfTime * last_merge;
  const Memtable* active = nullptr;
  {
    std::lock_guard lock(view_mutex_);
    if (next_sequence_->load(std::memory_order_seq_cst) > active_first_sequence_)
      active = active_.load(std::memory_order_relaxed);
  }
  // Without memory for another memtable the tables that are there are merged.
  if (active != nullptr) (void)RotateMemtable(active);
  uint64_t rotated = 0;
  {
    std::lock_guard lock(view_mutex_);
    rotated = last_rotated_id_;
  }
  scan_merge_id_.store(rotated, std::memory_order_release);
  BRAIDDB_SYNC_POINT("DBImpl::BeginScanMerge");
}

}  // namespace braiddb
