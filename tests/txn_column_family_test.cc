// Transactions of both kinds over column families: what each sees, conflicts by family, anomalies that must not be, save points.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/slice_transform.h"
#include "braiddb/transaction.h"
#include "tests/support/db_test_util.h"
#include "tests/support/merge_operators.h"
#include "tests/support/pmem_temp_dir.h"

namespace braiddb::test {
namespace {

using Handle = std::unique_ptr<ColumnFamilyHandle>;

struct Pessimistic {
  using Database = TransactionDB;
  static Status Open(const Options& options, const std::string& path, const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<Handle>* handles, std::unique_ptr<Database>* db) {
    TransactionDBOptions impatient;
    impatient.lock_timeout_ms = 0;
    impatient.default_lock_timeout_ms = 0;
    return TransactionDB::Open(options, impatient, path, families, handles, db);
  }
};

struct Optimistic {
  using Database = OptimisticTransactionDB;
  static Status Open(const Options& options, const std::string& path, const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<Handle>* handles, std::unique_ptr<Database>* db) {
    return OptimisticTransactionDB::Open(options, path, families, handles, db);
  }
};

template <class Kind>
class TransactionFamilyTest : public testing::Test {
 protected:
  void SetUp() override { Open(); }
  void TearDown() override { Close(); }
  void Open() {
    Options options = TinyOptions(1);
    options.create_missing_column_families = true;
    options.prefix_extractor = NewFixedPrefixTransform(1);
    ColumnFamilyOptions reverse;
    reverse.comparator = ReverseBytewiseComparator();
    ColumnFamilyOptions appends;
    appends.merge_operator = std::make_shared<AppendOperator>();
    reverse.merge_operator = appends.merge_operator;
    ColumnFamilyOptions sums;
    sums.comparator = ReverseBytewiseComparator();
    sums.merge_operator = UInt64AddOperator();
    ASSERT_OK(Kind::Open(options, directory_.Sub("db"),
                         {{"default", ColumnFamilyOptions(options)}, {"a", appends}, {"reverse", reverse}, {"sums", sums}},
                         &handles_, &db_));
  }
  void Close() {
    handles_.clear();
    if (db_ != nullptr) {
      EXPECT_OK(db_->Close());
    }
    db_.reset();
  }
  ColumnFamilyHandle* a() { return handles_[1].get(); }
  ColumnFamilyHandle* reverse() { return handles_[2].get(); }
  ColumnFamilyHandle* sums() { return handles_[3].get(); }
  std::unique_ptr<Transaction> Begin(bool set_snapshot = false) {
    if constexpr (std::is_same_v<Kind, Pessimistic>) {
      TransactionOptions options;
      options.set_snapshot = set_snapshot;
      return db_->BeginTransaction({}, options);
    } else {
      OptimisticTransactionOptions options;
      options.set_snapshot = set_snapshot;
      return db_->BeginTransaction({}, options);
    }
  }
  static std::string Text(const Status& status, const std::string& value) {
    return status.ok() ? value : status.IsNotFound() ? "-" : status.ToString();
  }
  std::string Get(ColumnFamilyHandle* family, const std::string& key) {
    std::string value;
    const Status status = db_->Get({}, family, key, &value);
    return Text(status, value);
  }
  static std::string Get(Transaction* transaction, ColumnFamilyHandle* family, const std::string& key) {
    std::string value;
    const Status status = transaction->Get({}, family, key, &value);
    return Text(status, value);
  }
  static std::string BytesOf(uint64_t number) { return std::string(reinterpret_cast<const char*>(&number), sizeof number); }
  static std::string Keys(Iterator* iterator) {
    std::string forward, backward;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) forward += iterator->key();
    EXPECT_OK(iterator->status());
    for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) backward.insert(0, iterator->key());
    EXPECT_EQ(backward, forward);
    return forward;
  }

  PmemTempDir directory_;
  std::unique_ptr<typename Kind::Database> db_;
  std::vector<Handle> handles_;
};

using Kinds = testing::Types<Pessimistic, Optimistic>;
TYPED_TEST_SUITE(TransactionFamilyTest, Kinds);

TYPED_TEST(TransactionFamilyTest, EachFamilyHasItsOwnKeys) {
  ASSERT_OK(this->db_->Put({}, this->a(), "k", "old"));
  auto transaction = this->Begin();
  ASSERT_OK(transaction->Put("k", "default"));
  ASSERT_OK(transaction->Put(this->a(), "k", "a"));
  ASSERT_OK(transaction->Put(this->reverse(), "k", "r"));
  ASSERT_OK(transaction->Put(this->reverse(), "gone", "r"));
  ASSERT_OK(transaction->Delete(this->reverse(), "gone"));
  EXPECT_EQ(this->Get(this->db_->DefaultColumnFamily(), "k"), "-") << "no dirty read";
  EXPECT_EQ(this->Get(this->a(), "k"), "old") << "no dirty read";
  EXPECT_EQ(this->Get(transaction.get(), this->db_->DefaultColumnFamily(), "k"), "default");
  EXPECT_EQ(this->Get(transaction.get(), this->a(), "k"), "a");
  EXPECT_EQ(this->Get(transaction.get(), this->reverse(), "k"), "r");
  EXPECT_EQ(this->Get(transaction.get(), this->reverse(), "gone"), "-");
  std::vector<std::string> values;
  const auto statuses =
      transaction->MultiGet({}, {this->a(), this->reverse(), this->reverse(), nullptr}, {"k", "k", "gone", "k"}, &values);
  EXPECT_EQ(values[0], "a");
  EXPECT_EQ(values[1], "r");
  EXPECT_TRUE(statuses[2].IsNotFound());
  EXPECT_CODE(statuses[3], kInvalidArgument);
  ASSERT_OK(transaction->Commit());
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(this->Get(this->db_->DefaultColumnFamily(), "k"), "default");
    EXPECT_EQ(this->Get(this->a(), "k"), "a");
    EXPECT_EQ(this->Get(this->reverse(), "k"), "r");
    this->Close();
    this->Open();
  }
}

TYPED_TEST(TransactionFamilyTest, OperandsAreAppliedByTheOperatorOfTheFamily) {
  for (ColumnFamilyHandle* family : {this->a(), this->reverse()}) ASSERT_OK(this->db_->Put({}, family, "k", "0"));
  ASSERT_OK(this->db_->Merge({}, this->a(), "k", "1"));
  EXPECT_CODE(this->db_->Merge({}, nullptr, "k", "1"), kInvalidArgument);
  auto transaction = this->Begin();
  EXPECT_TRUE(transaction->Merge("k", "1").IsNotSupported()) << "the default family has none";
  EXPECT_CODE(transaction->Merge(nullptr, "k", "1"), kInvalidArgument);
  ASSERT_OK(transaction->Merge(this->a(), "k", "2"));
  ASSERT_OK(transaction->Merge(this->reverse(), "k", "3"));
  ASSERT_OK(transaction->Merge(this->reverse(), "new", "4"));
  ASSERT_OK(transaction->Put(this->reverse(), "put", "5"));
  ASSERT_OK(transaction->Merge(this->reverse(), "put", "6"));
  EXPECT_EQ(this->Get(this->a(), "k"), "01") << "no dirty read";
  for (int round = 0; round < 2; ++round) {
    const auto get = [&](ColumnFamilyHandle* family, const std::string& key) {
      return round == 0 ? this->Get(transaction.get(), family, key) : this->Get(family, key);
    };
    EXPECT_EQ(get(this->a(), "k"), "012");
    EXPECT_EQ(get(this->reverse(), "k"), "03");
    EXPECT_EQ(get(this->reverse(), "new"), "4");
    EXPECT_EQ(get(this->reverse(), "put"), "56");
    if (round == 1) continue;
    std::vector<std::string> values;
    const auto statuses = transaction->MultiGet({}, {this->a(), this->reverse(), this->reverse()}, {"k", "k", "new"}, &values);
    for (const Status& status : statuses) EXPECT_OK(status);
    EXPECT_EQ(values, (std::vector<std::string>{"012", "03", "4"}));
    const auto iterator = transaction->NewIterator({}, this->reverse());
    EXPECT_EQ(this->Keys(iterator.get()), "putnewk");
    iterator->SeekToLast();
    EXPECT_EQ(iterator->value(), "03");
    ASSERT_OK(transaction->Commit());
  }
}

TYPED_TEST(TransactionFamilyTest, IteratorsAreInTheOrderOfTheFamily) {
  for (const char* key : {"a", "c", "e"}) ASSERT_OK(this->db_->Put({}, this->reverse(), key, "v"));
  ASSERT_OK(this->db_->Put({}, "x", "v"));
  auto transaction = this->Begin();
  const auto early = transaction->NewIterator({}, this->reverse());
  EXPECT_EQ(this->Keys(early.get()), "eca");
  for (const char* key : {"b", "f"}) ASSERT_OK(transaction->Put(this->reverse(), key, "v"));
  ASSERT_OK(transaction->Delete(this->reverse(), "c"));
  ASSERT_OK(transaction->Put(this->a(), "z", "v"));
  EXPECT_EQ(this->Keys(early.get()), "feba") << "of a family that the transaction had not met";
  EXPECT_EQ(this->Keys(transaction->NewIterator({}, this->reverse()).get()), "feba");
  EXPECT_EQ(this->Keys(transaction->NewIterator({}, this->a()).get()), "z");
  EXPECT_EQ(this->Keys(transaction->NewIterator({}).get()), "x");
  ReadOptions bounds;
  bounds.iterate_lower_bound = "e";
  bounds.iterate_upper_bound = "a";
  EXPECT_EQ(this->Keys(transaction->NewIterator(bounds, this->reverse()).get()), "eb");
}

// Two read the same value and write it back, one more: in one family that is a conflict, in two it is none.
TYPED_TEST(TransactionFamilyTest, NoUpdateIsLost) {
  ASSERT_OK(this->db_->Put({}, this->a(), "k", "0"));
  ASSERT_OK(this->db_->Put({}, this->reverse(), "k", "0"));
  auto one = this->Begin();
  auto two = this->Begin();
  std::string value;
  ASSERT_OK(one->GetForUpdate({}, this->a(), "k", &value));
  ASSERT_OK(two->GetForUpdate({}, this->reverse(), "k", &value));
  ASSERT_OK(two->GetForUpdate({}, "k", nullptr));
  ASSERT_OK(one->Put(this->a(), "k", "1"));
  ASSERT_OK(two->Put(this->reverse(), "k", "2"));
  ASSERT_OK(one->Commit());
  ASSERT_OK(two->Commit()) << "the same bytes in another family are another key";

  one = this->Begin();
  two = this->Begin();
  ASSERT_OK(one->GetForUpdate({}, this->a(), "k", &value));
  Status status = two->GetForUpdate({}, this->a(), "k", &value);
  if (status.ok()) status = two->Put(this->a(), "k", "lost");
  ASSERT_OK(one->Put(this->a(), "k", "kept"));
  ASSERT_OK(one->Commit());
  if (status.ok()) status = two->Commit();
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(this->Get(this->a(), "k"), "kept");
}

TYPED_TEST(TransactionFamilyTest, ASnapshotProtectsKeysOfAllFamilies) {
  ASSERT_OK(this->db_->Put({}, this->a(), "k", "0"));
  auto transaction = this->Begin(true);
  ASSERT_OK(this->db_->Put({}, this->a(), "k", "1"));
  Status status = transaction->Put(this->a(), "k", "2");
  if (status.ok()) status = transaction->Commit();
  EXPECT_CODE(status, kBusy);
  transaction = this->Begin(true);
  ASSERT_OK(this->db_->Put({}, this->a(), "k", "3"));
  ASSERT_OK(transaction->Put(this->reverse(), "k", "2"));
  ASSERT_OK(transaction->Commit());
}

TYPED_TEST(TransactionFamilyTest, PlainWritesAndBatchesAreIsolated) {
  auto transaction = this->Begin();
  ASSERT_OK(transaction->Put(this->a(), "k", "t"));
  WriteBatch batch;
  batch.Put(this->reverse(), "k", "b");
  batch.Put(this->a(), "k", "b");
  const Status batch_status = this->db_->Write({}, batch);
  const Status put_status = this->db_->Put({}, this->a(), "k", "p");
  const Status delete_status = this->db_->Delete({}, this->a(), "k");
  ASSERT_OK(this->db_->Put({}, "k", "free"));
  ASSERT_OK(this->db_->Delete({}, this->reverse(), "other"));
  if (std::is_same_v<TypeParam, Pessimistic>) {
    EXPECT_CODE(batch_status, kTimedOut);
    EXPECT_CODE(put_status, kTimedOut);
    EXPECT_CODE(delete_status, kTimedOut);
    EXPECT_EQ(this->Get(this->reverse(), "k"), "-") << "all of a batch or nothing";
    ASSERT_OK(transaction->Commit());
    EXPECT_EQ(this->Get(this->a(), "k"), "t");
    ASSERT_OK(this->db_->Write({}, batch));
    EXPECT_EQ(this->Get(this->a(), "k"), "b");
  } else {
    ASSERT_OK(batch_status);
    ASSERT_OK(put_status);
    ASSERT_OK(delete_status);
    EXPECT_CODE(transaction->Commit(), kBusy);
  }
}

TYPED_TEST(TransactionFamilyTest, SavePointsTakeBackUpdatesAndProtectionOfAllFamilies) {
  auto transaction = this->Begin();
  ASSERT_OK(transaction->Put(this->a(), "1", "before"));
  transaction->SetSavePoint();
  ASSERT_OK(transaction->Put(this->a(), "1", "behind"));
  ASSERT_OK(transaction->Put(this->a(), "2", "behind"));
  ASSERT_OK(transaction->Put(this->reverse(), "3", "behind"));
  ASSERT_OK(transaction->Put("4", "behind"));
  ASSERT_OK(transaction->RollbackToSavePoint());
  EXPECT_EQ(this->Get(transaction.get(), this->a(), "1"), "before");
  EXPECT_EQ(this->Get(transaction.get(), this->a(), "2"), "-");
  EXPECT_EQ(this->Get(transaction.get(), this->reverse(), "3"), "-");
  for (ColumnFamilyHandle* family : {this->a(), this->reverse(), this->db_->DefaultColumnFamily()})
    ASSERT_OK(this->db_->Put({}, family, family == this->a() ? "2" : "3", "other")) << family->GetName();
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(this->Get(this->a(), "1"), "before");
  EXPECT_EQ(this->Get(this->a(), "2"), "other");
  transaction = this->Begin();
  ASSERT_OK(transaction->Put(this->a(), "1", "rolled back"));
  ASSERT_OK(transaction->Rollback());
  ASSERT_OK(this->db_->Put({}, this->a(), "1", "other"));
  ASSERT_OK(transaction->Put(this->reverse(), "1", "after"));
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(this->Get(this->a(), "1"), "other");
  EXPECT_EQ(this->Get(this->reverse(), "1"), "after");
}

TYPED_TEST(TransactionFamilyTest, RebuildTakesUpdatesOfFamilies) {
  WriteBatch batch;
  batch.Put(this->reverse(), "b", "1");
  batch.Put(this->reverse(), "a", "1");
  batch.Delete(this->a(), "k");
  batch.Put("d", "1");
  auto transaction = this->Begin();
  ASSERT_OK(transaction->RebuildFromWriteBatch(batch));
  EXPECT_EQ(this->Keys(transaction->NewIterator({}, this->reverse()).get()), "ba");
  WriteBatch wrong;
  wrong.Put(this->a(), "wrong", "1");
  wrong.PutCF(77, "k", "1");
  EXPECT_CODE(transaction->RebuildFromWriteBatch(wrong), kInvalidArgument);
  EXPECT_EQ(this->Get(transaction.get(), this->a(), "wrong"), "-") << "all of it or nothing";
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(this->Get(this->reverse(), "b"), "1");
  EXPECT_EQ(this->Get(this->db_->DefaultColumnFamily(), "d"), "1");
}

TYPED_TEST(TransactionFamilyTest, MisuseIsAnError) {
  auto transaction = this->Begin();
  std::string value;
  EXPECT_CODE(transaction->Put(nullptr, "k", "v"), kInvalidArgument);
  EXPECT_CODE(transaction->Delete(nullptr, "k"), kInvalidArgument);
  EXPECT_CODE(transaction->Get({}, nullptr, "k", &value), kInvalidArgument);
  EXPECT_CODE(transaction->GetForUpdate({}, nullptr, "k", &value), kInvalidArgument);
  EXPECT_CODE(transaction->NewIterator({}, nullptr)->status(), kInvalidArgument);
  EXPECT_CODE(this->db_->Put({}, nullptr, "k", "v"), kInvalidArgument);
  std::unique_ptr<DB> other;
  ASSERT_OK(DB::Open(TinyOptions(1), this->directory_.Sub("other"), &other));
  Handle foreign;
  ASSERT_OK(other->CreateColumnFamily({}, "foreign", &foreign));
  ASSERT_EQ(foreign->GetID(), this->a()->GetID());
  EXPECT_CODE(transaction->Put(foreign.get(), "k", "v"), kInvalidArgument);
  EXPECT_CODE(transaction->Get({}, foreign.get(), "k", &value), kInvalidArgument);
  EXPECT_CODE(this->db_->Put({}, foreign.get(), "k", "v"), kInvalidArgument);
  EXPECT_CODE(this->db_->Delete({}, foreign.get(), "k"), kInvalidArgument);
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(this->Get(this->a(), "k"), "-");
}

// A transaction holds on to a family that it has met: its id is no other family's before the transaction is over.
TYPED_TEST(TransactionFamilyTest, ADroppedFamilyIsAnErrorOfTheCommit) {
  Handle family;
  ASSERT_OK(this->db_->CreateColumnFamily({}, "short-lived", &family));
  const uint32_t id = family->GetID();
  auto transaction = this->Begin();
  ASSERT_OK(transaction->Put(family.get(), "k", "v"));
  ASSERT_OK(transaction->Put("k", "v"));
  ASSERT_OK(this->db_->DropColumnFamily(family.get()));
  auto late = this->Begin();
  EXPECT_CODE(late->Put(family.get(), "k", "v"), kInvalidArgument);
  family.reset();
  Handle next;
  ASSERT_OK(this->db_->CreateColumnFamily({}, "next", &next));
  EXPECT_NE(next->GetID(), id);
  EXPECT_CODE(transaction->Commit(), kInvalidArgument);
  EXPECT_EQ(this->Get(this->db_->DefaultColumnFamily(), "k"), "-") << "all of a batch or nothing";
  EXPECT_EQ(this->Get(next.get(), "k"), "-");
  transaction.reset();
  ASSERT_OK(this->db_->DropColumnFamily(next.get()));
}

TYPED_TEST(TransactionFamilyTest, ACommitCanSkipADroppedFamily) {
  Handle family;
  ASSERT_OK(this->db_->CreateColumnFamily({}, "short-lived", &family));
  WriteOptions ignoring;
  ignoring.ignore_missing_column_families = true;
  const auto transaction = this->db_->BeginTransaction(ignoring);
  ASSERT_OK(transaction->Put(family.get(), "k", "v"));
  ASSERT_OK(transaction->Put("k", "v"));
  ASSERT_OK(this->db_->DropColumnFamily(family.get()));
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(this->Get(this->db_->DefaultColumnFamily(), "k"), "v");
}

// Its keys are those of the database and of the transaction: a prefix without a key in the database is one, too.
TYPED_TEST(TransactionFamilyTest, IteratorsEndWithThePrefix) {
  for (ColumnFamilyHandle* family : {this->db_->DefaultColumnFamily(), this->a()}) {
    for (const char* key : {"a1", "a3", "c1"}) ASSERT_OK(this->db_->Put({}, family, key, "db"));
    auto transaction = this->Begin();
    ASSERT_OK(transaction->Put(family, "a2", "own"));
    ASSERT_OK(transaction->Put(family, "b1", "own"));
    ReadOptions options;
    options.prefix_same_as_start = true;
    const auto iterator = family->GetID() == 0 ? transaction->NewIterator(options) : transaction->NewIterator(options, family);
    const auto from = [&](Slice target) {
      std::string keys;
      for (iterator->Seek(target); iterator->Valid(); iterator->Next()) keys.append(iterator->key()).append(" ");
      EXPECT_OK(iterator->status());
      return keys;
    };
    EXPECT_EQ(from("a"), "a1 a2 a3 ");
    EXPECT_EQ(from("b"), "b1 ");
    EXPECT_EQ(from("c"), "c1 ");
  }
}

TYPED_TEST(TransactionFamilyTest, OperandsAreForTheOperatorOfTheirFamily) {
  ASSERT_OK(this->db_->Put({}, this->a(), "k", "0"));
  ASSERT_OK(this->db_->Merge({}, this->a(), "k", "1"));
  ASSERT_OK(this->db_->Merge({}, this->sums(), "k", this->BytesOf(40)));
  EXPECT_CODE(this->db_->Merge({}, "k", "1"), kNotSupported);
  EXPECT_CODE(this->db_->Merge({}, nullptr, "k", "1"), kInvalidArgument);
  auto transaction = this->Begin();
  EXPECT_CODE(transaction->Merge("k", "2"), kNotSupported);
  EXPECT_CODE(transaction->Merge(nullptr, "k", "2"), kInvalidArgument);
  ASSERT_OK(transaction->Merge(this->a(), "k", "2"));
  transaction->SetSavePoint();
  ASSERT_OK(transaction->Merge(this->a(), "k", "gone"));
  ASSERT_OK(transaction->Merge(this->sums(), "j", this->BytesOf(1)));
  ASSERT_OK(transaction->RollbackToSavePoint());
  ASSERT_OK(transaction->Merge(this->sums(), "k", this->BytesOf(2)));
  ASSERT_OK(transaction->Put(this->sums(), "i", this->BytesOf(7)));
  ASSERT_OK(transaction->Merge(this->sums(), "i", this->BytesOf(1)));
  const auto expect = [this](const std::string& k, const std::string& sums_k, const std::string& sums_i) {
    EXPECT_EQ(k, "012");
    EXPECT_EQ(sums_k, this->BytesOf(42));
    EXPECT_EQ(sums_i, this->BytesOf(8));
  };
  expect(this->Get(transaction.get(), this->a(), "k"), this->Get(transaction.get(), this->sums(), "k"),
         this->Get(transaction.get(), this->sums(), "i"));
  std::vector<std::string> values;
  const auto statuses = transaction->MultiGet({}, {this->a(), this->sums(), this->sums()}, {"k", "k", "i"}, &values);
  for (const Status& status : statuses) EXPECT_OK(status);
  expect(values[0], values[1], values[2]);
  {
    const auto of_a = transaction->NewIterator({}, this->a());
    of_a->SeekToFirst();
    ASSERT_TRUE(of_a->Valid());
    const auto of_sums = transaction->NewIterator({}, this->sums());
    of_sums->SeekToFirst();
    ASSERT_TRUE(of_sums->Valid());
    EXPECT_EQ(of_sums->key(), "k");
    const std::string sums_k(of_sums->value());
    of_sums->Next();
    ASSERT_TRUE(of_sums->Valid());
    expect(std::string(of_a->value()), sums_k, std::string(of_sums->value()));
    EXPECT_EQ(this->Keys(of_sums.get()), "ki");
  }
  EXPECT_EQ(this->Get(this->a(), "k"), "01") << "no dirty read";
  ASSERT_OK(transaction->Commit());
  expect(this->Get(this->a(), "k"), this->Get(this->sums(), "k"), this->Get(this->sums(), "i"));
  EXPECT_EQ(this->Get(this->sums(), "j"), "-");
}

TYPED_TEST(TransactionFamilyTest, OperandsConflictInTheirFamilyOnly) {
  auto transaction = this->Begin();
  ASSERT_OK(transaction->Merge(this->a(), "k", "1"));
  ASSERT_OK(this->db_->Merge({}, this->sums(), "k", this->BytesOf(1)));
  ASSERT_OK(transaction->Commit());
  auto loser = this->Begin();
  ASSERT_OK(loser->Merge(this->a(), "k", "2"));
  const Status direct = this->db_->Merge({}, this->a(), "k", "3");
  WriteBatch batch;
  batch.Merge(this->a(), "k", "4");
  const Status batched = this->db_->Write({}, batch);
  if constexpr (std::is_same_v<TypeParam, Pessimistic>) {
    EXPECT_CODE(direct, kTimedOut);
    EXPECT_CODE(batched, kTimedOut);
    ASSERT_OK(loser->Commit());
    EXPECT_EQ(this->Get(this->a(), "k"), "12");
  } else {
    ASSERT_OK(direct);
    ASSERT_OK(batched);
    EXPECT_CODE(loser->Commit(), kBusy);
    EXPECT_EQ(this->Get(this->a(), "k"), "134");
  }
}

TYPED_TEST(TransactionFamilyTest, OperandsOfABatchAreTakenOver) {
  ASSERT_OK(this->db_->Put({}, this->a(), "k", "0"));
  WriteBatch batch;
  batch.Merge(this->a(), "k", "1");
  batch.Merge(this->sums(), "k", this->BytesOf(1));
  auto transaction = this->Begin();
  ASSERT_OK(transaction->RebuildFromWriteBatch(batch));
  batch.Merge("k", "the default family has no operator");
  EXPECT_CODE(transaction->RebuildFromWriteBatch(batch), kNotSupported);
  EXPECT_EQ(this->Get(transaction.get(), this->a(), "k"), "01") << "all or none";
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ(this->Get(this->a(), "k"), "01");
  EXPECT_EQ(this->Get(this->sums(), "k"), this->BytesOf(1));
}

// Money goes from accounts of one family to those of another; each sum that somebody sees is the same.
TYPED_TEST(TransactionFamilyTest, TransfersBetweenFamiliesKeepTheSum) {
  constexpr int kAccounts = 4;
  constexpr int kInitial = 1000;
  for (ColumnFamilyHandle* family : {this->a(), this->reverse()}) {
    for (int i = 0; i < kAccounts; ++i) ASSERT_OK(this->db_->Put({}, family, std::to_string(i), std::to_string(kInitial)));
  }
  std::atomic<bool> stop{false};
  std::thread auditor([&] {
    while (!stop.load()) {
      const Snapshot* const snapshot = this->db_->GetSnapshot();
      ReadOptions options;
      options.snapshot = snapshot;
      int sum = 0;
      for (ColumnFamilyHandle* family : {this->a(), this->reverse()}) {
        const auto iterator = this->db_->NewIterator(options, family);
        for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) sum += std::stoi(std::string(iterator->value()));
      }
      this->db_->ReleaseSnapshot(snapshot);
      EXPECT_EQ(sum, 2 * kAccounts * kInitial);
    }
  });
  const auto transfer = [&](ColumnFamilyHandle* from, ColumnFamilyHandle* to, const std::string& key) {
    auto transaction = this->Begin();
    std::string left, right;
    Status status = transaction->GetForUpdate({}, from, key, &left);
    if (status.ok()) status = transaction->GetForUpdate({}, to, key, &right);
    if (status.ok()) status = transaction->Put(from, key, std::to_string(std::stoi(left) - 1));
    if (status.ok()) status = transaction->Put(to, key, std::to_string(std::stoi(right) + 1));
    return status.ok() ? transaction->Commit() : status;
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 200;) {
        const bool forth = (i + thread) % 2 == 0;
        const Status status =
            transfer(forth ? this->a() : this->reverse(), forth ? this->reverse() : this->a(), std::to_string(i % kAccounts));
        i += status.ok() ? 1 : 0;
        ASSERT_TRUE(status.ok() || status.IsBusy() || status.IsTimedOut()) << status.ToString();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stop.store(true);
  auditor.join();
}

}  // namespace
}  // namespace braiddb::test
