// Store: the database of a life, of any class, with its column family handles.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "braiddb/transaction.h"
#include "db_stress/plan.h"

namespace braiddb::stress {

// Order of the families: first those that the keys are spread over, the default family first. If these are several, then two
// families with accounts (Bank), and one temporary family for each of the first threads (TemporaryFamily).
// Thread safety: const methods and the database's own methods may be called concurrently.
class Store {
 public:
  static constexpr uint32_t kAccountFamilies = 2;
  static constexpr uint32_t kTemporaryFamilies = 2;

  // All families. Empty for a database with only the default family.
  static std::vector<ColumnFamilyDescriptor> Describe(const DatabasePlan& database, const LifePlan& life);
  // Creates missing families, because a kill may have interrupted their creation.
  Status Open(const DatabasePlan& database, const LifePlan& life, const std::string& path);
  // Opens only families(). Returns InvalidArgument if one of them is missing.
  Status OpenForReadOnly(const DatabasePlan& database, const LifePlan& life, const std::string& path);
  // Destroys the handles before the database.
  Status Close();
  // Destroys the database without Close.
  void Reset();

  DB* db() const { return db_.get(); }
  // The families that the keys are spread over.
  const std::vector<ColumnFamilyHandle*>& families() const { return families_; }
  bool has_accounts() const { return !accounts_.empty(); }
  const std::vector<ColumnFamilyHandle*>& accounts() const { return accounts_; }
  // Belongs to one thread, which may drop and recreate the family. REQUIRES: has_accounts().
  std::unique_ptr<ColumnFamilyHandle>* temporary(uint32_t i) { return &temporary_[i]; }
  static std::string TemporaryName(uint32_t i) { return "temporary-" + std::to_string(i); }

  // Null if the store cannot prepare transactions.
  TransactionDB* pessimistic() const { return pessimistic_; }
  bool has_transactions() const { return pessimistic_ != nullptr || optimistic_ != nullptr; }
  // `patient`: long lock timeout and deadlock detection; otherwise a timeout of milliseconds. REQUIRES: has_transactions().
  std::unique_ptr<Transaction> Begin(const WriteOptions& options, bool patient) const;

 private:
  Status OpenAs(StoreKind kind, const Options& options, const std::string& path,
                const std::vector<ColumnFamilyDescriptor>& descriptors);

  void LetGo();

  std::unique_ptr<DB> db_;
  TransactionDB* pessimistic_ = nullptr;  // equal to db_, or null
  OptimisticTransactionDB* optimistic_ = nullptr;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles_;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> temporary_;
  std::vector<ColumnFamilyHandle*> families_;
  std::vector<ColumnFamilyHandle*> accounts_;
};

}  // namespace braiddb::stress
