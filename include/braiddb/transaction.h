// Transactions: updates of many keys that are atomic, durable and isolated from other transactions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "braiddb/write_batch_with_index.h"

#pragma GCC visibility push(default)
namespace braiddb {

// The numbers are RocksDB's. The kAwaiting states exist only during a call. An optimistic transaction is always kStarted.
enum class TransactionState : uint8_t {
  kStarted = 0,
  kAwaitingPrepare = 1,
  kPrepared = 2,
  kAwaitingCommit = 3,
  kCommitted = 4,
  kAwaitingRollback = 5,
  kRolledBack = 6,   // only after Prepare; a transaction without Prepare becomes kStarted
  kLocksStolen = 7,  // it expired, and another transaction took its locks
};

// A unit of work. Its updates stay in DRAM until Commit writes them as one atomic, durable batch. Before Commit, only the
// transaction itself sees them. Created by TransactionDB (pessimistic, with locks) or OptimisticTransactionDB (validated at
// Commit).
//
// CONFLICTS    Keys that a transaction updates, or reads with GetForUpdate, are protected: no other write to such a key comes
//              between. With SetSnapshot, protection begins at the snapshot: a key that changed since then is a conflict.
// ISOLATION    Reads through a snapshot of the transaction with protected writes give snapshot isolation. Protected keys have no
//              lost updates and no dirty reads. Write skew is possible: two transactions both commit if each reads, without
//              GetForUpdate, what the other writes. With GetForUpdate for every read that decides, it is serializable.
// FAMILIES     All guarantees hold across column families. A key is protected in its family only.
// EQUAL KEYS   Equal means equal in bytes. Keys that only the comparator treats as equal are not protected from each other.
// TWO PHASES   A pessimistic transaction with a name can be prepared. Then its updates are durable and invisible to others, and
//              only Commit or Rollback ends it. After a close or a crash, TransactionDB::Open restores it, prepared and with its
//              locks. A program can so commit in several databases at once.
// Thread safety: one thread at a time; but several threads may commit or roll back a prepared transaction: one succeeds, and the
// others get an error. Must be destroyed before its database.
class Transaction {
 public:
  // Rolls back a transaction that is not committed. A prepared one stays prepared: the database keeps it and its locks.
  virtual ~Transaction() = default;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // Updates. After an error nothing has changed (but a shared lock may have become exclusive), and the transaction may continue.
  // Pessimistic:
  //   TimedOut  the key's lock was not available in time
  //   Busy      the key was written since the snapshot, waiting would be a deadlock, or TransactionDBOptions::max_locks are held
  //   Expired   the transaction is older than TransactionOptions::expiration_ms
  // Optimistic: only the errors of reads.
  virtual Status Put(Slice key, Slice value) = 0;
  virtual Status Delete(Slice key) = 0;
  // Adds an operand for the family's merge operator. NotSupported if there is no merge operator.
  virtual Status Merge(Slice key, Slice operand) = 0;
  // In a column family. Here and below, InvalidArgument if the handle is null or of another database, or if the family was
  // dropped. The handle may be destroyed before the transaction.
  virtual Status Put(ColumnFamilyHandle* family, Slice key, Slice value) = 0;
  virtual Status Delete(ColumnFamilyHandle* family, Slice key) = 0;
  virtual Status Merge(ColumnFamilyHandle* family, Slice key, Slice operand) = 0;
  // Reads the key and protects it, also if the key is NotFound. With a null `value` it only protects the key. If `exclusive` is
  // false, other transactions may read the key for update, too; optimistic transactions ignore `exclusive`. Errors as above.
  // Busy, of either kind, if options.snapshot is given and the key was written since.
  virtual Status GetForUpdate(const ReadOptions& options, Slice key, std::string* value, bool exclusive = true) = 0;
  virtual Status GetForUpdate(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value,
                              bool exclusive = true) = 0;

  // Reads the transaction's own updates over options.snapshot, or over the newest state of the database.
  virtual Status Get(const ReadOptions& options, Slice key, std::string* value) = 0;
  virtual std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                                       std::vector<std::string>* values) = 0;
  virtual Status Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value) = 0;
  virtual std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                                       const std::vector<Slice>& keys, std::vector<std::string>* values) = 0;
  // An iterator over the same view; see WriteBatchWithIndex::NewIteratorWithBase. Must be destroyed before the transaction.
  virtual std::unique_ptr<Iterator> NewIterator(const ReadOptions& options) = 0;
  virtual std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) = 0;

  // Takes a snapshot: keys written after this moment are conflicts. Releases the previous snapshot.
  virtual void SetSnapshot() = 0;
  virtual void ClearSnapshot() = 0;
  // The snapshot, for ReadOptions; null if there is none. The transaction owns it until SetSnapshot, ClearSnapshot, a rollback to
  // a save point before SetSnapshot, or the destructor. Commit and Rollback keep the snapshot.
  virtual const Snapshot* GetSnapshot() const = 0;

  // A rollback to a save point undoes updates, SetSnapshot, and the protection of keys that became protected after the save
  // point.
  virtual void SetSavePoint() = 0;
  virtual Status RollbackToSavePoint() = 0;
  virtual Status PopSavePoint() = 0;

  // OK: all updates are durable and visible. A pessimistic transaction is over then. An optimistic one may be used again: it has
  // no updates, save points or protected keys, and keeps its snapshot.
  // Errors:
  //   InvalidArgument       the transaction is over; so are updates, GetForUpdate, and Rollback then
  //   Busy                  optimistic: another write came between; roll back. Nothing was written
  //   Expired               pessimistic: see TransactionOptions::expiration_ms
  //   NoSpace, MemoryLimit  nothing was written; the transaction keeps its locks, a prepared one stays prepared; Commit may be
  //                         retried
  //   IOError, ReadOnly     pessimistic: the locks are kept; only the next open shows whether the updates are durable
  virtual Status Commit() = 0;
  // Undoes all updates, save points and protection. The transaction may continue, with its snapshot and name. A prepared
  // transaction is over; if its rollback cannot be written, the error is that of the write, and it stays prepared.
  virtual Status Rollback() = 0;

  // ---- Two-phase commit; InvalidArgument for optimistic transactions.

  // Sets the name; 1 to 512 bytes. InvalidArgument if the transaction has a name, is prepared or over, or if another transaction
  // that is not over has this name.
  virtual Status SetName(const std::string& name) = 0;
  // Empty if there is no name.
  virtual const std::string& GetName() const = 0;
  // OK: the updates, and the locks of their keys, survive a crash; no other reader sees the updates yet. The prepared transaction
  // does not expire. Updates, GetForUpdate and rollbacks to save points are InvalidArgument. Prepare and the decision are synced,
  // whatever WriteOptions::sync says. After an error the transaction continues as before.
  //   InvalidArgument  it has no name, is prepared or over, a column family of it was dropped, or its commit may be a batch of
  //                    more than kMaxBatchSize
  //   Busy             a column family of it is being dropped
  //   Expired          see TransactionOptions::expiration_ms
  //   NoSpace          as DB::Write; also if there are kMaxColumnFamilies: the first Prepare in a database creates an internal
  //                    family
  //   other errors     as DB::Write
  virtual Status Prepare() = 0;
  virtual TransactionState GetState() const = 0;

  // The updates that Commit would write.
  virtual const WriteBatchWithIndex& GetWriteBatch() const = 0;
  // Adds the updates of a batch and protects their keys: all, or none on an error. InvalidArgument if a column family of the
  // batch does not exist.
  virtual Status RebuildFromWriteBatch(const WriteBatch& batch) = 0;

  // Unique among the transactions of this process. Never 0.
  virtual uint64_t GetID() const = 0;

 protected:
  Transaction() = default;
};

struct TransactionDBOptions {
  // Limit of the locks held at once by all transactions; one more is Busy. Default: 0. Range: any; 0 is no limit.
  // Larger: larger transactions. Smaller: less DRAM.
  uint64_t max_locks = 0;
  // Number of parts of the lock table, each with a mutex. Default: 16. Range: at least 1. Larger: threads wait less for each
  // other. Smaller: less DRAM.
  uint32_t stripes = 16;
  // How long a transaction waits for a lock, unless TransactionOptions says otherwise; milliseconds. Default: 1000. Range: any;
  // negative is no limit. Larger: fewer TimedOut. Smaller: deadlocks end sooner.
  int64_t lock_timeout_ms = 1000;
  // The same for writes outside of transactions, which take locks, too; milliseconds. Default: 1000.
  int64_t default_lock_timeout_ms = 1000;
};

struct TransactionOptions {
  // Call SetSnapshot() at the beginning. Default: false.
  bool set_snapshot = false;
  // Detect deadlocks: a wait for a lock whose holder waits, directly or through others, for this transaction is Busy at once.
  // With false, one of the transactions times out. Default: false.
  bool deadlock_detect = false;
  // The longest cycle of waiting transactions that deadlock_detect finds. Default: 50.
  // Larger: finds longer cycles. Smaller: a shorter check for each wait.
  uint32_t deadlock_detect_depth = 50;
  // How long to wait for a lock; milliseconds. Default: -1. Range: any; 0 is no wait, negative is
  // TransactionDBOptions::lock_timeout_ms.
  int64_t lock_timeout_ms = -1;
  // The time from the beginning until others may take the transaction's locks; milliseconds. Then it can only be rolled back
  // (Expired). Default: -1. Range: any; negative is never.
  int64_t expiration_ms = -1;
  // Limit of the updates; bytes. More is MemoryLimit. Default: 0. Range: any; 0 is no limit.
  size_t max_write_batch_size = 0;
  // Allow Commit without Prepare. With false, such a Commit is InvalidArgument. Default: true.
  bool skip_prepare = true;
};

// A database in which every write takes locks: a transaction holds them until its end, another write during its call.
// Thread safety: as DB. Reads take no locks.
class TransactionDB : public DB {
 public:
  // All writes must go through this object. When Open returns, transactions that were prepared but not decided exist again and
  // hold their locks, regardless of max_locks. Every other open for writing refuses a database with prepared transactions
  // (NotSupported). Opens for reading do not show their updates.
  static Status Open(const Options& options, const TransactionDBOptions& transaction_options, const std::string& path,
                     std::unique_ptr<TransactionDB>* db);
  // With column families, as DB::Open.
  static Status Open(const Options& options, const TransactionDBOptions& transaction_options, const std::string& path,
                     const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles, std::unique_ptr<TransactionDB>* db);
  virtual std::unique_ptr<Transaction> BeginTransaction(const WriteOptions& write_options,
                                                        const TransactionOptions& options = {}) = 0;

  // Returns another handle of the transaction with this name that is not over, or null. A transaction exists until its last
  // handle is destroyed, and a prepared one until it is decided.
  virtual std::unique_ptr<Transaction> GetTransactionByName(const std::string& name) = 0;
  // Returns the transactions that are prepared and not decided, in the order of their names. If one was prepared before the open
  // and its record is damaged, or a column family of it no longer exists, its Commit is Corruption or InvalidArgument and says
  // why.
  virtual void GetAllPreparedTransactions(std::vector<std::unique_ptr<Transaction>>* transactions) = 0;
  // Busy while a prepared transaction has updates of the family: commit or roll it back first.
  Status DropColumnFamily(ColumnFamilyHandle* family) override = 0;
};

struct OptimisticTransactionOptions {
  // Call SetSnapshot() at the beginning. Default: false.
  bool set_snapshot = false;
};

// A database whose transactions take no locks. Commit checks whether another write came between.
// Thread safety: as DB.
class OptimisticTransactionDB : public DB {
 public:
  static Status Open(const Options& options, const std::string& path, std::unique_ptr<OptimisticTransactionDB>* db);
  // With column families, as DB::Open.
  static Status Open(const Options& options, const std::string& path, const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles, std::unique_ptr<OptimisticTransactionDB>* db);
  virtual std::unique_ptr<Transaction> BeginTransaction(const WriteOptions& write_options,
                                                        const OptimisticTransactionOptions& options = {}) = 0;
};

}  // namespace braiddb
#pragma GCC visibility pop
