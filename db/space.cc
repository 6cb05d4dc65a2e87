// Options::bound_space: writers wait while the log takes more space than its limit and background work can free some.
//
// WHY EVERY WAIT ENDS  Writers wait while the compaction thread frees space. It searches for work as long as they wait. If a
//   search finds no table to merge and nothing to relocate, and no memtable is about to become a table, the writers continue
//   until it has freed space again. The writes fill a table, which is merged at once. Errors, a close,
//   SetOptions(disable_auto_compaction) and the beginning of a CompactRange also end the waits. As a last resort, waits end after
//   kMaxWaitNs without a search.
// WHY THE BOUND HOLDS  The limit is computed by each search. An open and the end of a CompactRange compute it themselves: the
//   compaction thread may sleep, or wait for a CPU, and until its next search writers would have no valid limit.
#include <algorithm>
#include <chrono>
#include <utility>

#include "db/db_impl.h"

namespace braiddb {
namespace {

// The longest wait without a search of the compaction thread. Another thread may hold compaction_mutex_ and wait for this very
// write.
constexpr uint64_t kMaxWaitNs = 10'000'000'000;
constexpr uint64_t kMemtablesInSlack = 16;
// The part of the slack that is kept free, at most, in sixteenths.
constexpr uint64_t kMaxFreeSixteenths = 9;

}  // namespace

// With bound_space memtables are smaller, so that few bytes wait for a merge.
uint64_t DBImpl::MemtableSize(uint64_t wanted) const {
  if (!BoundsSpace() || !changing_.MergesByItself()) return wanted;
  return std::min(wanted, std::max(kLeastMemtableSize, options_.space_slack / kMemtablesInSlack));
}

uint64_t DBImpl::SpaceTaken() const {
  uint64_t bytes = 0;
  for (uint32_t region = 0; region < regions_->count(); ++region) bytes += segments_->GetUsage(region).segment_bytes;
  return bytes;
}

uint64_t DBImpl::SpaceUnfilled() const {
  uint64_t bytes = 0;
  segments_->ForEachLog([&bytes](Segment* segment) {
    if (segment->state() == SegmentState::kSealed) return;
    bytes += segment->capacity() - std::min(segment->capacity(), segment->used_bytes.load(std::memory_order_relaxed));
  });
  return bytes;
}

bool DBImpl::IsHeldForSpace() const {
  const uint64_t taken = SpaceTaken();
  const uint64_t limit = space_limit_.load(std::memory_order_relaxed);
  return taken > limit && !space_is_stuck_.load(std::memory_order_acquire) && changing_.MergesByItself() &&
         !write_failed_.load(std::memory_order_acquire) && !stopping_.load(std::memory_order_acquire) &&
         taken - std::min(taken, SpaceUnfilled()) > limit;
}

// Whether all tables of L0 are to be merged at once. While writers are let go, true once for each flushed table, in case that a
// merge frees no space.
bool DBImpl::SpaceIsShort() const {
  return held_writers_.load(std::memory_order_acquire) > 0 ||
         (space_is_stuck_.load(std::memory_order_acquire) &&
          flushed_memtable_id_.load(std::memory_order_acquire) != flushed_at_look_.load(std::memory_order_relaxed));
}

void DBImpl::HoldForSpace(ThreadState* thread) {
  if (!IsHeldForSpace()) return;
  constexpr uint64_t kCheckIntervalNs = 200'000;
  held_writers_.fetch_add(1, std::memory_order_acq_rel);
  NotifyWork();
  uint64_t looks = space_looks_.load(std::memory_order_acquire);
  for (uint64_t waited = 0; waited < kMaxWaitNs && IsHeldForSpace();) {
    waited += SleepForWrites(thread, kCheckIntervalNs);
    const uint64_t now = space_looks_.load(std::memory_order_acquire);
    if (now != std::exchange(looks, now)) waited = 0;
  }
  held_writers_.fetch_sub(1, std::memory_order_release);
}

// Counts the events that free space, or will.
uint64_t DBImpl::CountGains() const {
  return counters_.compactions.load(std::memory_order_relaxed) + counters_.relocated_entries.load(std::memory_order_relaxed) +
         counters_.collapsed_keys.load(std::memory_order_relaxed) + segments_->recycled_count();
}

uint64_t DBImpl::BytesNotMerged() const {
  std::shared_ptr<const ReadView> view;
  {
    std::lock_guard lock(view_mutex_);
    view = current_view_;
  }
  uint64_t bytes = view->active->charged_bytes.load(std::memory_order_relaxed);
  for (const auto& memtable : view->immutables) bytes += memtable->charged_bytes.load(std::memory_order_relaxed);
  view->ForEach([&bytes](uint32_t, const FamilyView& levels) {
    for (const auto& table : levels.l0) bytes += table->log_bytes;
  });
  return bytes;
}

// Computes the limit of the space, and whether writers are let go. Entries in memtables and tables may be overwritten until their
// merge ends, and copies that wait for a merge exist twice; so unmerged bytes do not count as live.
// REQUIRES: compaction_mutex_, or that no other thread exists yet.
void DBImpl::LookAtSpace(bool gained) {
  const bool is_held = held_writers_.load(std::memory_order_acquire) > 0;
  if (is_held) ReleaseMovedWithin(std::chrono::milliseconds(1));
  uint64_t space = 0;
  uint64_t live = 0;
  uint64_t largest = 0;
  segments_->ForEachLog([&](Segment* segment) {
    const bool is_sealed = segment->state() == SegmentState::kSealed;
    const uint64_t used = is_sealed ? segment->sealed_bytes() : segment->used_bytes.load(std::memory_order_relaxed);
    space += segment->capacity();
    live += used - std::min(used, segment->dead_bytes.load(std::memory_order_relaxed));
    largest = std::max(largest, segment->capacity());
  });
  live -= std::min(live, BytesNotMerged());
  // Space for the copies of a relocation, their last segment, the next segment of a writer, and the bytes that the writer writes
  // until it checks again.
  const uint64_t free = dram_.most_relocated + 2 * largest + largest / 2;
  const uint64_t slack = options_.space_slack - std::min(options_.space_slack / 16 * kMaxFreeSixteenths, free);
  const uint64_t taken = SpaceTaken();
  const uint64_t others = taken - std::min(taken, space);
  const double allowed = static_cast<double>(live) * options_.max_space_amplification + static_cast<double>(slack);
  space_limit_.store(static_cast<uint64_t>(allowed < 1e18 ? allowed : 1e18) + others, std::memory_order_relaxed);
  const bool is_above = taken - std::min(taken, SpaceUnfilled()) > space_limit_.load(std::memory_order_relaxed);
  const bool was_stuck = space_is_stuck_.load(std::memory_order_relaxed);
  const bool flushes = immutable_count_.load(std::memory_order_acquire) > 0;
  space_is_stuck_.store(is_above && !gained && !flushes && (is_held || was_stuck), std::memory_order_release);
  space_looks_.fetch_add(1, std::memory_order_release);
}

}  // namespace braiddb
