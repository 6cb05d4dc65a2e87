// The database of a life, of whichever class, with the handles of its column families.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "braiddb/transaction.h"
#include "db_stress/plan.h"

namespace braiddb::stress {

// Families, in this order: those that keys are spread over, the default one first; and where there are several of these, two with
// accounts (Bank) and one for each of the first threads that comes and goes (TemporaryFamily).
// Thread safety: const methods may be called by any number of threads, as may the database's own.
class Store {
 public:
  static constexpr uint32_t kAccountFamilies = 2;
  static constexpr uint32_t kTemporaryFamilies = 2;

  // Families that are not there are created: a kill may have come between them.
  Status Open(const DatabasePlan& database, const LifePlan& life, const std::string& path);
  // Only families() are there then. InvalidArgument if one of the families is not.
  Status OpenForReadOnly(const DatabasePlan& database, const LifePlan& life, const std::string& path);
  // Handles end before the database does.
  Status Close();
  // Not closed: as its destructor does it.
  void Reset();

  DB* db() const { return db_.get(); }
  // Those that keys are spread over.
  const std::vector<ColumnFamilyHandle*>& families() const { return families_; }
  bool has_accounts() const { return !accounts_.empty(); }
  const std::vector<ColumnFamilyHandle*>& accounts() const { return accounts_; }
  // Belongs to one thread, which may drop it and make it anew. REQUIRES: has_accounts().
  std::unique_ptr<ColumnFamilyHandle>* temporary(uint32_t i) { return &temporary_[i]; }
  static std::string TemporaryName(uint32_t i) { return "temporary-" + std::to_string(i); }

  // Null if transactions cannot be prepared.
  TransactionDB* pessimistic() const { return pessimistic_; }
  bool has_transactions() const { return pessimistic_ != nullptr || optimistic_ != nullptr; }
  // One that waits long, and is told of deadlocks, or one that waits for milliseconds. REQUIRES: has_transactions().
  std::unique_ptr<Transaction> Begin(const WriteOptions& options, bool patient) const;

 private:
  static std::vector<ColumnFamilyDescriptor> Describe(const DatabasePlan& database, const LifePlan& life);
  Status OpenAs(StoreKind kind, const Options& options, const std::string& path,
                const std::vector<ColumnFamilyDescriptor>& descriptors);

  void LetGo();

  std::unique_ptr<DB> db_;
  TransactionDB* pessimistic_ = nullptr;  // db_, or null
  OptimisticTransactionDB* optimistic_ = nullptr;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles_;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> temporary_;
  std::vector<ColumnFamilyHandle*> families_;
  std::vector<ColumnFamilyHandle*> accounts_;
};

}  // namespace braiddb::stress
