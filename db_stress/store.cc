#include "db_stress/store.h"

#include <algorithm>
#include <utility>

#include "index/level_kind.h"

namespace braiddb::stress {

namespace {

// Longer than any holder of a lock needs.
constexpr int64_t kPatience_ms = 60'000;

}  // namespace

std::vector<ColumnFamilyDescriptor> Store::Describe(const DatabasePlan& database, const LifePlan& life) {
  std::vector<ColumnFamilyDescriptor> descriptors;
  if (database.families == 1) return descriptors;
  const std::vector<const LevelKind*> kinds = LevelKinds();
  const auto first = static_cast<size_t>(std::find(kinds.begin(), kinds.end(), FindLevelKind(database.l1)) - kinds.begin());
  const auto add = [&](const std::string& name, uint32_t number, const Comparator* comparator) {
    ColumnFamilyOptions options(life.options);
    options.comparator = comparator;
    options.l1 = kinds[(first + number) % kinds.size()]->id;
    descriptors.push_back({name, options});
  };
  for (uint32_t i = 0; i < database.families; ++i) {
    add(i == 0 ? kDefaultColumnFamilyName : "keys-" + std::to_string(i), i, database.comparator(i));
  }
  for (uint32_t i = 0; i < kAccountFamilies; ++i) add("accounts-" + std::to_string(i), i, BytewiseComparator());
  for (uint32_t i = 0; i < kTemporaryFamilies; ++i) add(TemporaryName(i), i, BytewiseComparator());
  for (uint32_t i = 0; i < database.idle_families; ++i) add("idle-" + std::to_string(i), 0, BytewiseComparator());
  return descriptors;
}

Status Store::OpenForReadOnly(const DatabasePlan& database, const LifePlan& life, const std::string& path) {
  Reset();
  const std::vector<ColumnFamilyDescriptor> descriptors = Describe(database, life);
  Status status = DB::OpenForReadOnly(life.options, path, descriptors, &handles_, &db_);
  if (!status.ok()) return status;
  for (uint32_t i = 0; i < database.families; ++i)
    families_.push_back(descriptors.empty() ? db_->DefaultColumnFamily() : handles_[i].get());
  return status;
}

Status Store::Open(const DatabasePlan& database, const LifePlan& life, const std::string& path) {
  Reset();
  const std::vector<ColumnFamilyDescriptor> descriptors = Describe(database, life);
  if (descriptors.empty()) {
    Status status = OpenAs(life.kind, life.options, path, {});
    if (status.ok()) families_.push_back(db_->DefaultColumnFamily());
    return status;
  }
  Options options = life.options;
  options.create_missing_column_families = true;
  Status status = OpenAs(life.kind, options, path, descriptors);
  if (!status.ok()) return status;
  for (uint32_t i = 0; i < database.families; ++i) families_.push_back(handles_[i].get());
  for (uint32_t i = 0; i < kAccountFamilies; ++i) accounts_.push_back(handles_[database.families + i].get());
  const size_t temporary = database.families + kAccountFamilies;
  const size_t idle = temporary + kTemporaryFamilies;
  for (size_t i = idle; status.ok() && i < handles_.size(); ++i) status = db_->Put({}, handles_[i].get(), "key", "value");
  for (size_t i = temporary; i < idle; ++i) temporary_.push_back(std::move(handles_[i]));
  return status;
}

Status Store::OpenAs(StoreKind kind, const Options& options, const std::string& path,
                     const std::vector<ColumnFamilyDescriptor>& descriptors) {
  if (kind == StoreKind::kPessimistic) {
    TransactionDBOptions transactions;
    transactions.lock_timeout_ms = kPatience_ms;
    transactions.default_lock_timeout_ms = kPatience_ms;
    std::unique_ptr<TransactionDB> db;
    const Status status = TransactionDB::Open(options, transactions, path, descriptors, &handles_, &db);
    pessimistic_ = db.get();
    db_ = std::move(db);
    return status;
  }
  if (kind == StoreKind::kOptimistic) {
    std::unique_ptr<OptimisticTransactionDB> db;
    const Status status = OptimisticTransactionDB::Open(options, path, descriptors, &handles_, &db);
    optimistic_ = db.get();
    db_ = std::move(db);
    return status;
  }
  return DB::Open(options, path, descriptors, &handles_, &db_);
}

void Store::LetGo() {
  families_.clear();
  accounts_.clear();
  temporary_.clear();
  handles_.clear();
}

Status Store::Close() {
  LetGo();
  return db_->Close();
}

void Store::Reset() {
  LetGo();
  pessimistic_ = nullptr;
  optimistic_ = nullptr;
  db_.reset();
}

std::unique_ptr<Transaction> Store::Begin(const WriteOptions& options, bool patient) const {
  if (optimistic_ != nullptr) return optimistic_->BeginTransaction(options);
  TransactionOptions transaction;
  transaction.deadlock_detect = patient;
  transaction.lock_timeout_ms = patient ? kPatience_ms : 2;
  return pessimistic_->BeginTransaction(options, transaction);
}

}  // namespace braiddb::stress
