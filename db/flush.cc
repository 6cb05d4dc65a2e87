// Flush and checkpoint: full memtables become tables of L0, and the MANIFEST lists them.
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "compaction/checkpoint.h"
#include "compaction/flush_job.h"
#include "db/db_impl.h"
#include "db/no_memory.h"
#include "index/key_hash.h"
#include "util/mutant.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// Segments kept ready per region, so that writers do not wait for the pool to grow.
constexpr uint32_t kSpareSegments = 2;
constexpr uint64_t kYoungRegionBytes = 4ull << 20;  // a region that is no larger does not grow for spares

// If no memtable was flushed for this time, writers count as paused. The first limit applies while iterators are being created,
// the second otherwise. If a merge of sorted runs had to be given up, the limit doubles, up to the third.
constexpr std::chrono::milliseconds kShortPause{5};
constexpr std::chrono::milliseconds kLongPause{50};
constexpr std::chrono::milliseconds kLongestPause{1000};
// The interval between two checks whether the database is idle.
constexpr std::chrono::milliseconds kIdleRound{5000};
// If a merge of sorted runs that a seemingly idle CPU allowed is given up, it is not tried again before this number of flushes.
constexpr uint32_t kFlushesPerTry = 16;

std::chrono::nanoseconds TimeOf(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Tables that the MANIFEST does not list, oldest first. Tables of one rotation are adjacent, and the table that has the extents
// comes first.
// REQUIRES: manifest_mutex_, under which tables lose their extents.
std::vector<std::shared_ptr<PmTable>> UnlistedTables(const ReadView& view) {
  std::vector<std::shared_ptr<PmTable>> tables;
  view.ForEach([&tables](uint32_t, const FamilyView& levels) {
    for (const auto& table : levels.l0) {
      if (!table->checkpointed.load(std::memory_order_relaxed)) tables.push_back(table);
    }
  });
  std::sort(tables.begin(), tables.end(), [](const auto& a, const auto& b) {
    if (a->id() != b->id()) return a->id() < b->id();
    if (a->extents.empty() != b->extents.empty()) return b->extents.empty();
    return a->family() < b->family();
  });
  return tables;
}

// Whether there are unlisted tables of `count` rotations. Needs no manifest_mutex_, unlike UnlistedTables: unlisted tables are
// the newest tables of each family.
bool HasUnlistedRotations(const ReadView& view, size_t count) {
  std::set<uint64_t> rotations;
  view.ForEach([&](uint32_t, const FamilyView& levels) {
    for (size_t i = 0; i < std::min(count, levels.l0.size()); ++i) {
      if (levels.l0[i]->checkpointed.load(std::memory_order_relaxed)) break;
      rotations.insert(levels.l0[i]->id());
    }
  });
  return rotations.size() >= count;
}

size_t MostListedTables(const ManifestState& state) {
  return kMaxManifestTables + kMaxTablesPerFamily * (1 + state.families.size());
}

}  // namespace

// Flushes memtables until the database is closed. Entries that are not flushed stay in their memtable and in the log.
void DBImpl::FlushLoop() {
  pthread_setname_np(pthread_self(), "braid-flush");
  try {
    FlushUntilStopped();
  } catch (const std::bad_alloc&) {
    Settle(Work::kInstall, NoMemory());
  }
  const std::lock_guard lock(work_mutex_);
  flush_thread_ended_ = true;
  work_changed_.notify_all();
}

void DBImpl::FlushUntilStopped() {
  std::chrono::milliseconds pause = kLongPause;
  std::chrono::milliseconds given_up{0};  // the minimum pause after a merge of sorted runs was given up
  WriterPressure::Flush flush{};
  auto began = std::chrono::steady_clock::now();
  std::chrono::nanoseconds process_began = TimeOf(CLOCK_PROCESS_CPUTIME_ID);
  std::chrono::nanoseconds orders_cpu{0};  // CPU time of flush.orders
  uint32_t gives_up = 0;                   // flushes before sorted runs are merged on a seemingly idle CPU again
  bool is_alone = false;                   // no merge was running when the last flush began
  const auto wanted = [this] {
    return flush_ends_.load(std::memory_order_acquire) || immutable_count_.load(std::memory_order_acquire) > 0 ||
           CacheWantsWork();
  };
  for (;;) {
    {
      std::unique_lock lock(work_mutex_);
      if (flush_running_) {
        const auto now = std::chrono::steady_clock::now();
        flush_interval_ = now - last_flush_;
        last_flush_ = now;
      }
      flush_running_ = false;
      work_changed_.notify_all();
      if (CacheWantsWork() || cache_is_resized_.load(std::memory_order_acquire)) {
        lock.unlock();
        GrowLookupCache();
        lock.lock();
      }
      if (!work_changed_.wait_for(lock, std::max(pause, given_up), wanted)) {
        lock.unlock();
        restored_orders_wait_.store(false, std::memory_order_relaxed);
        const bool is_done = MergeTableOrders(OrdersFor::kPause);
        given_up = is_done ? std::chrono::milliseconds(0) : std::min(2 * std::max(pause, given_up), kLongestPause);
        for (int round = 0; round < 3 && epochs_.Reclaim() > 0; ++round) {  // reclaims the sorted runs that were merged
        }
        lock.lock();
        WaitIdle(&lock, [&] { return wanted() || restored_orders_wait_.load(std::memory_order_acquire); });
      }
      if (immutable_count_.load(std::memory_order_acquire) == 0) {
        if (flush_ends_.load(std::memory_order_acquire)) return;  // all memtables are flushed
        continue;
      }
      flush_running_ = true;
      const auto now = std::chrono::steady_clock::now();
      const std::chrono::nanoseconds process_now = TimeOf(CLOCK_PROCESS_CPUTIME_ID);
      flush.interval = now - std::exchange(began, now);
      flush.process_cpu = process_now - std::exchange(process_began, process_now) - orders_cpu;
      flush.waiting = immutable_count_.load(std::memory_order_relaxed) - 1;
      if (std::exchange(is_alone, !compaction_running_) && is_alone) pressure_.Note(flush);
    }
    PendingFlush pending;
    {
      std::lock_guard lock(view_mutex_);
      pending = pending_flushes_.front();
    }
    PrepareArena(*pending.memtable);
    if (!FlushOne(pending, &flush)) return;  // unflushed entries stay in memtables and in the log
    epochs_.Reclaim();
    for (uint32_t region = 0; region < regions_->count(); ++region) {
      if (regions_->ReservedBytes(region) > kYoungRegionBytes) segments_->PrepareSpares(region, kSpareSegments);
    }
    GiveBackSpace();
    const bool iterators_come = IteratorsCome();
    bool has_idle_cpu = is_alone && !pressure_.is_high() && gives_up == 0;
    BRAIDDB_SYNC_POINT_ARG("DBImpl::FlushUntilStopped:Flushed", &has_idle_cpu);
    gives_up -= gives_up > 0;
    const auto flushed = std::chrono::steady_clock::now();
    const std::chrono::nanoseconds cpu_flushed = TimeOf(CLOCK_THREAD_CPUTIME_ID);
    if (iterators_come) {
      MergeTableOrders(OrdersFor::kIterators);
    } else if (has_idle_cpu && !MergeTableOrders(OrdersFor::kIdleCpu)) {
      gives_up = kFlushesPerTry;
    }
    flush.orders = std::chrono::steady_clock::now() - flushed;
    orders_cpu = TimeOf(CLOCK_THREAD_CPUTIME_ID) - cpu_flushed;
    pause = iterators_come ? kShortPause : kLongPause;
  }
}

// While the database is idle, memory and space that it can do without are given back to the system.
void DBImpl::WaitIdle(std::unique_lock<std::mutex>* lock, const std::function<bool()>& wanted) {
  std::chrono::milliseconds round = kIdleRound;
  BRAIDDB_SYNC_POINT_ARG("DBImpl::WaitIdle:Round", &round);
  auto next_round = std::chrono::steady_clock::now() + round;
  bool has_memory = true;  // GiveBackIdle may find memory
  for (;;) {
    const bool has_space = space_is_superfluous_.load(std::memory_order_acquire);
    const auto ends = [&] { return wanted() || (!has_space && space_is_superfluous_.load(std::memory_order_acquire)); };
    if (has_space) {
      work_changed_.wait_until(*lock, has_memory ? std::min(next_round, NextGiveBack()) : NextGiveBack(), ends);
    } else if (has_memory) {
      work_changed_.wait_until(*lock, next_round, ends);
    } else {
      work_changed_.wait(*lock, ends);
    }
    if (wanted()) return;
    lock->unlock();
    if (has_space) GiveBackSpace();
    if (has_memory && std::chrono::steady_clock::now() >= next_round) {
      has_memory = GiveBackIdle();
      next_round = std::chrono::steady_clock::now() + round;
    }
    lock->lock();
  }
}

// Prepares an arena for the next memtable, which will need about as much memory as this one. The writer that rotates memtables
// then need not wait for page faults.
void DBImpl::PrepareArena(const Memtable& like) {
  if (stopping_.load(std::memory_order_acquire) || !arenas_.empty()) return;
  const uint64_t entries = ExpectedEntries(&like);
  std::unique_ptr<Arena> arena = CreateArena(entries, live_heap_.load(std::memory_order_acquire));
  if (arena == nullptr) return;  // the writer that rotates tries again
  arena->Populate(std::min(like.DramBytes(), KeptArenaBytes()));
  arenas_.Keep(std::move(arena), KeptArenas());
}

// Sets the fields of *took that measure the flush itself, without waits for writers.
bool DBImpl::FlushOne(const PendingFlush& pending, WriterPressure::Flush* took) {
  BRAIDDB_SYNC_POINT("DBImpl::FlushOne");
  PostFlush(pending.memtable->id(), nullptr);
  const uint64_t begin_ns = perf::NowNs();
  FenceAnnouncements();
  if (!BRAIDDB_MUTANT("flush-before-writers-left")) WaitWriters(pending.last_announced);
  const VersionFilter filter(CopySnapshots());
  // If a merge of the table is to follow, the merge adds its keys to the filter. The flush does not: writers may wait for the
  // flush, and keys that are overwritten until the merge need no room in the filter.
  const bool adds_keys = !changing_.MergesByItself();
  std::unique_lock filter_lock(filter_mutex_, std::defer_lock);  // until the table is in the view; see filter.cc
  std::optional<KeyFilterWriter> keys;
  if (adds_keys) {
    filter_lock.lock();
    keys.emplace(current_filter_.get(), next_filter_.get());
  }
  // The memtables of the other families are flushed first: after that it is known which table takes the extents of all.
  const auto began = std::chrono::steady_clock::now();
  const std::chrono::nanoseconds cpu_began = TimeOf(CLOCK_THREAD_CPUTIME_ID);
  std::vector<FlushResult> flushed;
  std::optional<FlushCopier> copier;
  if (!options_.index_unified_logging) copier.emplace(regions_.get(), segments_.get());
  FlushCopier* const copies = copier ? &*copier : nullptr;
  const Memtable& set = *pending.memtable;
  uint64_t tables = 1;
  set.ForEachSibling([&tables](uint32_t, const Memtable*) { ++tables; });
  if (SharedHeap* const heap = live_heap_.load(std::memory_order_acquire); l0_index_->Share(heap)) {
    levels_should_be_shared_.store(true, std::memory_order_release);
    NotifyWork();
  }
  l0_index_->BeginFlush(set.entry_count.load(std::memory_order_relaxed), tables);
  set.ForEachSibling([&](uint32_t id, Memtable*) {
    const Family& family = *FindFamily(id);
    flushed.push_back(FlushSibling(set, id, regions_.get(), &family.order, *segments_, filter, l0_index_.get(),
                                   keys && family.is_hashed ? &*keys : nullptr, copies));
  });
  FlushResult of_default = FlushMemtable(pending.memtable.get(), regions_.get(), &default_family_.order, *segments_, filter,
                                         l0_index_.get(), keys ? &*keys : nullptr, copies);
  took->took = std::chrono::steady_clock::now() - began;
  took->cpu_time = TimeOf(CLOCK_THREAD_CPUTIME_ID) - cpu_began;
  if (copies != nullptr && !FinishCopies(copies)) return false;
  // Bytes of dropped versions are garbage already, so the tables do not count them.
  uint64_t dropped_bytes = of_default.dropped_bytes;
  for (const FlushResult& result : flushed) dropped_bytes += result.dropped_bytes;
  of_default.table->log_bytes -= std::min(of_default.table->log_bytes, dropped_bytes);
  if (of_default.table->entries == 0 && !flushed.empty()) {
    flushed.front().table->extents = std::move(of_default.table->extents);
    flushed.front().table->log_bytes = of_default.table->log_bytes;
  } else {
    flushed.push_back(std::move(of_default));
  }
  BRAIDDB_SYNC_POINT("DBImpl::FlushOne:Linked");
  for (const FlushResult& result : flushed) {
    result.table->begin = flushed_boundary_;
    result.table->in_filter = adds_keys;
  }
  flushed_boundary_ = flushed.back().table->boundary();
  bool wants_checkpoint = copies != nullptr;
  {
    std::lock_guard lock(view_mutex_);
    auto view = std::make_shared<ReadView>(*current_view_);
    view->immutables.pop_back();
    for (const FlushResult& result : flushed) {
      view->Alter(result.table->family(), [&](FamilyView* levels) { levels->AddTable(result.table, result.in_order); });
    }
    wants_checkpoint = wants_checkpoint || HasUnlistedRotations(*view, options_.checkpoint_tables);
    InstallView(view);
    pending_flushes_.erase(pending_flushes_.begin());
  }
  keys.reset();
  if (filter_lock.owns_lock()) filter_lock.unlock();
  counters_.flushes.fetch_add(1, std::memory_order_relaxed);
  for (const FlushResult& result : flushed) {
    counters_.flushed_entries.fetch_add(result.table->entries, std::memory_order_relaxed);
    counters_.dropped.fetch_add(result.dropped, std::memory_order_relaxed);
  }
  Measure(HistogramKind::kFlushMicros, perf::NowNs() - begin_ns);
  if (wants_checkpoint) {
    Settle(Work::kCheckpoint, CheckpointTables());
  }
  flushed_memtable_id_.store(pending.memtable->id(), std::memory_order_release);
  immutable_count_.fetch_sub(1, std::memory_order_release);
  PostFlush(pending.memtable->id(), &flushed);
  NotifyWork();
  return true;
}

bool DBImpl::FinishCopies(FlushCopier* copies) {
  uint64_t lines = 0;
  const Status status = copies->Finish(&lines);
  counters_.flushed_lines.fetch_add(lines, std::memory_order_relaxed);
  Settle(Work::kFlushCopies, status);
  BRAIDDB_SYNC_POINT("DBImpl::FinishCopies");
  return status.ok();
}

// Tells the lookup cache the addresses of the copies.
// WHY THE CACHE HAS NO ORIGINAL WHEN ITS LOG IS RELEASED  The view already has the table of copies. A lookup that misses after
//   the move finds the copy. A lookup that missed before the move does not fill the cache, because the move changed the bucket's
//   word.
// REQUIRES: manifest_mutex_, and no view leads to the originals any more.
void DBImpl::MoveToCopies(const PmTable& table) {
  if (lookup_cache_ == nullptr || table.moves.empty()) return;
  const uint64_t sequence = LastDrawn();
  for (const PmTable::Move& move : table.moves)
    lookup_cache_->Move(KeyHash(*move.from), regions_->Find(move.from), move.to, sequence);
}

// Retires the segments of the log in which every entry has been flushed by copies: no entry in them counts any more. [CC-53]
// REQUIRES: manifest_mutex_
void DBImpl::ReleaseFlushedLog(uint64_t boundary) {
  if (options_.index_unified_logging || is_read_only()) return;
  BRAIDDB_SYNC_POINT("DBImpl::ReleaseFlushedLog");
  segments_->ForEachLog([&](Segment* segment) {
    // A segment that an earlier call retired may be released and be in use for another purpose at any moment. Such a segment has
    // no entries, or its generation differs from the one that was loaded before.
    const uint64_t generation = segment->generation();
    if (segment->state() != SegmentState::kSealed || segment->holds_copies.load(std::memory_order_relaxed) ||
        segment->sealed_last_sequence() >= boundary || segment->entries.load(std::memory_order_acquire) == 0 ||
        segment->generation() != generation || segment->state() != SegmentState::kSealed) {
      return;
    }
    segment->entries.store(0, std::memory_order_relaxed);
    RaiseLogFloor(segment->sealed_last_sequence());
    ReleaseLater(segment);
  });
}

// Whether the MANIFEST may list the tables of `longer` instead of those of `state`. NoSpace: merges have to make room first. A
// merge needs a listed table. So if no table is listed, the room that is reserved for copies is used.
// REQUIRES: manifest_mutex_
Status DBImpl::ReserveForTables(const ManifestState& state, const ManifestState& longer) {
  if (longer.tables.size() > MostListedTables(longer) && !state.tables.empty())
    return Status::NoSpace("the MANIFEST lists the largest possible number of tables");
  Status status = manifest_.Reserve(longer, Manifest::Room::kCopies);
  if (OutcomeOf(Work::kCheckpoint, status) != Outcome::kEndsWriting && state.tables.empty() && manifest_.Fits(longer))
    return Status::OK();
  return status;
}

// Makes the tables that the MANIFEST does not list durable, and lists them in *state.
// REQUIRES: manifest_mutex_
Status DBImpl::ListTables(ManifestState* state, std::vector<std::shared_ptr<PmTable>>* tables, uint64_t* lines) {
  {
    std::lock_guard view_lock(view_mutex_);
    *tables = UnlistedTables(*current_view_);
  }
  BRAIDDB_SYNC_POINT("DBImpl::CheckpointTables:Chosen");
  *state = manifest_state_;
  size_t listed = 0;
  for (size_t begin = 0; begin < tables->size(); begin = listed) {
    ManifestState longer = *state;
    size_t end = begin;
    for (; end < tables->size() && (*tables)[end]->id() == (*tables)[begin]->id(); ++end) {
      const PmTable& table = *(*tables)[end];
      const Family* const family = FindFamily(table.family());  // null: the family was purged
      // The MANIFEST lists the family as dropped, without tables.
      if (family == nullptr || family->is_gone.load(std::memory_order_acquire)) continue;
      longer.tables.push_back({table.id(), table.boundary(), table.entries, table.heads(), table.family()});
    }
    // The other tables wait for a merge; their log stays above the boundary. The boundary moves past all tables of a rotation, or
    // not at all.
    const Status room = ReserveForTables(*state, longer);
    if (OutcomeOf(Work::kCheckpoint, room) == Outcome::kLater || (!room.ok() && is_read_only())) {
      break;
    }
    if (!room.ok()) return room;
    for (size_t i = begin; i < end; ++i) {
      Status status = BRAIDDB_MUTANT("checkpoint-pointers-last")
                          ? Status::OK()
                          : PersistTablePointers(*(*tables)[i], regions_->persistence(), lines);
      if (!status.ok()) return status;
    }
    if (!BRAIDDB_MUTANT("boundary-stays")) longer.log_boundary = (*tables)[begin]->boundary();
    if (BRAIDDB_MUTANT("boundary-too-far")) longer.log_boundary = next_sequence_->load();
    *state = std::move(longer);
    listed = end;
  }
  // They are durable all the same: callers promise that of what was flushed, and their family may be dropped. [CC-3]
  for (size_t i = listed; i < tables->size(); ++i) {
    PmTable* const table = (*tables)[i].get();
    if (table->extents.empty()) continue;
    Status status = PersistTablePointers(*table, regions_->persistence(), lines);
    if (!status.ok()) return status;
    table->extents.clear();
  }
  tables->resize(listed);
  if (!tables->empty()) state->next_id = std::max(state->next_id, tables->back()->id() + 1);
  return Status::OK();
}

// Called when the MANIFEST with `state` is committed.
// REQUIRES: manifest_mutex_
void DBImpl::OnListed(ManifestState state, const std::vector<std::shared_ptr<PmTable>>& tables, uint64_t lines) {
  NoteMerged(manifest_state_, state);
  manifest_state_ = std::move(state);
  for (const auto& table : tables) {
    if (BRAIDDB_MUTANT("checkpoint-pointers-last")) (void)PersistTablePointers(*table, regions_->persistence(), &lines);
    MoveToCopies(*table);
    table->extents.clear();
    table->moves = {};
    table->checkpointed.store(true, std::memory_order_release);
  }
  ReleaseFlushedLog(manifest_state_.log_boundary);
  counters_.checkpoints.fetch_add(tables.empty() ? 0 : 1, std::memory_order_relaxed);
  counters_.flushed_lines.fetch_add(lines, std::memory_order_relaxed);
}

// STEPS   1 persist the pointers of the tables, oldest table first  2 commit a MANIFEST that lists the tables and has the new log
//         boundary.
// ORDER   1 before 2 (PersistTablePointers ends with a fence). [CC-3]
Status DBImpl::CheckpointTables() {
  std::lock_guard lock(manifest_mutex_);
  ManifestState state;
  std::vector<std::shared_ptr<PmTable>> tables;
  uint64_t lines = 0;
  Status status = ListTables(&state, &tables, &lines);
  if (!status.ok() || tables.empty()) return status;
  if (BRAIDDB_MUTANT("flushed-log-released-early")) {
    ReleaseFlushedLog(state.log_boundary);
    for (int round = 0; round < 3 && epochs_.Reclaim() > 0; ++round) {
    }
  }
  status = manifest_.Commit(state);
  if (status.ok()) OnListed(std::move(state), tables, lines);
  return status;
}

// STEPS   1 persist the pointers of the tables, and the sizes of the segments  2 store the states of the segments, and a MANIFEST
//         that lists the tables and says that the database was closed.
// ORDER   1 before 2: one fence for all of 1 if there is one table, one for all of 2. [CC-3] [CC-36]
// CRASH   In 2: the MANIFEST may be durable while segments without unflushed log are still open. Recovery seals them, as after
//         any crash behind a checkpoint. Or the segments are sealed, and the MANIFEST is the previous one. Then recovery replays
//         the segments.
Status DBImpl::CheckpointAndClose(const std::vector<Segment*>& sealing) {
  std::lock_guard lock(manifest_mutex_);
  ManifestState state;
  std::vector<std::shared_ptr<PmTable>> tables;
  uint64_t lines = 0;
  Status status = ListTables(&state, &tables, &lines);
  if (!status.ok()) return status;
  const uint64_t last = LastDrawn();
  // The MANIFEST of the last close is still true.
  if (tables.empty() && sealing.empty() && manifest_.is_clean() && state.last_sequence == last) return status;
  Persistence* const persistence = regions_->persistence();
  if (!persistence->Drain()) return persistence->error();
  for (Segment* const segment : sealing) segments_->SealPrepared(segment);
  state.last_sequence = last;
  state.clean = true;
  status = manifest_.CommitLast(state);
  if (status.ok()) OnListed(std::move(state), tables, lines);
  return status;
}

Status DBImpl::Flush() try {
  uint64_t last_id = 0;
  return FlushWritten(&last_id);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status DBImpl::FlushWritten(uint64_t* last_id) {
  if (Status status = FlushMemtables(last_id); !status.ok()) return status;
  Status status = CheckpointTables();
  Settle(Work::kCheckpoint, status);
  return status;
}

Status DBImpl::FlushMemtables(uint64_t* last_id) {
  if (fork_mark_.is_in_child()) return InChild();
  return stopping_.load(std::memory_order_acquire) && !is_read_only() ? Closing() : FlushAll(last_id);
}

Status DBImpl::Closing() const { return Status::Aborted("the database in " + path_ + " is being closed"); }

Status DBImpl::FlushAll(uint64_t* last_id) {
  const Memtable* active = nullptr;
  {
    std::lock_guard lock(view_mutex_);
    if (next_sequence_->load(std::memory_order_seq_cst) > active_first_sequence_)
      active = active_.load(std::memory_order_relaxed);
  }
  if (active != nullptr) {
    Status status = RotateMemtable(active);
    if (!status.ok()) return status;
  }
  {
    std::lock_guard lock(view_mutex_);
    *last_id = last_rotated_id_;
  }
  {
    std::unique_lock lock(work_mutex_);
    const auto is_flushed = [&] { return flushed_memtable_id_.load(std::memory_order_acquire) >= *last_id; };
    work_changed_.wait(lock, [&] { return is_flushed() || !background_error_.ok() || flush_thread_ended_; });
    if (!background_error_.ok()) return background_error_;
    if (!is_flushed()) return Closing();
  }
  return Status::OK();
}

}  // namespace braiddb
