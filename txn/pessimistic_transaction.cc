#include "txn/pessimistic_transaction.h"

#include <utility>

#include "db/db_impl.h"
#include "db/no_memory.h"
#include "txn/named_transactions.h"
#include "util/mutant.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

constexpr size_t kMaxNameBytes = 512;  // same limit as RocksDB

Status Expired() { return Status::Expired("the transaction has outlived its expiration; roll back and try again"); }

}  // namespace

PessimisticTransaction::PessimisticTransaction(const PessimisticParts& parts, const WriteOptions& write_options,
                                               const TransactionOptions& options, int64_t lock_timeout_ms)
    : TransactionBase(parts.base, parts.families, write_options, options.max_write_batch_size),
      parts_(parts),
      lock_timeout_ms_(lock_timeout_ms),
      skip_prepare_(options.skip_prepare) {
  owner_.detects_deadlocks = options.deadlock_detect;
  owner_.depth = options.deadlock_detect_depth;
  if (options.expiration_ms >= 0) owner_.expires = LockOwner::Clock::now() + Milliseconds(options.expiration_ms);
  if (options.set_snapshot) SetSnapshot();
}

// ---- States

Status PessimisticTransaction::NotInState(const char* step) const {
  switch (GetState()) {
    case TransactionState::kLocksStolen:
      return Expired();
    case TransactionState::kPrepared:
      return Status::InvalidArgument("Transaction has already been prepared. Commit it or roll it back.");
    case TransactionState::kCommitted:
      return Status::InvalidArgument("Transaction has already been committed.");
    case TransactionState::kRolledBack:
      return Status::InvalidArgument("Transaction has already been rolledback.");
    default:
      return Status::InvalidArgument("Transaction is not in state for " + std::string(step) + ".");
  }
}

Status PessimisticTransaction::CheckActive() const {
  if (GetState() != TransactionState::kStarted) return NotInState("updates");
  return owner_.IsExpired() ? Expired() : Status::OK();
}

// Locks the key. With a snapshot, also checks that no version is newer than the snapshot: such a version was written before the
// lock was taken. While the snapshot is registered, no merge drops a deletion that the snapshot sees.
Status PessimisticTransaction::Protect(const FamilySlice& key, bool exclusive, bool is_new, Seen*) {
  Status status = parts_.locks->Lock(&owner_, key, exclusive, lock_timeout_ms_);
  if (!status.ok() || GetSnapshot() == nullptr) return status;
  uint64_t sequence = 0;
  status = LatestSequence(key, &sequence);
  if (status.IsNotFound()) return Status::OK();
  if (status.ok() && sequence > GetSnapshot()->GetSequenceNumber()) {
    status = Status::Busy("the key was written since the transaction's snapshot; roll back and try again");
  }
  if (!status.ok() && is_new) parts_.locks->Unlock(&owner_, key);
  return status;
}

void PessimisticTransaction::Decide(TransactionState state) noexcept {
  parts_.names->Remove(*this);
  BeginAnew();
  owner_.state.store(state, std::memory_order_release);
}

// ---- Steps

Status PessimisticTransaction::SetName(const std::string& name) try {
  if (GetState() != TransactionState::kStarted) return Status::InvalidArgument("Transaction is beyond state for naming.");
  if (!name_.empty()) return Status::InvalidArgument("Transaction has already been named.");
  if (name.empty() || name.size() > kMaxNameBytes)
    return Status::InvalidArgument("Transaction name length must be between 1 and 512 chars.");
  name_ = name;
  bool is_free = false;
  try {
    is_free = parts_.names->Add(shared_from_this(), 1);
  } catch (...) {
    name_.clear();
    throw;
  }
  if (is_free) return Status::OK();
  name_.clear();
  return Status::InvalidArgument("Transaction name must be unique.");
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// STEPS   1 change the state, so that no other transaction can take the locks  2 make the record durable  3 change to kPrepared.
// CRASH   Before step 2: the transaction does not exist. After step 2: the next open recovers it as prepared. [CC-51]
Status PessimisticTransaction::Prepare() try {
  if (name_.empty()) return Status::InvalidArgument("Cannot prepare a transaction that has not been named.");
  if (GetState() == TransactionState::kStarted && owner_.IsExpired()) return Expired();
  if (!owner_.Become(TransactionState::kStarted, TransactionState::kAwaitingPrepare)) return NotInState("prepare");
  Status status;
  try {
    const bool begins = parts_.names->BeginPrepare(this);
    status = begins ? WriteRecord() : Status::Busy("a column family of the transaction is being dropped");
    if (begins && !status.ok()) parts_.names->CancelPrepare(this);
  } catch (const std::bad_alloc&) {
    parts_.names->CancelPrepare(this);
    status = NoMemory();
  }
  owner_.state.store(status.ok() ? TransactionState::kPrepared : TransactionState::kStarted, std::memory_order_release);
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status PessimisticTransaction::WriteRecord() {
  PreparedRecord::Families names;
  for (const auto& [id, handle] : used_families()) {
    if (families()->Find(id) == nullptr)
      return Status::InvalidArgument("column family '" + handle->GetName() + "' was dropped; roll the transaction back");
    names[id] = handle->GetName();
  }
  const Status status = parts_.records->Write(name_, names, GetWriteBatch().GetWriteBatch(), &record_parts_);
  BRAIDDB_SYNC_POINT("PessimisticTransaction::WriteRecord:Written");
  return status;
}

// ORDER: the updates and the deletion of the record are one batch. After a crash the transaction is prepared or committed, and
// never both. The locks are released when the whole batch is visible. [CC-51]
Status PessimisticTransaction::CommitPrepared() {
  if (!unfit_.ok()) return unfit_;
  WriteBatch batch = GetWriteBatch().GetWriteBatch();
  if (BRAIDDB_MUTANT("prepared-forgotten-early")) {
    if (Status status = RemoveRecord(); !status.ok()) return status;
  } else if (!BRAIDDB_MUTANT("prepared-forgotten-late")) {
    parts_.records->AddRemoval(name_, record_parts_, &batch);
  }
  Status status = static_cast<DBImpl*>(parts_.base)->WriteToAnyFamily(PreparedRecords::Synced(), batch);
  if (status.ok() && BRAIDDB_MUTANT("prepared-forgotten-late")) status = RemoveRecord();
  return status;
}

Status PessimisticTransaction::RemoveRecord() {
  WriteBatch batch;
  parts_.records->AddRemoval(name_, record_parts_, &batch);
  return static_cast<DBImpl*>(parts_.base)->WriteToAnyFamily(PreparedRecords::Synced(), batch);
}

// After the first state change no other transaction can take the locks.
Status PessimisticTransaction::Commit() try {
  if (GetState() == TransactionState::kStarted && owner_.IsExpired()) return Expired();
  const bool was_prepared = owner_.Become(TransactionState::kPrepared, TransactionState::kAwaitingCommit);
  if (!was_prepared) {
    if (GetState() == TransactionState::kStarted && !skip_prepare_)
      return Status::InvalidArgument("Txn not prepared: TransactionOptions::skip_prepare is false");
    if (!owner_.Become(TransactionState::kStarted, TransactionState::kAwaitingCommit)) return NotInState("commit");
  }
  Status status;
  try {
    status = was_prepared ? CommitPrepared() : WriteBatchToBase();
  } catch (const std::bad_alloc&) {
    status = NoMemory();
  }
  if (status.ok()) {
    Decide(TransactionState::kCommitted);
  } else {
    owner_.state.store(was_prepared ? TransactionState::kPrepared : TransactionState::kStarted, std::memory_order_release);
  }
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// Also valid for an expired transaction.
Status PessimisticTransaction::Rollback() try {
  if (!owner_.Become(TransactionState::kPrepared, TransactionState::kAwaitingRollback)) {
    const TransactionState state = GetState();
    if (state != TransactionState::kStarted && state != TransactionState::kLocksStolen) return NotInState("rollback");
    BeginAnew();
    return Status::OK();
  }
  Status status;
  try {
    status = RemoveRecord();
  } catch (const std::bad_alloc&) {
    status = NoMemory();
  }
  if (status.ok()) {
    Decide(TransactionState::kRolledBack);
  } else {
    owner_.state.store(TransactionState::kPrepared, std::memory_order_release);
  }
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// ---- At an open

Status PessimisticTransaction::Recover(const PessimisticParts& parts, const PreparedRecord& record,
                                       std::shared_ptr<PessimisticTransaction>* transaction) {
  const auto found = std::make_shared<PessimisticTransaction>(parts, WriteOptions(), TransactionOptions(), 0);
  found->name_ = record.name;
  found->record_parts_ = record.parts;
  found->unfit_ = record.damage;
  found->owner_.is_exempt = true;
  if (Status status = found->AddUpdates(record); !status.ok()) return status;
  found->has_record_ = true;
  found->owner_.state.store(TransactionState::kPrepared, std::memory_order_release);
  *transaction = found;
  return Status::OK();
}

// Adds the updates and locks of the record. If an update cannot be added, the transaction becomes unfit for commit. This is not
// an error: the user can roll it back.
Status PessimisticTransaction::AddUpdates(const PreparedRecord& record) {
  struct Adder : WriteBatch::Handler {
    void Put(Slice, Slice) override {}
    void Delete(Slice) override {}
    void Merge(Slice, Slice) override {}
    Status PutCF(uint32_t family, Slice key, Slice value) override { return Add(Kind::kPut, family, key, value); }
    Status DeleteCF(uint32_t family, Slice key) override { return Add(Kind::kDelete, family, key, {}); }
    Status MergeCF(uint32_t family, Slice key, Slice operand) override { return Add(Kind::kMerge, family, key, operand); }
    Status Add(Kind kind, uint32_t family, Slice key, Slice value) {
      const auto named = record->families.find(family);
      const std::string name = named == record->families.end() ? kDefaultColumnFamilyName : named->second;
      const auto handle = to->families()->Find(name);
      Status status = Status::InvalidArgument("column family '" + name + "', which prepared transaction '" + record->name +
                                              "' writes to, is not there; it can only be rolled back");
      if (handle != nullptr) status = to->TransactionBase::Add(kind, handle.get(), key, value);
      if (status.IsTimedOut()) {
        status = Status::Corruption("prepared transaction '" + record->name +
                                    "' has a key of another one, which damage alone can have done; it can only be rolled back");
      }
      if (to->unfit_.ok()) to->unfit_ = std::move(status);
      return Status::OK();
    }
    const PreparedRecord* record;
    PessimisticTransaction* to;
  } adder;
  adder.record = &record;
  adder.to = this;
  return record.updates.Iterate(&adder);
}

}  // namespace braiddb
