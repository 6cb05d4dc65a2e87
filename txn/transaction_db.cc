// TransactionDB: databases with pessimistic transactions.
#include <span>
#include <string>
#include <utility>

#include "db/db_impl.h"
#include "db/no_memory.h"
#include "db/timestamped_entry.h"
#include "txn/batch_keys.h"
#include "txn/lock_table.h"
#include "txn/named_transactions.h"
#include "txn/pessimistic_transaction.h"
#include "txn/prepared_records.h"
#include "txn/stacked_db.h"
#include "txn/transaction_handle.h"

namespace braiddb {
namespace {

class TransactionDBImpl final : public StackedDB<TransactionDB> {
 public:
  TransactionDBImpl(DB* base, const std::vector<std::unique_ptr<ColumnFamilyHandle>>& handles,
                    const TransactionDBOptions& options)
      : StackedDB(base, handles), options_(options), locks_(options.stripes, options.max_locks), records_(base) {}

  // Restores the prepared and undecided transactions. Must be the first call.
  Status Recover() try {
    return records_.Load([this](const PreparedRecord& record) {
      std::shared_ptr<PessimisticTransaction> transaction;
      Status status = PessimisticTransaction::Recover(Parts(), record, &transaction);
      if (status.ok()) names_.Add(std::move(transaction), 0);
      return status;
    });
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }

  Status Close() override {
    names_.Clear();
    records_.Close();
    return StackedDB::Close();
  }

  std::unique_ptr<Transaction> BeginTransaction(const WriteOptions& write_options, const TransactionOptions& options) override {
    const int64_t timeout = options.lock_timeout_ms < 0 ? options_.lock_timeout_ms : options.lock_timeout_ms;
    return std::make_unique<TransactionHandle>(
        HeldTransaction(std::make_shared<PessimisticTransaction>(Parts(), write_options, options, timeout), &names_));
  }
  std::unique_ptr<Transaction> GetTransactionByName(const std::string& name) override {
    HeldTransaction held = names_.Find(name);
    return held ? std::make_unique<TransactionHandle>(std::move(held)) : nullptr;
  }
  void GetAllPreparedTransactions(std::vector<std::unique_ptr<Transaction>>* transactions) override {
    transactions->clear();
    for (HeldTransaction& held : names_.FindPrepared()) {
      transactions->push_back(std::make_unique<TransactionHandle>(std::move(held)));
    }
  }
  Status DropColumnFamily(ColumnFamilyHandle* family) override try {
    Status status = families()->Check(family);
    if (!status.ok()) return status;
    if (!names_.BeginDrop(family->GetID())) {
      return Status::Busy("column family '" + family->GetName() +
                          "' is being dropped, or a prepared transaction has updates of it; commit that or roll it back first");
    }
    status = StackedDB::DropColumnFamily(family);
    names_.EndDrop(family->GetID());
    return status;
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }

  // Compacts the records' hidden family together with the default family.
  Status CompactRange(const CompactRangeOptions& options, const Slice* begin, const Slice* end) override {
    const Status status = base()->CompactRange(options, begin, end);
    return status.ok() ? records_.Compact(options) : status;
  }
  Status CompactRange(const CompactRangeOptions& options, ColumnFamilyHandle* family, const Slice* begin,
                      const Slice* end) override {
    const Status status = base()->CompactRange(options, family, begin, end);
    return status.ok() && family->GetID() == 0 ? records_.Compact(options) : status;
  }

  Status DeleteRange(const WriteOptions&, ColumnFamilyHandle*, Slice, Slice) override {
    return Status::NotSupported("DeleteRange is not supported in a TransactionDB: there are no locks for ranges");
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
  PessimisticParts Parts() { return {base(), families(), &locks_, &names_, &records_}; }

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
  PreparedRecords records_;
  NamedTransactions names_;  // declared last, so destroyed first: its transactions use the other members
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
  Status status = RefuseTimestamps(options, families, "a TransactionDB");
  if (status.ok()) status = DBImpl::Open(options, path, families, true, handles, &base);
  if (status.ok()) status = StackOn<TransactionDBImpl>(std::move(base), handles, db, transaction_options);
  if (status.ok()) status = static_cast<TransactionDBImpl*>(db->get())->Recover();
  if (status.ok()) return status;
  handles->clear();
  db->reset();
  return status;
}

}  // namespace braiddb
