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

// As RocksDB's. The middle ones last as long as a call does. An optimistic transaction is always kStarted.
enum class TransactionState : uint8_t {
  kStarted = 0,
  kAwaitingPrepare = 1,
  kPrepared = 2,
  kAwaitingCommit = 3,
  kCommitted = 4,
  kAwaitingRollback = 5,
  kRolledBack = 6,   // after it was prepared; one that was not may go on, and is kStarted
  kLocksStolen = 7,  // it has expired, and another one wanted its locks
};

// A unit of work. Its updates are kept in DRAM until Commit writes them as one batch, atomic and durable; it sees its own
// updates, nobody else does before Commit. Made by TransactionDB (pessimistic) or OptimisticTransactionDB.
//
// CONFLICTS    Keys that a transaction updates, or reads with GetForUpdate, are protected: nobody else's write comes between.
//              With SetSnapshot, protection reaches back to the snapshot: a key that is not as it was then is a conflict.
// ISOLATION    Reads through a snapshot of the transaction together with protected writes are snapshot isolation. Lost updates
//              and dirty reads do not occur for protected keys. Write skew does: two transactions which each read, without
//              GetForUpdate, what the other one writes both commit. Who reads with GetForUpdate what decides is serializable.
// FAMILIES     All of this holds across column families; a key is protected in its family only.
// EQUAL KEYS   are equal in bytes: with a comparator for which others are equal, too, they are not protected from each other.
// TWO PHASES   A pessimistic transaction that has a name can be prepared: then its updates are durable, seen by nobody else, and
//              only Commit or Rollback ends it: in this life of the database or, after a close or a crash, in a later one, whose
//              TransactionDB::Open has it again, prepared and with its locks. For who commits in several databases at once.
// Thread safety: one thread at a time, but that several threads may decide a prepared one: one of them does, and the others are
// told so. Must be destroyed before its database.
class Transaction {
 public:
  // Rolls back what was not committed, unless it is prepared: that is the database's, which goes on to hold its locks.
  virtual ~Transaction() = default;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // Pessimistic: TimedOut when the key's lock was not to be had in time; Busy if the key was written since the snapshot, if
  // waiting would be a deadlock, or if there are TransactionDBOptions::max_locks; Expired. Nothing is changed then (but that a
  // lock which was shared may be exclusive), and the transaction goes on. Optimistic: no error but those of reading.
  virtual Status Put(Slice key, Slice value) = 0;
  virtual Status Delete(Slice key) = 0;
  // An operand for the family's merge operator; NotSupported if there is none.
  virtual Status Merge(Slice key, Slice operand) = 0;
  // In a column family. Here and below: InvalidArgument if the handle is null or of another database, or the family was dropped.
  // It may be destroyed before the transaction is.
  virtual Status Put(ColumnFamilyHandle* family, Slice key, Slice value) = 0;
  virtual Status Delete(ColumnFamilyHandle* family, Slice key) = 0;
  virtual Status Merge(ColumnFamilyHandle* family, Slice key, Slice operand) = 0;
  // A read that protects the key. `value` may be null: the key is protected only. NotFound protects, too. Not exclusive: others
  // may read it for update as well (optimistic transactions do not distinguish). Through a snapshot that the key was written
  // since: Busy, whatever the kind.
  virtual Status GetForUpdate(const ReadOptions& options, Slice key, std::string* value, bool exclusive = true) = 0;
  virtual Status GetForUpdate(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value,
                              bool exclusive = true) = 0;

  // The transaction's own updates, and behind them the newest state of the database, or options.snapshot.
  virtual Status Get(const ReadOptions& options, Slice key, std::string* value) = 0;
  virtual std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                                       std::vector<std::string>* values) = 0;
  virtual Status Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value) = 0;
  virtual std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                                       const std::vector<Slice>& keys, std::vector<std::string>* values) = 0;
  // The same as an iterator; see WriteBatchWithIndex::NewIteratorWithBase. Must be destroyed before the transaction.
  virtual std::unique_ptr<Iterator> NewIterator(const ReadOptions& options) = 0;
  virtual std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) = 0;

  // From now on, keys that were written after this moment are conflicts. A former snapshot is released.
  virtual void SetSnapshot() = 0;
  virtual void ClearSnapshot() = 0;
  // For ReadOptions; null if none is set. The transaction owns the snapshot until SetSnapshot, ClearSnapshot, a rollback to a
  // save point before SetSnapshot, or its destruction. Commit and Rollback keep the snapshot.
  virtual const Snapshot* GetSnapshot() const = 0;

  // A rollback to a save point takes back updates, SetSnapshot, and the protection of keys that were not protected before it.
  virtual void SetSavePoint() = 0;
  virtual Status RollbackToSavePoint() = 0;
  virtual Status PopSavePoint() = 0;

  // OK: all is durable and visible. A pessimistic transaction is over then. An optimistic one can be used again: it has no
  // updates, save points and protected keys, and keeps its snapshot.
  // Pessimistic: Expired; or an error of the write, as of DB::Write, after which it still has its locks: with NoSpace or
  // MemoryLimit it may try again; after IOError or ReadOnly only the next open knows whether it is there. Optimistic: Busy if
  // another write came between; roll it back. Otherwise nothing was written. Of one that is over, updates, GetForUpdate, Commit
  // and Rollback are InvalidArgument. Of a prepared one: after NoSpace and MemoryLimit it is still prepared.
  virtual Status Commit() = 0;
  // Takes back all updates, save points and protection; the transaction may go on, with its snapshot and name. A prepared one is
  // over then; an error is one of the write, and it is still prepared.
  virtual Status Rollback() = 0;

  // ---- Two-phase commit; InvalidArgument for optimistic transactions.

  // 1 to 512 bytes. InvalidArgument if it has a name, if another transaction of the database that is not over has this one, or if
  // it is prepared or over.
  virtual Status SetName(const std::string& name) = 0;
  // Empty: none.
  virtual const std::string& GetName() const = 0;
  // OK: the updates are durable and survive a crash, with the locks of the keys that they are to; nobody sees them yet. This and
  // the decision are synced, whatever WriteOptions::sync says. From here on it does not expire, and updates, GetForUpdate and
  // going back to save points are InvalidArgument. InvalidArgument without a name, if it is prepared already or over, if a column
  // family of it was dropped (Busy: is being dropped), or if its commit may be a batch of more than kMaxBatchSize; Expired; or an
  // error of the write, as of DB::Write, after which it goes on as before. The first one in a database makes a column family that
  // nobody sees: NoSpace if there are kMaxColumnFamilies.
  virtual Status Prepare() = 0;
  virtual TransactionState GetState() const = 0;

  // What would be written.
  virtual const WriteBatchWithIndex& GetWriteBatch() const = 0;
  // Adds the updates of a batch, each with its protection: all, or on error none. InvalidArgument if it has updates of a column
  // family that is not there.
  virtual Status RebuildFromWriteBatch(const WriteBatch& batch) = 0;

  // Unique among the transactions of this process; not 0.
  virtual uint64_t GetID() const = 0;

 protected:
  Transaction() = default;
};

struct TransactionDBOptions {
  // Locks that may be held at once, by all transactions; a further one is Busy. 0: no limit. Default: 0.
  uint64_t max_locks = 0;
  // Parts of the lock table, each with a mutex of its own. More: less waiting between threads. At least 1. Default: 16.
  uint32_t stripes = 16;
  // How long a transaction waits for a lock unless it says otherwise; ms. Negative: for ever. Default: 1000.
  int64_t lock_timeout_ms = 1000;
  // The same for writes outside of transactions, which take locks, too. Default: 1000.
  int64_t default_lock_timeout_ms = 1000;
};

struct TransactionOptions {
  // SetSnapshot() at the beginning. Default: false.
  bool set_snapshot = false;
  // Waiting for a lock whose holder waits, directly or through others, for one of this transaction is Busy at once. Without, one
  // of them times out. Default: false.
  bool deadlock_detect = false;
  // How many transactions long a circle of those that wait may be, to be found. Default: 50.
  uint32_t deadlock_detect_depth = 50;
  // Waiting for a lock, ms; 0: not at all; negative: TransactionDBOptions::lock_timeout_ms. Default: -1.
  int64_t lock_timeout_ms = -1;
  // After so long others may take its locks; then it can only be rolled back (Expired). Negative: never. Default: -1.
  int64_t expiration_ms = -1;
  // Bytes of updates; more is MemoryLimit. 0: no limit. Default: 0.
  size_t max_write_batch_size = 0;
  // Commit without Prepare; false: that is InvalidArgument. Default: true.
  bool skip_prepare = true;
};

// A database whose writes all take locks: transactions when they update a key, others for their duration.
// Thread safety: as DB. Reads take no locks.
class TransactionDB : public DB {
 public:
  // Other writes than through this object must not be made. Transactions that were prepared and not decided are there again, and
  // have their locks, whatever max_locks says, when this returns. Every other kind of open refuses such a database: NotSupported.
  static Status Open(const Options& options, const TransactionDBOptions& transaction_options, const std::string& path,
                     std::unique_ptr<TransactionDB>* db);
  // With column families, as DB::Open.
  static Status Open(const Options& options, const TransactionDBOptions& transaction_options, const std::string& path,
                     const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles, std::unique_ptr<TransactionDB>* db);
  virtual std::unique_ptr<Transaction> BeginTransaction(const WriteOptions& write_options,
                                                        const TransactionOptions& options = {}) = 0;

  // The transaction with that name that is not over; null: there is none. The result is one more handle of it: it lasts until the
  // last one is destroyed, and if it is prepared until it is decided.
  virtual std::unique_ptr<Transaction> GetTransactionByName(const std::string& name) = 0;
  // Those that are prepared and not decided, in the order of their names. Of one that was prepared in an earlier life, Commit is
  // Corruption or InvalidArgument, and says why, if its record is damaged or a column family of it is not there any more.
  virtual void GetAllPreparedTransactions(std::vector<std::unique_ptr<Transaction>>* transactions) = 0;
  // Busy while a prepared transaction has updates of the family; decide that first.
  Status DropColumnFamily(ColumnFamilyHandle* family) override = 0;
};

struct OptimisticTransactionOptions {
  // SetSnapshot() at the beginning. Default: false.
  bool set_snapshot = false;
};

// A database whose transactions take no locks, and look at Commit whether somebody came between.
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
