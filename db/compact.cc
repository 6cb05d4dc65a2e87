// Compaction: merges tables of L0 into the last level, and runs the loop of the compaction thread.
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "db/db_impl.h"
#include "db/no_memory.h"
#include "db/timestamped_entry.h"
#include "index/key_hash.h"
#include "util/format.h"
#include "util/mutant.h"
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

// A merge of many tables costs less per entry than a merge of few. So while writers are busy, tables wait until
// l0_compaction_trigger is reached, or longer if writers leave no CPU idle. When writers pause, or a call waits for the merge,
// waiting gains nothing, and the merge begins at once.
// REQUIRES: work_mutex_
bool DBImpl::CompactionWanted() const {
  if (!changing_.MergesByItself() || write_failed_.load(std::memory_order_acquire)) return false;
  if (!postponed_merge_.ok()) return std::chrono::steady_clock::now() >= postponed_until_;
  const uint32_t tables = l0_count_.load(std::memory_order_acquire);  // of the family that has the most tables
  if (tables > 0 && SpaceIsShort()) return true;
  // Otherwise the tombstones would keep their memory.
  if (tables > 0 && RangesAreMany() && snapshots_.Oldest() == UINT64_MAX) return true;
  // If regions have a size limit, tables that wait may take most of a full region. Writers would then wait for one merge of all
  // tables.
  const bool may_be_full = options_.max_region_size != 0 && SpaceTaken() / regions_->count() > options_.max_region_size / 2;
  bool waits_longer = pressure_.is_high() && !may_be_full;
  BRAIDDB_SYNC_POINT_ARG("DBImpl::CompactionWanted", &waits_longer);
  const uint32_t trigger = changing_.l0_compaction_trigger.load(std::memory_order_relaxed);
  const uint32_t longer = std::min(changing_.SlowdownTrigger(), std::max<uint32_t>(trigger, kMaxMergedTables));
  const uint32_t enough = waits_longer ? longer : trigger;
  if (L0Pressure(enough) >= enough) return true;
  const uint64_t oldest = oldest_l0_id_.load(std::memory_order_acquire);
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
  // If CPUs are scarce, writers and readers go first: a delayed merge costs less than a delayed write.
  LowerThreadPriority();
  try {
    CompactUntilStopped();
  } catch (const std::bad_alloc&) {
    Settle(Work::kInstall, NoMemory());
  }
}

void DBImpl::CompactUntilStopped() {
  bool more_to_account = true;
  bool more_to_index = true;
  bool more_to_filter = true;
  bool collapses_next = true;
  bool more_to_sweep = false;
  std::chrono::steady_clock::duration last_merge{0};
  if (!resume_merge_) {  // the index of the last level makes reads faster; the open did not wait for the index
    std::lock_guard lock(compaction_mutex_);
    for (uint32_t id = 0; id < kMaxFamilies; ++id) {
      Family* const family = FindFamily(id);
      if (family != nullptr && family->last_level != nullptr && family->l1_entries.load() > 0) InstallLastLevel(family, 0);
    }
  }
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
    ServeRoom();
    Settle(Work::kRelease, segments_->FreeDeferred(false));
    BeginScanMerge(last_merge);
    const uint64_t gains = CountGains();
    flushed_at_look_.store(flushed_memtable_id_.load(std::memory_order_acquire), std::memory_order_relaxed);
    more_to_index = IndexRestoredTables(last_merge / 8);
    more_to_filter = !more_to_index && BuildFilter(last_merge / 8);
    if (purge_waits_.load(std::memory_order_relaxed) && PurgeFamilies()) more_to_filter = true;
    bool compacts = false;
    {
      std::lock_guard work_lock(work_mutex_);
      if (stopping_.load(std::memory_order_acquire)) return;
      compaction_running_ = compacts = CompactionWanted();
    }
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
  settled_entries_.store(0, std::memory_order_relaxed);
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
    if (scans_wait_.load(std::memory_order_acquire)) return true;
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
    const bool tables_wait = l0_count_.load(std::memory_order_acquire) > 0 && changing_.MergesByItself();
    if (tables_wait) until = std::min(end, WritersPauseAt() > now ? WritersPauseAt() : now + kMinPause);
    if (!postponed_merge_.ok()) until = std::min(end, std::max(now, postponed_until_));
    work_changed_.wait_until(*lock, until);
  }
}

MergeJob DBImpl::MakeJob(uint64_t id, const Family& family, const VersionFilter* filter) {
  return {id,
          family.l1_entries.load(std::memory_order_relaxed),
          filter,
          options_.compaction_threads,
          &stopping_,
          &settled_entries_,
          moved_ == nullptr ? nullptr : &moved_->entries};
}

Family* DBImpl::ChooseFamily(const Family* but) const {
  uint32_t chosen = 0;
  size_t most = 0;
  // CompactRange waits for the tables that existed when it began
  const bool takes_oldest = manual_compaction_ != ManualCompaction::kNone;
  current_view_->ForEach([&](uint32_t id, const FamilyView& levels) {
    const Family* const family = FindFamily(id);
    if (levels.l0.empty() || family == but || family->is_gone.load(std::memory_order_relaxed)) return;
    size_t listed = 0;
    for (auto table = levels.l0.rbegin(); table != levels.l0.rend(); ++table, ++listed) {
      if (!(*table)->checkpointed.load(std::memory_order_acquire)) break;
    }
    if (listed == 0) return;
    const uint64_t oldest = levels.l0.back()->id();
    if (oldest == kRelocationId)
      listed = SIZE_MAX;
    else if (takes_oldest)
      listed = SIZE_MAX - oldest;
    if (listed > most) {
      most = listed;
      chosen = id;
    }
  });
  return most == 0 ? nullptr : FindFamily(chosen);
}

// Whether the MANIFEST names a merge that has not ended: a crash cut the merge short, or it found no space. The MANIFEST can name
// only one merge. So an unfinished merge is resumed before another merge or a sweep begins. Otherwise the MANIFEST would forget
// the tables of the unfinished merge, which are partly linked into the last level. [CC-4]
// After an error that ends writing only the next open can resume the merge. The background error is therefore set under
// compaction_mutex_, before another merge can begin.
// REQUIRES: compaction_mutex_, and no background error.
bool DBImpl::MergeIsUnfinished() {
  std::lock_guard lock(manifest_mutex_);
  return manifest_state_.merge_id != 0;
}

// REQUIRES: as ChooseFamily.
bool DBImpl::PickMerge(const Family* but, MergeInput* input) {
  input->family = ChooseFamily(but);
  if (input->family == nullptr) return false;
  Family* const family = input->family;
  const FamilyView& levels = *current_view_->Of(family->id);
  for (auto table = levels.l0.rbegin(); table != levels.l0.rend(); ++table) {
    if (!(*table)->checkpointed.load(std::memory_order_acquire) || input->tables.size() == kMaxMergedTables) break;
    input->tables.push_back(*table);
  }
  if (!input->tables.empty()) input->tables.resize(levels.AlignToOrders(input->tables.size()));
  if (GoesByOrder(*family)) input->orders = levels.OldestOrders(input->tables.size());
  return !input->tables.empty();
}

// REQUIRES: view_mutex_, manifest_mutex_; a commit of `state` follows.
void DBImpl::Announce(MergeInput* input, ManifestState* state) {
  Family* const family = input->family;
  family->merging_tables = input->tables.size();
  family->merges_orders = !input->orders.empty();
  state->merge_id = input->id = state->next_id++;
  state->merging_tables = static_cast<uint32_t>(input->tables.size());
  state->merging_family = family->id;
  state->merge_filters = FiltersMerges(*family);
}

// A commit lists the tables of all families. If there are many families with few tables each, one commit per merge would cost
// much. So the commit that forgets the tables of a small merge also announces the next merge, if the next one takes at least half
// as many tables. A series of merges ends when it has merged as many entries as a memtable may have, so that other threads get
// compaction_mutex_.
// REQUIRES: manifest_mutex_
void DBImpl::AnnounceNext(MergeTurn* turn, ManifestState* state) {
  MergeInput next;
  for (const auto& table : turn->now.tables) turn->entries += table->entries;
  if (turn->is_resumed || manual_compaction_ != ManualCompaction::kNone || turn->entries >= options_.memtable_max_entries) return;
  if (stopping_.load(std::memory_order_acquire) || write_failed_.load(std::memory_order_acquire)) return;
  std::lock_guard view_lock(view_mutex_);
  if (!PickMerge(turn->now.family, &next) || 2 * next.tables.size() < turn->now.tables.size()) return;
  Announce(&next, state);
  turn->next = std::move(next);
}

Status DBImpl::CompactTables() try {
  BRAIDDB_SYNC_POINT("DBImpl::CompactTables");
  if (MergeIsUnfinished() && !BRAIDDB_MUTANT("merge-not-resumed")) resume_merge_ = true;
  MergeTurn turn;
  MergeInput& input = turn.now;
  turn.is_resumed = resume_merge_;
  if (turn.is_resumed) {
    epochs_.Reclaim();  // reclaimed memory and segments may be the missing space
    std::lock_guard lock(manifest_mutex_);
    std::lock_guard view_lock(view_mutex_);
    input.id = manifest_state_.merge_id;
    input.family = FindFamily(manifest_state_.merging_family);
    const auto& l0 = current_view_->Of(input.family->id)->l0;
    for (uint32_t i = 0; i < manifest_state_.merging_tables; ++i) input.tables.push_back(l0[l0.size() - 1 - i]);
    input.family->merging_tables = input.tables.size();
    input.family->merges_orders = false;
  } else {
    Status status = CheckpointTables();
    if (!status.ok()) return status;
    std::lock_guard lock(manifest_mutex_);
    ManifestState state = manifest_state_;
    {
      std::lock_guard view_lock(view_mutex_);
      const bool is_picked = PickMerge(nullptr, &input);
      if (input.family == nullptr && oldest_l0_id_.load(std::memory_order_acquire) != UINT64_MAX) return PostponeAll();
      if (!is_picked) return Status::OK();
      Announce(&input, &state);
    }
    // ORDER: the MANIFEST knows of the merge before its first store. [CC-4]
    if (!BRAIDDB_MUTANT("merge-not-announced")) status = manifest_.Commit(state);
    if (!status.ok()) return status;
    manifest_state_ = std::move(state);
  }
  for (;;) {
    Status status = MergeTables(&turn);
    if (!status.ok() || turn.next.family == nullptr) return status;
    turn.now = std::exchange(turn.next, {});
  }
} catch (const std::bad_alloc&) {
  Settle(Work::kInstall, NoMemory());
  return NoMemory();
}

// Merges the tables of turn->now.
Status DBImpl::MergeTables(MergeTurn* turn) {
  Family* const family = turn->now.family;
  const auto& tables = turn->now.tables;
  Orders orders = std::move(turn->now.orders);
  const uint64_t merge_id = turn->now.id;
  const auto start = std::chrono::steady_clock::now();
  const VersionFilter filter(snapshots_.Copy());
  std::vector<const PmTable*> inputs;
  for (const auto& table : tables) inputs.push_back(table.get());
  MergeStats stats;
  const std::unique_ptr<EntryFilterSource> entry_filters = FilterMerge(*family);
  MergeJob job = MakeJob(merge_id, *family, &filter);
  job.entry_filters = entry_filters.get();
  const std::function<void(PmPtr, PmPtr)> copied = [this](PmPtr from, PmPtr to) { MoveInCache(from, to); };
  if (lookup_cache_ != nullptr) job.copied = &copied;
  if (family->kind->copies_entries) epochs_.Reclaim();  // copies that no reader uses any more become free space
  if (family->is_hashed) {
    job.key_filters[0] = current_filter_.get();
    job.key_filters[1] = next_filter_.get();
  }
  PostCompaction(*family, merge_id, tables.size(), nullptr);
  BRAIDDB_SYNC_POINT("DBImpl::MergeTables:Announced");
  if (!orders.empty()) job.order = MergeOrdersOf(*family, std::move(orders));
  if (family->merges_orders && job.order == nullptr) {
    std::lock_guard lock(view_mutex_);
    family->merges_orders = false;
  }
  Status status = family->last_level->Merge(job, inputs, &stats);
  PostponeMerge(status);
  counters_.flushed_lines.fetch_add(stats.flushed_lines, std::memory_order_relaxed);
  if (status.ok()) status = FinishMerge(family, turn, stats);
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
  const CompletedMerge completed{status, stats.merged, stats.dropped, static_cast<uint64_t>(took.count())};
  PostCompaction(*family, merge_id, tables.size(), &completed);
  // Remembers copies that have replaced their originals: a resumed merge will not meet them again.
  if (OutcomeOf(Work::kMerge, status) == Outcome::kLater) KeepMoved(std::move(stats.moved));
  if (!status.ok()) return status;
  for (const MergeStats::Copy& copy : stats.copied) MoveInCache(copy.from, copy.to);
  Measure(HistogramKind::kCompactionMicros, completed.elapsed_us * 1000);
  Measure(HistogramKind::kMergedTables, tables.size());
  KeepMoved(std::move(stats.moved));
  NoteOperandKeys(*family, std::move(stats.operand_keys));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  Log(Format("compaction %llu: %zu tables, %llu entries merged, %llu dropped, %llu unlinked, %.3f s",
             static_cast<unsigned long long>(merge_id), tables.size(), static_cast<unsigned long long>(stats.merged),
             static_cast<unsigned long long>(stats.dropped), static_cast<unsigned long long>(stats.unlinked), seconds));
  ReclaimSegments();
  return Status::OK();
}

// Tells the lookup cache that the put at `from` is replaced by its copy at `to`. A lookup that begins later finds the copy only.
// If `to` is null, the put has no copy, and the cache forgets the put.
void DBImpl::MoveInCache(PmPtr from, PmPtr to) {
  const uint64_t hash = KeyHash(*regions_->Resolve<LogEntry>(from));
  if (to) {
    lookup_cache_->Move(hash, from, to, LastDrawn());
  } else {
    lookup_cache_->Forget(hash, LastDrawn());
  }
}

// Commits the end of a merge, or of a sweep if `turn` is null.
// ORDER   All stores of the merge are durable (its last batch ended with a fence) before the MANIFEST forgets the tables. The
//         same commit may announce the next merge, whose first store comes later. [CC-4]
// CRASH   Before the commit this merge is resumed, after it the next one. So at most one merge is unfinished at any time.
Status DBImpl::FinishMerge(Family* family, MergeTurn* turn, const MergeStats& stats) {
  static const std::vector<std::shared_ptr<PmTable>> kNone;
  const auto& tables = turn == nullptr ? kNone : turn->now.tables;
  {
    std::lock_guard lock(manifest_mutex_);
    ManifestState state = manifest_state_;
    size_t merged = tables.size();  // the family's oldest tables
    std::erase_if(state.tables, [&](const ManifestState::Table& table) {
      const bool is_merged = merged > 0 && table.family == family->id;
      merged -= is_merged;
      return is_merged;
    });
    state.merge_id = 0;
    state.merging_tables = 0;
    state.merging_family = 0;
    state.merge_filters = false;
    ManifestState::Family* const listed = state.FindFamily(family->id);
    uint64_t& l1_entries = listed == nullptr ? state.l1_entries : listed->l1_entries;
    const uint64_t before = l1_entries;
    l1_entries += stats.merged;
    l1_entries -= std::min(l1_entries, stats.unlinked);
    const uint64_t after = l1_entries;
    if (turn != nullptr) AnnounceNext(turn, &state);
    Status status = manifest_.Commit(state);
    if (!status.ok()) return status;
    manifest_state_ = std::move(state);
    counters_.l1_entries.fetch_add(after - before, std::memory_order_relaxed);
    family->l1_entries.store(after, std::memory_order_relaxed);
    if (!tables.empty()) family->merged_boundary = std::max(family->merged_boundary, tables.back()->boundary());
  }
  resume_merge_ = false;
  {
    std::lock_guard lock(work_mutex_);
    postponed_merge_ = Status::OK();
  }
  counters_.compactions.fetch_add(tables.empty() ? 0 : 1, std::memory_order_relaxed);
  counters_.merged.fetch_add(stats.merged, std::memory_order_relaxed);
  counters_.dropped.fetch_add(stats.dropped + stats.unlinked, std::memory_order_relaxed);
  InstallLastLevel(family, tables.size());
  KeepDramBudget();
  NotifyWork();  // another thread may have made the merge that a call waits for
  return Status::OK();
}

// Installs the refreshed last level together with a view that no longer has the merged tables; see TallIndex.
// REQUIRES: compaction_mutex_, and no merge is running.
void DBImpl::InstallLastLevel(Family* family, size_t merged_tables) {
  family->last_level->Refresh(family->l1_entries.load(std::memory_order_relaxed));
  std::lock_guard lock(view_mutex_);
  auto view = std::make_shared<ReadView>(*current_view_);
  view->Alter(family->id, [&](FamilyView* levels) {
    levels->RemoveOldest(merged_tables);
    levels->l1 = family->last_level->View();
  });
  InstallView(view);
  family->merging_tables = 0;
  settled_entries_.store(0, std::memory_order_relaxed);
}

// Removes entries that no snapshot needs from key ranges of the last level.
// REQUIRES: as CompactTables, and no merge to resume.
// ORDER: loads the range tombstones before it copies the snapshots; see VersionFilter.
Status DBImpl::SweepFamily(Family* family, const KeyRanges& keys, bool asks) try {
  BRAIDDB_SYNC_POINT("DBImpl::SweepFamily");
  if (MergeIsUnfinished()) return Status::Aborted("a merge has to be resumed before a sweep");
  uint64_t newest_range = 0;
  const std::shared_ptr<const RangeTombstones> ranges = RangesForSweep(*family, &newest_range);
  const VersionFilter filter(snapshots_.Copy(), ranges.get(), newest_range);
  uint64_t merge_id = 0;
  {
    std::lock_guard lock(manifest_mutex_);
    ManifestState state = manifest_state_;
    state.merge_id = merge_id = state.next_id++;
    state.merging_tables = 0;
    state.merging_family = family->id;
    state.merge_filters = (asks && family->has_filter) || ranges != nullptr;
    Status status = manifest_.Commit(state);
    if (!status.ok()) return status;
    manifest_state_ = std::move(state);
  }
  MergeStats stats;
  const std::unique_ptr<EntryFilterSource> entry_filters =
      FilterSweep(*family, keys.size() == 1 && keys[0].begin == nullptr && keys[0].end == nullptr, asks, ranges != nullptr);
  MergeJob job = MakeJob(merge_id, *family, &filter);
  job.entry_filters = entry_filters.get();
  const std::function<void(PmPtr, PmPtr)> copied = [this](PmPtr from, PmPtr to) { MoveInCache(from, to); };
  if (lookup_cache_ != nullptr) job.copied = &copied;
  if (family->kind->copies_entries) epochs_.Reclaim();
  const Status swept = family->last_level->Sweep(job, keys, &stats);
  counters_.flushed_lines.fetch_add(stats.flushed_lines, std::memory_order_relaxed);
  // Without space a sweep may end early: the rest of the level is unchanged, and no table waits for the sweep.
  const bool ends_early = OutcomeOf(Work::kMerge, swept) == Outcome::kLater && family->kind->needs_space_to_merge;
  if (!swept.ok() && !ends_early) {
    PostponeMerge(swept);
    return swept;
  }
  Status status = FinishMerge(family, nullptr, stats);
  NoteOperandKeys(*family, std::move(stats.operand_keys));
  if (status.ok()) ReclaimSegments();
  return status.ok() ? swept : status;
} catch (const std::bad_alloc&) {
  Settle(Work::kInstall, NoMemory());
  return NoMemory();
}

// Updates merged_boundary of the families that get their first tables by a commit: all their entries up to the old log boundary
// are in the last level. A family that had tables before keeps its boundary.
// REQUIRES: manifest_mutex_
void DBImpl::NoteMerged(const ManifestState& before, const ManifestState& after) {
  const auto has_tables = [&before](uint32_t family) {
    return std::any_of(before.tables.begin(), before.tables.end(),
                       [family](const auto& table) { return table.family == family; });
  };
  for (const ManifestState::Table& table : after.tables) {
    Family* const family = FindFamily(table.family);
    if (family == nullptr) continue;  // an open for reading only need not name every family
    if (family->merged_boundary < before.log_boundary && !has_tables(table.family)) family->merged_boundary = before.log_boundary;
  }
}

uint64_t DBImpl::MergedBoundary(const Family& family) {
  std::lock_guard lock(manifest_mutex_);
  const bool has_tables = std::any_of(manifest_state_.tables.begin(), manifest_state_.tables.end(),
                                      [&family](const ManifestState::Table& table) { return table.family == family.id; });
  return has_tables ? family.merged_boundary : manifest_state_.log_boundary;
}

uint64_t DBImpl::MergedBoundary() {
  std::lock_guard lock(manifest_mutex_);
  uint64_t boundary = manifest_state_.log_boundary;
  for (const ManifestState::Table& table : manifest_state_.tables) {
    boundary = std::min(boundary, FindFamily(table.family)->merged_boundary);
  }
  return boundary;
}

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
    while (status.ok() && oldest_l0_id_.load(std::memory_order_acquire) <= last_id) status = CompactTables();
    if (status.ok() && resume_merge_) status = CompactTables();
    const bool is_there = !family->is_gone.load(std::memory_order_acquire);
    if (status.ok() && options.sweep_last_level && is_there) status = SweepFamily(family, {{begin, end}}, true);
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
