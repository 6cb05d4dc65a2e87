// TransactionHandle: a user's handle of a pessimistic transaction. The transaction may outlive it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "txn/named_transactions.h"

namespace braiddb {

// Forwards all calls to the transaction.
class TransactionHandle final : public Transaction {
 public:
  explicit TransactionHandle(HeldTransaction transaction) : rep_(std::move(transaction)) {}

  Status Put(Slice key, Slice value) override { return rep_->Put(key, value); }
  Status Delete(Slice key) override { return rep_->Delete(key); }
  Status Merge(Slice key, Slice operand) override { return rep_->Merge(key, operand); }
  Status Put(ColumnFamilyHandle* family, Slice key, Slice value) override { return rep_->Put(family, key, value); }
  Status Delete(ColumnFamilyHandle* family, Slice key) override { return rep_->Delete(family, key); }
  Status Merge(ColumnFamilyHandle* family, Slice key, Slice operand) override { return rep_->Merge(family, key, operand); }
  Status GetForUpdate(const ReadOptions& options, Slice key, std::string* value, bool exclusive) override {
    return rep_->GetForUpdate(options, key, value, exclusive);
  }
  Status GetForUpdate(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value,
                      bool exclusive) override {
    return rep_->GetForUpdate(options, family, key, value, exclusive);
  }
  Status Get(const ReadOptions& options, Slice key, std::string* value) override { return rep_->Get(options, key, value); }
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value) override {
    return rep_->Get(options, family, key, value);
  }
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                               std::vector<std::string>* values) override {
    return rep_->MultiGet(options, keys, values);
  }
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                               const std::vector<Slice>& keys, std::vector<std::string>* values) override {
    return rep_->MultiGet(options, families, keys, values);
  }
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options) override { return rep_->NewIterator(options); }
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) override {
    return rep_->NewIterator(options, family);
  }

  void SetSnapshot() override { rep_->SetSnapshot(); }
  void ClearSnapshot() override { rep_->ClearSnapshot(); }
  const Snapshot* GetSnapshot() const override { return rep_->GetSnapshot(); }
  void SetSavePoint() override { rep_->SetSavePoint(); }
  Status RollbackToSavePoint() override { return rep_->RollbackToSavePoint(); }
  Status PopSavePoint() override { return rep_->PopSavePoint(); }

  Status Commit() override { return rep_->Commit(); }
  Status Rollback() override { return rep_->Rollback(); }
  Status SetName(const std::string& name) override { return rep_->SetName(name); }
  const std::string& GetName() const override { return rep_->GetName(); }
  Status Prepare() override { return rep_->Prepare(); }
  TransactionState GetState() const override { return rep_->GetState(); }

  const WriteBatchWithIndex& GetWriteBatch() const override { return rep_->GetWriteBatch(); }
  Status RebuildFromWriteBatch(const WriteBatch& batch) override { return rep_->RebuildFromWriteBatch(batch); }
  uint64_t GetID() const override { return rep_->GetID(); }

 private:
  const HeldTransaction rep_;
};

}  // namespace braiddb
