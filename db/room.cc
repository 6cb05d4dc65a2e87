// Room in a full region: writers that find no space wait for the compaction thread, which makes room.
//
// STEPS   of the compaction thread, while writers wait; each is repeated until a segment is released: 1 merge the tables of L0  2
//         count the entries of earlier sessions  3 remove entries that deleted ranges hide  4 seal the segments of threads that
//         have ended, and relocate live entries of sparse segments, in portions that fit into the reserved space (SpaceUse)  5
//         flush the memtables, and start again at 1  6 sweep the last levels, once for each flush and oldest
//         snapshot. If a reader may hold space, the thread waits for it.
//         Meanwhile a writer takes the open segment of an idle thread, if that segment has room (open_segments.cc).
// WHY EVERY WAIT ENDS  A round that finds nothing to do ends the waits that began before it: the data does not fit. Besides,
//         Options::no_space_timeout_ms bounds each wait. For one second after such a round, or after a wait for readers only,
//         later writers are refused at once, unless a write has succeeded or a segment was released meanwhile.
#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "db/db_impl.h"
#include "db/no_memory.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

constexpr int64_t kRefusalMs = 1000;
// A round may have been under way when the writer arrived, so two rounds must end.
constexpr uint64_t kRounds = 2;

int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

uint64_t DBImpl::RoomState() const { return segments_->recycled_count() + next_sequence_->load(std::memory_order_relaxed); }

Status DBImpl::WaitForRoom(ThreadState* thread, uint64_t bytes, SpaceUse use, LogSlot* slot) {
  const int64_t begin = NowMs();
  const bool was_dry =
      dry_state_.load(std::memory_order_acquire) == RoomState() && begin - dry_ms_.load(std::memory_order_relaxed) < kRefusalMs;
  const auto reserve = [&](Idleness least) {
    Status refused = ReserveElsewhere(thread, bytes, use, slot);
    if (!refused.IsNoSpace()) return refused;
    const Status taken = ReserveInIdle(thread, bytes, least, slot);
    return taken.IsNoSpace() ? refused : taken;
  };
  if (options_.no_space_timeout_ms == 0 || was_dry) return reserve(Idleness::kAny);
  const uint64_t dry = dry_rounds_.load(std::memory_order_acquire);
  const uint64_t released_before = segments_->recycled_count();
  // A count that an exception leaves behind would keep the compaction thread busy for ever.
  struct Waiting {
    std::atomic<uint32_t>& count;
    explicit Waiting(std::atomic<uint32_t>& of) : count(of) { count.fetch_add(1, std::memory_order_acq_rel); }
    ~Waiting() { count.fetch_sub(1, std::memory_order_release); }
  };
  constexpr uint64_t kCheckIntervalNs = 300'000;
  const Waiting waiting(waiting_for_room_);
  NotifyWork();
  Status status;
  uint64_t released = UINT64_MAX;  // a segment may have been released just before
  for (;;) {
    SleepForWrites(thread, kCheckIntervalNs);
    const uint64_t now = segments_->recycled_count();
    const bool is_over = dry_rounds_.load(std::memory_order_acquire) >= dry + kRounds ||
                         NowMs() - begin >= static_cast<int64_t>(options_.no_space_timeout_ms) ||
                         write_failed_.load(std::memory_order_acquire) || stopping_.load(std::memory_order_acquire);
    if (is_over) {
      status = reserve(Idleness::kAny);
    } else {
      status = now == released ? ReserveInIdle(thread, bytes, Idleness::kIdle, slot) : reserve(Idleness::kIdle);
    }
    released = now;
    if (status.IsNoSpace() && is_over && now == released_before) NoteDry(RoomState());
    if (!status.IsNoSpace() || is_over) return status;
  }
}

// From now on, for a while, writes in this state are refused at once.
void DBImpl::NoteDry(uint64_t state) {
  dry_ms_.store(NowMs(), std::memory_order_relaxed);
  dry_state_.store(state, std::memory_order_release);
}

void DBImpl::ServeRoom() {
  if (waiting_for_room_.load(std::memory_order_acquire) == 0) return;
  {
    std::lock_guard lock(work_mutex_);
    compaction_running_ = true;
  }
  while (waiting_for_room_.load(std::memory_order_acquire) > 0 && !write_failed_.load(std::memory_order_acquire) &&
         !stopping_.load(std::memory_order_acquire)) {
    const uint64_t state = RoomState();
    if (MakeRoom()) continue;
    NoteDry(state);
    dry_rounds_.fetch_add(1, std::memory_order_release);
    return;
  }
}

bool DBImpl::MakeRoom() try {
  BRAIDDB_SYNC_POINT("DBImpl::MakeRoom");
  const uint64_t released = segments_->recycled_count();
  ReleaseMovedWithin(std::chrono::milliseconds(10));
  epochs_.Reclaim();
  if (segments_->recycled_count() != released) return true;
  if (l0_load_.oldest_id() != UINT64_MAX || resume_merge_.load(std::memory_order_acquire)) {
    const Status status = CompactTables();
    Settle(Work::kMerge, status);
    return status.ok();
  }
  if (AccountOneSegment()) {
    if (unaccounted_.empty()) ReclaimSegments();
    return true;
  }
  bool stepped = false;
  const Status swept = SweepRanges(true, &stepped);
  Settle(Work::kMerge, swept);
  if (Status sealed = SealIdle(Idleness::kEnded); !sealed.ok()) {
    Settle(Work::kSeal, sealed);
    return false;
  }
  if (stepped || RelocateForRoom()) return true;
  // A merge of copies that was interrupted is resumed before any other change of the last level.
  if (MergeIsUnfinished()) return false;
  return FlushForRoom() || SweepForRoom() || segments_->recycled_count() != released || WaitForReaders();
} catch (const std::bad_alloc&) {
  Settle(Work::kInstall, NoMemory());
  return false;
}

bool DBImpl::RelocateForRoom() {
  bool relocated = false;
  Status status = RelocateSparse(&relocated, true);
  while (status.ok() && relocated && l0_load_.oldest_id() == kRelocationId) status = CompactTables();
  Settle(Work::kMerge, status);
  return relocated && status.ok();
}

bool DBImpl::FlushForRoom() {
  if (immutable_count_.load(std::memory_order_acquire) > 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    return true;
  }
  const Memtable* active = nullptr;
  {
    std::lock_guard lock(view_mutex_);
    if (next_sequence_->load(std::memory_order_seq_cst) > active_first_sequence_)
      active = active_.load(std::memory_order_relaxed);
  }
  return active != nullptr && RotateMemtable(active).ok();
}

// False: no reader holds space. Iterators are snapshots, too.
bool DBImpl::WaitForReaders() {
  const bool is_held = held_segments_.load(std::memory_order_relaxed) > 0 || moved_waits_.load(std::memory_order_relaxed) ||
                       OldestSnapshot() != UINT64_MAX;
  if (is_held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return is_held;
}

// Removes versions that were kept only for snapshots which have been released.
bool DBImpl::SweepForRoom() {
  const std::pair state(flushed_memtable_id_.load(std::memory_order_acquire), OldestSnapshot());
  if (swept_for_room_ == state) return false;
  swept_for_room_ = state;
  for (uint32_t id = 0; id < kMaxFamilies; ++id) {
    Family* const family = FindFamily(id);
    if (family == nullptr || family->is_gone.load(std::memory_order_acquire) || family->l1_entries.load() == 0) continue;
    const Status status = SweepFamily(family, {KeyRange()}, false);
    if (status.ok()) continue;
    Settle(Work::kMerge, status);
    return false;
  }
  return true;
}

}  // namespace braiddb
