// Compaction: merges tables of L0 into the last level.
#include <algorithm>
#include <chrono>
#include <functional>

#include "db/db_impl.h"
#include "db/no_memory.h"
#include "index/key_hash.h"
#include "util/format.h"
#include "util/mutant.h"
#include "util/sync_point.h"

namespace braiddb {

MergeJob DBImpl::MakeJob(uint64_t id, const Family& family, const VersionFilter* filter) {
  return {id,
          family.l1_entries.load(std::memory_order_relaxed),
          filter,
          options_.compaction_threads,
          job_stop_,
          l0_load_.settled_counter(),
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
      if (input.family == nullptr && l0_load_.oldest_id() != UINT64_MAX) return PostponeAll();
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

// While it exists, the thread that holds compaction_mutex_ uses one family only, and other families may be dropped.
class DBImpl::LetsOthersBeDropped {
 public:
  LetsOthersBeDropped(DBImpl* db, const MergeTurn& turn) : db_(db) { Set(turn.is_resumed ? nullptr : turn.now.family); }
  ~LetsOthersBeDropped() { Set(nullptr); }
  LetsOthersBeDropped(const LetsOthersBeDropped&) = delete;
  LetsOthersBeDropped& operator=(const LetsOthersBeDropped&) = delete;

 private:
  void Set(const Family* family) {
    const std::lock_guard lock(db_->manifest_mutex_);
    db_->only_used_family_ = family;
  }
  DBImpl* const db_;
};

// Merges the tables of turn->now.
Status DBImpl::MergeTables(MergeTurn* turn) {
  Family* const family = turn->now.family;
  const auto& tables = turn->now.tables;
  Orders orders = std::move(turn->now.orders);
  const uint64_t merge_id = turn->now.id;
  const auto start = std::chrono::steady_clock::now();
  const VersionFilter filter(CopySnapshots());
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
  Status status;
  {
    const LetsOthersBeDropped lets_others_be_dropped(this, *turn);
    BRAIDDB_SYNC_POINT("DBImpl::MergeTables:Announced");
    family->is_swept = false;
    if (!orders.empty()) job.order = MergeOrdersOf(*family, std::move(orders));
    if (family->merges_orders && job.order == nullptr) {
      std::lock_guard lock(view_mutex_);
      family->merges_orders = false;
    }
    ForgetIndexFile();
    status = family->last_level->Merge(job, inputs, &stats);
  }
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

// The results of merges that were cut short are not in the estimate. The next commit of the MANIFEST stores the number.
// REQUIRES: compaction_mutex_, and no merge is running.
void DBImpl::TakeEntries(Family* family) {
  const std::optional<uint64_t> entries = family->last_level->Entries();
  if (!entries.has_value()) return;
  std::lock_guard lock(manifest_mutex_);
  ManifestState::Family* const listed = manifest_state_.FindFamily(family->id);
  (listed == nullptr ? manifest_state_.l1_entries : listed->l1_entries) = *entries;
  counters_.l1_entries.fetch_add(*entries - family->l1_entries.exchange(*entries), std::memory_order_relaxed);
}

// Installs the refreshed last level together with a view that no longer has the merged tables; see TallIndex.
// REQUIRES: compaction_mutex_, and no merge is running.
void DBImpl::InstallLastLevel(Family* family, size_t merged_tables, bool has_index) {
  family->is_indexed = true;
  TakeEntries(family);
  if (!has_index) family->last_level->Refresh(family->l1_entries.load(std::memory_order_relaxed));
  if (!family->kind->relinks_entries) TakeEntries(family);  // some know it only now
  std::lock_guard lock(view_mutex_);
  auto view = std::make_shared<ReadView>(*current_view_);
  view->Alter(family->id, [&](FamilyView* levels) {
    levels->RemoveOldest(merged_tables);
    levels->l1 = family->last_level->View();
  });
  InstallView(view);
  family->merging_tables = 0;
  l0_load_.settled_counter()->store(0, std::memory_order_relaxed);
}

// Removes entries that no snapshot needs from key ranges of the last level.
// REQUIRES: as CompactTables, and no merge to resume.
// ORDER: loads the range tombstones before it copies the snapshots; see VersionFilter.
Status DBImpl::SweepFamily(Family* family, const KeyRanges& keys, bool asks) try {
  BRAIDDB_SYNC_POINT("DBImpl::SweepFamily");
  if (MergeIsUnfinished()) return Status::Aborted("a merge has to be resumed before a sweep");
  uint64_t newest_range = 0;
  const std::shared_ptr<const RangeTombstones> ranges = RangesForSweep(*family, &newest_range);
  const VersionFilter filter(CopySnapshots(), ranges.get(), newest_range);
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
  ForgetIndexFile();
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

}  // namespace braiddb
