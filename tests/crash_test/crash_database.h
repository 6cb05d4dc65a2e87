// CrashDatabase: the database of a campaign, alone or with column families over which its keys are spread.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braiddb/db.h"
#include "braiddb/transaction.h"

namespace braiddb::test {

// With families, a key's bytes say to which of six it belongs: the default one, a braided skiplist, an NV-Tree, sorted runs,
// a hybrid index, an LB+-Tree. A seventh comes and goes (Renew), and nobody looks at what it holds. With transactions, operations
// may use them.
class CrashDatabase {
 public:
  enum class Transactions { kNone, kPessimistic, kOptimistic };

  // With families, those that a crash left out are created. With pessimistic transactions, those that were prepared before are
  // there.
  Status Open(Options options, const std::string& path, bool with_families, Transactions transactions) {
    reset();
    std::vector<ColumnFamilyDescriptor> families;
    if (with_families) {
      options.create_missing_column_families = true;
      families.push_back({kDefaultColumnFamilyName, ColumnFamilyOptions(options)});
      families.push_back({"list", OfKind(options, L1Kind::kBraidedSkipList)});
      families.push_back({"tree", OfKind(options, L1Kind::kNvTree)});
      families.push_back({"runs", OfKind(options, L1Kind::kSortedRuns)});
      families.push_back({"hybrid", OfKind(options, L1Kind::kHybrid)});
      families.push_back({"lb_tree", OfKind(options, L1Kind::kLbTree)});
      families.push_back({kTemporary, TemporaryOptions(options)});
    }
    if (transactions == Transactions::kNone) return DB::Open(options, path, families, &handles_, &db_);
    if (transactions == Transactions::kOptimistic) {
      std::unique_ptr<OptimisticTransactionDB> opened;
      const Status status = OptimisticTransactionDB::Open(options, path, families, &handles_, &opened);
      optimistic_ = opened.get();
      db_ = std::move(opened);
      return status;
    }
    TransactionDBOptions impatient;  // nobody has a reason to wait
    impatient.lock_timeout_ms = impatient.default_lock_timeout_ms = 0;
    std::unique_ptr<TransactionDB> opened;
    Status status = TransactionDB::Open(options, impatient, path, families, &handles_, &opened);
    pessimistic_ = opened.get();
    db_ = std::move(opened);
    return status;
  }

  // Null without transactions that can be prepared.
  TransactionDB* pessimistic() const { return pessimistic_; }
  bool has_transactions() const { return pessimistic_ != nullptr || optimistic_ != nullptr; }
  // REQUIRES: has_transactions().
  std::unique_ptr<Transaction> Begin() const {
    return pessimistic_ != nullptr ? pessimistic_->BeginTransaction({}) : optimistic_->BeginTransaction({});
  }
  // Below transactions; null when it is closed.
  DB* get() const { return db_ == nullptr ? nullptr : db_->GetRootDB(); }
  DB* operator->() const { return db_.get(); }
  // Not closed: as its destructor does it.
  void reset() {
    handles_.clear();
    pessimistic_ = nullptr;
    optimistic_ = nullptr;
    db_.reset();
  }

  bool has_families() const { return !handles_.empty(); }
  // Of those that keys are spread over.
  size_t families() const { return has_families() ? handles_.size() - 1 : 1; }
  ColumnFamilyHandle* family(size_t i) const { return has_families() ? handles_[i].get() : db_->DefaultColumnFamily(); }
  size_t NumberOf(const std::string& key) const {
    size_t sum = key.size();
    for (const char byte : key) sum += static_cast<unsigned char>(byte);
    return sum % families();
  }
  ColumnFamilyHandle* FamilyOf(const std::string& key) const { return family(NumberOf(key)); }

  // Writes something to the seventh family, drops it, and makes it again. One thread at a time. REQUIRES: has_families().
  Status Renew(bool merges) {
    std::unique_ptr<ColumnFamilyHandle>& handle = handles_.back();
    Status status;
    WriteBatch batch;
    for (int i = 0; i < 8; ++i) batch.Put(handle.get(), "temporary" + std::to_string(i), std::string(200, 't'));
    for (int i = 0; i < 3 && status.ok(); ++i) status = db_->Write({}, batch);
    if (status.ok() && merges) status = db_->CompactRange({}, handle.get(), nullptr, nullptr);
    if (status.ok()) status = db_->DropColumnFamily(handle.get());
    if (!status.ok()) return status;
    handle.reset();
    return db_->CreateColumnFamily(TemporaryOptions(db_->GetOptions()), kTemporary, &handle);
  }

 private:
  static constexpr const char* kTemporary = "temporary";

  static ColumnFamilyOptions OfKind(const Options& options, L1Kind kind) {
    ColumnFamilyOptions result(options);
    result.l1 = kind;
    return result;
  }
  static ColumnFamilyOptions TemporaryOptions(const Options& options) {
    return OfKind(options, options.l1 == L1Kind::kNvTree ? L1Kind::kBraidedSkipList : L1Kind::kNvTree);
  }

  std::unique_ptr<DB> db_;
  TransactionDB* pessimistic_ = nullptr;                      // db_, or null
  OptimisticTransactionDB* optimistic_ = nullptr;             // the same
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles_;  // of the database, or none
};

}  // namespace braiddb::test
