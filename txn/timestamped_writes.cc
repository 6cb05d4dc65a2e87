// Writes to a database with timestamps.
#include <new>
#include <utility>

#include "db/timestamped_entry.h"
#include "txn/timestamped_db.h"
#include "txn/timestamped_iterator.h"

namespace braiddb {

// ---- Updates without a timestamp

Status TimestampedDB::Put(const WriteOptions& options, Slice key, Slice value) {
  return Put(options, base()->DefaultColumnFamily(), key, value);
}
Status TimestampedDB::Put(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice value) {
  return Find(family) != nullptr ? NeedsTimestamp(*family) : StackedDB::Put(options, family, key, value);
}
Status TimestampedDB::Delete(const WriteOptions& options, Slice key) {
  return Delete(options, base()->DefaultColumnFamily(), key);
}
Status TimestampedDB::Delete(const WriteOptions& options, ColumnFamilyHandle* family, Slice key) {
  return Find(family) != nullptr ? NeedsTimestamp(*family) : StackedDB::Delete(options, family, key);
}
Status TimestampedDB::Merge(const WriteOptions& options, Slice key, Slice operand) {
  return Merge(options, base()->DefaultColumnFamily(), key, operand);
}
Status TimestampedDB::Merge(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice operand) {
  return Find(family) != nullptr ? NeedsTimestamp(*family) : StackedDB::Merge(options, family, key, operand);
}
Status TimestampedDB::DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family, Slice begin, Slice end) {
  return Find(family) != nullptr ? NeedsTimestamp(*family) : StackedDB::DeleteRange(options, family, begin, end);
}

// ---- Updates at a timestamp

Status TimestampedDB::Check(const std::shared_ptr<TimestampedFamily>& family, const ColumnFamilyHandle* handle, Slice timestamp) {
  if (handle == nullptr) return Status::InvalidArgument("the column family handle is null");
  return family == nullptr ? TakesNoTimestamp(handle->GetName()) : CheckTimestampSize(family->comparator(), timestamp);
}

Status TimestampedDB::PutVersion(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice timestamp, Slice value,
                                 uint8_t kind) try {
  if (Status status = Check(Find(family), family, timestamp); !status.ok()) return status;
  const std::string stored_key = StoredKey(key, timestamp);
  const std::string stored_value = StoredValue(value, static_cast<VersionKind>(kind));
  const std::shared_lock lock(writes_mutex_);
  return base()->Put(options, family, stored_key, stored_value);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status TimestampedDB::PutAt(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice timestamp, Slice value) {
  return PutVersion(options, family, key, timestamp, value, static_cast<uint8_t>(VersionKind::kPut));
}

Status TimestampedDB::DeleteAt(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice timestamp) {
  return PutVersion(options, family, key, timestamp, Slice(), static_cast<uint8_t>(VersionKind::kDelete));
}

Status TimestampedDB::SingleDeleteAt(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice timestamp) {
  return PutVersion(options, family, key, timestamp, Slice(), static_cast<uint8_t>(VersionKind::kSingleDelete));
}

Status TimestampedDB::DeleteRangeAt(const WriteOptions& options, ColumnFamilyHandle* family, Slice begin, Slice end,
                                    Slice timestamp) try {
  if (Status status = Check(Find(family), family, timestamp); !status.ok()) return status;
  if (Status status = families()->Check(family); !status.ok()) return status;
  WriteBatch batch;
  batch.DeleteRangeAt(family, begin, end, timestamp);
  return Write(options, batch);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status TimestampedDB::Write(const WriteOptions& options, const WriteBatch& batch) try {
  BatchSurvey survey(find_);
  Status status = batch.Iterate(&survey);
  if (!status.ok() || !survey.needs_conversion()) return StackedDB::Write(options, batch);
  const auto scan = [this](const TimestampedFamily&, uint32_t id, Slice begin, Slice end,
                           Slice timestamp) -> std::unique_ptr<Iterator> {
    const auto family = Find(id);
    ReadOptions bounds;
    bounds.iterate_lower_bound = begin;
    bounds.iterate_upper_bound = end;
    auto stored = TimestampedIterator::NewBase(base(), families()->Find(id).get(), *family, bounds);
    return std::make_unique<TimestampedIterator>(family, std::move(stored), timestamp, std::nullopt);
  };
  const auto exists = [this](uint32_t id) { return families()->Find(id) != nullptr; };
  StoredBatch converted(find_, scan, exists, survey.deletes_range(), options.ignore_missing_column_families);
  std::unique_lock alone(writes_mutex_, std::defer_lock);
  std::shared_lock shared(writes_mutex_, std::defer_lock);
  survey.deletes_range() ? alone.lock() : shared.lock();
  status = batch.Iterate(&converted);
  return status.ok() ? base()->Write(options, converted.stored()) : status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

}  // namespace braiddb
