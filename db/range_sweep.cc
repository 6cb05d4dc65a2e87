// Removes the entries that range tombstones hide, and then the tombstones. docs/design/0016-range-deletes.md
#include <algorithm>

#include "compaction/relocation.h"
#include "db/db_impl.h"
#include "db/no_memory.h"
#include "log/range_record.h"
#include "util/format.h"
#include "util/mutant.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// The number of entries of the last level that one step passes: some tenths of a second, during which merges wait. The search for
// the begin of a range costs as much as kSearchCostEntries entries.
constexpr size_t kEntriesPerRound = kCrashTest ? 24 : 256 << 10;
constexpr size_t kSearchCostEntries = kCrashTest ? 1 : 16;
// The number of records that one write deletes.
constexpr size_t kRecordsPerWrite = kCrashTest ? 4 : 1024;
// If nothing else is written, a tombstone stays in the memtable for about this time at most.
constexpr std::chrono::seconds kMaxTimeInMemtable{2};

}  // namespace

// GOAL    Entries that range tombstones hide are removed, and then the tombstones. [CC-54]
// STEPS   1 begin a round: choose tombstones of one family that no snapshot is older than, and below which all entries are in the
//         last level  2 sweep their ranges, some ranges or a part of one in each call  3 wait until older readers have left  4
//         delete the records, durably  5 install the set without the tombstones.
// CRASH   Before 4: the next open has the tombstones and begins a new round. After 4: the tombstones hide no entry any more.
// WHAT A READER SEES  During 2, dead marks on versions that are hidden from every later read. A reader that can find such a
//         version loads the set in the same guard, and so before 5.
// WHY NO HIDDEN ENTRY IS LEFT AFTER 2  When the round begins, every entry older than the tombstones is in the last level. Entries
//         that come to the level later are newer, except for copies of a relocation. While the table of copies waits, no range is
//         swept, and swept entries are not copied.
Status DBImpl::SweepRanges(bool sweeps, bool* stepped) try {
  *stepped = false;
  // A merge that a close stopped is resumed by the next open. Until then no sweep may take its place in the MANIFEST.
  if (stopping_.load(std::memory_order_acquire)) return Status::OK();
  if (!ranges_wait_.load(std::memory_order_acquire) || is_read_only() || write_failed_.load(std::memory_order_acquire) ||
      resume_merge_.load(std::memory_order_acquire)) {
    return Status::OK();
  }
  if (!range_round_ && !BeginRangeRound(sweeps)) return Status::OK();
  RangeRound& round = *range_round_;
  Status status;
  if (round.next < round.stretches.size() && round.family->is_gone.load(std::memory_order_acquire)) {
    range_round_.reset();  // another round begins when the family has no readers
    return status;
  }
  if (round.next < round.stretches.size()) {
    {
      std::lock_guard lock(manifest_mutex_);
      if (HasRelocation(manifest_state_)) return Status::OK();
    }
    status = SweepStretches();
  } else {
    status = EndRangeRound();
    // Tried again later: space may become free, and the next open does what a close prevents.
    if (status.IsNoSpace() || status.IsMemoryLimit() || status.IsAborted()) return Status::OK();
  }
  *stepped = status.ok();
  return status;
} catch (const std::bad_alloc&) {
  return Status::OK();  // tried again later: steps that change data handle their own errors
}

// Sets up the next round; false if there is none.
// ORDER: loads the tombstones before the snapshots. A snapshot that is registered later has a number that is not smaller than the
// tombstones'.
bool DBImpl::BeginRangeRound(bool sweeps) {
  ranges_wait_.store(false, std::memory_order_seq_cst);  // a writer that adds a tombstone sets the flag again
  if (!stale_range_records_.empty()) {
    ranges_wait_.store(true, std::memory_order_release);
    range_round_.emplace();
    return true;
  }
  bool in_memtable = false;
  for (uint32_t id = 0; id < kMaxFamilies; ++id) {
    Family* const family = FindFamily(id);
    const auto ranges = family == nullptr ? nullptr : RangesOf(*family);
    if (ranges == nullptr) continue;
    ranges_wait_.store(true, std::memory_order_release);
    const bool is_gone = family->is_gone.load(std::memory_order_acquire);
    if (is_gone ? family->handles.load(std::memory_order_acquire) != 0 : !sweeps) continue;
    const uint64_t boundary = is_gone ? UINT64_MAX : MergedBoundary(*family);
    uint64_t first_in_memtable = 0;
    {
      std::lock_guard lock(view_mutex_);
      first_in_memtable = active_first_sequence_;
    }
    const uint64_t oldest = is_gone ? UINT64_MAX : OldestSnapshot();
    RangeRound round{family, {}, {}, 0, {}};
    ranges->ForEach([&](const RangeTombstones::Tombstone& tombstone) {
      const bool is_merged = tombstone->sequence < boundary || BRAIDDB_MUTANT("range-boundary-ignored");
      if (is_merged && tombstone->sequence <= oldest) round.tombstones.push_back(tombstone);
      in_memtable = in_memtable || (!is_gone && tombstone->sequence >= first_in_memtable);
    });
    if (round.tombstones.empty()) continue;
    if (!is_gone && !BRAIDDB_MUTANT("range-forgotten-early")) JoinStretches(family->order, round.tombstones, &round.stretches);
    range_round_ = std::move(round);
    return true;
  }
  RotateForRanges(in_memtable);
  return false;
}

void DBImpl::JoinStretches(const KeyOrder& order, const std::vector<RangeTombstones::Tombstone>& tombstones,
                           std::vector<std::pair<Slice, Slice>>* stretches) {
  for (const auto& tombstone : tombstones) stretches->emplace_back(tombstone->begin, tombstone->end);
  std::sort(stretches->begin(), stretches->end(),
            [&order](const auto& a, const auto& b) { return order.Compare(a.first, b.first) < 0; });
  size_t count = 0;
  for (const auto& stretch : *stretches) {
    if (count > 0 && order.Compare(stretch.first, (*stretches)[count - 1].second) <= 0) {
      Slice& end = (*stretches)[count - 1].second;
      if (order.Compare(end, stretch.second) < 0) end = stretch.second;
    } else {
      (*stretches)[count++] = stretch;
    }
  }
  stretches->resize(count);
}

// If a user deletes everything and then writes nothing, the space is released nevertheless.
void DBImpl::RotateForRanges(bool in_memtable) {
  const auto now = std::chrono::steady_clock::now();
  if (!in_memtable || !range_in_memtable_) {
    range_in_memtable_ = in_memtable;
    range_in_memtable_since_ = now;
  } else if (now - range_in_memtable_since_ >= kMaxTimeInMemtable) {
    TryRotateMemtable(active_.load(std::memory_order_seq_cst));
    range_in_memtable_ = false;
  }
}

// A sweep rebuilds the index of the whole level, so one sweep takes as many ranges as one step can pass. Ranges without entries
// are skipped.
Status DBImpl::SweepStretches() {
  RangeRound& round = *range_round_;
  Family* const family = round.family;
  size_t next = round.next;
  std::optional<std::string> stop;  // the key in range `next` at which the next step begins
  std::vector<std::pair<Slice, Slice>> swept;
  {
    const PinnedView pinned(this);
    const std::unique_ptr<EntryCursor> cursor = pinned.view().Of(family->id)->l1->NewCursor();
    const auto is_before = [&](Slice bound) {
      return cursor->entry() != nullptr && family->order.Compare(cursor->entry()->key(), bound) < 0;
    };
    for (size_t entries = 0; next < round.stretches.size() && entries < kEntriesPerRound; ++next) {
      const Slice end = round.stretches[next].second;
      const Slice begin = next == round.next && round.position ? Slice(*round.position) : round.stretches[next].first;
      cursor->Seek(SearchKey(family->order, begin, kMaxSequence));
      entries += kSearchCostEntries;
      if (is_before(end)) swept.emplace_back(begin, end);
      for (; is_before(end); cursor->Next()) {
        // All versions of one key are swept by one step.
        if (++entries > kEntriesPerRound && family->order.Compare(cursor->entry()->key(), begin) > 0) {
          stop.emplace(cursor->entry()->key());
          break;
        }
      }
      if (stop) break;
    }
  }
  if (regions_->damage_seen()) return RegionSet::DamagedList();
  if (stop) swept.back().second = *stop;
  KeyRanges ranges;
  for (const auto& [begin, end] : swept) ranges.push_back({&begin, &end});
  if (!ranges.empty()) {
    if (Status status = SweepFamily(family, ranges, false); !status.ok()) return status;
  }
  round.next = next;
  round.position = std::move(stop);
  return Status::OK();
}

Status DBImpl::EndRangeRound() {
  BRAIDDB_SYNC_POINT("DBImpl::EndRangeRound:Swept");
  RangeRound& round = *range_round_;
  epochs_.Synchronize();
  std::vector<std::string> keys = stale_range_records_;
  for (const auto& tombstone : round.tombstones) keys.push_back(RangeRecord::Key(round.family->id, tombstone->record));
  if (Status status = DeleteRangeRecords(keys); !status.ok()) return status;
  BRAIDDB_SYNC_POINT("DBImpl::EndRangeRound:Deleted");
  stale_range_records_.clear();
  if (round.family != nullptr) {
    std::vector<uint64_t> records;
    for (const auto& tombstone : round.tombstones) records.push_back(tombstone->record);
    std::sort(records.begin(), records.end());
    std::unique_lock lock(ranges_mutex_);
    auto set = RangeTombstones::Without(*round.family->current_ranges, [&records](const RangeTombstone& tombstone) {
      return std::binary_search(records.begin(), records.end(), tombstone.record);
    });
    InstallRanges(round.family, &set);
    lock.unlock();
    RetireRanges(std::move(set));
    Log(Format("range deletes: %zu forgotten", records.size()));
  }
  range_round_.reset();
  return Status::OK();
}

Status DBImpl::DeleteRangeRecords(const std::vector<std::string>& keys) {
  for (size_t begin = 0; begin < keys.size(); begin += kRecordsPerWrite) {
    const size_t count = std::min(kRecordsPerWrite, keys.size() - begin);
    if (Status status = DeleteInBackground(range_family_.load(), {&keys[begin], count}); !status.ok()) return status;
  }
  return Status::OK();
}

// The tombstones that a sweep may apply: those that a checkpoint has made durable. In PersistMode::kPage an acknowledged write
// may be lost. *at_most: the largest such number.
std::shared_ptr<const RangeTombstones> DBImpl::RangesForSweep(const Family& family, uint64_t* at_most) {
  std::shared_ptr<const RangeTombstones> ranges = RangesOf(family);
  std::lock_guard lock(manifest_mutex_);
  *at_most = manifest_state_.log_boundary - 1;
  return ranges;
}

}  // namespace braiddb
