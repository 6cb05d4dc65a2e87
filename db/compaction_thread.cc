// The compaction thread: when it works, what it does next, and how long it waits.
#include <pthread.h>

#include <algorithm>
#include <chrono>

#include "db/db_impl.h"
#include "db/no_memory.h"
#include "util/sync_point.h"
#include "util/thread_priority.h"

namespace braiddb {
namespace {

// If the compaction thread has no work for this time, the database counts as idle.
constexpr std::chrono::seconds kIdleTime{1};
// The pause between two rounds while writers wait for space and no table is to be merged.
constexpr std::chrono::milliseconds kSpacePollInterval{1};
// The pause between two checks whether the readers have ended for which segments are kept.
constexpr std::chrono::milliseconds kReaderPollInterval{50};
// The time after which a postponed merge is tried again.
constexpr std::chrono::seconds kRetryInterval{1};
// Writers count as paused if no memtable was flushed for kIntervals times the interval between the last two flushes. That time is
// at least kMinPause and at most kMaxPause.
constexpr int kIntervals = 4;
constexpr std::chrono::milliseconds kMinPause{100};
constexpr std::chrono::seconds kMaxPause{2};

}  // namespace

// A merge of many tables costs less per entry than a merge of few. So while writers are busy, tables wait until
// l0_compaction_trigger is reached, or longer if writers leave no CPU idle. When writers pause, or a call waits for the merge,
// waiting gains nothing, and the merge begins at once.
// REQUIRES: work_mutex_
bool DBImpl::CompactionWanted() const {
  if (!changing_.MergesByItself() || write_failed_.load(std::memory_order_acquire)) return false;
  if (!postponed_merge_.ok()) return std::chrono::steady_clock::now() >= postponed_until_;
  const uint32_t tables = l0_load_.most();  // of the family that has the most tables
  if (tables > 0 && SpaceIsShort()) return true;
  // Otherwise the tombstones would keep their memory.
  if (tables > 0 && RangesAreMany() && OldestSnapshot() == UINT64_MAX) return true;
  // If regions have a size limit, tables that wait may take most of a full region. Writers would then wait for one merge of all
  // tables.
  const bool may_be_full = options_.max_region_size != 0 && SpaceTaken() / regions_->count() > options_.max_region_size / 2;
  bool waits_longer = pressure_.is_high() && !may_be_full;
  BRAIDDB_SYNC_POINT_ARG("DBImpl::CompactionWanted", &waits_longer);
  const uint32_t trigger = changing_.l0_compaction_trigger.load(std::memory_order_relaxed);
  const uint32_t longer = std::min(changing_.SlowdownTrigger(), std::max<uint32_t>(trigger, kMaxMergedTables));
  const uint32_t enough = waits_longer ? longer : trigger;
  if (L0Pressure(enough) >= enough) return true;
  const uint64_t oldest = l0_load_.oldest_id();
  if (oldest == kRelocationId || oldest <= scan_merge_id_.load(std::memory_order_acquire)) return true;
  return tables > 0 && (waiting_for_compaction_ > 0 || WritersPause());
}

// REQUIRES: work_mutex_
bool DBImpl::WritersPause() const {
  bool pauses = !flush_running_ && immutable_count_.load(std::memory_order_acquire) == 0 &&
                std::chrono::steady_clock::now() >= WritersPauseAt();
  BRAIDDB_SYNC_POINT_ARG("DBImpl::WritersPause", &pauses);
  return pauses;
}

std::chrono::steady_clock::time_point DBImpl::WritersPauseAt() const {
  using Duration = std::chrono::steady_clock::duration;
  return last_flush_ + std::clamp<Duration>(kIntervals * flush_interval_, kMinPause, kMaxPause);
}

// A merge that a close interrupts is resumed by the next open.
void DBImpl::CompactionLoop() {
  pthread_setname_np(pthread_self(), "braid-compact");
  BRAIDDB_SYNC_POINT("DBImpl::CompactionLoop");
  try {
    {
      const std::lock_guard lock(compaction_mutex_);
      if (!resume_merge_) IndexLastLevels();
    }
    // If CPUs are scarce, writers and readers go first: a delayed merge costs less than a delayed write.
    LowerThreadPriority();
    CompactUntilStopped();
  } catch (const std::bad_alloc&) {
    Settle(Work::kInstall, NoMemory());
  }
  const std::lock_guard lock(work_mutex_);
  compaction_thread_ended_ = true;
  work_changed_.notify_all();
}

// An open does not wait for the indexes. Until they are there reads take several times as long, so they are built first, and at
// the priority of readers. If a merge has to be resumed, they are built after it.
void DBImpl::IndexLastLevels() {
  levels_are_indexed_ = true;
  const std::set<uint32_t> loaded = LoadIndexes();
  for (uint32_t id = 0; id < kMaxFamilies; ++id) {
    Family* const family = FindFamily(id);
    if (family == nullptr || family->last_level == nullptr || family->is_indexed) continue;
    if (family->leaving.load(std::memory_order_relaxed) != 0) continue;  // a drop has taken it out of the view
    TakeEntries(family);
    if (family->l1_entries.load() > 0) InstallLastLevel(family, 0, loaded.contains(id));
  }
}

void DBImpl::CompactUntilStopped() {
  bool more_to_account = true;
  bool more_to_index = true;
  bool more_to_filter = true;
  bool collapses_next = true;
  bool more_to_sweep = false;
  std::chrono::steady_clock::duration last_merge{0};
  for (;;) {
    {
      std::unique_lock lock(work_mutex_);
      compaction_running_ = false;
      work_changed_.notify_all();
      compaction_idle_ = false;
      if (!more_to_account && !more_to_index && !more_to_filter && !more_to_sweep)
        compaction_idle_ = !WaitForWork(&lock, kIdleTime) && WritersPause();
      if (compaction_idle_ && !FilterWanted() && (!tables_wait_for_index_ || resume_merge_) &&
          !moved_waits_.load(std::memory_order_relaxed) && !purge_waits_.load(std::memory_order_relaxed) &&
          !ranges_wait_.load(std::memory_order_relaxed)) {
        compaction_idle_ = false;
        while (!WaitForWork(&lock, std::chrono::hours(1))) {
        }
      }
    }
    BRAIDDB_SYNC_POINT("DBImpl::CompactUntilStopped:Next");
    std::lock_guard lock(compaction_mutex_);
    if (!levels_are_indexed_ && !resume_merge_ && !stopping_.load(std::memory_order_acquire)) IndexLastLevels();
    ServeRoom();
    ShareLevels();
    Settle(Work::kRelease, segments_->FreeDeferred(false));
    BeginScanMerge(last_merge);
    const uint64_t gains = CountGains();
    flushed_at_look_.store(flushed_memtable_id_.load(std::memory_order_acquire), std::memory_order_relaxed);
    more_to_index = IndexRestoredTables(last_merge / 8);
    more_to_filter = !more_to_index && BuildFilter(last_merge / 8);
    if (purge_waits_.load(std::memory_order_relaxed) && PurgeFamilies()) more_to_filter = true;
    bool ends = false;
    bool compacts = false;
    {
      std::lock_guard work_lock(work_mutex_);
      ends = stopping_.load(std::memory_order_acquire);
      compaction_running_ = compacts = !ends && CompactionWanted();
    }
    if (ends) return TidyBeforeClose();
    if (compacts) {
      const auto start = std::chrono::steady_clock::now();
      Status status = CompactTables();
      if (status.ok()) status = MakeCopies(&collapses_next);
      Settle(Work::kMerge, status);
      last_merge = std::chrono::steady_clock::now() - start;
      // If writers never pause, the space that earlier sessions wrote is also accounted, and so can be released.
      const auto account_until = std::chrono::steady_clock::now() + last_merge / 8;
      do {
        more_to_account = AccountOneSegment();
      } while (more_to_account && !stopping_.load(std::memory_order_acquire) && std::chrono::steady_clock::now() < account_until);
    } else if (changing_.MergesByItself()) {
      more_to_account = AccountOneSegment();
      Status status = more_to_account ? Status::OK() : MakeCopies(&collapses_next);
      Settle(Work::kMerge, status);
    } else {
      more_to_account = false;
    }
    const Status swept = SweepRanges(changing_.MergesByItself(), &more_to_sweep);
    Settle(Work::kMerge, swept);
    NoteSuperfluous();
    if (BoundsSpace()) LookAtSpace(more_to_account || CountGains() != gains);
  }
}

// Puts off a merge or sweep that found no space (an iterator may hold old copies), or for which the system refused a call.
// Entries that the merge has merged stay merged, and all others are unchanged. Until the merge is resumed its tables stay in L0,
// no other merge begins, and no space is released. [CC-52]
// REQUIRES: compaction_mutex_; `status` is the result of the merge or sweep that the MANIFEST names.
void DBImpl::PostponeMerge(const Status& status) {
  if (OutcomeOf(Work::kMerge, status) != Outcome::kLater) return;
  resume_merge_ = true;
  l0_load_.settled_counter()->store(0, std::memory_order_relaxed);
  Log("compaction: postponed: " + status.ToString());
  std::lock_guard lock(work_mutex_);
  postponed_merge_ = status;
  postponed_until_ = std::chrono::steady_clock::now() + kRetryInterval;
}

// REQUIRES: compaction_mutex_
Status DBImpl::PostponeAll() {
  const Status status = Status::NoSpace(
      "region 0 has no room for a larger MANIFEST, so no merge can begin; free space on its file system, or open "
      "the database with a larger max_region_size");
  Log("compaction: postponed: " + status.ToString());
  std::lock_guard lock(work_mutex_);
  postponed_merge_ = status;
  postponed_until_ = std::chrono::steady_clock::now() + kRetryInterval;
  return status;
}

// Only one table of copies exists at a time. So collapses and relocations alternate, if both have work.
Status DBImpl::MakeCopies(bool* collapses_next) {
  bool made = false;
  Status status;
  for (int turn = 0; turn < 2 && status.ok() && !made; ++turn) {
    status = *collapses_next ? CollapseOperands(&made) : RelocateSparse(&made);
    *collapses_next = !*collapses_next;
  }
  return status;
}

bool DBImpl::WaitForWork(std::unique_lock<std::mutex>* lock, std::chrono::steady_clock::duration at_most) {
  const auto end = std::chrono::steady_clock::now() + at_most;
  for (;;) {
    if (stopping_.load(std::memory_order_acquire) || CompactionWanted() || FilterWanted()) return true;
    if (scans_wait_.load(std::memory_order_acquire) || levels_should_be_shared_.load(std::memory_order_acquire)) return true;
    if (waiting_for_room_.load(std::memory_order_acquire) > 0 && !write_failed_.load(std::memory_order_acquire)) {
      work_changed_.wait_for(*lock, kSpacePollInterval);
      return true;
    }
    if (held_writers_.load(std::memory_order_acquire) > 0 && IsHeldForSpace()) {
      // There may be something to relocate, or a memtable may become a table soon.
      work_changed_.wait_for(*lock, kSpacePollInterval);
      return true;
    }
    if (at_most > kIdleTime && (ranges_wait_.load(std::memory_order_acquire) || purge_waits_.load(std::memory_order_acquire)))
      return true;
    if (at_most > kIdleTime && segments_->has_deferred()) {
      work_changed_.wait_for(*lock, kReaderPollInterval);
      return true;
    }
    const auto now = std::chrono::steady_clock::now();
    if (now >= end) return false;
    auto until = end;
    const bool tables_wait = l0_load_.most() > 0 && changing_.MergesByItself();
    if (tables_wait) until = std::min(end, WritersPauseAt() > now ? WritersPauseAt() : now + kMinPause);
    if (!postponed_merge_.ok()) until = std::min(end, std::max(now, postponed_until_));
    work_changed_.wait_until(*lock, until);
  }
}

}  // namespace braiddb
