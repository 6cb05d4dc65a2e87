// PessimisticTransaction: a key is locked from its first update to the end of the transaction.
#pragma once

#include <memory>
#include <string>

#include "txn/lock_table.h"
#include "txn/prepared_records.h"
#include "txn/transaction_base.h"

namespace braiddb {

class NamedTransactions;

// What transactions share of their database.
struct PessimisticParts {
  DB* base;
  const FamilyTable* families;
  LockTable* locks;
  NamedTransactions* names;
  PreparedRecords* records;
};

// STATES       kStarted --Prepare--> kAwaitingPrepare --record durable--> kPrepared
//              kPrepared --Commit--> kAwaitingCommit --updates durable, record gone, in one batch--> kCommitted
//              kPrepared --Rollback--> kAwaitingRollback --record gone--> kRolledBack
//              kStarted --Commit--> kAwaitingCommit --updates durable--> kCommitted
//              kStarted --expired, and another one wants a lock--> kLocksStolen
//              Each awaiting one goes back to where it came from when the write fails.
// OWNERS       Users, by handles (transaction_handle.h), and the table of names while it has a name and is not over.
// CONCURRENCY  As Transaction. Other threads look at the owner of the locks, by the lock table; and once there is a record at the
//              name and the families, which stay until it is out of the table of names. Only then anything of it is cleared.
class PessimisticTransaction final : public TransactionBase, public std::enable_shared_from_this<PessimisticTransaction> {
 public:
  // `lock_timeout_ms`: negative: for ever.
  PessimisticTransaction(const PessimisticParts& parts, const WriteOptions& write_options, const TransactionOptions& options,
                         int64_t lock_timeout_ms);
  // A transaction that an open has found: prepared, with all locks that it had on keys that it updates.
  static Status Recover(const PessimisticParts& parts, const PreparedRecord& record,
                        std::shared_ptr<PessimisticTransaction>* transaction);
  ~PessimisticTransaction() override { BeginAnew(); }

  Status Commit() override;
  Status Rollback() override;
  Status SetName(const std::string& name) override;
  const std::string& GetName() const override { return name_; }
  Status Prepare() override;
  TransactionState GetState() const override { return owner_.state.load(std::memory_order_acquire); }
  uint64_t GetID() const override { return owner_.id; }

  // It is being prepared, is prepared, or is being decided, and so keeps its families. Under the lock of the table of names.
  bool has_record() const { return has_record_; }
  void set_has_record(bool has_record) { has_record_ = has_record; }
  using TransactionBase::used_families;

 private:
  Status CheckActive() const override;
  Status Protect(const FamilySlice& key, bool exclusive, bool is_new, Seen*) override;
  void Unprotect(const FamilySlice& key) override { parts_.locks->Unlock(&owner_, key); }
  // Why a step cannot be made in this state.
  Status NotInState(const char* step) const;
  Status WriteRecord();
  Status CommitPrepared();
  Status RemoveRecord();
  Status AddUpdates(const PreparedRecord& record);
  // Nobody finds it any more; then as TransactionBase::BeginAnew.
  void Decide(TransactionState state) noexcept;

  const PessimisticParts parts_;
  const int64_t lock_timeout_ms_;
  const bool skip_prepare_;
  LockOwner owner_;
  std::string name_;           // does not change once it is there
  uint32_t record_parts_ = 0;  // of the record
  Status unfit_;               // why one that was found cannot be committed
  bool has_record_ = false;
};

}  // namespace braiddb
