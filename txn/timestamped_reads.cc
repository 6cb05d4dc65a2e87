// Reads of a database with timestamps.
#include <algorithm>
#include <new>
#include <utility>

#include "db/db_iterator.h"
#include "db/error_iterator.h"
#include "db/timestamped_entry.h"
#include "txn/timestamped_db.h"
#include "txn/timestamped_iterator.h"

namespace braiddb {

class TimestampedDB::OwnSnapshot {
 public:
  // Takes a snapshot and adds it to the options, if they have none.
  OwnSnapshot(DB* db, ReadOptions* options) : db_(db) {
    if (options->snapshot == nullptr) options->snapshot = taken_ = db->GetSnapshot();
  }
  ~OwnSnapshot() {
    if (taken_ != nullptr) db_->ReleaseSnapshot(taken_);
  }
  OwnSnapshot(const OwnSnapshot&) = delete;
  OwnSnapshot& operator=(const OwnSnapshot&) = delete;

 private:
  DB* const db_;
  const Snapshot* taken_ = nullptr;
};

Status TimestampedDB::CheckRead(const TimestampedFamily& family, const ColumnFamilyHandle& handle, const ReadOptions& options) {
  return options.timestamp ? CheckTimestampSize(family.comparator(), *options.timestamp) : NeedsTimestamp(handle);
}

// The cursor is made before the limit is checked; see TimestampedFamily::CheckReadable.
Status TimestampedDB::FindVersion(const ReadOptions& options, ColumnFamilyHandle* handle, const TimestampedFamily& family,
                                  Slice key, std::unique_ptr<Iterator>* cursor) {
  if (Status status = CheckRead(family, *handle, options); !status.ok()) return status;
  if (*cursor == nullptr) {
    ReadOptions unbounded;
    unbounded.snapshot = options.snapshot;
    unbounded.verify_checksums = options.verify_checksums;
    *cursor = TimestampedIterator::NewBase(base(), handle, family, unbounded);
  }
  if (Status status = family.CheckReadable(*options.timestamp); !status.ok()) return status;
  Iterator* const versions = cursor->get();
  versions->Seek(StoredKey(key, *options.timestamp));
  if (!versions->Valid()) return versions->status().ok() ? Status::NotFound() : versions->status();
  if (!IsTimestamped(versions->key(), versions->value(), family.timestamp_size())) return NotTimestamped();
  const bool is_found = family.IsSameKey(SplitKey(versions->key(), family.timestamp_size()).key, key) &&
                        SplitValue(versions->value()).kind == VersionKind::kPut;
  return is_found ? Status::OK() : Status::NotFound();
}

Status TimestampedDB::GetAt(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value,
                            std::string* timestamp) try {
  const auto found = Find(family);
  if (found == nullptr) return StackedDB::GetAt(options, family, key, value, timestamp);
  if (timestamp != nullptr) timestamp->clear();
  std::unique_ptr<Iterator> version;
  Status status = FindVersion(options, family, *found, key, &version);
  if (!status.ok()) return status;
  value->assign(SplitValue(version->value()).value);
  if (timestamp != nullptr) timestamp->assign(SplitKey(version->key(), found->timestamp_size()).timestamp);
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status TimestampedDB::Get(const ReadOptions& options, Slice key, std::string* value) {
  return Get(options, base()->DefaultColumnFamily(), key, value);
}

Status TimestampedDB::Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value) {
  return Find(family) == nullptr ? StackedDB::Get(options, family, key, value) : GetAt(options, family, key, value, nullptr);
}

Status TimestampedDB::Get(const ReadOptions& options, Slice key, PinnableSlice* value) {
  return Get(options, base()->DefaultColumnFamily(), key, value);
}

// Finds the version, and pins it by a get of its stored key in the same snapshot.
Status TimestampedDB::Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, PinnableSlice* value) try {
  const auto found = Find(family);
  if (found == nullptr) return StackedDB::Get(options, family, key, value);
  value->Reset();
  ReadOptions as_of = options;
  const OwnSnapshot snapshot(base(), &as_of);
  std::unique_ptr<Iterator> version;
  Status status = FindVersion(as_of, family, *found, key, &version);
  if (!status.ok()) return status;
  as_of.timestamp.reset();
  status = base()->Get(as_of, family, version->key(), value);
  if (status.ok()) value->RemoveSuffix(1);
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status TimestampedDB::GetTo(const ReadOptions& options, Slice key, ValueReceiver* value) {
  return GetTo(options, base()->DefaultColumnFamily(), key, value);
}

Status TimestampedDB::GetTo(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, ValueReceiver* value) try {
  const auto found = Find(family);
  if (found == nullptr) return base()->GetTo(options, family, key, value);
  std::unique_ptr<Iterator> version;
  Status status = FindVersion(options, family, *found, key, &version);
  if (status.ok() && !value->Receive(SplitValue(version->value()).value)) status = NoMemory();
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

std::vector<Status> TimestampedDB::MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                                            std::vector<std::string>* values) {
  return MultiGet(options, std::vector<ColumnFamilyHandle*>(keys.size(), base()->DefaultColumnFamily()), keys, values);
}

std::vector<Status> TimestampedDB::MultiGet(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                                            const std::vector<Slice>& keys, std::vector<std::string>* values) {
  return MultiGetAt(options, families, keys, values, nullptr);
}

std::vector<Status> TimestampedDB::MultiGetAt(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                                              const std::vector<Slice>& keys, std::vector<std::string>* values,
                                              std::vector<std::string>* timestamps) {
  const bool is_plain = std::none_of(families.begin(), families.end(),
                                     [this](const ColumnFamilyHandle* family) { return Find(family) != nullptr; });
  if (is_plain || families.size() != keys.size()) return base()->MultiGetAt(options, families, keys, values, timestamps);
  std::vector<Status> statuses(keys.size());
  values->resize(keys.size());
  if (timestamps != nullptr) timestamps->assign(keys.size(), std::string());
  ReadOptions as_of = options;
  const OwnSnapshot snapshot(base(), &as_of);
  GetEach(as_of, families, keys, values, timestamps, &statuses);
  return statuses;
}

// Consecutive keys of one family share a cursor.
void TimestampedDB::GetEach(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                            const std::vector<Slice>& keys, std::vector<std::string>* values,
                            std::vector<std::string>* timestamps, std::vector<Status>* statuses) {
  std::unique_ptr<Iterator> cursor;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto family = Find(families[i]);
    if (family == nullptr) {
      (*statuses)[i] = StackedDB::Get(options, families[i], keys[i], &(*values)[i]);
      continue;
    }
    const bool is_same = i > 0 && families[i - 1] == families[i];
    if (!is_same) cursor.reset();
    (*statuses)[i] = FindVersion(options, families[i], *family, keys[i], &cursor);
    if (!(*statuses)[i].ok()) continue;
    (*values)[i].assign(SplitValue(cursor->value()).value);
    if (timestamps != nullptr) (*timestamps)[i].assign(SplitKey(cursor->key(), family->timestamp_size()).timestamp);
  }
}

std::unique_ptr<Iterator> TimestampedDB::NewIterator(const ReadOptions& options) {
  return NewIterator(options, base()->DefaultColumnFamily());
}

std::unique_ptr<Iterator> TimestampedDB::NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) {
  const auto found = Find(family);
  if (found == nullptr) return StackedDB::NewIterator(options, family);
  Status status = CheckRead(*found, *family, options);
  if (status.ok() && options.iter_start_ts) status = CheckTimestampSize(found->comparator(), *options.iter_start_ts);
  const auto& extractor = base()->GetOptions().prefix_extractor;
  const bool stays_in_prefix = options.prefix_same_as_start && extractor != nullptr;
  if (status.ok() && stays_in_prefix && options.iter_start_ts)
    status = Status::NotSupported("ReadOptions::iter_start_ts with prefix_same_as_start; give bounds instead");
  if (!status.ok()) return std::make_unique<ErrorIterator>(status);
  auto stored = TimestampedIterator::NewBase(base(), family, *found, options);
  status = found->CheckReadable(*options.timestamp);
  if (!status.ok()) return std::make_unique<ErrorIterator>(status);
  auto iterator = std::make_unique<TimestampedIterator>(found, std::move(stored), *options.timestamp, options.iter_start_ts);
  if (!stays_in_prefix) return iterator;
  return NewPrefixIterator(std::move(iterator), extractor);
}

Status TimestampedDB::GetLatestSequenceForKey(Slice key, uint64_t* sequence) {
  return GetLatestSequenceForKey(base()->DefaultColumnFamily(), key, sequence);
}

// The largest number of all versions of the key.
Status TimestampedDB::GetLatestSequenceForKey(ColumnFamilyHandle* family, Slice key, uint64_t* sequence) try {
  const auto found = Find(family);
  if (found == nullptr) return StackedDB::GetLatestSequenceForKey(family, key, sequence);
  *sequence = 0;
  const auto versions = base()->NewIterator({}, family);
  const auto* const entries = dynamic_cast<const DBIterator*>(versions.get());
  for (versions->Seek(FirstStoredKey(key, found->timestamp_size())); entries != nullptr && versions->Valid(); versions->Next()) {
    if (versions->key().size() < found->timestamp_size()) return NotTimestamped();
    if (!found->IsSameKey(SplitKey(versions->key(), found->timestamp_size()).key, key)) break;
    *sequence = std::max(*sequence, entries->sequence());
  }
  if (!versions->status().ok()) return versions->status();
  return *sequence == 0 ? Status::NotFound() : Status::OK();
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status TimestampedDB::GetUpdatesSince(uint64_t sequence, std::unique_ptr<TransactionLogIterator>* iterator) try {
  std::unique_ptr<TransactionLogIterator> stored;
  Status status = StackedDB::GetUpdatesSince(sequence, &stored);
  iterator->reset();
  if (status.ok()) *iterator = NewTimestampedLog(std::move(stored), find_);
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

}  // namespace braiddb
