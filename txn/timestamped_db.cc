#include "txn/timestamped_db.h"

#include <algorithm>
#include <new>
#include <utility>

#include "db/db_iterator.h"
#include "db/hidden_family.h"
#include "db/timestamped_entry.h"
#include "txn/history_filter.h"
#include "txn/timestamped_iterator.h"

namespace braiddb {

// ---- Families

TimestampedDB::TimestampedDB(DB* base, const std::vector<std::unique_ptr<ColumnFamilyHandle>>& handles,
                             const Timestamped& timestamped)
    : StackedDB(base, handles), limits_(base) {
  for (const auto& [id, family] : timestamped) {
    family->Attach(base, families()->Find(id));
    Add(id, family);
  }
}

TimestampedDB::~TimestampedDB() {
  DetachAll();
  limits_.Close();
}

Status TimestampedDB::Close() {
  DetachAll();
  limits_.Close();
  return StackedDB::Close();
}

void TimestampedDB::DetachAll() {
  const std::shared_lock lock(families_mutex_);
  for (const auto& [id, family] : timestamped_) family->Detach();
}

std::shared_ptr<TimestampedFamily> TimestampedDB::Find(uint32_t id) const {
  const std::shared_lock lock(families_mutex_);
  const auto found = timestamped_.find(id);
  return found == timestamped_.end() ? nullptr : found->second;
}

std::shared_ptr<TimestampedFamily> TimestampedDB::Find(const ColumnFamilyHandle* family) const {
  if (family == nullptr || !HasTimestamps(family->GetOptions().comparator)) return nullptr;
  return Find(family->GetID());
}

void TimestampedDB::Add(uint32_t id, std::shared_ptr<TimestampedFamily> family) {
  const std::unique_lock lock(families_mutex_);
  timestamped_.insert_or_assign(id, std::move(family));
}

void TimestampedDB::Remove(uint32_t id) {
  const std::unique_lock lock(families_mutex_);
  timestamped_.erase(id);
}

// A limit is stored under the name of its family, and another family may have the name of a dropped one.
Status TimestampedDB::CheckExists(const ColumnFamilyHandle& handle) const {
  if (Status status = families()->Check(&handle); !status.ok()) return status;
  const auto existing = families()->Find(handle.GetName());
  if (existing != nullptr && existing->GetID() == handle.GetID()) return Status::OK();
  return Status::InvalidArgument("column family '" + handle.GetName() +
                                 "' was dropped, or its database is closed; use a handle " + "of an existing family");
}

void TimestampedDB::AddHistoryFilter(const std::shared_ptr<TimestampedFamily>& family, const CompactionFilter** filter,
                                     std::shared_ptr<CompactionFilterFactory>* factory) {
  *factory = MakeHistoryFilterFactory(family, *filter, std::move(*factory));
  *filter = nullptr;
}

Status TimestampedDB::CreateColumnFamily(const ColumnFamilyOptions& options, const std::string& name,
                                         std::unique_ptr<ColumnFamilyHandle>* handle) try {
  if (!HasTimestamps(options.comparator) || IsHiddenFamily(name)) {
    Status status = base()->CreateColumnFamily(options, name, handle);
    if (!status.ok()) return status;
    Remove((*handle)->GetID());  // a dropped family with timestamps may have had the id
    AddFamily(**handle);
    return status;
  }
  const std::lock_guard lock(increase_mutex_);
  const auto family = std::make_shared<TimestampedFamily>(options.comparator);
  ColumnFamilyOptions with_filter = options;
  AddHistoryFilter(family, &with_filter.compaction_filter, &with_filter.compaction_filter_factory);
  if (families()->Find(name) == nullptr) {  // the record of an earlier family of this name, whose drop was cut short
    if (Status status = limits_.Delete(name); !status.ok()) return status;
  }
  Status status = static_cast<DBImpl*>(base())->CreateAnyFamily(with_filter, name, handle);
  if (!status.ok()) return status;
  AddFamily(**handle);
  Add((*handle)->GetID(), family);
  family->Attach(base(), families()->Find((*handle)->GetID()));
  return status;
} catch (const std::bad_alloc&) {
  handle->reset();  // the family may exist, and the next open finds it
  return NoMemory();
}

Status TimestampedDB::DropColumnFamily(ColumnFamilyHandle* family) try {
  const auto found = Find(family);
  if (found == nullptr) return StackedDB::DropColumnFamily(family);
  const std::lock_guard lock(increase_mutex_);
  Status status = StackedDB::DropColumnFamily(family);
  if (!status.ok()) return status;
  found->Detach();
  return limits_.Delete(family->GetName());
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// ---- History

Status TimestampedDB::LoadLimits(const std::vector<std::string>* existing) try {
  return limits_.Load([&](Slice name, Slice limit) {
    const auto handle = families()->Find(std::string(name));
    const auto family = Find(handle.get());
    const bool is_new = existing != nullptr && std::find(existing->begin(), existing->end(), name) == existing->end();
    if (family == nullptr || is_new || limit.size() != family->timestamp_size()) return false;
    family->SetLimit(limit);
    return true;
  });
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// ORDER: the record is durable before anything may be trimmed, or a reader may learn of the limit.
Status TimestampedDB::IncreaseFullHistoryTsLow(ColumnFamilyHandle* family, Slice ts_low) try {
  const auto found = Find(family);
  if (found == nullptr) return StackedDB::IncreaseFullHistoryTsLow(family, ts_low);
  if (ts_low.size() != found->timestamp_size()) return Status::InvalidArgument("ts_low size mismatch");  // RocksDB's text
  const std::lock_guard lock(increase_mutex_);
  if (Status status = CheckExists(*family); !status.ok()) return status;
  const std::string present = found->Limit();
  const int order = present.empty() ? 1 : found->comparator().CompareTimestamp(ts_low, present);
  if (order < 0) return Status::InvalidArgument("Cannot decrease full_history_ts_low");
  if (order == 0) return Status::OK();
  Status status = limits_.Write(family->GetName(), ts_low);
  if (status.ok()) found->SetLimit(ts_low);
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status TimestampedDB::GetFullHistoryTsLow(ColumnFamilyHandle* family, std::string* ts_low) try {
  const auto found = Find(family);
  if (found == nullptr) return StackedDB::GetFullHistoryTsLow(family, ts_low);
  if (Status status = CheckExists(*family); !status.ok()) return status;
  *ts_low = found->Limit();
  return Status::OK();
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status TimestampedDB::CompactRange(const CompactRangeOptions& options, const Slice* begin, const Slice* end) {
  return CompactRange(options, base()->DefaultColumnFamily(), begin, end);
}

// Removals by the filter are deletions, which the next merge drops together with what they delete. So the call repeats itself if
// there were some. The second sweep also removes deletions of the user whose older versions the first one has removed.
Status TimestampedDB::CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* family, const Slice* begin,
                                   const Slice* end) try {
  const auto found = Find(family);
  if (found == nullptr) return StackedDB::CompactRange(options, family, begin, end);
  CompactRangeOptions stored = options;
  stored.full_history_ts_low.reset();
  if (options.full_history_ts_low) {
    if (Status status = IncreaseFullHistoryTsLow(family, *options.full_history_ts_low); !status.ok()) return status;
  }
  const std::string first = begin == nullptr ? std::string() : FirstStoredKey(*begin, found->timestamp_size());
  const std::string last = end == nullptr ? std::string() : LastStoredKey(*end, found->timestamp_size());
  const Slice bounds[] = {first, last};
  const Slice* const from = begin == nullptr ? nullptr : &bounds[0];
  const Slice* const to = end == nullptr ? nullptr : &bounds[1];
  constexpr int kMaxPasses = 3;
  Status status;
  for (int pass = 0; pass < kMaxPasses && status.ok(); ++pass) {
    const uint64_t trimmed = found->trimmed();
    status = StackedDB::CompactRange(stored, family, from, to);
    if (found->trimmed() == trimmed) break;
  }
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status TimestampedDB::Trim(Slice timestamp) try {
  Timestamped families_to_trim;
  {
    const std::shared_lock lock(families_mutex_);
    families_to_trim = timestamped_;
  }
  for (const auto& [id, family] : families_to_trim) {
    if (Status status = CheckTimestampSize(family->comparator(), timestamp); !status.ok()) return status;
  }
  constexpr size_t kBatchBytes = 256 << 10;
  for (const auto& [id, family] : families_to_trim) {
    WriteBatch batch;
    const auto versions = base()->NewIterator({}, families()->Find(id).get());
    for (versions->SeekToFirst(); versions->Valid(); versions->Next()) {
      if (versions->key().size() < family->timestamp_size()) return NotTimestamped();
      const SplitKey version(versions->key(), family->timestamp_size());
      if (family->comparator().CompareTimestamp(version.timestamp, timestamp) > 0) batch.DeleteCF(id, versions->key());
      if (batch.ApproximateSize() < kBatchBytes) continue;
      if (Status status = base()->Write({}, batch); !status.ok()) return status;
      batch.Clear();
    }
    Status status = versions->status();
    if (status.ok() && batch.Count() > 0) status = base()->Write({}, batch);
    if (!status.ok()) return status;
  }
  return Status::OK();
} catch (const std::bad_alloc&) {
  return NoMemory();
}

}  // namespace braiddb
