#include "txn/history_limits.h"

#include <algorithm>
#include <vector>

#include "db/db_impl.h"
#include "db/hidden_family.h"

namespace braiddb {

Status HistoryLimits::FindFamily(bool creates) {
  if (family_ != nullptr) return Status::OK();
  auto* const db = static_cast<DBImpl*>(base_);
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
  if (Status status = db->GetAllFamilies(&handles); !status.ok()) return status;
  const auto found =
      std::find_if(handles.begin(), handles.end(), [](const auto& one) { return one->GetName() == kHistoryLimitsFamilyName; });
  if (found != handles.end()) {
    family_ = std::move(*found);
    return Status::OK();
  }
  if (!creates) return Status::OK();
  ColumnFamilyOptions options;
  options.l1 = db->GetOptions().l1;
  return db->CreateAnyFamily(options, kHistoryLimitsFamilyName, &family_);
}

Status HistoryLimits::WriteSynced(const WriteBatch& batch) {
  WriteOptions options;
  options.sync = true;
  return static_cast<DBImpl*>(base_)->WriteToAnyFamily(options, batch);
}

Status HistoryLimits::Load(const std::function<bool(Slice family, Slice limit)>& found) {
  const std::lock_guard lock(mutex_);
  Status status = FindFamily(false);
  if (!status.ok() || family_ == nullptr) return status;
  WriteBatch stale;
  const auto records = base_->NewIterator({}, family_.get());
  for (records->SeekToFirst(); records->Valid(); records->Next()) {
    if (!found(records->key(), records->value())) stale.Delete(family_.get(), records->key());
  }
  status = records->status();
  if (!status.ok() || stale.Count() == 0) return status;
  status = WriteSynced(stale);
  return status.IsNotSupported() ? Status::OK() : status;  // open for reading only
}

Status HistoryLimits::Write(const std::string& family, Slice limit) {
  const std::lock_guard lock(mutex_);
  Status status = FindFamily(true);
  if (!status.ok()) return status;
  WriteBatch batch;
  batch.Put(family_.get(), family, limit);
  return WriteSynced(batch);
}

Status HistoryLimits::Delete(const std::string& family) {
  const std::lock_guard lock(mutex_);
  Status status = FindFamily(false);
  if (!status.ok() || family_ == nullptr) return status;
  WriteBatch batch;
  batch.Delete(family_.get(), family);
  return WriteSynced(batch);
}

void HistoryLimits::Close() {
  const std::lock_guard lock(mutex_);
  family_.reset();
}

}  // namespace braiddb
