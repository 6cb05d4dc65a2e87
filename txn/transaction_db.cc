// Pessimistic transactions: a key is locked from its first update to the end of the transaction.
#include <span>
#include <utility>

#include "db/no_memory.h"
#include "txn/batch_keys.h"
#include "txn/lock_table.h"
#include "txn/stacked_db.h"
#include "txn/transaction_base.h"

namespace braiddb {
namespace {

class PessimisticTransaction final : public TransactionBase {
 public:
  PessimisticTransaction(DB* base, const FamilyTable* families, LockTable* locks, const WriteOptions& write_options,
                         const TransactionOptions& options, int64_t lock_timeout_ms)
      : TransactionBase(base, families, write_options, options.max_write_batch_size),
        locks_(locks),
        lock_timeout_ms_(lock_timeout_ms) {
    owner_.detects_deadlocks = options.deadlock_detect;
    owner_.depth = options.deadlock_detect_depth;
    if (options.expiration_ms >= 0) {
      owner_.expires = LockOwner::Clock::now() + Milliseconds(options.expiration_ms);
    }
    if (options.set_snapshot) SetSnapshot();
  }
  ~PessimisticTransaction() override { End(); }

  Status Commit() override try {
    Status status = CheckActive();
    if (!status.ok()) return status;
    // From here on nobody takes the locks.
    if (!owner_.Become(LockOwner::State::kCommitting)) return Expired();
    status = WriteBatchToBase();
    if (status.ok()) {
      End();
    } else {
      owner_.state.store(LockOwner::State::kActive, std::memory_order_release);
    }
    return status;
  } catch (const std::bad_alloc&) {
    owner_.state.store(LockOwner::State::kActive, std::memory_order_release);
    return NoMemory();
  }

  // Also of one that has expired.
  Status Rollback() override {
    Status status = TransactionBase::CheckActive();
    if (status.ok()) BeginAnew();
    return status;
  }
  uint64_t GetID() const override { return owner_.id; }

 private:
  static Status Expired() { return Status::Expired("the transaction has outlived its expiration; roll back and try again"); }

  Status CheckActive() const override {
    Status status = TransactionBase::CheckActive();
    if (!status.ok()) return status;
    const bool stolen = owner_.state.load(std::memory_order_acquire) == LockOwner::State::kLocksStolen;
    return stolen || owner_.IsExpired() ? Expired() : Status::OK();
  }

  // With a snapshot, a version that is newer was written before the lock was taken. While the snapshot is registered, a deletion
  // of what it sees is not forgotten.
  Status Protect(const FamilySlice& key, bool exclusive, bool is_new, Seen*) override {
    Status status = locks_->Lock(&owner_, key, exclusive, lock_timeout_ms_);
    if (!status.ok() || GetSnapshot() == nullptr) return status;
    uint64_t sequence = 0;
    status = LatestSequence(key, &sequence);
    if (status.IsNotFound()) return Status::OK();
    if (status.ok() && sequence > GetSnapshot()->GetSequenceNumber()) {
      status = Status::Busy("the key was written since the transaction's snapshot; roll back and try again");
    }
    if (!status.ok() && is_new) locks_->Unlock(&owner_, key);
    return status;
  }
  void Unprotect(const FamilySlice& key) override { locks_->Unlock(&owner_, key); }

  LockTable* const locks_;
  const int64_t lock_timeout_ms_;
  LockOwner owner_;
};

class TransactionDBImpl final : public StackedDB<TransactionDB> {
 public:
  TransactionDBImpl(DB* base, const std::vector<std::unique_ptr<ColumnFamilyHandle>>& handles,
                    const TransactionDBOptions& options)
      : StackedDB(base, handles), options_(options), locks_(options.stripes, options.max_locks) {}

  std::unique_ptr<Transaction> BeginTransaction(const WriteOptions& write_options, const TransactionOptions& options) override {
    const int64_t timeout = options.lock_timeout_ms < 0 ? options_.lock_timeout_ms : options.lock_timeout_ms;
    return std::make_unique<PessimisticTransaction>(base(), families(), &locks_, write_options, options, timeout);
  }

  Status Put(const WriteOptions& options, Slice key, Slice value) override {
    return WithLock({0, key}, [&] { return base()->Put(options, key, value); });
  }
  Status Delete(const WriteOptions& options, Slice key) override {
    return WithLock({0, key}, [&] { return base()->Delete(options, key); });
  }
  Status Put(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice value) override {
    Status status = families()->Check(family);
    if (!status.ok()) return status;
    return WithLock({family->GetID(), key}, [&] { return base()->Put(options, family, key, value); });
  }
  Status Delete(const WriteOptions& options, ColumnFamilyHandle* family, Slice key) override {
    Status status = families()->Check(family);
    if (!status.ok()) return status;
    return WithLock({family->GetID(), key}, [&] { return base()->Delete(options, family, key); });
  }
  Status Merge(const WriteOptions& options, Slice key, Slice operand) override {
    return WithLock({0, key}, [&] { return base()->Merge(options, key, operand); });
  }
  Status Merge(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice operand) override {
    Status status = families()->Check(family);
    if (!status.ok()) return status;
    return WithLock({family->GetID(), key}, [&] { return base()->Merge(options, family, key, operand); });
  }
  Status Write(const WriteOptions& options, const WriteBatch& batch) override try {
    std::vector<FamilySlice> keys;
    Status status = SortedKeys(batch, &keys);
    return status.ok() ? WithLocks(keys, [&] { return base()->Write(options, batch); }) : status;
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }

 private:
  template <class Body>
  Status WithLock(const FamilySlice& key, const Body& body) {
    return WithLocks({&key, 1}, body);
  }
  template <class Body>
  Status WithLocks(std::span<const FamilySlice> keys, const Body& body) try {
    LockOwner owner;
    size_t locked = 0;
    Status status;
    try {
      for (; locked < keys.size() && status.ok(); locked += status.ok() ? 1 : 0) {
        status = locks_.Lock(&owner, keys[locked], true, options_.default_lock_timeout_ms);
      }
      if (status.ok()) status = body();
    } catch (const std::bad_alloc&) {
      status = NoMemory();
    }
    for (size_t i = 0; i < locked; ++i) locks_.Unlock(&owner, keys[i]);
    return status;
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }

  const TransactionDBOptions options_;
  LockTable locks_;
};

}  // namespace

Status TransactionDB::Open(const Options& options, const TransactionDBOptions& transaction_options, const std::string& path,
                           std::unique_ptr<TransactionDB>* db) {
  std::vector<std::unique_ptr<ColumnFamilyHandle>> none;
  return Open(options, transaction_options, path, {}, &none, db);
}

Status TransactionDB::Open(const Options& options, const TransactionDBOptions& transaction_options, const std::string& path,
                           const std::vector<ColumnFamilyDescriptor>& families,
                           std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles, std::unique_ptr<TransactionDB>* db) {
  db->reset();
  std::unique_ptr<DB> base;
  const Status status = DB::Open(options, path, families, handles, &base);
  return status.ok() ? StackOn<TransactionDBImpl>(std::move(base), handles, db, transaction_options) : status;
}

}  // namespace braiddb
