// Options::dram_budget at run time: sizes of the lookup cache, the filter and the inner nodes as the data grows.
#include <algorithm>
#include <chrono>
#include <thread>
#include <unordered_set>
#include <utility>

#include "db/db_impl.h"
#include "metrics/figures.h"
#include "util/format.h"

namespace braiddb {
namespace {

// The lookup cache shrinks by at least 1/kParts of the shared memory, so that it shrinks seldom.
constexpr uint64_t kParts = 16;

// The size of a lookup cache is its maximum divided by a power of kCacheGrowth, in whole buckets. The smallest size is the first
// that is at most kFirstCacheBytes.
constexpr uint64_t kFirstCacheBytes = 32 << 10;
constexpr uint64_t kCacheGrowth = 4;
// Buckets that are moved between two checks whether a memtable waits.
constexpr uint64_t kBucketsPerStep = 1024;

// Idle rounds, that is, rounds without a call of the user, after which kept arenas are freed, and after which the lookup cache
// shrinks to its first size.
constexpr uint32_t kRoundsForArenas = 1;
constexpr uint32_t kRoundsForCache = 12;

// Checks whether readers have left the old table, and the pause between two checks. Most readers leave within the first pauses.
constexpr int kReaderChecks = 20;
constexpr std::chrono::microseconds kReaderPause{50};

uint64_t FirstCacheBytes(uint64_t most) {
  while (most > kFirstCacheBytes) most /= kCacheGrowth;
  return LookupCache::UsableBytes(most);
}

// The next larger size; `now` if the cache has the largest size. Sizes are compared in whole buckets: a resize to a size that
// differs from `now` by a part of a bucket would end with the same table, as crowded as before, and would begin again.
uint64_t NextCacheBytes(uint64_t now, uint64_t most) {
  if (LookupCache::UsableBytes(most) <= now) return now;
  while (LookupCache::UsableBytes(most / kCacheGrowth) > now) most /= kCacheGrowth;
  return LookupCache::UsableBytes(most);
}

}  // namespace

// With a budget: during a resize the old table, of a quarter of the size, exists beside the new one.
uint64_t DBImpl::MostLookupCache() const {
  const uint64_t room = RoomForCache();
  return std::min(options_.lookup_cache_size, dram_.is_set() ? room / (kCacheGrowth + 1) * kCacheGrowth : room);
}

void DBImpl::CreateLookupCache() {
  const uint64_t most = MostLookupCache();
  if (most == 0 || !default_family_.is_hashed) return;
  const uint64_t first = FirstCacheBytes(most);
  lookup_cache_ = LookupCache::Create(regions_.get(), first, [this] { NotifyWork(); });
  if (lookup_cache_ == nullptr) return Log("open: no address space for the lookup cache; gets search all levels");
  cache_share_.Force(lookup_cache_->bytes());
  if (regions_->count() == 1 && regions_->persistence()->read_latency_ns() == 0) local_cache_ = lookup_cache_.get();
}

void DBImpl::GrowLookupCache() {
  if (!CacheWantsWork() && !cache_is_resized_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(cache_size_mutex_);
  if (!cache_is_resized_.load(std::memory_order_relaxed)) {
    cache_should_be_shared_.load(std::memory_order_acquire) ? StartSharing() : StartGrowth();
  }
  // If the resize does not end in this call, a later call continues.
  if (cache_is_resized_.load(std::memory_order_relaxed)) (void)ContinueResize(false);
}

void DBImpl::StartGrowth() {
  const uint64_t now = lookup_cache_->bytes();
  const uint64_t next = NextCacheBytes(now, MostLookupCache());
  // If the limit has less than the next size, takes at least twice the present size: a smaller gain is not worth a resize.
  uint64_t taken = next <= now ? 0 : cache_share_.Take(std::min(next, now * 2), next);
  if (taken != 0) {
    cache_share_.Give(taken - LookupCache::UsableBytes(taken));
    taken = LookupCache::UsableBytes(taken);
  }
  if (taken != 0 && lookup_cache_->StartResize(taken, live_heap_.load(std::memory_order_acquire))) {
    cache_is_resized_.store(true, std::memory_order_release);
    return;
  }
  cache_share_.Give(taken);
  lookup_cache_->AcceptCrowd();
}

// Moves the table to the shared heap. Until that is done, there are two tables of one size. With a budget, which must hold, a
// large table moves to one of a quarter of the size instead, which loses keys, and grows when it is crowded. If there is no
// memory, the cache stays private: readers of other processes search the levels.
void DBImpl::StartSharing() {
  cache_should_be_shared_.store(false, std::memory_order_release);
  uint64_t size = lookup_cache_->bytes();
  if (dram_.is_set() && size > MostLookupCache() / kCacheGrowth) size = LookupCache::UsableBytes(size / kCacheGrowth);
  if (!lookup_cache_->StartResize(size, live_heap_.load(std::memory_order_acquire)))
    return Log("readers in other processes: the lookup cache stays private; there is no shared memory, or the cache has shrunk");
  cache_share_.Force(size);
  cache_is_resized_.store(true, std::memory_order_release);
}

// Continues a resize of the lookup cache.
// STEPS   1 move the buckets  2 retire the old table: no thread enters it any more  3 wait until all readers that may be in it
//         have left  4 free its memory.
// Without `waits`, returns false before the end if a memtable has to be flushed, or if a reader stays long. A later call
// continues.
bool DBImpl::ContinueResize(bool waits) try {
  if (old_table_.load(std::memory_order_acquire) == OldTable::kInUse) {
    resized_from_bytes_ = lookup_cache_->bytes();
    while (!lookup_cache_->MoveBuckets(kBucketsPerStep)) {
      if (!waits && immutable_count_.load(std::memory_order_acquire) > 0) return false;
    }
    // A writer that looks up its bucket after this point has announced a larger number. A reader that does so has entered its
    // epoch later.
    const uint64_t last_announced = next_sequence_->load(std::memory_order_seq_cst);
    FenceAnnouncements();
    WaitWriters(last_announced);
    {
      std::lock_guard lock(view_mutex_);
      PublishView();  // with the new table
    }
    old_table_.store(OldTable::kMoved, std::memory_order_relaxed);
  }
  if (old_table_.load(std::memory_order_acquire) == OldTable::kMoved) {
    old_table_.store(OldTable::kRetired, std::memory_order_relaxed);
    epochs_.Retire([this] { old_table_.store(OldTable::kLeft, std::memory_order_release); });
  }
  for (int turn = 0;; ++turn) {
    epochs_.Reclaim();
    if (old_table_.load(std::memory_order_acquire) == OldTable::kLeft) break;
    if (!waits && turn == kReaderChecks) {
      resize_waits_.store(true, std::memory_order_relaxed);
      return false;
    }
    std::this_thread::sleep_for(kReaderPause);
  }
  ReleaseOldTable();
  cache_share_.Give(resized_from_bytes_);
  old_table_.store(OldTable::kInUse, std::memory_order_relaxed);
  resize_waits_.store(false, std::memory_order_relaxed);
  cache_is_resized_.store(false, std::memory_order_release);
  return true;
} catch (const std::bad_alloc&) {
  old_table_.store(OldTable::kMoved, std::memory_order_relaxed);
  resize_waits_.store(true, std::memory_order_relaxed);
  return false;
}

// The readers of this process have left the table. Those of other processes may use it as long as they have a view that names it.
void DBImpl::ReleaseOldTable() {
  const SharedRange old = lookup_cache_->ReleaseOld();
  if (old.offset == 0) return;
  SharedHeap* const heap = live_heap_.load(std::memory_order_acquire);
  try {
    epochs_.RetireShared([heap, old] { heap->Free(old.offset, old.bytes); });
  } catch (const std::bad_alloc&) {  // the memory stays until the close
  }
}

uint64_t DBImpl::CallsOfUsers() const {
  uint64_t calls = 0;
  threads_.ForEach([&calls](const ThreadState& thread) {
    calls += thread.writes.value() + thread.gets.value() + thread.plain_hits.value() + thread.plain_misses.value();
  });
  return calls;
}

bool DBImpl::GiveBackIdle() {
  const uint64_t calls = CallsOfUsers();
  const bool is_idle = calls == std::exchange(idle_calls_, calls) && !live_readers_.Any();
  idle_rounds_ = is_idle ? idle_rounds_ + 1 : 0;
  if (idle_rounds_ >= kRoundsForArenas) arenas_.Clear();
  if (lookup_cache_ == nullptr) return idle_rounds_ < kRoundsForArenas;
  std::lock_guard lock(cache_size_mutex_);
  if (cache_is_resized_.load(std::memory_order_relaxed)) {
    (void)ContinueResize(false);
    return true;
  }
  const uint64_t first = FirstCacheBytes(MostLookupCache());
  if (lookup_cache_->bytes() <= first) return idle_rounds_ < kRoundsForArenas;
  if (idle_rounds_ >= kRoundsForCache || (idle_rounds_ >= kRoundsForArenas && cache_share_.is_short())) {
    if (!lookup_cache_->StartResize(first, live_heap_.load(std::memory_order_acquire))) return false;
    cache_share_.Force(first);
    cache_is_resized_.store(true, std::memory_order_release);
    return !ContinueResize(false);
  }
  if (idle_rounds_ == 0 && cache_share_.is_limited()) lookup_cache_->AskAgain();  // other databases may have given memory back
  return true;
}

uint64_t DBImpl::RoomForCache() const {
  if (!dram_.is_set()) return UINT64_MAX;
  return dram_.cached -
         std::min(dram_.cached, (HasFilter() ? dram_.filter : 0) + NodeBytes() + range_bytes_.load(std::memory_order_relaxed));
}

// Whether a filter is in use or will be built.
bool DBImpl::HasFilter() const {
  return filter_.load(std::memory_order_relaxed) != nullptr || (uses_filter_ && !filter_given_up_);
}

// Bytes of all last levels whose DRAM grows with their entries (the inner nodes of NV-Trees). Other levels have a share of the
// budget.
uint64_t DBImpl::NodeBytes() const {
  uint64_t bytes = 0;
  for (uint32_t id = 0; id < kMaxFamilies; ++id) {
    const Family* const family = FindFamily(id);
    if (family != nullptr && family->last_level != nullptr && family->kind->dram == LevelDram::kGrows)
      bytes += family->last_level->DramBytes();
  }
  return bytes;
}

void DBImpl::KeepDramBudget() {
  if (!dram_.is_set()) return;
  if (HasFilter() && NodeBytes() > dram_.cached - dram_.filter) filter_must_go_.store(true, std::memory_order_relaxed);
  uint64_t room = RoomForCache();
  if (lookup_cache_ == nullptr) return;
  std::lock_guard lock(cache_size_mutex_);
  if (cache_is_resized_.load(std::memory_order_relaxed)) (void)ContinueResize(true);
  if (lookup_cache_->bytes() <= LookupCache::UsableBytes(room)) return;
  room = LookupCache::UsableBytes(room - std::min(room, dram_.cached / kParts));
  cache_share_.Give(lookup_cache_->bytes() - room);
  // Before a write passes a bucket by.
  board_->cache_limit_complement.store(~LookupCache::BucketsLeft(room), std::memory_order_seq_cst);
  lookup_cache_->Shrink(room);
  try {
    epochs_.Retire([this, room] { lookup_cache_->ReleaseGivenUp(room); });
  } catch (const std::bad_alloc&) {
    epochs_.Synchronize();
    lookup_cache_->ReleaseGivenUp(room);
  }
  epochs_.Reclaim();
  Log(Format("dram_budget: inner nodes take %llu bytes, the lookup cache %llu", static_cast<unsigned long long>(NodeBytes()),
             static_cast<unsigned long long>(room)));
}

// Bytes of the memtables of all families.
uint64_t DBImpl::MemtableBytes(const Memtable& memtable) {
  uint64_t bytes = memtable.DramBytes();
  memtable.ForEachSibling([&bytes](uint32_t, const Memtable* sibling) { bytes += sibling->DramBytes(); });
  return bytes;
}

// Adds the bytes of DRAM that the database keeps. Working memory of running flushes and merges is not counted.
void DBImpl::AddDram(MetricFigures* figures) const {
  std::shared_ptr<const ReadView> view;
  std::vector<std::shared_ptr<const LastLevel>> last_levels;
  {
    std::lock_guard lock(view_mutex_);
    view = current_view_;
    // With the lock held: a family that leaves the view loses its entry in by_id_ later, under the same lock.
    view->ForEach([&](uint32_t id, const FamilyView&) { last_levels.push_back(FindFamily(id)->last_level); });
  }
  MetricFigures::Dram& parts = figures->dram;
  parts.memtable = MemtableBytes(*view->active);
  for (const auto& level : last_levels) parts.last_levels += level == nullptr ? 0 : level->DramBytes();
  for (const auto& memtable : view->immutables) parts.immutable_memtables += MemtableBytes(*memtable);
  std::unordered_set<const L0Index*> indexes;
  view->ForEach([&](uint32_t, const FamilyView& levels) {
    for (const FamilyView::Ordered& ordered : levels.orders)
      parts.l0_orders += ordered.order == nullptr ? 0 : ordered.order->bytes();
    for (const FamilyView::TableGroup& group : levels.groups) {
      if (group.index != nullptr && indexes.insert(group.index).second) parts.l0_indexes += group.index->bytes();
    }
  });
  parts.range_tombstones = range_bytes_.load(std::memory_order_relaxed);
  if (lookup_cache_ != nullptr) parts.lookup_cache = lookup_cache_->bytes();
  const auto guard = epochs_.Enter();
  const KeyFilter* const filter = filter_.load(std::memory_order_acquire);
  parts.filter = filter == nullptr ? 0 : filter->bytes();
}

uint64_t DBImpl::DramBytes() const {
  MetricFigures figures;
  AddDram(&figures);
  return figures.dram.Sum();
}

}  // namespace braiddb
