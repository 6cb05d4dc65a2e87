// Compactions on request: CompactRange and WaitForCompaction.

#include "db/db_impl.h"
#include "db/no_memory.h"
#include "db/timestamped_entry.h"

namespace braiddb {
namespace {

// Resets *value to its default when the scope ends.
template <class Value>
class Reset {
 public:
  explicit Reset(Value* value) : value_(value) {}
  ~Reset() { *value_ = Value(); }
  Reset(const Reset&) = delete;
  Reset& operator=(const Reset&) = delete;

 private:
  Value* const value_;
};

}  // namespace

Status DBImpl::CompactRange(const CompactRangeOptions& options, const Slice* begin, const Slice* end) try {
  return CompactFamily(options, &default_family_, begin, end);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status DBImpl::CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* family, const Slice* begin,
                            const Slice* end) try {
  Status status;
  Family* const known = FamilyOf(family, &status);
  return known == nullptr ? status : CompactFamily(options, known, begin, end);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// Tables of the other families are merged as well. If range tombstones were forgotten, the deletions of their records become
// obsolete only after one more merge. So the call then repeats itself without the sweep.
Status DBImpl::CompactFamily(const CompactRangeOptions& options, Family* family, const Slice* begin, const Slice* end) {
  if (fork_mark_.is_in_child()) return InChild();
  if (options.full_history_ts_low.has_value()) return TakesNoTimestamp(family->name);
  const uint64_t ranges = CountRanges();
  LookForIdle();
  uint64_t last_id = 0;
  Status status = FlushWritten(&last_id);
  if (!status.ok()) return status;
  {
    std::lock_guard lock(compaction_mutex_);
    if (write_failed_.load(std::memory_order_acquire)) return BackgroundError();
    const Reset<ManualCompaction> reset(&manual_compaction_);
    LetWritersGo();  // a compaction may take long, and writers must not wait for it
    const bool sweeps_all = options.sweep_last_level && begin == nullptr && end == nullptr;
    manual_compaction_ = sweeps_all ? ManualCompaction::kBeforeSweep : ManualCompaction::kManual;
    manual_family_ = family;
    while (status.ok() && l0_load_.oldest_id() <= last_id) status = CompactTables();
    if (status.ok() && resume_merge_) status = CompactTables();
    const bool is_there = !family->is_gone.load(std::memory_order_acquire);
    if (status.ok() && options.sweep_last_level && is_there && (!family->is_swept || ranges != 0)) {
      const bool leaves_nothing = family->is_hashed && !family->has_filter && ranges == 0 && CopySnapshots().empty();
      status = SweepFamily(family, {{begin, end}}, true);
      family->is_swept = status.ok() && sweeps_all && leaves_nothing;
    }
    manual_compaction_ = ManualCompaction::kManual;
    while (status.ok() && AccountOneSegment()) {
    }
    if (status.ok()) status = CollapseAll();
    for (bool more = true; status.ok() && more;) status = SweepRanges(true, &more);
    Family* const records = range_family_.load(std::memory_order_acquire);
    if (status.ok() && records != nullptr && options.sweep_last_level) status = SweepFamily(records, {KeyRange()}, false);
    if (status.ok()) status = SealIdle(SpaceUnfilled() > options_.space_slack ? Idleness::kIdle : Idleness::kEnded);
    if (status.ok()) ReclaimSegments();
    if (status.ok()) status = RelocateAll();
    epochs_.Reclaim();
    Settle(Work::kMerge, status);
    if (BoundsSpace()) LookAtSpace(true);  // the compaction thread is not woken, so its own check may come late
  }
  if (!status.ok() || CountRanges() >= ranges) return status;
  CompactRangeOptions merge_only = options;
  merge_only.sweep_last_level = false;
  return CompactFamily(merge_only, family, begin, end);
}

bool DBImpl::CompactionIdle() const { return !compaction_running_ && !CompactionWanted(); }

Status DBImpl::WaitForCompaction() try {
  if (fork_mark_.is_in_child()) return InChild();
  if (is_read_only()) return Status::OK();
  std::unique_lock lock(work_mutex_);
  ++waiting_for_compaction_;
  work_changed_.notify_all();
  work_changed_.wait(lock, [this] {
    if (!background_error_.ok() || stopping_.load(std::memory_order_acquire)) return true;
    return immutable_count_.load(std::memory_order_acquire) == 0 && !flush_running_ && CompactionIdle();
  });
  --waiting_for_compaction_;
  return background_error_.ok() ? postponed_merge_ : background_error_;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

}  // namespace braiddb
