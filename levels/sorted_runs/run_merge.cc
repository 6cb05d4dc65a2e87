#include "levels/sorted_runs/run_merge.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "compaction/chunk_reader.h"
#include "compaction/merge_plan.h"
#include "levels/sorted_runs/run_writer.h"
#include "util/mutant.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// Number of keys between two checks of the stop flag.
constexpr uint64_t kKeysPerStop = 1 << 10;
// A run smaller than 1/kSmallRun of the target size is merged together with its predecessor. So drops do not leave ever more
// small runs.
constexpr uint64_t kSmallRun = 4;

// Cursor over the entries of a merge's tables, in entry order. Reads one chunk at a time.
class TableEntries {
 public:
  TableEntries(const LastLevel::Parts& parts, const std::vector<const PmTable*>& tables)
      : plan_(tables, parts.regions, parts.order, PmPtr()), reader_(parts.regions, parts.order) {}

  // Null at the end and on damage. damaged() distinguishes the two.
  const ChunkItem* Get() {
    while (at_ == items_.size() && chunk_ < plan_.chunks() && !damaged_) {
      damaged_ = !reader_.Read(plan_.pieces(chunk_++), &items_);
      at_ = damaged_ ? items_.size() : 0;
    }
    return at_ < items_.size() ? &items_[at_] : nullptr;
  }
  void Next() { ++at_; }
  bool damaged() const { return damaged_; }

 private:
  const MergePlan plan_;
  ChunkReader reader_;
  size_t chunk_ = 0;
  std::vector<ChunkItem> items_;
  size_t at_ = 0;
  bool damaged_ = false;
};

// Cursor over the entries of neighbouring runs, in entry order. Checks each entry before it returns the entry.
class RunEntries {
 public:
  RunEntries(const LastLevel::Parts& parts, const RunList& all, size_t begin, size_t end)
      : regions_(*parts.regions), order_(*parts.order), all_(all), run_(begin), end_(end) {
    Take(run_ < end_ ? all_.runs[run_]->first() : nullptr);
  }

  // Null at the end and on damage. damaged() distinguishes the two.
  LogEntry* Get() const { return entry_; }
  PmPtr place() const { return place_; }
  uint64_t prefix() const { return prefix_; }
  void Next() {
    const LogEntry* next = all_.runs[run_]->list().Next(entry_);
    if (next == nullptr && ++run_ < end_) next = all_.runs[run_]->first();
    Take(next);
  }
  bool damaged() const { return damaged_; }

 private:
  // Accepts `next` only if its address, height, and key size lie inside the regions, and if it follows the previous entry. The
  // last condition makes the walk finite.
  void Take(const LogEntry* next) {
    const LogEntry* const before = std::exchange(entry_, nullptr);
    if (next == nullptr) return;
    place_ = regions_.Find(next);
    damaged_ = !place_ || next->height() == 0 || next->height() > kMaxHeight ||
               !regions_.Holds(place_ + (LogEntrySize(next->height(), next->key_size(), 0) - 8)) ||
               (before != nullptr && CompareEntries(order_, *before, *next) >= 0);
    if (damaged_) return;
    entry_ = const_cast<LogEntry*>(next);
    prefix_ = order_.Prefix(next->key());
  }

  const RegionSet& regions_;
  const KeyOrder& order_;
  const RunList& all_;
  size_t run_;
  const size_t end_;
  LogEntry* entry_ = nullptr;
  PmPtr place_;
  uint64_t prefix_ = 0;
  bool damaged_ = false;
};

// Merges or sweeps range by range.
//
// INVARIANT  Runs are disjoint and ascend, so the runs [begin, end) have all versions of each key from their first key up to the
//            first key of run `end`. WriteRange consumes exactly the table entries below that limit, so each key is decided once,
//            with all its versions.
// LIFETIME   The entries of `gone_`, `filtered_`, and `copies_` lie in old runs. They are valid until Exchange returns, because
//            only Exchange retires the old segments. Old entries must not be read after it.
class RunMerger {
 public:
  RunMerger(const LastLevel::Parts& parts, SortedRuns* level, const RunSizes& sizes, const MergeJob& job, MergeStats* stats)
      : parts_(parts),
        regions_(*parts.regions),
        order_(*parts.order),
        level_(*level),
        sizes_(sizes),
        job_(job),
        entry_filter_(job.entry_filters == nullptr ? nullptr : job.entry_filters->NewFilter()),
        key_writer_(job.key_filters[0], job.key_filters[1]),
        stats_(*stats) {}

  // Each iteration takes the smallest remaining key of the tables, finds its run, and rewrites the run with all small runs
  // directly behind. Every iteration must consume a table entry. If it consumes none, the first key of a run has changed since
  // FindRun: the run is damaged.
  Status Merge(TableEntries* tables) {
    while (const ChunkItem* item = tables->Get()) {
      const auto& runs = level_.current().runs;
      const size_t begin = level_.current().FindRun(order_, SearchKey(item->prefix, item->entry->key(), kMaxSequence));
      size_t end = std::min(begin + 1, runs.size());
      while (end < runs.size() && runs[end]->bytes() < sizes_.run_bytes / kSmallRun) ++end;
      const LogEntry* const first = item->entry;
      if (Status status = WriteRange(begin, end, tables); !status.ok()) return status;
      const ChunkItem* const next = tables->Get();
      if (next != nullptr && next->entry == first) return RegionSet::DamagedList();  // the run's bounds have changed: damage
      if (Status status = Exchange(); !status.ok()) return status;
    }
    return tables->damaged() || regions_.damage_seen() ? RegionSet::DamagedList() : Status::OK();
  }

  // Rewrites each run that intersects a range and has a version to drop. Without a user filter, a dry pass first decides whether
  // the run has such a version. With a user filter the run is written at once, because the filter must be called only once per
  // entry. If nothing was dropped, the written run is discarded.
  Status Sweep(const KeyRanges& ranges) {
    // The first range whose end is larger than the key.
    const auto range_of = [&](Slice key) {
      return std::partition_point(ranges.begin(), ranges.end(), [&](const KeyRange& range) {
        return range.end != nullptr && order_.Compare(key, *range.end) >= 0;
      });
    };
    is_swept_ = [&](Slice key) {
      const auto range = range_of(key);
      return range != ranges.end() && (range->begin == nullptr || order_.Compare(key, *range->begin) >= 0);
    };
    for (size_t i = 0; i < level_.current().runs.size();) {
      const auto& runs = level_.current().runs;
      const auto range = range_of(runs[i]->first()->key());
      if (range == ranges.end()) break;
      const bool is_before =
          range->begin != nullptr && i + 1 < runs.size() && order_.Compare(runs[i + 1]->first()->key(), *range->begin) <= 0;
      if (is_before) {
        ++i;
        continue;
      }
      // The user's filter must see each entry only once, so a dry pass is not allowed with a filter.
      if (entry_filter_ == nullptr) {
        is_dry_ = true;
        Status status = WriteRange(i, i + 1, nullptr);
        is_dry_ = false;
        if (!status.ok()) return status;
        if (std::exchange(something_goes_, false) == false) {
          ++i;
          continue;
        }
      }
      if (Status status = WriteRange(i, i + 1, nullptr); !status.ok()) return status;
      const size_t written = written_.size();
      if (!std::exchange(something_goes_, false)) {
        Forget();
        ++i;
        continue;
      }
      if (Status status = Exchange(); !status.ok()) return status;
      i += written;
    }
    return regions_.damage_seen() ? RegionSet::DamagedList() : Status::OK();
  }

 private:
  struct Version {
    LogEntry* entry;
    PmPtr pointer;
    bool in_table;
    bool keep = true;
    bool moved = false;  // the version is in a run, and a table has the same version
  };
  struct Written {
    std::unique_ptr<RunWriter> writer;  // owns the segments until Exchange
    std::shared_ptr<const SortedRun> run;
  };

  bool Stopped() { return ++keys_ % kKeysPerStop == 0 && job_.stop != nullptr && job_.stop->load(std::memory_order_acquire); }

  // Step R1 for the runs [begin, end): merges them with the tables' entries up to the first key of run `end`. If all old runs are
  // consumed and only table entries are left, each finished run is exchanged at once. So the space for new runs stays bounded.
  Status WriteRange(size_t begin, size_t end, TableEntries* tables) {
    if (job_.stop != nullptr && job_.stop->load(std::memory_order_acquire)) return Status::Aborted("stopped");
    begin_ = begin;
    end_ = end;
    last_ = nullptr;
    const RunList* const all = &level_.current();
    const LogEntry* const limit = end < all->runs.size() ? all->runs[end]->first() : nullptr;
    RunEntries old(parts_, *all, begin, end);
    for (;;) {
      const ChunkItem* item = tables == nullptr ? nullptr : tables->Get();
      if (item != nullptr && limit != nullptr && order_.Compare(item->entry->key(), limit->key()) >= 0) item = nullptr;
      if (old.damaged() || (tables != nullptr && tables->damaged())) return RegionSet::DamagedList();
      if (item == nullptr && old.Get() == nullptr) break;
      if (Stopped()) return Status::Aborted("stopped");
      TakeKey(item, tables, &old);
      const LogEntry* const before = std::exchange(last_, versions_.front().entry);
      if (before != nullptr && order_.Compare(before->key(), last_->key()) >= 0) return RegionSet::DamagedList();
      if (Status status = WriteKey(); !status.ok()) return status;
      if (writer_ == nullptr || writer_->bytes() < sizes_.run_bytes) continue;
      if (Status status = FinishRun(); !status.ok()) return status;
      if (old.Get() != nullptr || old.damaged() || tables == nullptr) continue;
      const size_t behind = begin_ + written_.size();
      if (Status status = Exchange(); !status.ok()) return status;
      begin_ = end_ = behind;
      last_ = nullptr;  // it may lie in an old run, and the old run's space may be reused from here on
    }
    return writer_ == nullptr ? Status::OK() : FinishRun();
  }

  // Collects all versions of the smaller of the two current keys into versions_, newest first. If a table and a run have the same
  // version, the table's copy comes first and the run's is marked moved.
  void TakeKey(const ChunkItem* item, TableEntries* tables, RunEntries* old) {
    versions_.clear();
    int by_key = item == nullptr ? 1 : old->Get() == nullptr ? -1 : 0;
    if (by_key == 0) {
      by_key = item->prefix != old->prefix() ? (item->prefix < old->prefix() ? -1 : 1)
                                             : order_.Compare(item->entry->key(), old->Get()->key());
    }
    const Slice key = by_key <= 0 ? item->entry->key() : old->Get()->key();
    while (by_key <= 0 && item != nullptr && order_.Same(item->entry->key(), key)) {
      versions_.push_back({item->entry, item->pointer, true});
      tables->Next();
      item = tables->Get();
    }
    in_tables_ = versions_.size();
    for (; by_key >= 0 && old->Get() != nullptr && order_.Same(old->Get()->key(), key); old->Next())
      versions_.push_back({old->Get(), old->place(), false});
    if (in_tables_ == 0 || in_tables_ == versions_.size()) return;
    std::sort(versions_.begin(), versions_.end(), [](const Version& a, const Version& b) {
      const uint64_t of_a = a.entry->sequence();
      const uint64_t of_b = b.entry->sequence();
      return of_a != of_b ? of_a > of_b : a.in_table > b.in_table;
    });
    for (size_t i = 1; i < versions_.size(); ++i)
      versions_[i].moved = versions_[i].entry->sequence() == versions_[i - 1].entry->sequence();
  }

  // Decides the versions of the key, and appends the kept versions to the new run. In a sweep only keys inside the ranges are
  // decided; other keys are copied unchanged. The newest put is reported to the lookup cache, since the address of a cached key
  // changes.
  Status WriteKey() {
    if (in_tables_ > 0 || (is_swept_ && is_swept_(versions_.front().entry->key()))) Decide();
    if (is_dry_) return Status::OK();
    bool is_newest = true;
    for (const Version& version : versions_) {
      if (!version.keep) {
        if (!version.in_table && !version.moved) gone_.push_back(version.entry);
        continue;
      }
      PmPtr copy;
      if (writer_ == nullptr) writer_ = std::make_unique<RunWriter>(parts_.regions, parts_.segments, parts_.order, parts_.place);
      if (Status status = writer_->Append(*version.entry, version.pointer, &copy); !status.ok()) return status;
      if (std::exchange(is_newest, false) && version.entry->type() == EntryType::kPut) NoteCopy(version, copy);
    }
    for (const Version& version : versions_) Count(version);
    if (in_tables_ > 0 && job_.settled != nullptr) job_.settled->fetch_add(in_tables_, std::memory_order_relaxed);
    return Status::OK();
  }

  // Decides which versions the new run keeps. versions_ holds all versions of the key, from tables and runs, so the version
  // filter sees the complete history. The user's filter is called last, and only about the newest kept version.
  void Decide() {
    job_.filter->Decide(&versions_);
    if (entry_filter_ != nullptr) {
      const Version* const gone = FilterNewest(
          entry_filter_.get(), [](const Version& version) { return version.in_table; }, &versions_);
      if (gone != nullptr) filtered_.push_back(gone->entry);
      if (gone != nullptr && gone->in_table) NoteCopy(*gone, PmPtr());
    }
    something_goes_ |= std::any_of(versions_.begin(), versions_.end(), [](const Version& version) { return !version.keep; });
    if (versions_[0].keep && versions_[0].entry->is_operand()) stats_.AddOperandKey(versions_[0].entry->key());
  }

  // Records the new address of a newest version, for the lookup cache. Null: the version was dropped. Table versions are reported
  // after the tables have left the view, versions of runs in step R3.
  void NoteCopy(const Version& version, PmPtr copy) {
    if (job_.copied == nullptr) return;
    (version.in_table ? stats_.copied : copies_).push_back({version.pointer, copy});
  }

  // Counts a version, and records table entries for the moved marks. All table entries are recorded, also dropped ones: after the
  // merge the MANIFEST forgets the tables, and their segments must become free.
  void Count(const Version& version) {
    if (version.in_table) {
      if (version.keep) key_writer_.Add(KeyHash(*version.entry));
      ++(version.keep ? stats_.merged : stats_.dropped);
      of_tables_.push_back(version.pointer);
    } else if (!version.keep && !version.moved) {
      ++stats_.unlinked;
    }
  }

  // Sets the moved bit and flushes it. MergeIntoRuns drains once at its end. An entry that has no mark yet is counted as obsolete
  // in its segment.
  void MarkMoved(PmPtr pointer) {
    auto* const entry = regions_.Resolve<LogEntry>(pointer);
    const uint64_t word = LoadRelaxed(&entry->next[0]);
    if ((word & LogEntry::kMovedBit) == 0) {
      StoreRelease(&entry->next[0], word | LogEntry::kMovedBit);
      Segment* const segment = (word & LogEntry::kMarks) == 0 ? parts_.segments->Find(pointer) : nullptr;
      if (segment != nullptr) CountObsolete(segment, pointer, *entry);
    }
    if (!BRAIDDB_MUTANT("run-marks-not-flushed")) regions_.persistence()->Flush(&entry->next[0], sizeof(uint64_t));
    ++stats_.flushed_lines;
  }

  // Ends the current run. Its lines are flushed; the fence is in Exchange. The run is not visible yet.
  Status FinishRun() {
    RunRecord* record = nullptr;
    if (Status status = writer_->Finish(&record); !status.ok()) return status;
    stats_.flushed_lines += writer_->flushed_lines();
    const uint64_t share = level_.IndexShare(sizes_.index_bytes, record->entries);
    auto run = std::make_shared<const SortedRun>(&regions_, &order_, record, writer_->segments(), share);
    written_.push_back({std::move(writer_), std::move(run)});
    return Status::OK();
  }

  // Steps R2 to R4. If all entries of the range were dropped and no old run existed, only R3 is left to do.
  Status Exchange() {
    if (written_.empty() && begin_ == end_) {
      TellOfOld();
      return Status::OK();
    }
    std::vector<std::shared_ptr<const SortedRun>> runs;
    for (const Written& written : written_) runs.push_back(written.run);
    // whatever Exchange returns: after an error its durability is unknown, so the segments must not be released
    for (const Written& written : written_) written.writer->Take();
    written_.clear();
    Status status = level_.Exchange(begin_, end_, runs, [this] { TellOfOld(); });
    stats_.flushed_lines += runs.size() + 1;
    parts_.epochs->Reclaim();
    return status;
  }

  // Step R3. Marks the oldest version first: a reader that sees the mark of a version also sees the marks of the versions that it
  // hid. The tables' entries are marked only after the exchange, because a salvage ignores a marked entry unless it finds the
  // copy.
  void TellOfOld() {
    BRAIDDB_SYNC_POINT("RunMerge:Exchanged");
    for (const PmPtr pointer : of_tables_) MarkMoved(pointer);
    for (size_t i = gone_.size(); i-- > 0;)
      StoreRelease(&gone_[i]->next[0], LoadRelaxed(&gone_[i]->next[0]) | LogEntry::kDeadBit);
    for (const LogEntry* entry : filtered_) entry_filter_->Forget(*entry);
    for (const MergeStats::Copy& copy : copies_) (*job_.copied)(copy.from, copy.to);
    Forget();
  }

  void Forget() {
    written_.clear();
    of_tables_.clear();
    gone_.clear();
    filtered_.clear();
    copies_.clear();
  }

  const LastLevel::Parts& parts_;
  const RegionSet& regions_;
  const KeyOrder& order_;
  SortedRuns& level_;
  const RunSizes sizes_;
  const MergeJob& job_;
  const std::unique_ptr<EntryFilter> entry_filter_;  // may be null
  KeyFilterWriter key_writer_;
  MergeStats& stats_;
  std::function<bool(Slice)> is_swept_;  // empty: not a sweep
  bool is_dry_ = false;                  // only finds out whether a version would be dropped
  bool something_goes_ = false;
  uint64_t keys_ = 0;

  // State of one range.
  size_t begin_ = 0;
  size_t end_ = 0;
  std::unique_ptr<RunWriter> writer_;
  std::vector<Written> written_;
  std::vector<PmPtr> of_tables_;           // entries of tables that were merged or dropped
  std::vector<LogEntry*> gone_;            // versions that the old runs have and the new runs have not
  std::vector<const LogEntry*> filtered_;  // versions that the user's filter drops
  std::deque<MergeStats::Copy> copies_;    // new addresses of newest puts of the old runs
  const LogEntry* last_ = nullptr;         // an entry of the previous key
  // State of one key.
  std::vector<Version> versions_;
  size_t in_tables_ = 0;
};

}  // namespace

Status MergeIntoRuns(const LastLevel::Parts& parts, SortedRuns* level, const RunSizes& sizes, const MergeJob& job,
                     const std::vector<const PmTable*>& tables, MergeStats* stats) {
  TableEntries entries(parts, tables);
  if (parts.regions->damage_seen()) return RegionSet::DamagedList();
  if (Status status = RunMerger(parts, level, sizes, job, stats).Merge(&entries); !status.ok()) return status;
  // The difference of the totals, and not a count: an interrupted run of the same merge may have merged entries that were never
  // counted.
  const uint64_t were_there = job.l1_entries + stats->merged;
  stats->unlinked = were_there - std::min(were_there, level->GetStats().entries);
  // ORDER: the moved marks before the MANIFEST forgets the tables. [CC-52]
  Persistence* const persistence = parts.regions->persistence();
  return persistence->Drain() ? Status::OK() : persistence->error();
}

Status SweepRuns(const LastLevel::Parts& parts, SortedRuns* level, const RunSizes& sizes, const MergeJob& job,
                 const KeyRanges& ranges, MergeStats* stats) {
  return RunMerger(parts, level, sizes, job, stats).Sweep(ranges);
}

}  // namespace braiddb
