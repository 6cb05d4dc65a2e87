// Range tombstones are forgotten when nothing is left that they hide. docs/design/0016-range-deletes.md
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

// Entries of the last level that one step passes: some tenths of a second, for which merges wait. The search for where a stretch
// begins takes as long as some entries.
constexpr size_t kSweptAtOnce = kCrashTest ? 24 : 256 << 10;
constexpr size_t kEntriesOfSearch = kCrashTest ? 1 : 16;
// Records that one write deletes.
constexpr size_t kRecordsAtOnce = kCrashTest ? 4 : 1024;
// A tombstone stays in the memtable no longer than about this.
constexpr std::chrono::seconds kLongestInMemtable{2};

}  // namespace

// GOAL    What range tombstones hide is gone, and then they are. [CC-54]
// STEPS   1 a round: tombstones of a family, below which all is in the last level, and which no snapshot is older than
//         2 their ranges are swept, some stretches or a part of one each call  3 readers of before leave  4 the records are
//         deleted, durably
//         5 the set without them is installed.
// CRASH   Before 4: the next open has the tombstones, and begins anew. After it there is nothing that they hid.
// WHAT A READER SEES  Of 2 the marks of versions that were hidden to all who read on. Who could find one of these loads the set
//         in the same guard, and so before 5.
// WHY NOTHING IS LEFT AFTER 2  All that is older than the tombstones lies in the last level when the round begins, and what comes
//         to it later is newer, but for copies of a relocation: while their table waits, no stretch is swept; of what has been
//         swept none are made.
Status DBImpl::SweepRanges(bool sweeps, bool* stepped) try {
  *stepped = false;
  // A merge that was stopped is the next open's to resume: until then no sweep may take its place in the MANIFEST.
  if (stopping_.load(std::memory_order_acquire)) return Status::OK();
  if (!ranges_wait_.load(std::memory_order_acquire) || is_read_only() || write_failed_.load(std::memory_order_acquire) ||
      resume_merge_.load(std::memory_order_acquire)) {
    return Status::OK();
  }
  if (!range_round_ && !BeginRangeRound(sweeps)) return Status::OK();
  RangeRound& round = *range_round_;
  Status status;
  if (round.next < round.stretches.size() && round.family->is_gone.load(std::memory_order_acquire)) {
    range_round_.reset();  // another one begins when nobody reads the family any more
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
    // Again later: the space may come, and what a close leaves the next open does.
    if (status.IsNoSpace() || status.IsMemoryLimit() || status.IsAborted()) return Status::OK();
  }
  *stepped = status.ok();
  return status;
} catch (const std::bad_alloc&) {
  return Status::OK();  // again later: what changes data has its own answer
}

// False if there is none. ORDER: the tombstones before the snapshots. Who registers one later has a number that is no smaller.
bool DBImpl::BeginRangeRound(bool sweeps) {
  ranges_wait_.store(false, std::memory_order_seq_cst);  // whoever adds one sets it again
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
    const uint64_t oldest = is_gone ? UINT64_MAX : snapshots_.Oldest();
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

// Deleting all there is and writing nothing more gives space back, too.
void DBImpl::RotateForRanges(bool in_memtable) {
  const auto now = std::chrono::steady_clock::now();
  if (!in_memtable || !range_in_memtable_) {
    range_in_memtable_ = in_memtable;
    range_in_memtable_since_ = now;
  } else if (now - range_in_memtable_since_ >= kLongestInMemtable) {
    TryRotateMemtable(active_.load(std::memory_order_seq_cst));
    range_in_memtable_ = false;
  }
}

// A sweep makes a new index of the whole level, so as many stretches as one step can pass share one. Where the level has nothing,
// there is nothing to sweep.
Status DBImpl::SweepStretches() {
  RangeRound& round = *range_round_;
  Family* const family = round.family;
  size_t next = round.next;
  std::optional<std::string> stop;  // in the stretch `next`
  std::vector<std::pair<Slice, Slice>> swept;
  {
    const PinnedView pinned(this);
    const std::unique_ptr<EntryCursor> cursor = pinned.view().Of(family->id)->l1->NewCursor();
    const auto is_before = [&](Slice bound) {
      return cursor->entry() != nullptr && family->order.Compare(cursor->entry()->key(), bound) < 0;
    };
    for (size_t entries = 0; next < round.stretches.size() && entries < kSweptAtOnce; ++next) {
      const Slice end = round.stretches[next].second;
      const Slice begin = next == round.next && round.position ? Slice(*round.position) : round.stretches[next].first;
      cursor->Seek(SearchKey(family->order, begin, kMaxSequence));
      entries += kEntriesOfSearch;
      if (is_before(end)) swept.emplace_back(begin, end);
      for (; is_before(end); cursor->Next()) {
        // Versions of one key stay together.
        if (++entries > kSweptAtOnce && family->order.Compare(cursor->entry()->key(), begin) > 0) {
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
  for (size_t begin = 0; begin < keys.size(); begin += kRecordsAtOnce) {
    const size_t count = std::min(kRecordsAtOnce, keys.size() - begin);
    if (Status status = DeleteInBackground(range_family_.load(), {&keys[begin], count}); !status.ok()) return status;
  }
  return Status::OK();
}

// Only what a checkpoint has made durable: in PersistMode::kPage an acknowledged write may be lost.
std::shared_ptr<const RangeTombstones> DBImpl::RangesForSweep(const Family& family, uint64_t* at_most) {
  std::shared_ptr<const RangeTombstones> ranges = RangesOf(family);
  std::lock_guard lock(manifest_mutex_);
  *at_most = manifest_state_.log_boundary - 1;
  return ranges;
}

}  // namespace braiddb
