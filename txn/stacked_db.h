// StackedDB: base class of a database that is layered on another database. Forwards all calls that are not overridden. Knows the
// column families.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braiddb/db.h"
#include "braiddb/metrics.h"
#include "db/no_memory.h"
#include "txn/family_table.h"

namespace braiddb {

template <class Interface>
class StackedDB : public Interface {
 public:
  // `handles`: all column families of the database; the default family may be missing. The table makes its own handles.
  StackedDB(DB* base, const std::vector<std::unique_ptr<ColumnFamilyHandle>>& handles) : families_(base) {
    for (const auto& handle : handles) families_.Add(*handle);
  }
  void Own(std::unique_ptr<DB> base) noexcept { base_ = std::move(base); }

  Status Close() override {
    families_.Clear();
    return base_->Close();
  }
  Status Put(const WriteOptions& options, Slice key, Slice value) override { return base_->Put(options, key, value); }
  Status Delete(const WriteOptions& options, Slice key) override { return base_->Delete(options, key); }
  Status Merge(const WriteOptions& options, Slice key, Slice operand) override { return base_->Merge(options, key, operand); }
  Status Write(const WriteOptions& options, const WriteBatch& batch) override { return base_->Write(options, batch); }
  Status Get(const ReadOptions& options, Slice key, std::string* value) override { return base_->Get(options, key, value); }
  Status Get(const ReadOptions& options, Slice key, PinnableSlice* value) override { return base_->Get(options, key, value); }
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                               std::vector<std::string>* values) override {
    return base_->MultiGet(options, keys, values);
  }
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options) override { return base_->NewIterator(options); }
  Status CreateColumnFamily(const ColumnFamilyOptions& options, const std::string& name,
                            std::unique_ptr<ColumnFamilyHandle>* handle) override try {
    Status status = base_->CreateColumnFamily(options, name, handle);
    if (status.ok()) families_.Add(**handle);
    return status;
  } catch (const std::bad_alloc&) {
    handle->reset();  // the family exists, and the next open finds it
    return NoMemory();
  }
  // Transactions that already use the family continue. Their commits return InvalidArgument.
  Status DropColumnFamily(ColumnFamilyHandle* family) override {
    Status status = base_->DropColumnFamily(family);
    if (status.ok()) families_.Remove(*family);
    return status;
  }
  Status GetColumnFamilies(std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles) override {
    return base_->GetColumnFamilies(handles);
  }
  ColumnFamilyHandle* DefaultColumnFamily() const override { return base_->DefaultColumnFamily(); }
  Status Put(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice value) override {
    return base_->Put(options, family, key, value);
  }
  Status Delete(const WriteOptions& options, ColumnFamilyHandle* family, Slice key) override {
    return base_->Delete(options, family, key);
  }
  Status Merge(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice operand) override {
    return base_->Merge(options, family, key, operand);
  }
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value) override {
    return base_->Get(options, family, key, value);
  }
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, PinnableSlice* value) override {
    return base_->Get(options, family, key, value);
  }
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                               const std::vector<Slice>& keys, std::vector<std::string>* values) override {
    return base_->MultiGet(options, families, keys, values);
  }
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) override {
    return base_->NewIterator(options, family);
  }
  Status CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* family, const Slice* begin,
                      const Slice* end) override {
    return base_->CompactRange(options, family, begin, end);
  }
  Status SetOptions(ColumnFamilyHandle* family, const ChangedOptions& changed) override {
    return base_->SetOptions(family, changed);
  }
  bool GetProperty(ColumnFamilyHandle* family, std::string_view property, std::string* value) override {
    return base_->GetProperty(family, property, value);
  }
  bool GetIntProperty(ColumnFamilyHandle* family, std::string_view property, uint64_t* value) override {
    return base_->GetIntProperty(family, property, value);
  }
  Status GetLatestSequenceForKey(ColumnFamilyHandle* family, Slice key, uint64_t* sequence) override {
    return base_->GetLatestSequenceForKey(family, key, sequence);
  }
  Status DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family, Slice begin, Slice end) override {
    return base_->DeleteRange(options, family, begin, end);
  }
  const Snapshot* GetSnapshot() override { return base_->GetSnapshot(); }
  void ReleaseSnapshot(const Snapshot* snapshot) override { base_->ReleaseSnapshot(snapshot); }
  Status Flush() override { return base_->Flush(); }
  Status CompactRange(const CompactRangeOptions& options, const Slice* begin, const Slice* end) override {
    return base_->CompactRange(options, begin, end);
  }
  Status WaitForCompaction() override { return base_->WaitForCompaction(); }
  bool GetProperty(std::string_view property, std::string* value) override { return base_->GetProperty(property, value); }
  bool GetIntProperty(std::string_view property, uint64_t* value) override { return base_->GetIntProperty(property, value); }
  Statistics GetStatistics() const override { return base_->GetStatistics(); }
  bool GetHistograms(Histograms* histograms) const override { return base_->GetHistograms(histograms); }
  Metrics GetMetrics() const override { return base_->GetMetrics(); }
  uint64_t GetLatestSequenceNumber() const override { return base_->GetLatestSequenceNumber(); }
  Status GetUpdatesSince(uint64_t sequence, std::unique_ptr<TransactionLogIterator>* iterator) override {
    return base_->GetUpdatesSince(sequence, iterator);
  }
  Status WaitForUpdate(uint64_t sequence, std::chrono::microseconds timeout, uint64_t* latest) override {
    return base_->WaitForUpdate(sequence, timeout, latest);
  }
  Status GetLatestSequenceForKey(Slice key, uint64_t* sequence) override { return base_->GetLatestSequenceForKey(key, sequence); }
  const Options& GetOptions() const override { return base_->GetOptions(); }
  const std::string& GetName() const override { return base_->GetName(); }
  Status Refresh() override { return base_->Refresh(); }
  DB* GetRootDB() override { return base_->GetRootDB(); }

 protected:
  DB* base() const { return base_.get(); }
  const FamilyTable* families() const { return &families_; }
  // For a family that was created by another call than CreateColumnFamily.
  void AddFamily(const ColumnFamilyHandle& handle) { families_.Add(handle); }

 private:
  std::unique_ptr<DB> base_;
  FamilyTable families_;
};

// Layers an Impl, a StackedDB, on `base`. After an error first the handles and then `base` are destroyed, because handles must
// not outlive their database.
template <class Impl, class Interface, class... Arguments>
Status StackOn(std::unique_ptr<DB> base, std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles,
               std::unique_ptr<Interface>* db, const Arguments&... arguments) {
  try {
    auto made = std::make_unique<Impl>(base.get(), *handles, arguments...);
    made->Own(std::move(base));
    *db = std::move(made);
    return Status::OK();
  } catch (const std::bad_alloc&) {
    handles->clear();
    return NoMemory();
  }
}

}  // namespace braiddb
