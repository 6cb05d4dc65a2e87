// Transactions of both kinds: what one sees, what others see, conflicts, save points, locks.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "braiddb/transaction.h"
#include "tests/support/db_test_util.h"
#include "tests/support/merge_operators.h"
#include "tests/support/pmem_temp_dir.h"

namespace braiddb::test {
namespace {

class PessimisticTest : public testing::Test {
 protected:
  void SetUp() override { Open({}); }
  void Reopen() { Open({}); }

  void Open(const TransactionDBOptions& transaction_options) {
    db_.reset();
    Options options = TinyOptions(1);
    options.create_if_missing = true;
    ASSERT_OK(TransactionDB::Open(options, transaction_options, directory_.Sub("db"), &db_));
  }
  std::unique_ptr<Transaction> Begin(const TransactionOptions& options = {}) { return db_->BeginTransaction({}, options); }
  // One that does not wait.
  std::unique_ptr<Transaction> BeginImpatient() {
    TransactionOptions options;
    options.lock_timeout_ms = 0;
    return Begin(options);
  }
  std::string Get(Slice key) { return GetFrom(db_.get(), key); }

  PmemTempDir directory_;
  std::unique_ptr<TransactionDB> db_;

 private:
  static std::string GetFrom(DB* db, Slice key) {
    std::string value;
    const Status status = db->Get({}, key, &value);
    return status.ok() ? value : status.ToString();
  }
};

class OptimisticTest : public testing::Test {
 protected:
  void SetUp() override { Reopen(); }
  void Reopen() {
    db_.reset();
    Options options = TinyOptions(1);
    options.create_if_missing = true;
    ASSERT_OK(OptimisticTransactionDB::Open(options, directory_.Sub("db"), &db_));
  }
  std::unique_ptr<Transaction> Begin(const OptimisticTransactionOptions& options = {}) {
    return db_->BeginTransaction({}, options);
  }
  std::string Get(Slice key) {
    std::string value;
    const Status status = db_->Get({}, key, &value);
    return status.ok() ? value : status.ToString();
  }

  PmemTempDir directory_;
  std::unique_ptr<OptimisticTransactionDB> db_;
};

// ---- What holds for both

template <class Fixture>
class TransactionTest : public Fixture {};
using Kinds = testing::Types<PessimisticTest, OptimisticTest>;
TYPED_TEST_SUITE(TransactionTest, Kinds);

TYPED_TEST(TransactionTest, NothingIsSeenBeforeTheCommitAndAllOfItBehind) {
  ASSERT_OK(this->db_->Put({}, "a", "before"));
  ASSERT_OK(this->db_->Put({}, "b", "before"));
  const auto transaction = this->Begin();
  ASSERT_OK(transaction->Put("a", "1"));
  ASSERT_OK(transaction->Delete("b"));
  ASSERT_OK(transaction->Put("c", "3"));
  EXPECT_TRUE(HoldsExactly(this->db_.get(), {{"a", "before"}, {"b", "before"}}));
  std::string value;
  ASSERT_OK(transaction->Get({}, "a", &value));
  EXPECT_EQ(value, "1");
  EXPECT_TRUE(transaction->Get({}, "b", &value).IsNotFound());
  std::vector<std::string> values;
  const std::vector<Status> statuses = transaction->MultiGet({}, {"a", "b", "c", "d"}, &values);
  EXPECT_EQ(values[0], "1");
  EXPECT_TRUE(statuses[1].IsNotFound());
  EXPECT_EQ(values[2], "3");
  EXPECT_TRUE(statuses[3].IsNotFound());
  {
    const auto iterator = transaction->NewIterator({});
    iterator->SeekToFirst();
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->value(), "1");
    iterator->Next();
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->key(), "c");
    iterator->Next();
    EXPECT_FALSE(iterator->Valid());
  }
  ASSERT_OK(transaction->Commit());
  EXPECT_TRUE(HoldsExactly(this->db_.get(), {{"a", "1"}, {"c", "3"}}));
}

TYPED_TEST(TransactionTest, RollbackAndDestructionLeaveNothing) {
  ASSERT_OK(this->db_->Put({}, "a", "before"));
  {
    const auto transaction = this->Begin();
    ASSERT_OK(transaction->Put("a", "1"));
    ASSERT_OK(transaction->Rollback());
    EXPECT_EQ(this->Get("a"), "before");
    const auto other = this->Begin();
    ASSERT_OK(other->Put("a", "2"));
  }
  EXPECT_EQ(this->Get("a"), "before");
  ASSERT_OK(this->db_->Put({}, "a", "behind"));
}

TYPED_TEST(TransactionTest, ABatchWithAKeyOf4GiBIsRefused) {
  const std::string some = "x";
  WriteBatch batch;
  batch.Put("a", "1");
  batch.Delete(Slice(some.data(), size_t{1} << 32));
  EXPECT_TRUE(this->db_->Write({}, batch).IsInvalidArgument());
  const auto transaction = this->Begin();
  EXPECT_TRUE(transaction->RebuildFromWriteBatch(batch).IsInvalidArgument());
  ASSERT_OK(transaction->Commit());
  EXPECT_TRUE(HoldsExactly(this->db_.get(), {}));
}

// The snapshot is in read options of the user: it lasts as long as the transaction.
TYPED_TEST(TransactionTest, ASnapshotOutlivesTheCommitAndTheRollback) {
  ASSERT_OK(this->db_->Put({}, "a", "old"));
  for (const bool commits : {true, false}) {
    SCOPED_TRACE(commits);
    ASSERT_OK(this->db_->Put({}, "a", "old"));
    auto transaction = this->Begin();
    transaction->SetSnapshot();
    ReadOptions options;
    options.snapshot = transaction->GetSnapshot();
    ASSERT_OK(transaction->Put("b", "1"));
    ASSERT_OK(commits ? transaction->Commit() : transaction->Rollback());
    EXPECT_EQ(transaction->GetSnapshot(), options.snapshot);
    ASSERT_OK(this->db_->Put({}, "a", "new"));
    ASSERT_OK(this->db_->CompactRange({}, nullptr, nullptr));
    std::string value;
    ASSERT_OK(this->db_->Get(options, "a", &value));
    EXPECT_EQ(value, "old");
    ASSERT_OK(transaction->Get(options, "a", &value));
    EXPECT_EQ(value, "old");
    EXPECT_EQ(IntProperty(this->db_.get(), "braiddb.num-snapshots"), 1u);
    transaction.reset();
    EXPECT_EQ(IntProperty(this->db_.get(), "braiddb.num-snapshots"), 0u);
  }
}

TEST_F(PessimisticTest, OneThatIsOverTakesNothingMore) {
  const auto transaction = this->Begin();
  ASSERT_OK(transaction->Put("a", "1"));
  ASSERT_OK(transaction->Commit());
  std::string value;
  EXPECT_TRUE(transaction->Put("a", "2").IsInvalidArgument());
  EXPECT_TRUE(transaction->Delete("a").IsInvalidArgument());
  EXPECT_TRUE(transaction->GetForUpdate({}, "a", &value).IsInvalidArgument());
  EXPECT_TRUE(transaction->Commit().IsInvalidArgument());
  EXPECT_TRUE(transaction->Rollback().IsInvalidArgument());
  EXPECT_TRUE(transaction->RollbackToSavePoint().IsInvalidArgument());
  EXPECT_EQ(this->Get("a"), "1");
}

// The key is absent at the first read and at the commit, and a merge has forgotten what was between. The second read saw it.
TEST_F(OptimisticTest, AValueThatWasReadAndIsForgottenIsAConflict) {
  std::string value;
  const auto transaction = Begin();
  EXPECT_TRUE(transaction->GetForUpdate({}, "k", &value).IsNotFound());
  ASSERT_OK(db_->Put({}, "k", "between"));
  ASSERT_OK(transaction->GetForUpdate({}, "k", &value));
  EXPECT_EQ(value, "between");
  ASSERT_OK(db_->Delete({}, "k"));
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  uint64_t sequence = 0;
  ASSERT_TRUE(db_->GetLatestSequenceForKey("k", &sequence).IsNotFound());
  EXPECT_TRUE(transaction->Commit().IsBusy());
}

// Its own value is none of another write.
TEST_F(OptimisticTest, AValueOfItsOwnIsNoConflict) {
  std::string value;
  const auto transaction = Begin();
  EXPECT_TRUE(transaction->GetForUpdate({}, "k", &value).IsNotFound());
  ASSERT_OK(transaction->Put("k", "own"));
  ASSERT_OK(transaction->GetForUpdate({}, "k", &value));
  EXPECT_EQ(value, "own");
  EXPECT_OK(transaction->Commit());
}

TEST_F(OptimisticTest, OneThatIsCommittedGoesOn) {
  OptimisticTransactionOptions options;
  for (const bool has_snapshot : {false, true}) {
    SCOPED_TRACE(has_snapshot);
    options.set_snapshot = has_snapshot;
    ASSERT_OK(db_->Put({}, "a", "0"));
    const auto transaction = Begin(options);
    ASSERT_OK(transaction->Put("a", "1"));
    transaction->SetSavePoint();
    ASSERT_OK(transaction->Commit());
    EXPECT_EQ(transaction->GetState(), TransactionState::kStarted);
    EXPECT_EQ(transaction->GetWriteBatch().GetWriteBatch().Count(), 0u);
    EXPECT_TRUE(transaction->RollbackToSavePoint().IsNotFound());
    ASSERT_OK(db_->Put({}, "a", "2"));  // what is committed is not protected
    ASSERT_OK(transaction->Put("b", "3"));
    ASSERT_OK(transaction->Commit());
    EXPECT_EQ(Get("a"), "2");
    EXPECT_EQ(Get("b"), "3");
    // The snapshot is still that of the beginning: the transaction's own commits are behind it.
    ASSERT_OK(transaction->Put("b", "4"));
    const Status status = transaction->Commit();
    EXPECT_EQ(status.IsBusy(), has_snapshot) << status.ToString();
    ASSERT_OK(transaction->Rollback());
    EXPECT_EQ(Get("b"), has_snapshot ? "3" : "4");
    ASSERT_OK(db_->Delete({}, "b"));
  }
}

TYPED_TEST(TransactionTest, OneThatWasRolledBackCanGoOn) {
  const auto transaction = this->Begin();
  ASSERT_OK(transaction->Put("a", "1"));
  transaction->SetSavePoint();
  ASSERT_OK(transaction->Rollback());
  ASSERT_OK(this->db_->Put({}, "a", "other"));
  EXPECT_TRUE(transaction->RollbackToSavePoint().IsNotFound());
  ASSERT_OK(transaction->Put("b", "2"));
  ASSERT_OK(transaction->Commit());
  EXPECT_TRUE(HoldsExactly(this->db_.get(), {{"a", "other"}, {"b", "2"}}));
}

TYPED_TEST(TransactionTest, SizesThatNoWriteTakesAreRefusedAtOnce) {
  const auto transaction = this->Begin();
  EXPECT_TRUE(transaction->Put(std::string(kMaxKeySize + 1, 'k'), "v").IsInvalidArgument());
  EXPECT_TRUE(transaction->GetForUpdate({}, std::string(kMaxKeySize + 1, 'k'), nullptr).IsInvalidArgument());
  ASSERT_OK(transaction->Put(std::string(kMaxKeySize, 'k'), "v"));
  ASSERT_OK(transaction->Commit());
}

TYPED_TEST(TransactionTest, SavePointsTakeBackUpdatesAndProtection) {
  const auto transaction = this->Begin();
  ASSERT_OK(transaction->Put("kept", "1"));
  transaction->SetSavePoint();
  ASSERT_OK(transaction->Put("kept", "2"));
  ASSERT_OK(transaction->Put("dropped", "2"));
  transaction->SetSavePoint();
  ASSERT_OK(transaction->Put("dropped too", "3"));
  ASSERT_OK(transaction->PopSavePoint());
  ASSERT_OK(transaction->RollbackToSavePoint());
  EXPECT_TRUE(transaction->RollbackToSavePoint().IsNotFound());
  // Whoever writes these now does not conflict.
  ASSERT_OK(this->db_->Put({}, "dropped", "other"));
  ASSERT_OK(this->db_->Put({}, "dropped too", "other"));
  ASSERT_OK(transaction->Commit());
  EXPECT_TRUE(HoldsExactly(this->db_.get(), {{"dropped", "other"}, {"dropped too", "other"}, {"kept", "1"}}));
}

TYPED_TEST(TransactionTest, ABatchIsTakenWithItsProtection) {
  WriteBatch batch;
  batch.Put("a", "1");
  batch.Delete("b");
  ASSERT_OK(this->db_->Put({}, "b", "before"));
  const auto transaction = this->Begin();
  ASSERT_OK(transaction->RebuildFromWriteBatch(batch));
  EXPECT_EQ(transaction->GetWriteBatch().GetWriteBatch().Count(), 2u);
  ASSERT_OK(transaction->Commit());
  EXPECT_TRUE(HoldsExactly(this->db_.get(), {{"a", "1"}}));
}

TYPED_TEST(TransactionTest, ReadsThroughItsSnapshotRepeat) {
  ASSERT_OK(this->db_->Put({}, "a", "1"));
  const auto transaction = this->Begin();
  EXPECT_EQ(transaction->GetSnapshot(), nullptr);
  transaction->SetSnapshot();
  ASSERT_OK(this->db_->Put({}, "a", "2"));
  ReadOptions options;
  options.snapshot = transaction->GetSnapshot();
  std::string value;
  ASSERT_OK(transaction->Get(options, "a", &value));
  EXPECT_EQ(value, "1");
  ASSERT_OK(transaction->Get({}, "a", &value));
  EXPECT_EQ(value, "2");
  transaction->ClearSnapshot();
  EXPECT_EQ(transaction->GetSnapshot(), nullptr);
  ASSERT_OK(transaction->Commit());
}

TYPED_TEST(TransactionTest, WriteSkewIsPossibleUnlessReadForUpdate) {
  // Two doctors, of whom one has to be on call: each goes off after a look at the other.
  for (const bool for_update : {false, true}) {
    ASSERT_OK(this->db_->Put({}, "alice", "on"));
    ASSERT_OK(this->db_->Put({}, "bob", "on"));
    const auto first = this->Begin();
    const auto second = this->Begin();
    first->SetSnapshot();
    second->SetSnapshot();
    std::string value;
    if (!for_update) {
      ReadOptions options;
      options.snapshot = first->GetSnapshot();
      ASSERT_OK(first->Get(options, "bob", &value));
      ASSERT_OK(first->Put("alice", "off"));
      options.snapshot = second->GetSnapshot();
      ASSERT_OK(second->Get(options, "alice", &value));
      ASSERT_OK(second->Put("bob", "off"));
      EXPECT_OK(first->Commit());
      EXPECT_OK(second->Commit());
      EXPECT_EQ(this->Get("alice") + this->Get("bob"), "offoff");
      continue;
    }
    first->ClearSnapshot();
    second->ClearSnapshot();
    ASSERT_OK(first->GetForUpdate({}, "bob", &value));
    ASSERT_OK(second->GetForUpdate({}, "alice", &value));
    std::thread other([&] {
      Status status = second->Put("bob", "off");
      if (status.ok()) status = second->Commit();
      EXPECT_TRUE(status.ok() || status.IsBusy() || status.IsTimedOut()) << status.ToString();
      if (!status.ok()) (void)second->Rollback();
    });
    Status status = first->Put("alice", "off");
    if (status.ok()) status = first->Commit();
    if (!status.ok()) (void)first->Rollback();
    other.join();
    EXPECT_NE(this->Get("alice") + this->Get("bob"), "offoff");
  }
}

TYPED_TEST(TransactionTest, WhatWasWrittenSinceTheSnapshotIsAConflict) {
  const struct {
    const char* name;
    bool there_before;
    bool deletes;
  } cases[] = {{"overwritten", true, false}, {"deleted", true, true}, {"new", false, false}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    if (c.there_before) {
      ASSERT_OK(this->db_->Put({}, c.name, "before"));
    }
    const auto transaction = this->Begin();
    transaction->SetSnapshot();
    ASSERT_OK(c.deletes ? this->db_->Delete({}, c.name) : this->db_->Put({}, c.name, "other"));
    ASSERT_OK(this->db_->CompactRange({}, nullptr, nullptr));  // what nobody sees any more is gone
    Status status = transaction->Put(c.name, "late");
    if (status.ok()) status = transaction->Commit();
    EXPECT_TRUE(status.IsBusy()) << status.ToString();
    EXPECT_EQ(this->Get(c.name), c.deletes ? "NotFound: " : "other");
    ASSERT_OK(transaction->Rollback());
  }
}

TYPED_TEST(TransactionTest, ManyKeysSurviveAReopen) {
  constexpr int kKeys = 20'000;
  auto transaction = this->Begin();
  for (int i = 0; i < kKeys; ++i) ASSERT_OK(transaction->Put(NumberedKey(i), "v"));
  ASSERT_OK(transaction->Commit());
  transaction.reset();
  this->Reopen();
  EXPECT_EQ(ScanForward(this->db_.get()).size(), static_cast<size_t>(kKeys));
}

// What is read of the batch is put into it, which makes its memory move.
TYPED_TEST(TransactionTest, ItsOwnValuesCanBePutBack) {
  const auto transaction = this->Begin();
  const std::string large = PatternedValue(1, 3000);
  ASSERT_OK(transaction->Put("a0", large));
  for (int i = 1; i < 50; ++i) {
    const auto iterator = transaction->NewIterator({});
    iterator->Seek("a" + std::to_string(i - 1));
    ASSERT_TRUE(iterator->Valid());
    ASSERT_OK(transaction->Put("a" + std::to_string(i), iterator->value()));
    EXPECT_EQ(iterator->value(), large);
    Slice own;
    ASSERT_EQ(transaction->GetWriteBatch().Find("a0", &own), WriteBatchWithIndex::Found::kValue);
    ASSERT_OK(transaction->Put("b" + std::to_string(i), own));
  }
  ASSERT_OK(transaction->RebuildFromWriteBatch(transaction->GetWriteBatch().GetWriteBatch()));
  const auto iterator = transaction->NewIterator({});
  iterator->SeekToLast();
  const std::string last(iterator->key());
  ASSERT_OK(transaction->Delete(last));
  EXPECT_EQ(iterator->key(), last);  // until it moves
  EXPECT_EQ(iterator->value(), large);
  ASSERT_OK(transaction->Commit());
  size_t count = 0;
  for (const auto& [key, value] : ScanForward(this->db_.get())) {
    EXPECT_EQ(value, large) << key;
    ++count;
  }
  EXPECT_EQ(count, 98u);
}

TYPED_TEST(TransactionTest, AReadForUpdateThroughAnOldSnapshotIsAConflict) {
  ASSERT_OK(this->db_->Put({}, "a", "5"));
  const Snapshot* const old = this->db_->GetSnapshot();
  ASSERT_OK(this->db_->Put({}, "a", "6"));
  ReadOptions options;
  options.snapshot = old;
  const auto transaction = this->Begin();
  std::string value;
  EXPECT_TRUE(transaction->GetForUpdate(options, "a", &value).IsBusy());
  ASSERT_OK(this->db_->Put({}, "a", "7"));  // and it does not protect
  ASSERT_OK(transaction->Commit());
  this->db_->ReleaseSnapshot(old);
}

TYPED_TEST(TransactionTest, ASavePointKeepsItsSnapshot) {
  ASSERT_OK(this->db_->Put({}, "a", "1"));
  const auto transaction = this->Begin();
  transaction->SetSnapshot();
  transaction->SetSavePoint();
  ASSERT_OK(this->db_->Put({}, "a", "2"));
  transaction->SetSnapshot();
  ASSERT_OK(transaction->RollbackToSavePoint());
  ReadOptions options;
  options.snapshot = transaction->GetSnapshot();
  std::string value;
  ASSERT_OK(transaction->Get(options, "a", &value));
  EXPECT_EQ(value, "1");
  Status status = transaction->Put("a", "3");
  if (status.ok()) status = transaction->Commit();
  EXPECT_TRUE(status.IsBusy()) << status.ToString();
}

// ---- Locks

TEST_F(PessimisticTest, OthersWaitForALockUntilTheirTimeIsOver) {
  const auto holder = Begin();
  ASSERT_OK(holder->Put("a", "1"));
  const auto other = BeginImpatient();
  EXPECT_TRUE(other->Put("a", "2").IsTimedOut());
  EXPECT_TRUE(other->GetForUpdate({}, "a", nullptr).IsTimedOut());
  ASSERT_OK(other->Put("b", "2"));  // it goes on
  ASSERT_OK(holder->Commit());
  ASSERT_OK(other->Put("a", "2"));
  ASSERT_OK(other->Commit());
  EXPECT_EQ(Get("a"), "2");
}

TEST_F(PessimisticTest, AWaiterGetsTheLockWhenItIsReleased) {
  const auto holder = Begin();
  ASSERT_OK(holder->Put("a", "1"));
  Status waited;
  std::thread waiter([&] {
    TransactionOptions options;
    options.lock_timeout_ms = 60'000;
    const auto other = Begin(options);
    waited = other->Put("a", "2");
    if (waited.ok()) waited = other->Commit();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(Get("a"), "NotFound: ");
  const auto released = std::chrono::steady_clock::now();
  ASSERT_OK(holder->Commit());
  waiter.join();
  EXPECT_OK(waited);
  EXPECT_LT(std::chrono::steady_clock::now() - released, std::chrono::seconds(30));  // and not at the end of its patience
  EXPECT_EQ(Get("a"), "2");
}

TEST_F(PessimisticTest, PlainWritesTakeLocksToo) {
  db_.reset();
  TransactionDBOptions options;
  options.default_lock_timeout_ms = 0;
  Open(options);
  const auto holder = Begin();
  ASSERT_OK(holder->Put("a", "1"));
  EXPECT_TRUE(db_->Put({}, "a", "2").IsTimedOut());
  EXPECT_TRUE(db_->Delete({}, "a").IsTimedOut());
  WriteBatch batch;
  batch.Put("0", "2");
  batch.Put("a", "2");
  EXPECT_TRUE(db_->Write({}, batch).IsTimedOut());
  EXPECT_EQ(Get("0"), "NotFound: ");
  ASSERT_OK(holder->Rollback());
  ASSERT_OK(db_->Write({}, batch));
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"0", "2"}, {"a", "2"}}));
}

TEST_F(PessimisticTest, ReadersForUpdateShareALock) {
  const auto first = BeginImpatient();
  const auto second = BeginImpatient();
  ASSERT_OK(db_->Put({}, "a", "1"));
  std::string value;
  ASSERT_OK(first->GetForUpdate({}, "a", &value, false));
  ASSERT_OK(second->GetForUpdate({}, "a", &value, false));
  EXPECT_TRUE(first->Put("a", "2").IsTimedOut());  // not as long as there is another
  ASSERT_OK(second->Rollback());
  ASSERT_OK(first->Put("a", "2"));
  const auto third = BeginImpatient();
  EXPECT_TRUE(third->GetForUpdate({}, "a", &value, false).IsTimedOut());
  ASSERT_OK(first->GetForUpdate({}, "a", &value, false));
  EXPECT_EQ(value, "2");
  ASSERT_OK(first->Commit());
}

TEST_F(PessimisticTest, ADeadlockIsFoundByTheOneThatWouldCloseIt) {
  constexpr int kTransactions = 4;
  TransactionOptions options;
  options.deadlock_detect = true;
  options.lock_timeout_ms = 60'000;
  std::vector<std::unique_ptr<Transaction>> transactions;
  for (int i = 0; i < kTransactions; ++i) {
    transactions.push_back(Begin(options));
    ASSERT_OK(transactions[i]->Put(NumberedKey(i), "own"));
  }
  // Each waits for the next one; the last for the first.
  std::vector<std::thread> threads;
  std::vector<Status> statuses(kTransactions);
  for (int i = 0; i < kTransactions; ++i) {
    threads.emplace_back([&, i] {
      statuses[i] = transactions[i]->Put(NumberedKey((i + 1) % kTransactions), "next's");
      if (!statuses[i].ok()) (void)transactions[i]->Rollback();
      if (statuses[i].ok()) statuses[i] = transactions[i]->Commit();
    });
  }
  for (auto& thread : threads) thread.join();
  int busy = 0;
  for (const Status& status : statuses) {
    EXPECT_TRUE(status.ok() || status.IsBusy()) << status.ToString();
    busy += status.IsBusy();
  }
  EXPECT_GE(busy, 1);
  EXPECT_LT(busy, kTransactions);
}

TEST_F(PessimisticTest, OneThatHasExpiredLosesItsLocks) {
  TransactionOptions options;
  options.expiration_ms = 3000;
  const auto slow = Begin(options);
  ASSERT_OK(slow->Put("a", "slow"));
  TransactionOptions patient;
  patient.lock_timeout_ms = 60'000;
  const auto other = Begin(patient);
  ASSERT_OK(other->Put("a", "other"));  // waits until then
  EXPECT_TRUE(slow->Put("b", "slow").IsExpired());
  EXPECT_TRUE(slow->Commit().IsExpired());
  ASSERT_OK(other->Commit());
  EXPECT_TRUE(slow->Commit().IsExpired());
  ASSERT_OK(slow->Rollback());
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"a", "other"}}));
}

TEST_F(PessimisticTest, OneThatExpiresWhileItWaitsIsToldSo) {
  const auto holder = Begin();
  ASSERT_OK(holder->Put("a", "1"));
  TransactionOptions options;
  options.expiration_ms = 50;
  options.lock_timeout_ms = 600'000;
  const auto other = Begin(options);
  EXPECT_TRUE(other->Put("a", "2").IsExpired());
}

TEST_F(PessimisticTest, TwoThatShareALockAndBothWantItAloneAreADeadlock) {
  TransactionOptions options;
  options.deadlock_detect = true;
  options.lock_timeout_ms = 600'000;
  const auto first = Begin(options);
  const auto second = Begin(options);
  ASSERT_OK(first->GetForUpdate({}, "a", nullptr, false));
  ASSERT_OK(second->GetForUpdate({}, "a", nullptr, false));
  Status one, two;
  std::thread other([&] {
    two = second->Put("a", "2");
    if (!two.ok()) (void)second->Rollback();
  });
  one = first->Put("a", "1");
  if (!one.ok()) (void)first->Rollback();
  other.join();
  EXPECT_EQ(one.ok() + two.ok(), 1);
  EXPECT_EQ(one.IsBusy() + two.IsBusy(), 1);
}

TEST_F(PessimisticTest, LongestTimesAreForEver) {
  TransactionOptions options;
  options.lock_timeout_ms = INT64_MAX;
  options.expiration_ms = INT64_MAX;
  const auto transaction = Begin(options);
  ASSERT_OK(transaction->Put("a", "1"));
  const auto other = BeginImpatient();
  EXPECT_TRUE(other->Put("a", "2").IsTimedOut());
  ASSERT_OK(transaction->Commit());
}

TEST_F(PessimisticTest, ABatchOfWhichAKeyIsLockedIsNotTakenInPart) {
  const auto holder = Begin();
  ASSERT_OK(holder->Put("c", "1"));
  WriteBatch batch;
  batch.Put("b", "2");
  batch.Put("c", "2");
  batch.Put("d", "2");
  const auto other = BeginImpatient();
  ASSERT_OK(other->Put("a", "2"));
  EXPECT_TRUE(other->RebuildFromWriteBatch(batch).IsTimedOut());
  ASSERT_OK(holder->Put("b", "1"));  // not locked any more
  ASSERT_OK(holder->Commit());
  ASSERT_OK(other->Commit());
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"a", "2"}, {"b", "1"}, {"c", "1"}}));
}

TEST_F(PessimisticTest, LocksAndBatchesHaveLimits) {
  db_.reset();
  TransactionDBOptions options;
  options.max_locks = 2;
  Open(options);
  TransactionOptions small;
  small.max_write_batch_size = 100;
  const auto transaction = Begin(small);
  EXPECT_TRUE(transaction->Put("a", std::string(100, 'x')).IsMemoryLimit());
  ASSERT_OK(transaction->Put("a", "1"));
  ASSERT_OK(transaction->Put("b", "1"));
  EXPECT_TRUE(transaction->Put("c", "1").IsBusy());
  ASSERT_OK(transaction->Commit());
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"a", "1"}, {"b", "1"}}));
}

// ---- No locks

TEST_F(OptimisticTest, TheFirstToCommitWins) {
  ASSERT_OK(db_->Put({}, "a", "0"));
  const auto first = Begin();
  const auto second = Begin();
  std::string value;
  ASSERT_OK(first->GetForUpdate({}, "a", &value));
  ASSERT_OK(second->GetForUpdate({}, "a", &value));
  ASSERT_OK(first->Put("a", "1"));
  ASSERT_OK(second->Put("a", "2"));
  ASSERT_OK(first->Commit());
  EXPECT_TRUE(second->Commit().IsBusy());
  EXPECT_TRUE(second->Commit().IsBusy());
  ASSERT_OK(second->Rollback());
  EXPECT_EQ(Get("a"), "1");
}

TEST_F(OptimisticTest, WritesOutsideOfTransactionsAreConflictsToo) {
  for (const char* kind : {"put", "delete", "batch"}) {
    SCOPED_TRACE(kind);
    ASSERT_OK(db_->Put({}, "a", "0"));
    const auto transaction = Begin();
    std::string value;
    ASSERT_OK(transaction->GetForUpdate({}, "a", &value));
    WriteBatch batch;
    batch.Put("a", "1");
    batch.Put("b", "1");
    if (kind == std::string("put")) {
      ASSERT_OK(db_->Put({}, "a", "1"));
    } else if (kind == std::string("delete")) {
      ASSERT_OK(db_->Delete({}, "a"));
    } else {
      ASSERT_OK(db_->Write({}, batch));
    }
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    ASSERT_OK(transaction->Put("c", "1"));
    EXPECT_TRUE(transaction->Commit().IsBusy());
    EXPECT_EQ(Get("c"), "NotFound: ");
  }
}

TEST_F(OptimisticTest, OtherKeysAreNoConflict) {
  const auto transaction = Begin();
  ASSERT_OK(transaction->Put("a", "1"));
  ASSERT_OK(db_->Put({}, "b", "1"));
  ASSERT_OK(transaction->Commit());
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"a", "1"}, {"b", "1"}}));
}

// Of both kinds: operands are seen by the transaction, protected like other updates, and durable with its commit.
template <class AnyDB>
void ExpectMergesWork(AnyDB* db) {
  std::string value;
  ASSERT_OK(db->Put({}, "a", "0"));
  ASSERT_OK(db->Merge({}, "a", "1"));
  const std::unique_ptr<Transaction> transaction = db->BeginTransaction({});
  ASSERT_OK(transaction->Merge("a", "2"));
  ASSERT_OK(transaction->Merge("b", "3"));
  ASSERT_OK(transaction->Get({}, "a", &value));
  EXPECT_EQ(value, "012");
  std::vector<std::string> values;
  const std::vector<Status> statuses = transaction->MultiGet({}, {"a", "b", "c"}, &values);
  EXPECT_OK(statuses[0]);
  EXPECT_EQ(values[0], "012");
  EXPECT_OK(statuses[1]);
  EXPECT_EQ(values[1], "3");
  EXPECT_TRUE(statuses[2].IsNotFound());
  const auto iterator = transaction->NewIterator({});
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->value(), "012");
  ASSERT_OK(db->Get({}, "a", &value));
  EXPECT_EQ(value, "01");
  ASSERT_OK(transaction->Commit());
  EXPECT_TRUE(HoldsExactly(db, {{"a", "012"}, {"b", "3"}}));
}

TEST(TransactionMerges, Pessimistic) {
  PmemTempDir directory;
  Options options = TinyOptions(1);
  options.merge_operator = std::make_shared<AppendOperator>();
  TransactionDBOptions impatient;
  impatient.default_lock_timeout_ms = 0;
  std::unique_ptr<TransactionDB> db;
  ASSERT_OK(TransactionDB::Open(options, impatient, directory.Sub("db"), &db));
  ASSERT_NO_FATAL_FAILURE(ExpectMergesWork(db.get()));
  const std::unique_ptr<Transaction> holder = db->BeginTransaction({});
  ASSERT_OK(holder->Merge("a", "x"));
  EXPECT_TRUE(db->Merge({}, "a", "y").IsTimedOut());
}

TEST(TransactionMerges, Optimistic) {
  PmemTempDir directory;
  Options options = TinyOptions(1);
  options.merge_operator = std::make_shared<AppendOperator>();
  std::unique_ptr<OptimisticTransactionDB> db;
  ASSERT_OK(OptimisticTransactionDB::Open(options, directory.Sub("db"), &db));
  ASSERT_NO_FATAL_FAILURE(ExpectMergesWork(db.get()));
  const std::unique_ptr<Transaction> loser = db->BeginTransaction({});
  ASSERT_OK(loser->Merge("a", "x"));
  ASSERT_OK(db->Merge({}, "a", "y"));
  EXPECT_TRUE(loser->Commit().IsBusy());
}

TEST(TransactionMerges, WithoutAnOperatorTheyAreRefused) {
  PmemTempDir directory;
  std::unique_ptr<OptimisticTransactionDB> db;
  ASSERT_OK(OptimisticTransactionDB::Open(TinyOptions(1), directory.Sub("db"), &db));
  EXPECT_TRUE(db->BeginTransaction({})->Merge("a", "x").IsNotSupported());
}

}  // namespace
}  // namespace braiddb::test
