// Two-phase commit: states and errors, what others see, what comes back after a close or a kill, column families, copies.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/backup.h"
#include "braiddb/check.h"
#include "braiddb/event_listener.h"
#include "braiddb/transaction.h"
#include "braiddb/ttl.h"
#include "db/db_impl.h"
#include "db/hidden_family.h"
#include "tests/support/db_test_util.h"
#include "tests/support/leave_child.h"
#include "tests/support/merge_operators.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

using Handles = std::vector<std::unique_ptr<ColumnFamilyHandle>>;

class TwoPhaseTest : public testing::Test {
 protected:
  void SetUp() override { Open(); }
  void TearDown() override {
    SyncPoints::Instance().Clear();
    Close();
  }

  Status TryOpen() {
    handles_.clear();
    return TransactionDB::Open(options_, transaction_options_, path_, descriptors_, &handles_, &db_);
  }
  void Open() { ASSERT_OK(TryOpen()); }
  void Close() {
    handles_.clear();
    if (db_ != nullptr) {
      EXPECT_OK(db_->Close());
    }
    db_.reset();
  }
  void Reopen() {
    Close();
    Open();
  }
  // With column families "a", ordered backwards, and "b", whose operands append.
  void OpenFamilies() {
    Close();
    options_.create_missing_column_families = true;
    ColumnFamilyOptions a(options_);
    a.comparator = ReverseBytewiseComparator();
    ColumnFamilyOptions b(options_);
    b.merge_operator = std::make_shared<AppendOperator>();
    descriptors_ = {{kDefaultColumnFamilyName, ColumnFamilyOptions(options_)}, {"a", a}, {"b", b}};
    Open();
  }

  std::unique_ptr<Transaction> Begin(const TransactionOptions& options = {}) { return db_->BeginTransaction({}, options); }
  std::unique_ptr<Transaction> BeginNamed(const std::string& name) {
    auto transaction = Begin();
    EXPECT_OK(transaction->SetName(name));
    return transaction;
  }
  // One that writes `key` = its name.
  std::unique_ptr<Transaction> Prepared(const std::string& name, const std::string& key) {
    auto transaction = BeginNamed(name);
    EXPECT_OK(transaction->Put(key, name));
    EXPECT_OK(transaction->Prepare());
    return transaction;
  }
  std::vector<std::string> NamesOfPrepared() {
    std::vector<std::unique_ptr<Transaction>> prepared;
    db_->GetAllPreparedTransactions(&prepared);
    std::vector<std::string> names;
    for (const auto& transaction : prepared) {
      EXPECT_EQ(transaction->GetState(), TransactionState::kPrepared);
      names.push_back(transaction->GetName());
    }
    return names;
  }
  using Names = std::vector<std::string>;

  std::string Get(Slice key) { return GetOrText(db_.get(), key); }
  std::string Get(ColumnFamilyHandle* family, Slice key) {
    std::string value;
    const Status status = db_->Get({}, family, key, &value);
    return status.ok() ? value : "<not found>";
  }
  bool IsLocked(Slice key) {
    TransactionOptions options;
    options.lock_timeout_ms = 0;
    return Begin(options)->Put(key, "someone else's").IsTimedOut();
  }

  static Options MakeOptions() {
    Options options = TinyOptions(2);
    options.create_if_missing = true;
    return options;
  }
  static TransactionDBOptions Impatient() {
    TransactionDBOptions options;
    options.lock_timeout_ms = 0;
    options.default_lock_timeout_ms = 0;
    return options;
  }

  TestDirectory directory_;
  const std::string path_ = directory_.File("db");
  Options options_ = MakeOptions();
  TransactionDBOptions transaction_options_ = Impatient();
  std::vector<ColumnFamilyDescriptor> descriptors_;
  Handles handles_;
  std::unique_ptr<TransactionDB> db_;
};

// ---- States

// What a rollback to a save point takes back uses no families.
TEST_F(TwoPhaseTest, ARollbackToASavePointReleasesFamilies) {
  OpenFamilies();
  ColumnFamilyHandle* const a = handles_[1].get();
  ColumnFamilyHandle* const b = handles_[2].get();
  auto transaction = BeginNamed("x");
  ASSERT_OK(transaction->Put("key", "value"));
  transaction->SetSavePoint();
  ASSERT_OK(transaction->Put(a, "key", "value"));
  ASSERT_OK(transaction->Put(b, "key", "value"));
  ASSERT_OK(transaction->RollbackToSavePoint());
  ASSERT_OK(db_->DropColumnFamily(a));
  EXPECT_CODE(transaction->Put(a, "key", "value"), kInvalidArgument);
  ASSERT_OK(transaction->Prepare());
  EXPECT_OK(db_->DropColumnFamily(b)) << "the transaction has no update of it";
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(Get("key"), "value");
}

TEST_F(TwoPhaseTest, AFamilyThatIsDroppedTakesNoMoreUpdates) {
  OpenFamilies();
  ColumnFamilyHandle* const a = handles_[1].get();
  std::unique_ptr<Transaction> transaction = Begin();
  ASSERT_OK(transaction->Put(a, "key", "value"));
  ASSERT_OK(db_->DropColumnFamily(a));
  EXPECT_CODE(transaction->Put(a, "other", "value"), kInvalidArgument);
  ASSERT_OK(transaction->Rollback());
}

TEST_F(TwoPhaseTest, NobodySeesAPreparedTransactionUntilItIsCommitted) {
  auto transaction = BeginNamed("x");
  EXPECT_EQ(transaction->GetState(), TransactionState::kStarted);
  ASSERT_OK(db_->Put({}, "b", "old"));
  ASSERT_OK(transaction->Put("a", "1"));
  ASSERT_OK(transaction->Delete("b"));
  ASSERT_OK(transaction->Prepare());
  EXPECT_EQ(transaction->GetState(), TransactionState::kPrepared);
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"b", "old"}}));
  EXPECT_TRUE(IsLocked("a"));
  EXPECT_CODE(db_->Put({}, "b", "other"), kTimedOut);
  std::string value;
  ASSERT_OK(transaction->Get({}, "a", &value));  // its own reads go on
  EXPECT_EQ(value, "1");
  EXPECT_EQ(NamesOfPrepared(), Names{"x"});
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(transaction->GetState(), TransactionState::kCommitted);
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"a", "1"}}));
  EXPECT_FALSE(IsLocked("a"));
  EXPECT_EQ(NamesOfPrepared(), Names{});
  EXPECT_EQ(db_->GetTransactionByName("x"), nullptr);
  EXPECT_EQ(transaction->GetName(), "x");
  transaction.reset();
  Reopen();
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"a", "1"}}));
  EXPECT_EQ(NamesOfPrepared(), Names{});
}

TEST_F(TwoPhaseTest, ARolledBackOneLeavesNothing) {
  auto transaction = Prepared("x", "a");
  ASSERT_OK(transaction->Rollback());
  EXPECT_EQ(transaction->GetState(), TransactionState::kRolledBack);
  EXPECT_FALSE(IsLocked("a"));
  EXPECT_TRUE(HoldsExactly(db_.get(), Pairs{}));
  EXPECT_CODE(transaction->Commit(), kInvalidArgument);
  EXPECT_CODE(transaction->Rollback(), kInvalidArgument);
  EXPECT_CODE(transaction->Put("b", "1"), kInvalidArgument);
  transaction = Prepared("x", "a");  // the name is free
  ASSERT_OK(transaction->Commit());
  transaction.reset();
  Reopen();
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"a", "x"}}));
}

TEST_F(TwoPhaseTest, NamesAreUniqueAndStay) {
  auto one = Begin();
  auto two = Begin();
  EXPECT_EQ(one->GetName(), "");
  EXPECT_CODE(one->Prepare(), kInvalidArgument);  // without a name
  EXPECT_CODE(one->SetName(""), kInvalidArgument);
  EXPECT_CODE(one->SetName(std::string(513, 'x')), kInvalidArgument);
  ASSERT_OK(one->SetName(std::string(512, 'x')));
  EXPECT_CODE(one->SetName("other"), kInvalidArgument);
  EXPECT_CODE(two->SetName(std::string(512, 'x')), kInvalidArgument);
  EXPECT_EQ(two->GetName(), "");
  const std::string binary("\0\xff\0", 3);
  ASSERT_OK(two->SetName(binary));
  EXPECT_EQ(db_->GetTransactionByName(binary)->GetID(), two->GetID());
  EXPECT_EQ(db_->GetTransactionByName("nobody"), nullptr);
  ASSERT_OK(one->Prepare());
  ASSERT_OK(two->Prepare());
  EXPECT_CODE(one->SetName("later"), kInvalidArgument);
  one.reset();
  two = Begin();
  ASSERT_OK(two->Commit());
  EXPECT_CODE(two->SetName("late"), kInvalidArgument);
  two.reset();
  Reopen();
  EXPECT_EQ(NamesOfPrepared(), (Names{binary, std::string(512, 'x')}));
}

TEST_F(TwoPhaseTest, ANameGoesWithItsTransaction) {
  { const auto forgotten = BeginNamed("x"); }
  const auto committed = BeginNamed("x");
  ASSERT_OK(committed->Put("a", "1"));
  ASSERT_OK(committed->Commit());  // without a prepare
  const auto rolled_back = BeginNamed("x");
  ASSERT_OK(rolled_back->Put("a", "2"));
  ASSERT_OK(rolled_back->Rollback());  // it may go on, with its name
  EXPECT_CODE(Begin()->SetName("x"), kInvalidArgument);
  ASSERT_OK(rolled_back->Put("a", "3"));
  ASSERT_OK(rolled_back->Prepare());
  ASSERT_OK(rolled_back->Commit());
  EXPECT_EQ(Get("a"), "3");
}

TEST_F(TwoPhaseTest, APreparedOneTakesNoUpdates) {
  const auto transaction = BeginNamed("x");
  ASSERT_OK(transaction->Put("a", "1"));
  transaction->SetSavePoint();
  ASSERT_OK(transaction->Put("b", "2"));
  ASSERT_OK(transaction->Prepare());
  EXPECT_CODE(transaction->Prepare(), kInvalidArgument);
  EXPECT_CODE(transaction->Put("c", "3"), kInvalidArgument);
  EXPECT_CODE(transaction->Delete("a"), kInvalidArgument);
  std::string value;
  EXPECT_CODE(transaction->GetForUpdate({}, "d", &value), kInvalidArgument);
  EXPECT_CODE(transaction->RollbackToSavePoint(), kInvalidArgument);
  EXPECT_CODE(transaction->PopSavePoint(), kInvalidArgument);
  WriteBatch batch;
  batch.Put("e", "5");
  EXPECT_CODE(transaction->RebuildFromWriteBatch(batch), kInvalidArgument);
  transaction->SetSavePoint();  // does no harm
  ASSERT_OK(transaction->Commit());
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"a", "1"}, {"b", "2"}}));
  EXPECT_CODE(transaction->Prepare(), kInvalidArgument);
  EXPECT_CODE(transaction->Commit(), kInvalidArgument);
}

TEST_F(TwoPhaseTest, WhatWasTakenBackBeforeIsNotPrepared) {
  auto transaction = BeginNamed("x");
  ASSERT_OK(transaction->Put("a", "1"));
  transaction->SetSavePoint();
  ASSERT_OK(transaction->Put("a", "2"));
  ASSERT_OK(transaction->Put("b", "2"));
  ASSERT_OK(transaction->RollbackToSavePoint());
  ASSERT_OK(transaction->Prepare());
  EXPECT_FALSE(IsLocked("b"));
  transaction.reset();
  Reopen();
  ASSERT_OK(db_->GetTransactionByName("x")->Commit());
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"a", "1"}}));
}

TEST_F(TwoPhaseTest, WithoutSkipPrepareItHasToBePrepared) {
  TransactionOptions options;
  options.skip_prepare = false;
  const auto transaction = Begin(options);
  ASSERT_OK(transaction->SetName("x"));
  ASSERT_OK(transaction->Put("a", "1"));
  EXPECT_CODE(transaction->Commit(), kInvalidArgument);
  ASSERT_OK(transaction->Prepare());
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(Get("a"), "1");
}

TEST_F(TwoPhaseTest, APreparedOneDoesNotExpire) {
  TransactionOptions options;
  options.expiration_ms = 30;
  std::unique_ptr<Transaction> prepared, late;
  const auto prepare_one = [&] {
    late.reset();
    prepared = Begin(options);
    EXPECT_OK(prepared->SetName("prepared"));
    Status status = prepared->Put("a", "1");
    late = Begin(options);
    EXPECT_OK(late->SetName("late"));
    if (status.ok()) status = late->Put("b", "1");
    return status.ok() ? prepared->Prepare() : status;
  };
  Status status;
  // A loaded machine may need more time to prepare one.
  while ((status = prepare_one()).IsExpired() && options.expiration_ms < 100'000) {
    ASSERT_OK(prepared->Rollback());
    prepared.reset();
    options.expiration_ms *= 4;
  }
  ASSERT_OK(status);
  std::this_thread::sleep_for(std::chrono::milliseconds(2 * options.expiration_ms));
  EXPECT_TRUE(IsLocked("a"));
  EXPECT_CODE(late->Prepare(), kExpired);
  EXPECT_FALSE(IsLocked("b"));  // somebody else took it
  EXPECT_CODE(late->Prepare(), kExpired);
  EXPECT_EQ(late->GetState(), TransactionState::kLocksStolen);
  ASSERT_OK(late->Rollback());
  ASSERT_OK(prepared->Commit());
  EXPECT_EQ(Get("a"), "1");
}

TEST_F(TwoPhaseTest, OptimisticOnesCannotBePrepared) {
  std::unique_ptr<OptimisticTransactionDB> db;
  ASSERT_OK(OptimisticTransactionDB::Open(options_, directory_.File("other"), &db));
  const auto transaction = db->BeginTransaction({});
  EXPECT_CODE(transaction->SetName("x"), kInvalidArgument);
  EXPECT_CODE(transaction->Prepare(), kInvalidArgument);
  EXPECT_EQ(transaction->GetName(), "");
  EXPECT_EQ(transaction->GetState(), TransactionState::kStarted);
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(transaction->GetState(), TransactionState::kStarted);
}

// ---- Handles

TEST_F(TwoPhaseTest, APreparedOneStaysWhenItsHandleGoes) {
  TransactionOptions options;
  options.set_snapshot = true;
  {
    const auto transaction = Begin(options);
    ASSERT_OK(transaction->SetName("x"));
    ASSERT_OK(transaction->Put("a", "1"));
    ASSERT_OK(transaction->Prepare());
  }
  EXPECT_TRUE(IsLocked("a"));
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-snapshots"), 0u);  // nobody can read through it any more
  EXPECT_CODE(Begin()->SetName("x"), kInvalidArgument);
  const auto found = db_->GetTransactionByName("x");
  ASSERT_NE(found, nullptr);
  const auto again = db_->GetTransactionByName("x");
  EXPECT_EQ(found->GetID(), again->GetID());
  ASSERT_OK(found->Commit());
  EXPECT_EQ(Get("a"), "1");
  EXPECT_EQ(again->GetState(), TransactionState::kCommitted);
  EXPECT_CODE(again->Rollback(), kInvalidArgument);
}

TEST_F(TwoPhaseTest, OneThatIsNotPreparedLastsUntilItsLastHandleGoes) {
  auto transaction = BeginNamed("x");
  ASSERT_OK(transaction->Put("a", "1"));
  auto other = db_->GetTransactionByName("x");
  transaction.reset();
  EXPECT_TRUE(IsLocked("a"));
  ASSERT_OK(other->Put("b", "2"));
  other.reset();
  EXPECT_FALSE(IsLocked("a"));
  EXPECT_EQ(db_->GetTransactionByName("x"), nullptr);
  EXPECT_TRUE(HoldsExactly(db_.get(), Pairs{}));
}

// ---- After a reopen

TEST_F(TwoPhaseTest, PreparedOnesAreThereAgainWithTheirLocks) {
  for (const bool is_merged : {false, true}) {
    SCOPED_TRACE(is_merged);
    ASSERT_OK(db_->Put({}, "deleted", "old"));
    Prepared("commit", "a");
    Prepared("rollback", "b");
    ASSERT_OK(Prepared("decided", "c")->Commit());
    {
      const auto deletes = BeginNamed("deletes");
      ASSERT_OK(deletes->Delete("deleted"));
      ASSERT_OK(deletes->Prepare());
      const auto empty = BeginNamed("empty");
      ASSERT_OK(empty->Prepare());
      const auto unprepared = BeginNamed("unprepared");
      ASSERT_OK(unprepared->Put("d", "1"));
    }
    if (is_merged) {
      ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    }
    transaction_options_.max_locks = 1;  // which those that are found may exceed
    Reopen();
    EXPECT_EQ(NamesOfPrepared(), (Names{"commit", "deletes", "empty", "rollback"}));
    EXPECT_TRUE(HoldsExactly(db_.get(), {{"c", "decided"}, {"deleted", "old"}}));
    transaction_options_.max_locks = 0;
    Reopen();  // once more, undecided
    for (const char* key : {"a", "b", "deleted"}) EXPECT_TRUE(IsLocked(key)) << key;
    EXPECT_FALSE(IsLocked("d"));
    ASSERT_OK(db_->GetTransactionByName("commit")->Commit());
    ASSERT_OK(db_->GetTransactionByName("deletes")->Commit());
    ASSERT_OK(db_->GetTransactionByName("empty")->Commit());
    ASSERT_OK(db_->GetTransactionByName("rollback")->Rollback());
    EXPECT_TRUE(HoldsExactly(db_.get(), {{"a", "commit"}, {"c", "decided"}}));
    for (const char* key : {"a", "b", "deleted"}) EXPECT_FALSE(IsLocked(key)) << key;
    Reopen();
    EXPECT_EQ(NamesOfPrepared(), Names{});
    EXPECT_TRUE(HoldsExactly(db_.get(), {{"a", "commit"}, {"c", "decided"}}));
    for (const char* key : {"a", "c"}) ASSERT_OK(db_->Delete({}, key));
  }
}

TEST_F(TwoPhaseTest, AKilledProcessLeavesWhatItPrepared) {
  Close();
  for (int run = 0; run < 3; ++run) {
    const std::string name = "x" + std::to_string(run);
    const int code = RunInChild([&] {
      if (!TryOpen().ok()) return 2;
      for (const char* suffix : {"-kept", "-committed", "-rolled-back"}) {
        const auto transaction = BeginNamed(name + suffix);
        if (!transaction->Put(name + suffix, name).ok() || !transaction->Prepare().ok()) return 3;
        if (suffix[1] == 'c' && !transaction->Commit().ok()) return 4;
        if (suffix[1] == 'r' && !transaction->Rollback().ok()) return 5;
      }
      LeaveChild(0);
      return 0;
    });
    ASSERT_EQ(code, 0);
  }
  EXPECT_TRUE(ChecksAsSound(path_));
  Open();
  EXPECT_EQ(NamesOfPrepared(), (Names{"x0-kept", "x1-kept", "x2-kept"}));
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"x0-committed", "x0"}, {"x1-committed", "x1"}, {"x2-committed", "x2"}}));
  EXPECT_TRUE(IsLocked("x1-kept"));
}

// Killed between the write and the answer: it is prepared.
TEST_F(TwoPhaseTest, AKillBehindTheRecordLeavesItPrepared) {
  Close();
  const int code = RunInChild([&] {
    if (!TryOpen().ok()) return 2;
    SyncPoints::Instance().SetCallback("PessimisticTransaction::WriteRecord:Written", [](void*) { LeaveChild(0); });
    SyncPoints::Instance().Enable();
    Prepared("x", "a");
    return 3;
  });
  ASSERT_EQ(code, 0);
  Open();
  EXPECT_EQ(NamesOfPrepared(), Names{"x"});
  ASSERT_OK(db_->GetTransactionByName("x")->Commit());
  EXPECT_EQ(Get("a"), "x");
}

TEST_F(TwoPhaseTest, LargeOnesAndMany) {
  const std::string large = PatternedValue(1, 3 << 20);  // more than a segment, and many parts
  std::map<std::string, std::string> expected;
  {
    const auto transaction = BeginNamed("large");
    for (int i = 0; i < 3; ++i) {
      ASSERT_OK(transaction->Put("large" + std::to_string(i), large));
      expected["large" + std::to_string(i)] = large;
    }
    for (int i = 0; i < 2000; ++i) {
      ASSERT_OK(transaction->Put(NumberedKey(i), PatternedValue(i, 100)));
      expected[NumberedKey(i)] = PatternedValue(i, 100);
    }
    ASSERT_OK(transaction->Prepare());
  }
  constexpr int kMany = 300;
  Names names;
  for (int i = 0; i < kMany; ++i) {
    names.push_back("many" + NumberedKey(i));
    Prepared(names.back(), names.back());
  }
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  Reopen();
  names.insert(names.begin(), "large");
  EXPECT_EQ(NamesOfPrepared(), names);
  EXPECT_TRUE(IsLocked("large2"));
  EXPECT_TRUE(IsLocked(NumberedKey(1999)));
  std::vector<std::unique_ptr<Transaction>> all;
  db_->GetAllPreparedTransactions(&all);
  for (size_t i = 0; i < all.size(); ++i) {
    if (i > 0 && i % 2 == 0) expected[names[i]] = names[i];
    ASSERT_OK(i % 2 == 0 ? all[i]->Commit() : all[i]->Rollback());
  }
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
  all.clear();
  Reopen();
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
  EXPECT_EQ(NamesOfPrepared(), Names{});
  Close();
  EXPECT_TRUE(ChecksAsSound(path_));
}

TEST_F(TwoPhaseTest, WhatIsDecidedTakesNoSpaceWhenTheDefaultFamilyIsCompacted) {
  options_.disable_auto_compaction = true;
  Reopen();
  for (int i = 0; i < 20; ++i) {
    const auto transaction = BeginNamed("x");
    ASSERT_OK(transaction->Put("a", PatternedValue(static_cast<uint64_t>(i), 50'000)));
    ASSERT_OK(transaction->Prepare());
    ASSERT_OK(i % 2 == 0 ? transaction->Rollback() : transaction->Commit());
    ASSERT_OK(db_->Flush());
  }
  Handles all;
  ASSERT_OK(static_cast<DBImpl*>(db_->GetRootDB())->GetAllFamilies(&all));
  uint64_t tables = 0;
  ASSERT_TRUE(db_->GetIntProperty(all[1].get(), "braiddb.num-l0-tables", &tables));
  EXPECT_GT(tables, 0u);
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  ASSERT_TRUE(db_->GetIntProperty(all[1].get(), "braiddb.num-l0-tables", &tables));
  EXPECT_EQ(tables, 0u);
  ASSERT_TRUE(db_->GetIntProperty(all[1].get(), "braiddb.estimate-num-keys", &tables));
  EXPECT_EQ(tables, 0u);
}

// A batch keeps the ids of families, and that of a dropped one may be given to the records'.
TEST_F(TwoPhaseTest, AnOldBatchDoesNotReachTheRecords) {
  Prepared("x", "a");
  Handles all;
  ASSERT_OK(static_cast<DBImpl*>(db_->GetRootDB())->GetAllFamilies(&all));
  WriteBatch batch;
  batch.Put("k", "v");
  batch.PutCF(all[1]->GetID(), "k", "v");
  EXPECT_CODE(db_->Write({}, batch), kInvalidArgument);
  EXPECT_CODE(Begin()->RebuildFromWriteBatch(batch), kInvalidArgument);
  EXPECT_EQ(Get("k"), "<not found>");
  WriteOptions ignoring;
  ignoring.ignore_missing_column_families = true;
  ASSERT_OK(db_->Write(ignoring, batch)) << "users see no such family";
  all.clear();
  Reopen();
  EXPECT_EQ(NamesOfPrepared(), Names{"x"});
  EXPECT_EQ(Get("k"), "v");
}

// ---- Column families

TEST_F(TwoPhaseTest, FamiliesAndOperands) {
  OpenFamilies();
  ASSERT_OK(db_->Put({}, handles_[2].get(), "list", "old"));
  {
    const auto transaction = BeginNamed("x");
    ASSERT_OK(transaction->Put("k", "default"));
    ASSERT_OK(transaction->Put(handles_[1].get(), "k", "a"));
    ASSERT_OK(transaction->Merge(handles_[2].get(), "list", "new"));
    ASSERT_OK(transaction->Prepare());
  }
  std::swap(descriptors_[1], descriptors_[2]);  // an open may name them in any order
  Reopen();
  std::swap(handles_[1], handles_[2]);
  const auto transaction = db_->GetTransactionByName("x");
  ASSERT_NE(transaction, nullptr);
  std::string value;
  ASSERT_OK(transaction->Get({}, handles_[2].get(), "list", &value));
  EXPECT_EQ(value, AppendOperator::Apply("old", "new"));
  EXPECT_EQ(Get(handles_[1].get(), "k"), "<not found>");
  EXPECT_CODE(db_->Put({}, handles_[1].get(), "k", "other"), kTimedOut);
  ASSERT_OK(db_->Put({}, handles_[2].get(), "k", "not locked there"));
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(Get("k"), "default");
  EXPECT_EQ(Get(handles_[1].get(), "k"), "a");
  EXPECT_EQ(Get(handles_[2].get(), "list"), AppendOperator::Apply("old", "new"));
}

TEST_F(TwoPhaseTest, OperandsComeBackWithoutAnOperator) {
  OpenFamilies();
  {
    const auto transaction = BeginNamed("x");
    ASSERT_OK(transaction->Merge(handles_[2].get(), "list", "new"));
    ASSERT_OK(transaction->Prepare());
  }
  descriptors_[2].options.merge_operator = nullptr;
  Reopen();
  ASSERT_OK(db_->GetTransactionByName("x")->Commit());
  descriptors_[2].options.merge_operator = std::make_shared<AppendOperator>();
  Reopen();
  EXPECT_EQ(Get(handles_[2].get(), "list"), AppendOperator::Apply("", "new"));
}

TEST_F(TwoPhaseTest, AFamilyOfAPreparedOneCannotBeDropped) {
  OpenFamilies();
  auto transaction = BeginNamed("x");
  ASSERT_OK(transaction->Put(handles_[1].get(), "k", "a"));
  ASSERT_OK(transaction->Prepare());
  EXPECT_CODE(db_->DropColumnFamily(handles_[1].get()), kBusy);
  transaction.reset();
  Reopen();
  EXPECT_CODE(db_->DropColumnFamily(handles_[1].get()), kBusy);
  ASSERT_OK(db_->DropColumnFamily(handles_[2].get()));  // of which it has nothing
  transaction = db_->GetTransactionByName("x");
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(Get(handles_[1].get(), "k"), "a");
  ASSERT_OK(db_->DropColumnFamily(handles_[1].get()));

  transaction = BeginNamed("y");  // the other way round
  descriptors_.clear();
  std::unique_ptr<ColumnFamilyHandle> handle;
  ASSERT_OK(db_->CreateColumnFamily({}, "c", &handle));
  ASSERT_OK(transaction->Put(handle.get(), "k", "c"));
  ASSERT_OK(db_->DropColumnFamily(handle.get()));
  EXPECT_CODE(transaction->Prepare(), kInvalidArgument);
  ASSERT_OK(transaction->Rollback());
}

TEST_F(TwoPhaseTest, NobodySeesTheFamilyOfRecords) {
  Options plain = options_;
  plain.create_if_missing = false;
  const auto list = [&] {
    std::vector<std::string> names;
    EXPECT_OK(DB::ListColumnFamilies(plain, path_, &names));
    return names;
  };
  ASSERT_OK(Begin()->Commit());
  Handles handles;
  ASSERT_OK(static_cast<DBImpl*>(db_->GetRootDB())->GetAllFamilies(&handles));
  EXPECT_EQ(handles.size(), 1u);  // it is not made before there is something to be put there
  Prepared("x", "a");
  ASSERT_OK(static_cast<DBImpl*>(db_->GetRootDB())->GetAllFamilies(&handles));
  EXPECT_EQ(handles.size(), 2u);
  ASSERT_OK(db_->GetColumnFamilies(&handles));
  EXPECT_EQ(handles.size(), 1u);
  std::unique_ptr<ColumnFamilyHandle> handle;
  EXPECT_CODE(db_->CreateColumnFamily({}, kPreparedFamilyName, &handle), kInvalidArgument);
  EXPECT_EQ(handle, nullptr);
  handles.clear();
  Close();
  EXPECT_EQ(list(), Names{kDefaultColumnFamilyName});
  options_.create_missing_column_families = true;
  descriptors_ = {{kPreparedFamilyName, {}}};
  EXPECT_CODE(TryOpen(), kInvalidArgument);
  descriptors_.clear();
  Open();
  EXPECT_EQ(NamesOfPrepared(), Names{"x"});
}

// Followers see what is committed, as one batch, and nothing of the records. The latest number is that of an update they see.
TEST_F(TwoPhaseTest, FollowersSeeNoRecords) {
  std::unique_ptr<DB> copy;
  ASSERT_OK(DB::Open(options_, directory_.File("copy"), &copy));
  uint64_t applied = 0;
  const auto follow = [&] {
    std::unique_ptr<TransactionLogIterator> iterator;
    std::vector<uint32_t> counts;
    const Status status = db_->GetUpdatesSince(applied + 1, &iterator);
    EXPECT_TRUE(status.ok() || status.IsNotFound()) << status.ToString();
    for (; iterator != nullptr && iterator->Valid(); iterator->Next()) {
      const LoggedBatch batch = iterator->GetBatch();
      counts.push_back(batch.updates->Count());
      EXPECT_OK(copy->Write({}, *batch.updates));
      EXPECT_GT(batch.sequence, applied);
      applied = batch.sequence + batch.updates->Count() - 1;
    }
    EXPECT_EQ(applied, db_->GetLatestSequenceNumber());
    EXPECT_TRUE(HoldsExactly(copy.get(), ScanForward(db_.get())));
    return counts;
  };
  using Counts = std::vector<uint32_t>;
  ASSERT_OK(db_->Put({}, "a", "1"));
  EXPECT_EQ(follow(), Counts{1});
  auto committed = BeginNamed("x");
  ASSERT_OK(committed->Put("b", "2"));
  ASSERT_OK(committed->Put("c", std::string(200'000, 'c')));  // several parts
  ASSERT_OK(committed->Prepare());
  auto rolled_back = Prepared("y", "d");
  EXPECT_EQ(follow(), Counts{});
  ASSERT_OK(committed->Commit());
  EXPECT_EQ(follow(), Counts{2});
  ASSERT_OK(rolled_back->Rollback());
  EXPECT_EQ(follow(), Counts{});
  ASSERT_OK(db_->Put({}, "e", "5"));
  Prepared("z", "f");
  EXPECT_EQ(follow(), Counts{1});
  EXPECT_EQ(NamesOfPrepared(), Names{"z"});
}

TEST_F(TwoPhaseTest, ListenersAreToldOfNoHiddenFamily) {
  struct Listener : EventListener {
    void OnCompactionBegin(DB*, const CompactionJobInfo& info) override { ++begun[info.cf_name]; }
    void OnCompactionCompleted(DB*, const CompactionJobInfo& info) override { ++completed[info.cf_name]; }
    std::map<std::string, int> begun, completed;
  };
  const auto listener = std::make_shared<Listener>();
  Close();
  options_.listeners = {listener};
  Open();
  for (int i = 0; i < 3; ++i) {
    auto committed = Prepared("x", "a");
    ASSERT_OK(db_->Flush());
    ASSERT_OK(committed->Commit());
    ASSERT_OK(db_->GetRootDB()->DeleteRange({}, db_->DefaultColumnFamily(), "b", "c"));
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  }
  Close();  // all is told then
  EXPECT_GT(listener->begun[kDefaultColumnFamilyName], 0);
  EXPECT_EQ(listener->begun.size(), 1u);
  EXPECT_EQ(listener->begun, listener->completed);
}

// What was logged last before the kill is a record.
TEST_F(TwoPhaseTest, AfterAKillTheLatestNumberIsThatOfAnUpdate) {
  Close();
  const auto write = [this]() -> int {
    Open();
    if (!db_->Put({}, "a", "1").ok()) LeaveChild(1);
    const auto transaction = Begin();
    if (!transaction->SetName("x").ok() || !transaction->Put("b", "2").ok() || !transaction->Prepare().ok()) LeaveChild(2);
    LeaveChild(0);
  };
  ASSERT_EQ(RunInChild(write), 0);
  Open();
  EXPECT_EQ(NamesOfPrepared(), Names{"x"});
  const uint64_t latest = db_->GetLatestSequenceNumber();
  std::unique_ptr<TransactionLogIterator> iterator;
  ASSERT_OK(db_->GetUpdatesSince(latest, &iterator));
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->GetBatch().sequence, latest);
  iterator->Next();
  EXPECT_FALSE(iterator->Valid());
  EXPECT_OK(iterator->status());
}

// ---- Other opens

TEST_F(TwoPhaseTest, OtherOpensRefuseUndecidedTransactionsAndLeaveThem) {
  Prepared("x", "a");
  Close();
  std::unique_ptr<DB> db;
  EXPECT_CODE(DB::Open(options_, path_, &db), kNotSupported);
  EXPECT_EQ(db, nullptr);
  Handles handles;
  EXPECT_CODE(DB::Open(options_, path_, {{kDefaultColumnFamilyName, ColumnFamilyOptions(options_)}}, &handles, &db),
              kNotSupported);
  EXPECT_TRUE(handles.empty());
  std::unique_ptr<OptimisticTransactionDB> optimistic;
  EXPECT_CODE(OptimisticTransactionDB::Open(options_, path_, &optimistic), kNotSupported);
  std::unique_ptr<DBWithTTL> with_ttl;
  EXPECT_CODE(DBWithTTL::Open(options_, {}, path_, &with_ttl), kNotSupported);
  EXPECT_TRUE(ChecksAsSound(path_));
  Open();
  EXPECT_TRUE(IsLocked("a"));
  ASSERT_OK(db_->GetTransactionByName("x")->Commit());
  Close();
  ASSERT_OK(DB::Open(options_, path_, &db));  // nothing is undecided
  EXPECT_EQ(GetOrText(db.get(), "a"), "x");
  ASSERT_OK(db->Close());
}

// ---- Copies

TEST_F(TwoPhaseTest, CopiesHaveThem) {
  OpenFamilies();
  std::unique_ptr<ColumnFamilyHandle> other;  // takes an id that the copy gives to another family
  ASSERT_OK(db_->DropColumnFamily(handles_[1].get()));
  handles_[1].reset();
  ASSERT_OK(db_->CreateColumnFamily(descriptors_[1].options, "a", &handles_[1]));
  auto transaction = BeginNamed("x");
  ASSERT_OK(transaction->Put(handles_[1].get(), "k", "a"));
  ASSERT_OK(transaction->Put("k", "default"));
  ASSERT_OK(transaction->Prepare());
  ASSERT_OK(CreateCheckpoint(db_.get(), directory_.File("checkpoint")));
  std::unique_ptr<BackupEngine> engine;
  ASSERT_OK(BackupEngine::Open(directory_.File("backups"), &engine));
  uint32_t id = 0;
  ASSERT_OK(engine->CreateBackup(db_.get(), {}, &id));
  EXPECT_EQ(engine->GetBackupInfo()[0].families, (Names{"b", "a"}));
  ASSERT_OK(transaction->Rollback());  // what happens to the original is nothing to the copies
  transaction.reset();
  Close();
  ASSERT_OK(engine->RestoreBackup(id, options_, directory_.File("restored")));
  engine.reset();
  for (const char* copy : {"checkpoint", "restored"}) {
    SCOPED_TRACE(copy);
    EXPECT_TRUE(ChecksAsSound(directory_.File(copy)));
    std::unique_ptr<TransactionDB> db;
    Handles handles;
    ASSERT_OK(TransactionDB::Open(options_, Impatient(), directory_.File(copy), descriptors_, &handles, &db));
    EXPECT_CODE(db->Put({}, handles[1].get(), "k", "other"), kTimedOut);
    ASSERT_OK(db->GetTransactionByName("x")->Commit());
    std::string value;
    ASSERT_OK(db->Get({}, handles[1].get(), "k", &value));
    EXPECT_EQ(value, "a");
    EXPECT_EQ(GetOrText(db.get(), "k"), "default");
  }
}

TEST_F(TwoPhaseTest, RepairSavesThem) {
  Prepared("x", "a");
  Close();
  RepairReport report;
  ASSERT_OK(RepairDatabase({}, path_, directory_.File("repaired"), &report));
  EXPECT_TRUE(report.lost.empty());
  std::unique_ptr<TransactionDB> db;
  Options options = options_;
  ASSERT_OK(TransactionDB::Open(options, Impatient(), directory_.File("repaired"), &db));
  EXPECT_CODE(db->Put({}, "a", "other"), kTimedOut);
  ASSERT_OK(db->GetTransactionByName("x")->Commit());
  EXPECT_EQ(GetOrText(db.get(), "a"), "x");
}

// ---- Records that are not whole: a repair can leave them

// Changes what is in the family of records, as no transaction does.
class DamagedRecordTest : public TwoPhaseTest {
 protected:
  void Change(const std::function<void(ColumnFamilyHandle*, const Pairs&, WriteBatch*)>& change) {
    DB* const root = db_->GetRootDB();
    Handles all;
    ASSERT_OK(static_cast<DBImpl*>(root)->GetAllFamilies(&all));
    ColumnFamilyHandle* const records = all.back().get();
    ASSERT_EQ(records->GetName(), kPreparedFamilyName);
    Pairs pairs;
    const auto iterator = root->NewIterator({}, records);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) pairs.emplace_back(iterator->key(), iterator->value());
    WriteBatch batch;
    change(records, pairs, &batch);
    ASSERT_OK(static_cast<DBImpl*>(root)->WriteToAnyFamily({}, batch));
  }
  // It cannot be committed, is not lost, and does not stand in anybody's way.
  void ExpectItCanOnlyBeRolledBack(const std::string& name, Status::Code code) {
    const auto transaction = db_->GetTransactionByName(name);
    ASSERT_NE(transaction, nullptr);
    const Status status = transaction->Commit();
    EXPECT_EQ(status.code(), code) << status.ToString();
    EXPECT_EQ(transaction->GetState(), TransactionState::kPrepared);
    ASSERT_OK(transaction->Rollback());
  }
  void ExpectNoRecords() {
    Change([](ColumnFamilyHandle*, const Pairs& pairs, WriteBatch*) { EXPECT_TRUE(pairs.empty()); });
  }
};

TEST_F(DamagedRecordTest, EachPartIsMissing) {
  for (size_t missing = 0; missing < 4; ++missing) {
    {
      const auto transaction = BeginNamed("x");
      ASSERT_OK(transaction->Put("a", PatternedValue(missing, 200'000)));
      ASSERT_OK(transaction->Prepare());
      Prepared("y", "b");
    }
    Change([&](ColumnFamilyHandle* family, const Pairs& pairs, WriteBatch* batch) {
      ASSERT_EQ(pairs.size(), 5u);  // four of x, one of y
      batch->Delete(family, pairs[missing].first);
    });
    Reopen();
    ExpectItCanOnlyBeRolledBack("x", Status::Code::kCorruption);
    ASSERT_OK(db_->GetTransactionByName("y")->Commit());
    EXPECT_TRUE(HoldsExactly(db_.get(), {{"b", "y"}}));
    ExpectNoRecords();
  }
}

TEST_F(DamagedRecordTest, ANewerFormat) {
  Prepared("x", "a");
  Change([](ColumnFamilyHandle* family, const Pairs& pairs, WriteBatch* batch) {
    std::string value = pairs[0].second;
    value[0] = 2;
    batch->Put(family, pairs[0].first, value);
  });
  Reopen();
  ExpectItCanOnlyBeRolledBack("x", Status::Code::kNotSupported);
  ExpectNoRecords();
}

TEST_F(DamagedRecordTest, TwoWithOneKey) {
  Prepared("x", "a");
  Prepared("y", "b");
  Change([](ColumnFamilyHandle* family, const Pairs& pairs, WriteBatch* batch) {
    std::string key = pairs[0].first;
    key[2] = 'z';
    batch->Put(family, key, pairs[0].second);
  });
  Reopen();
  EXPECT_EQ(NamesOfPrepared(), (Names{"x", "y", "z"}));
  ExpectItCanOnlyBeRolledBack("z", Status::Code::kCorruption);
  EXPECT_TRUE(IsLocked("a"));
  ASSERT_OK(db_->GetTransactionByName("x")->Commit());
  ASSERT_OK(db_->GetTransactionByName("y")->Commit());
  ExpectNoRecords();
}

TEST_F(DamagedRecordTest, AFamilyThatIsNotThere) {
  OpenFamilies();
  {
    const auto transaction = BeginNamed("x");
    ASSERT_OK(transaction->Put(handles_[1].get(), "k", "a"));
    ASSERT_OK(transaction->Prepare());
  }
  ASSERT_OK(db_->GetRootDB()->DropColumnFamily(handles_[1].get()));  // behind the back of the database with transactions
  handles_.clear();
  descriptors_.erase(descriptors_.begin() + 1);
  Reopen();
  ExpectItCanOnlyBeRolledBack("x", Status::Code::kInvalidArgument);
  ExpectNoRecords();
}

TEST_F(DamagedRecordTest, AKeyThatIsNoRecords) {
  Prepared("x", "a");
  Change([](ColumnFamilyHandle* family, const Pairs&, WriteBatch* batch) { batch->Put(family, "?", ""); });
  Close();
  EXPECT_CODE(TryOpen(), kCorruption);
  EXPECT_EQ(db_, nullptr);
}

}  // namespace
}  // namespace braiddb::test
