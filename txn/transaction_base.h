// TransactionBase: what both kinds of transactions are: a batch that reads see through, save points, the keys that are protected.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "braiddb/transaction.h"
#include "txn/family_key.h"
#include "txn/family_table.h"
#include "txn/lock_table.h"

namespace braiddb {

class TransactionBase : public Transaction {
 public:
  TransactionBase(DB* base, const FamilyTable* families, const WriteOptions& write_options, size_t max_write_batch_size);
  ~TransactionBase() override;

  Status Put(Slice key, Slice value) override { return Put(default_family_, key, value); }
  Status Delete(Slice key) override { return Delete(default_family_, key); }
  Status Merge(Slice key, Slice operand) override { return Merge(default_family_, key, operand); }
  Status Put(ColumnFamilyHandle* family, Slice key, Slice value) override;
  Status Delete(ColumnFamilyHandle* family, Slice key) override;
  Status Merge(ColumnFamilyHandle* family, Slice key, Slice operand) override;
  Status GetForUpdate(const ReadOptions& options, Slice key, std::string* value, bool exclusive) override {
    return GetForUpdate(options, default_family_, key, value, exclusive);
  }
  Status GetForUpdate(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value,
                      bool exclusive) override;
  Status Get(const ReadOptions& options, Slice key, std::string* value) override;
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value) override;
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                               std::vector<std::string>* values) override;
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                               const std::vector<Slice>& keys, std::vector<std::string>* values) override;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options) override;
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) override;
  void SetSnapshot() override;
  void ClearSnapshot() override;
  const Snapshot* GetSnapshot() const override { return snapshot_.get(); }
  void SetSavePoint() override;
  Status RollbackToSavePoint() override;
  Status PopSavePoint() override;
  Status Rollback() override;
  const WriteBatchWithIndex& GetWriteBatch() const override { return batch_; }
  Status RebuildFromWriteBatch(const WriteBatch& batch) override;

 protected:
  // What an optimistic transaction compares at its commit: the newest version when the key was protected.
  struct Seen {
    bool conflicts = false;  // it was newer than the snapshot
    bool found = false;
    uint64_t sequence = 0;
  };
  using ProtectedKeys = std::unordered_map<FamilyKey, Seen, FamilyKeyHasher, FamilyKeyEqual>;

  // Protects a key; *seen is to be filled in if the kind of transaction needs it. `is_new`: it was not protected before, and is
  // not if this fails.
  virtual Status Protect(const FamilySlice& key, bool exclusive, bool is_new, Seen* seen) = 0;
  // GetForUpdate found a value of a protected key: the transaction's own, or one of the database.
  virtual Status NoteValue(const FamilySlice&, Seen*) { return Status::OK(); }
  // Gives up what Protect did.
  virtual void Unprotect(const FamilySlice& key) = 0;
  // OK if the transaction takes updates.
  virtual Status CheckActive() const { return Status::OK(); }

  DB* base() const { return base_; }
  // DB::GetLatestSequenceForKey of a family that the transaction uses.
  Status LatestSequence(const FamilySlice& key, uint64_t* sequence) const;
  const ProtectedKeys& protected_keys() const { return protected_; }
  Status WriteBatchToBase();
  const FamilyTable* families() const { return families_; }
  // All but the default one that the transaction has updates or protected keys of.
  const std::map<uint32_t, std::shared_ptr<ColumnFamilyHandle>>& used_families() const { return used_; }

  enum class Kind : uint8_t { kPut, kDelete, kMerge };
  // An update, with its protection, of a transaction that may not be active.
  Status Add(Kind kind, ColumnFamilyHandle* family, Slice key, Slice value);
  // Unprotects everything, forgets the updates and save points; the snapshot stays: read options of the user may hold it.
  void BeginAnew() noexcept;

 private:
  // `seen_at`: what was read with it must be the newest version; null: whatever is.
  Status ProtectKey(const FamilySlice& key, bool exclusive, const Snapshot* seen_at = nullptr);
  Status ProtectAt(const FamilySlice& key, bool exclusive, bool is_new, const Snapshot* seen_at, Seen* seen);
  // From the first update or protected key of the family on. OK if it may be used.
  Status Use(const ColumnFamilyHandle* family);
  Status CheckRoom(Slice key, Slice value) const;
  void UnprotectFrom(size_t position) noexcept;

  DB* const base_;
  const FamilyTable* const families_;
  ColumnFamilyHandle* const default_family_;
  const WriteOptions write_options_;
  const size_t max_write_batch_size_;
  WriteBatchWithIndex batch_;
  ProtectedKeys protected_;
  std::map<uint32_t, std::shared_ptr<ColumnFamilyHandle>> used_;  // all but the default one
  std::vector<const FamilyKey*> order_;                           // of protected_, in the order of their protection
  struct SavePoint {
    size_t position;  // in order_
    std::shared_ptr<const Snapshot> snapshot;
  };
  std::vector<SavePoint> save_points_;
  std::shared_ptr<const Snapshot> snapshot_;  // released with the last one who holds it
};

}  // namespace braiddb
