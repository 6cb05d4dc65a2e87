// TransactionBase: common base of both kinds of transactions: the indexed batch, save points, and the protected keys.
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
  // The state of a key when an optimistic transaction protected it: the newest version. The commit compares it with the newest
  // version then.
  struct Seen {
    bool conflicts = false;  // the version was newer than the transaction's snapshot
    bool found = false;
    uint64_t sequence = 0;
  };
  using ProtectedKeys = std::unordered_map<FamilyKey, Seen, FamilyKeyHasher, FamilyKeyEqual>;

  // Protects a key. Fills *seen if the kind of transaction needs it. `is_new`: the key is not protected yet. If the call fails, a
  // new key stays unprotected.
  virtual Status Protect(const FamilySlice& key, bool exclusive, bool is_new, Seen* seen) = 0;
  // Called when GetForUpdate found a value of a protected key, in the transaction or in the database.
  virtual Status NoteValue(const FamilySlice&, Seen*) { return Status::OK(); }
  // Reverts Protect.
  virtual void Unprotect(const FamilySlice& key) = 0;
  // Returns OK if the transaction accepts updates.
  virtual Status CheckActive() const { return Status::OK(); }

  DB* base() const { return base_; }
  // DB::GetLatestSequenceForKey for a family that the transaction uses.
  Status LatestSequence(const FamilySlice& key, uint64_t* sequence) const;
  const ProtectedKeys& protected_keys() const { return protected_; }
  Status WriteBatchToBase();
  const FamilyTable* families() const { return families_; }
  // Families with updates or protected keys of the transaction, without the default family.
  const std::map<uint32_t, std::shared_ptr<ColumnFamilyHandle>>& used_families() const { return used_; }

  enum class Kind : uint8_t { kPut, kDelete, kMerge };
  // Adds an update and protects its key. The transaction may be inactive; then an error is returned.
  Status Add(Kind kind, ColumnFamilyHandle* family, Slice key, Slice value);
  // Unprotects all keys and drops updates and save points. Keeps the snapshot, because the user's read options may refer to it.
  void BeginAnew() noexcept;

 private:
  // `seen_at`: the version that this snapshot sees must be the newest. Null: no such check.
  Status ProtectKey(const FamilySlice& key, bool exclusive, const Snapshot* seen_at = nullptr);
  Status ProtectAt(const FamilySlice& key, bool exclusive, bool is_new, const Snapshot* seen_at, Seen* seen);
  // Keeps a handle of the family from its first update or protected key on. Returns OK if the family may be used.
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
  std::map<uint32_t, std::shared_ptr<ColumnFamilyHandle>> used_;  // without the default family
  std::vector<uint32_t> used_order_;                              // the ids in used_, in order of their first use
  std::vector<const FamilyKey*> order_;                           // pointers into protected_, in order of protection
  struct SavePoint {
    size_t position;  // index into order_
    size_t families;  // size of used_order_
    std::shared_ptr<const Snapshot> snapshot;
  };
  std::vector<SavePoint> save_points_;
  std::shared_ptr<const Snapshot> snapshot_;  // released with its last owner
};

}  // namespace braiddb
