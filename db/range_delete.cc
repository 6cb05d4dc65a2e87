// Range deletes: writing them, and the sets in which readers find them. docs/design/0016-range-deletes.md
#include <algorithm>

#include "db/db_impl.h"
#include "db/db_iterator.h"
#include "db/hidden_family.h"
#include "db/no_memory.h"
#include "db/range_update.h"
#include "log/range_record.h"
#include "util/mutant.h"
#include "util/sync_point.h"

namespace braiddb {

Status DB::DeleteRange(const WriteOptions&, ColumnFamilyHandle*, Slice, Slice) {
  return Status::NotSupported("DeleteRange is not supported here");
}

Status DBImpl::DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family, Slice begin, Slice end) try {
  Status status;
  const Family* const known = FamilyOf(family, &status);
  if (known == nullptr) return status;
  WriteBatch batch;
  batch.DeleteRangeCF(known->id, begin, end);
  return Write(options, batch);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// ---- One batch

Status RangeUpdate::Add(uint32_t family, Slice begin, Slice end, size_t update, std::string_view record[2], bool* is_empty) {
  // A bound may be one byte longer than keys, so that a range can include the largest key.
  if (std::max(begin.size(), end.size()) > kMaxKeySize + 1)
    return Status::InvalidArgument("a bound of a range has more than 65537 bytes");
  Family* const known = db_.FindFamily(family);
  if (known == nullptr)
    return Status::InvalidArgument("the batch writes to column family " + std::to_string(family) +
                                   ", which does not exist; create the family, or take its updates out of the batch");
  if (known->is_hidden) {
    return Status::InvalidArgument("the batch deletes a range of column family " + std::to_string(family) +
                                   ", which holds the database's own records; take this update out of the batch");
  }
  if (db_.write_failed_.load(std::memory_order_acquire)) return db_.BackgroundError();
  const int order = known->order.Compare(begin, end);
  if (order > 0) return Status::InvalidArgument("end key comes before start key");  // RocksDB's text
  *is_empty = order == 0;
  if (*is_empty) return Status::OK();
  if (family_ == 0) {
    Family* own = nullptr;
    if (Status status = db_.RangeFamily(&own); !status.ok()) return status;
    family_ = own->id;
  }
  auto tombstone = std::make_shared<RangeTombstone>();
  tombstone->begin.assign(begin);
  tombstone->end.assign(end);
  tombstone->record = db_.next_range_record_.fetch_add(1, std::memory_order_relaxed);
  bytes_.push_back(RangeRecord::Key(family, tombstone->record));
  record[0] = bytes_.back();
  bytes_.push_back(RangeRecord::Value(begin, end));
  record[1] = bytes_.back();
  ranges_.push_back({known, update, std::move(tombstone)});
  return Status::OK();
}

// The write is announced. A thread that drops a family first marks it as dropped, and then waits for announced writes, as in
// ChooseMemtable.
bool RangeUpdate::Prepare(uint64_t first) try {
  for (const Range& range : ranges_) {
    if (!range.family->dropped.load(std::memory_order_seq_cst)) continue;
    refusal_ = Status::InvalidArgument("column family " + std::to_string(range.family->id) + " was dropped");
    return false;
  }
  lock_ = std::unique_lock(db_.ranges_mutex_);
  MakeSets(first);
  return true;
} catch (const std::bad_alloc&) {
  refusal_ = NoMemory();
  return false;
}

void RangeUpdate::MakeSets(uint64_t first) {
  for (const Range& range : ranges_) {
    range.tombstone->sequence = first + range.update;
    const auto known = [&range](const auto& set) { return set.first == range.family; };
    if (std::none_of(sets_.begin(), sets_.end(), known)) sets_.emplace_back(range.family, nullptr);
  }
  for (auto& [family, set] : sets_) {
    std::vector<RangeTombstones::Tombstone> added;
    for (const Range& range : ranges_) {
      if (range.family == family) added.push_back(range.tombstone);
    }
    set = RangeTombstones::With(family->current_ranges.get(), std::move(added), family->order);
  }
}

void RangeUpdate::Install() {
  for (auto& [family, set] : sets_) db_.InstallRanges(family, &set);
  is_first_ = !sets_.empty() && !db_.ranges_wait_.exchange(true, std::memory_order_acq_rel);
  if (lock_.owns_lock()) lock_.unlock();
  BRAIDDB_SYNC_POINT("RangeUpdate::Installed");
}

void RangeUpdate::End() {
  if (lock_.owns_lock()) {  // Install was not called
    lock_.unlock();
    sets_.clear();
  }
  for (auto& [family, old] : sets_) db_.RetireRanges(std::move(old));
  if (is_first_) db_.NotifyWork();
}

// ---- Sets

// With a DRAM budget: waits while range tombstones take more memory than their share. Called before the write is announced. A
// tombstone is forgotten when the entries that it hides are merged and swept. So the loop rotates the memtable that has the
// records, if nothing else waits for a merge. A snapshot may keep all tombstones, so beside a snapshot the wait is short.
// Tombstones of dropped families whose handles exist are not waited for.
void DBImpl::WaitForRanges(ThreadState* thread) {
  constexpr uint64_t kPollNs = 500'000;
  constexpr uint64_t kMaxWaitNs = 5'000'000'000;
  constexpr uint64_t kMaxWaitNsWithSnapshot = 100'000'000;
  // Bytes of tombstones of dropped families that have handles: they are not forgotten before the handles end.
  const auto held_bytes = [this] {
    uint64_t sum = 0;
    const auto guard = epochs_.Enter();
    for (uint32_t id = 0; id < kMaxFamilies; ++id) {
      const Family* const family = FindFamily(id);
      if (family == nullptr || !family->is_gone.load(std::memory_order_acquire)) continue;
      if (family->handles.load(std::memory_order_acquire) == 0) continue;
      const RangeTombstones* const ranges = family->ranges.load(std::memory_order_acquire);
      if (ranges != nullptr) sum += ranges->bytes();
    }
    return sum;
  };
  const auto is_over = [this, &held_bytes] {
    const uint64_t bytes = range_bytes_.load(std::memory_order_relaxed);
    return dram_.is_set() && changing_.MergesByItself() && bytes > dram_.ranges &&
           !write_failed_.load(std::memory_order_acquire) && !stopping_.load(std::memory_order_acquire) &&
           bytes - std::min(bytes, held_bytes()) > dram_.ranges;
  };
  for (uint64_t waited = 0; is_over();) {
    if (waited >= (OldestSnapshot() == UINT64_MAX ? kMaxWaitNs : kMaxWaitNsWithSnapshot)) break;
    BRAIDDB_SYNC_POINT("DBImpl::WaitForRanges");
    const Memtable* active = nullptr;
    {
      std::lock_guard lock(view_mutex_);
      const bool is_written = next_sequence_->load(std::memory_order_seq_cst) > active_first_sequence_;
      const bool is_first = immutable_count_.load(std::memory_order_acquire) == 0 && l0_load_.oldest_id() == UINT64_MAX;
      if (is_written && is_first) active = active_.load(std::memory_order_relaxed);
    }
    if (active != nullptr) TryRotateMemtable(active);
    waited += SleepForWrites(thread, kPollNs);
  }
}

// release: a reader that loads the set sees its content. A reader may see looks_closer set after the last tombstone is gone; then
// it makes a check without effect. REQUIRES: ranges_mutex_.
void DBImpl::InstallRanges(Family* family, std::shared_ptr<const RangeTombstones>* ranges) {
  const auto bytes_of = [](const auto& set) { return set == nullptr ? 0 : set->bytes(); };
  range_bytes_.fetch_add(bytes_of(*ranges) - bytes_of(family->current_ranges), std::memory_order_relaxed);
  family->current_ranges.swap(*ranges);
  family->ranges.store(family->current_ranges.get(), std::memory_order_release);
  family->looks_closer.store(family->has_filter || family->current_ranges != nullptr, std::memory_order_release);
  PublishRanges();
}

void DBImpl::RetireRanges(std::shared_ptr<const RangeTombstones> ranges) {
  if (ranges == nullptr) return;
  try {
    epochs_.Retire([kept = ranges]() mutable { kept.reset(); });
  } catch (const std::bad_alloc&) {
    epochs_.Synchronize();  // no memory for the retirement: wait until no reader is in a guard, then free the set
  }
}

std::shared_ptr<const RangeTombstones> DBImpl::RangesOf(const Family& family) const {
  if (family.ranges.load(std::memory_order_acquire) == nullptr) return nullptr;
  const auto guard = epochs_.Enter();
  const RangeTombstones* const ranges = family.ranges.load(std::memory_order_acquire);
  return ranges == nullptr ? nullptr : ranges->shared_from_this();
}

uint64_t DBImpl::CountRanges() const {
  uint64_t sum = 0;
  const auto guard = epochs_.Enter();
  for (uint32_t id = 0; id < kMaxFamilies; ++id) {
    const Family* const family = FindFamily(id);
    const RangeTombstones* const ranges = family == nullptr ? nullptr : family->ranges.load(std::memory_order_acquire);
    if (ranges != nullptr) sum += ranges->size();
  }
  return sum;
}

// ---- The records' family

Status DBImpl::RangeFamily(Family** family) {
  *family = range_family_.load(std::memory_order_acquire);
  if (*family != nullptr) return Status::OK();
  std::lock_guard lock(families_mutex_);
  std::shared_ptr<Family> known = FindFamilyByName(kRangeTombstonesFamilyName);
  if (known == nullptr) {
    ColumnFamilyOptions options;
    options.l1 = options_.l1;
    if (Status status = MakeFamily(options, kRangeTombstonesFamilyName); !status.ok()) return status;
    known = FindFamilyByName(kRangeTombstonesFamilyName);
  }
  *family = known.get();
  range_family_.store(*family, std::memory_order_release);
  return Status::OK();
}

// Records of families that do not exist are left by a drop that a crash interrupted.
Status DBImpl::LoadRanges() {
  const std::shared_ptr<Family> known = FindFamilyByName(kRangeTombstonesFamilyName);
  if (known == nullptr) return Status::OK();
  range_family_.store(known.get(), std::memory_order_release);
  std::map<Family*, std::vector<RangeTombstones::Tombstone>> found;
  const std::unique_ptr<Iterator> records = MakeIterator(ReadOptions(), *known);
  for (records->SeekToFirst(); records->Valid(); records->Next()) {
    auto tombstone = std::make_shared<RangeTombstone>();
    uint32_t id = 0;
    const uint64_t sequence = static_cast<const DBIterator*>(records.get())->sequence();
    if (!RangeRecord::Parse(records->key(), records->value(), sequence, &id, tombstone.get()) || id >= kMaxFamilies) {
      return Status::Corruption(
          "the record of a deleted range is damaged; restore the database from a copy, or save what is intact with "
          "braiddb repair");
    }
    next_range_record_.store(std::max(next_range_record_.load(), tombstone->record + 1));
    Family* const family = FindFamily(id);
    if (family == nullptr) {
      stale_range_records_.emplace_back(records->key());
    } else {
      found[family].push_back(std::move(tombstone));
    }
  }
  if (!records->status().ok()) return records->status();
  std::lock_guard lock(ranges_mutex_);
  for (auto& [family, tombstones] : found) {
    auto set = RangeTombstones::With(nullptr, std::move(tombstones), family->order);
    InstallRanges(family, &set);
  }
  ranges_wait_.store(!found.empty() || !stale_range_records_.empty(), std::memory_order_release);
  return Status::OK();
}

}  // namespace braiddb
