// PessimisticTransaction: a transaction that locks a key at its first update and keeps the lock until its end.
#pragma once

#include <memory>
#include <string>

#include "txn/lock_table.h"
#include "txn/prepared_records.h"
#include "txn/transaction_base.h"

namespace braiddb {

class NamedTransactions;

// The objects of a database that all its transactions share.
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
//              kStarted --expired, and another transaction wants a lock--> kLocksStolen
//
//              If the write fails, an awaiting state returns to its previous state.
// OWNERS       Users, through handles (transaction_handle.h). Also the table of names, while the transaction is named and
//              undecided.
// CONCURRENCY  As Transaction. Other threads read the lock owner, through the lock table. If a record exists, they also read the
//              name and the families. These stay unchanged until the transaction is removed from the table of names. Only then
//              are they cleared.
class PessimisticTransaction final : public TransactionBase, public std::enable_shared_from_this<PessimisticTransaction> {
 public:
  // `lock_timeout_ms`: a negative value means no timeout.
  PessimisticTransaction(const PessimisticParts& parts, const WriteOptions& write_options, const TransactionOptions& options,
                         int64_t lock_timeout_ms);
  // Restores a transaction that an open has found. It is prepared, and holds the locks on all keys that it updates.
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

  // Whether the transaction is being prepared, is prepared, or is being decided. Such a transaction keeps its families from being
  // dropped. Guarded by the lock of the table of names.
  bool has_record() const { return has_record_; }
  void set_has_record(bool has_record) { has_record_ = has_record; }
  using TransactionBase::used_families;

 private:
  Status CheckActive() const override;
  Status Protect(const FamilySlice& key, bool exclusive, bool is_new, Seen*) override;
  void Unprotect(const FamilySlice& key) override { parts_.locks->Unlock(&owner_, key); }
  // The error for a step that the current state does not allow.
  Status NotInState(const char* step) const;
  Status WriteRecord();
  Status CommitPrepared();
  Status RemoveRecord();
  Status AddUpdates(const PreparedRecord& record);
  // Removes the transaction from the table of names, then resets it as TransactionBase::BeginAnew does.
  void Decide(TransactionState state) noexcept;

  const PessimisticParts parts_;
  const int64_t lock_timeout_ms_;
  const bool skip_prepare_;
  LockOwner owner_;
  std::string name_;           // constant once it is set
  uint32_t record_parts_ = 0;  // number of parts of the record
  Status unfit_;               // the reason why a recovered transaction cannot be committed
  bool has_record_ = false;
};

}  // namespace braiddb
