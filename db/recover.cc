// Recovery: last levels, listed tables and the replay of the log, at an open.
#include <algorithm>

#include "db/db_impl.h"
#include "recovery/replay.h"
#include "util/format.h"
#include "util/mutant.h"
#include "util/perf.h"

namespace braiddb {

// STEPS   1 finish the changes of the last levels that a crash interrupted  2 restore the listed tables  3 replay the log above
//         the boundary into one more table per family  4 make these tables durable and list them.
// CRASH   After any step: the next recovery repeats the steps, with the same result. [CC-5]
Status DBImpl::Recover() {
  Status status = OpenLevels();
  if (!status.ok()) return status;
  log_floor_.store(manifest_state_.log_boundary - 1, std::memory_order_seq_cst);
  resume_merge_ = manifest_state_.merge_id != 0 && !BRAIDDB_MUTANT("merge-not-resumed");
  manifest_state_.clean = false;  // from the next commit on
  RestoreTables();
  const bool has_relocation = HasRelocation(manifest_state_);
  if (status = FinishRelocation(segments_.get(), has_relocation); !status.ok()) return status;
  if (!options_.index_unified_logging) status = FinishFlushes(segments_.get(), manifest_state_.log_boundary);
  if (!status.ok()) return status;

  std::vector<const KeyOrder*> orders{&default_family_.order};
  for (const auto& family : families_) {
    orders.resize(std::max<size_t>(orders.size(), family->id + 1));
    orders[family->id] = &family->order;
  }
  const std::shared_ptr<Family> ranges = FindFamilyByName(kRangeTombstonesFamilyName);
  const std::shared_ptr<Family> prepared = FindFamilyByName(kPreparedFamilyName);
  ReplayContext context{regions_.get(),
                        segments_.get(),
                        std::move(orders),
                        manifest_state_.log_boundary,
                        next_memtable_id_++,
                        options_.recovery_threads,
                        [this](std::string_view line) { Log(std::string(line)); },
                        manifest_state_.may_lose_writes,
                        ranges == nullptr ? 0 : ranges->id,
                        prepared == nullptr ? 0 : prepared->id};
  ReplayResult replay;
  const uint64_t begin_ns = perf::NowNs();
  status = ReplayLog(context, &replay);
  if (status.ok() && !options_.index_unified_logging && !is_read_only()) status = CopyReplayed(&replay);
  if (!status.ok()) return status;
  replayed_entries_ = replay.entries;
  if (replay.entries > 0) {
    Log(Format("replay: %llu entries of %llu log bytes in %.3f ms by %u threads", static_cast<unsigned long long>(replay.entries),
               static_cast<unsigned long long>(replay.bytes), static_cast<double>(perf::NowNs() - begin_ns) / 1e6,
               options_.recovery_threads));
  }
  const uint64_t last = std::max({replay.last_sequence, manifest_state_.last_sequence, manifest_state_.log_boundary - 1});
  next_sequence_->store(last + 1, std::memory_order_relaxed);
  session_seed_ = Mix64(last);
  // Entries that are not replayed are below the floor of the log's history; see log_iterator.h.
  board_->last_update_at_open.store(std::max(replay.last_update, manifest_state_.log_boundary - 1), std::memory_order_release);

  // All tables in the view count as flushed, whichever memtables they come from.
  last_rotated_id_ = context.table_id;
  flushed_memtable_id_.store(context.table_id, std::memory_order_relaxed);
  auto view = std::make_shared<ReadView>(*current_view_);
  for (const auto& table : replay.tables) {
    table->waits_for_index = tables_wait_for_index_ = true;
    view->Alter(table->family(), [&table](FamilyView* levels) { levels->AddTable(table); });
  }
  view->active = NewMemtable(nullptr);
  if (view->active == nullptr) return Status::MemoryLimit("no address space for a memtable");
  active_.store(view->active.get(), std::memory_order_seq_cst);
  active_first_sequence_ = last + 1;
  {
    std::lock_guard lock(view_mutex_);
    InstallView(view);
  }
  // Segments whose entries are to be counted. Excluded are segments that a flush by copies may release at any time, and segments
  // that this open has written and counted.
  segments_->ForEachLog([this](Segment* segment) {
    const bool is_counted = segment->entries.load(std::memory_order_relaxed) != 0;
    if (!is_counted && !IsFlushedByCopies(*segment)) unaccounted_.push_back(segment);
  });
  // Open segments of the last session are sealed. From here on segments are written in the persist mode of this open.
  const bool may_lose_writes = regions_->persistence()->mode() == PersistMode::kPage;
  const bool changed = std::exchange(manifest_state_.may_lose_writes, may_lose_writes) != may_lose_writes;
  if (!replay.tables.empty()) return CheckpointTables();
  {
    std::lock_guard lock(manifest_mutex_);
    ReleaseFlushedLog(manifest_state_.log_boundary);
  }
  return changed ? manifest_.Commit(manifest_state_) : Status::OK();
}

// Copies the replayed tables, as a copying flush would copy their memtables. Entries in the log are counted as one: a flush by
// copies releases their segments as a whole.
Status DBImpl::CopyReplayed(ReplayResult* replay) {
  segments_->ForEachLog([](Segment* segment) {
    if (!segment->holds_copies.load(std::memory_order_relaxed)) segment->entries.store(1, std::memory_order_relaxed);
  });
  FlushCopier copier(regions_.get(), segments_.get());
  for (std::shared_ptr<PmTable>& table : replay->tables) {
    auto copy = std::make_shared<PmTable>(table->id(), table->boundary(), regions_.get(), &FindFamily(table->family())->order,
                                          table->family());
    copy->log_bytes = table->log_bytes;
    if (Status status = CopyTable(*table, &copier, copy.get()); !status.ok()) return status;
    table = std::move(copy);
  }
  uint64_t lines = 0;
  Status status = copier.Finish(&lines);
  counters_.flushed_lines.fetch_add(lines, std::memory_order_relaxed);
  return status;
}

Status DBImpl::OpenJournal() {
  auto journal = std::make_shared<MergeJournal>();
  Status status = MergeJournal::Open(regions_.get(), journal.get());
  PmPtr ignored;
  if (status.ok()) status = journal->Redo(0, &ignored);
  if (status.ok()) journal_ = std::move(journal);
  return status;
}

Status DBImpl::OpenLevels() {
  std::vector<Family*> families{&default_family_};
  for (const auto& family : families_) families.push_back(family.get());
  if (std::any_of(families.begin(), families.end(), [](const Family* family) { return family->kind->relinks_entries; })) {
    if (Status status = OpenJournal(); !status.ok()) return status;
  }
  default_family_.l1_entries.store(manifest_state_.l1_entries, std::memory_order_relaxed);
  for (Family* const family : families) {
    const uint64_t job = family->id == manifest_state_.merging_family ? manifest_state_.merge_id : 0;
    std::unique_ptr<LastLevel> level;
    Status status = LastLevel::Open(LevelOptions(family->options), LevelParts(*family), job, &level);
    if (!status.ok()) return status;
    family->last_level = std::move(level);
    counters_.l1_entries.fetch_add(family->l1_entries.load(std::memory_order_relaxed), std::memory_order_relaxed);
    const bool has_tables = std::any_of(manifest_state_.tables.begin(), manifest_state_.tables.end(),
                                        [family](const auto& table) { return table.family == family->id; });
    if (!has_tables) family->merged_boundary = manifest_state_.log_boundary;
  }
  return ReleaseUnownedSegments();
}

// Releases segments without an owner: of last levels whose creation was interrupted, of purged families, and of other interrupted
// changes.
Status DBImpl::ReleaseUnownedSegments() {
  std::vector<Segment*> unowned;
  segments_->ForEachIndex([&](Segment* segment) {
    bool is_owned = default_family_.last_level->Owns(segment);
    for (const auto& family : families_) is_owned = is_owned || family->last_level->Owns(segment);
    if (!is_owned) unowned.push_back(segment);
  });
  for (Segment* const segment : unowned) {
    if (Status status = segments_->Release(segment); !status.ok()) return status;
  }
  return Status::OK();
}

void DBImpl::RestoreTables() {
  auto view = std::make_shared<ReadView>();
  view->l1 = default_family_.last_level->View();
  for (const auto& family : families_) {
    view->Alter(family->id, [&family](FamilyView* levels) { levels->l1 = family->last_level->View(); });
  }
  // The MANIFEST may be damaged: the number of entries is limited to what the regions can hold, because memory is allocated for
  // it.
  uint64_t most_entries = 0;
  for (uint32_t region = 0; region < regions_->count(); ++region)
    most_entries += regions_->ReservedBytes(region) / LogEntrySize(1, 0, 0);
  for (const ManifestState::Table& listed : manifest_state_.tables) {
    if (FindFamily(listed.family) == nullptr) continue;  // the family was dropped
    auto table =
        std::make_shared<PmTable>(listed.id, listed.boundary, regions_.get(), &FindFamily(listed.family)->order, listed.family);
    table->heads() = listed.heads;
    for (uint32_t region = 0; region < regions_->count(); ++region) {
      table->list.SetHead(region, &table->heads()[region * kMaxHeight]);
    }
    table->entries = std::min(listed.entries, most_entries);
    table->checkpointed.store(true, std::memory_order_relaxed);
    table->waits_for_index = tables_wait_for_index_ = true;
    next_memtable_id_ = std::max(next_memtable_id_, listed.id + 1);
    view->Alter(listed.family, [&table](FamilyView* levels) { levels->AddTable(std::move(table)); });
  }
  next_memtable_id_ = std::max(next_memtable_id_, manifest_state_.next_id);
  current_view_ = std::move(view);
}

}  // namespace braiddb
