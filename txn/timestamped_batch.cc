#include "txn/timestamped_batch.h"

#include <optional>
#include <utility>

#include "db/timestamped_entry.h"

namespace braiddb {

Status StoredBatch::CheckPlain(uint32_t family) const {
  if (find_(family) == nullptr || IsSkipped(family)) return Status::OK();
  return Status::InvalidArgument("the batch has an update without a timestamp, and column family " + std::to_string(family) +
                                 " enables timestamp; give a timestamp");
}

Status StoredBatch::Find(uint32_t family, Slice timestamp, std::shared_ptr<TimestampedFamily>* found) const {
  *found = find_(family);
  if (*found == nullptr) return TakesNoTimestamp(std::to_string(family));
  return CheckTimestampSize((*found)->comparator(), timestamp);
}

Status StoredBatch::PutCF(uint32_t family, Slice key, Slice value) {
  stored_.PutCF(family, key, value);
  return CheckPlain(family);
}

Status StoredBatch::DeleteCF(uint32_t family, Slice key) {
  stored_.DeleteCF(family, key);
  return CheckPlain(family);
}

Status StoredBatch::MergeCF(uint32_t family, Slice key, Slice operand) {
  stored_.MergeCF(family, key, operand);
  return CheckPlain(family);
}

Status StoredBatch::DeleteRangeCF(uint32_t family, Slice begin, Slice end) {
  stored_.DeleteRangeCF(family, begin, end);
  return CheckPlain(family);
}

void StoredBatch::AddVersion(const TimestampedFamily& found, uint32_t family, Slice key, Slice timestamp, Slice value,
                             VersionKind kind) {
  std::string stored_key = StoredKey(key, timestamp);
  stored_.PutCF(family, stored_key, StoredValue(value, kind));
  if (!deletes_range_) return;
  Versions& own = own_.try_emplace(family, ByStoredKey{&found.comparator()}).first->second;
  own.insert_or_assign(std::move(stored_key), kind);
}

Status StoredBatch::PutAtCF(uint32_t family, Slice key, Slice timestamp, Slice value) {
  if (IsSkipped(family)) return Status::OK();
  std::shared_ptr<TimestampedFamily> found;
  Status status = Find(family, timestamp, &found);
  if (status.ok()) AddVersion(*found, family, key, timestamp, value, VersionKind::kPut);
  return status;
}

Status StoredBatch::DeleteAtCF(uint32_t family, Slice key, Slice timestamp) {
  return AddDeletion(family, key, timestamp, VersionKind::kDelete);
}

Status StoredBatch::SingleDeleteAtCF(uint32_t family, Slice key, Slice timestamp) {
  return AddDeletion(family, key, timestamp, VersionKind::kSingleDelete);
}

Status StoredBatch::AddDeletion(uint32_t family, Slice key, Slice timestamp, VersionKind kind) {
  if (IsSkipped(family)) return Status::OK();
  std::shared_ptr<TimestampedFamily> found;
  Status status = Find(family, timestamp, &found);
  if (status.ok()) AddVersion(*found, family, key, timestamp, Slice(), kind);
  return status;
}

Status StoredBatch::DeleteRangeAtCF(uint32_t family, Slice begin, Slice end, Slice timestamp) {
  if (IsSkipped(family)) return Status::OK();
  std::shared_ptr<TimestampedFamily> found;
  if (Status status = Find(family, timestamp, &found); !status.ok()) return status;
  Status status = DeleteExistingRange(*found, family, begin, end, timestamp);
  return IsSkipped(family) ? Status::OK() : status;  // the family may have been dropped meanwhile
}

// A key is deleted if the newest of its versions up to the timestamp is a put: of those in the database and of the batch's own,
// and of two with one timestamp the batch's. A key of which the database has no value is judged by the batch's versions alone.
Status StoredBatch::DeleteExistingRange(const TimestampedFamily& found, uint32_t family, Slice begin, Slice end,
                                        Slice timestamp) {
  const Comparator& comparator = found.comparator();
  const auto compare = [&](Slice a, Slice b) { return comparator.CompareWithoutTimestamp(a, false, b, false); };
  const auto split = [&](const std::string& stored) { return SplitKey(stored, found.timestamp_size()); };
  const int order = compare(begin, end);
  if (order > 0) return Status::InvalidArgument("end key comes before start key");  // RocksDB's text
  if (order == 0) return Status::OK();
  if (!exists_(family)) return Status::InvalidArgument("column family " + std::to_string(family) + " was dropped");
  Versions& own = own_.try_emplace(family, ByStoredKey{&comparator}).first->second;
  const auto keys = scan_(found, family, begin, end, timestamp);
  for (keys->SeekToFirst(); keys->Valid(); keys->Next()) {
    const auto newest = own.lower_bound(StoredKey(keys->key(), timestamp));  // of one key the newest timestamp comes first
    if (newest != own.end() && newest->second != VersionKind::kPut) {
      const SplitKey version = split(newest->first);
      const bool is_of_key = compare(version.key, keys->key()) == 0;
      if (is_of_key && comparator.CompareTimestamp(version.timestamp, keys->timestamp()) >= 0) continue;
    }
    AddVersion(found, family, keys->key(), timestamp, Slice(), VersionKind::kDelete);
  }
  if (!keys->status().ok()) return keys->status();
  std::optional<std::string> judged;  // the key of which a version was met
  for (auto at = own.lower_bound(StoredKey(begin, timestamp)); at != own.end(); ++at) {
    const SplitKey version = split(at->first);
    if (compare(version.key, end) >= 0) break;
    const bool is_judged = judged.has_value() && compare(version.key, *judged) == 0;
    if (is_judged || comparator.CompareTimestamp(version.timestamp, timestamp) > 0) continue;
    judged = std::string(version.key);
    if (at->second == VersionKind::kPut) AddVersion(found, family, *judged, timestamp, Slice(), VersionKind::kDelete);
  }
  return Status::OK();
}

namespace {

// Converts stored entries to a batch of the user.
class UsersBatch final : public WriteBatch::Handler {
 public:
  UsersBatch(const FindTimestamped& find, WriteBatch* users) : find_(find), users_(users) {}

  void Put(Slice, Slice) override {}  // the batch calls only the family variants below
  void Delete(Slice) override {}
  void Merge(Slice, Slice) override {}
  Status PutCF(uint32_t family, Slice key, Slice value) override {
    const auto found = find_(family);
    if (found == nullptr) return users_->PutCF(family, key, value), Status::OK();
    if (!IsTimestamped(key, value, found->timestamp_size())) return NotTimestamped();
    const SplitKey version(key, found->timestamp_size());
    const SplitValue stored(value);
    switch (stored.kind) {
      case VersionKind::kPut:
        users_->PutAtCF(family, version.key, version.timestamp, stored.value);
        return Status::OK();
      case VersionKind::kDelete:
        users_->DeleteAtCF(family, version.key, version.timestamp);
        return Status::OK();
      case VersionKind::kSingleDelete:
        users_->SingleDeleteAtCF(family, version.key, version.timestamp);
        return Status::OK();
    }
    return NotTimestamped();
  }
  Status DeleteCF(uint32_t family, Slice key) override {
    if (find_(family) == nullptr) users_->DeleteCF(family, key);
    return Status::OK();
  }
  Status MergeCF(uint32_t family, Slice key, Slice operand) override {
    return users_->MergeCF(family, key, operand), Status::OK();
  }
  Status DeleteRangeCF(uint32_t family, Slice begin, Slice end) override {
    return users_->DeleteRangeCF(family, begin, end), Status::OK();
  }

 private:
  const FindTimestamped& find_;
  WriteBatch* const users_;
};

class TimestampedLog final : public TransactionLogIterator {
 public:
  TimestampedLog(std::unique_ptr<TransactionLogIterator> base, FindTimestamped find)
      : base_(std::move(base)), find_(std::move(find)) {
    Take();
  }

  bool Valid() const override { return is_taken_; }
  void Next() override {
    if (!status_.ok()) return;
    base_->Next();
    Take();
  }
  Status status() const override { return status_.ok() ? base_->status() : status_; }
  LoggedBatch GetBatch() override { return std::move(batch_); }

 private:
  // Takes the base's batch, or the next one that has an update for users.
  void Take() {
    is_taken_ = false;
    batch_ = LoggedBatch();
    for (; base_->Valid() && status_.ok(); base_->Next()) {
      const LoggedBatch stored = base_->GetBatch();
      auto users = std::make_unique<WriteBatch>();
      UsersBatch convert(find_, users.get());
      status_ = stored.updates->Iterate(&convert);
      if (!status_.ok() || users->Count() == 0) continue;
      batch_ = {stored.sequence, std::move(users)};
      is_taken_ = true;
      return;
    }
  }

  const std::unique_ptr<TransactionLogIterator> base_;
  const FindTimestamped find_;
  LoggedBatch batch_;
  bool is_taken_ = false;  // there is a batch at this position, which the caller may have
  Status status_;
};

}  // namespace

std::unique_ptr<TransactionLogIterator> NewTimestampedLog(std::unique_ptr<TransactionLogIterator> base, FindTimestamped find) {
  return std::make_unique<TimestampedLog>(std::move(base), std::move(find));
}

}  // namespace braiddb
