// Two-phase commit by several threads: transfers that keep their sum whoever decides them, one decision for each transaction, and
// families that are dropped meanwhile.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/transaction.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

constexpr int kThreads = 4;
constexpr int kAccounts = 12;
constexpr int kTransfers = 400 / kSlowdown;  // of each thread
constexpr int kInitial = 1000;

void RunThreads(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(body, i);
  for (auto& thread : threads) thread.join();
}

class TwoPhaseConcurrentTest : public testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open() {
    db_.reset();
    Options options = TinyOptions(2);
    options.create_if_missing = true;
    options.memtable_size = 16 << 10;
    TransactionDBOptions impatient;
    impatient.lock_timeout_ms = 2;
    ASSERT_OK(TransactionDB::Open(options, impatient, directory_.File("db"), &db_));
  }
  int Sum() {
    int sum = 0;
    const auto iterator = db_->NewIterator({});
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) sum += std::stoi(std::string(iterator->value()));
    EXPECT_OK(iterator->status());
    return sum;
  }
  // Prepared, or an error: a lock was not to be had.
  static Status PrepareTransfer(Transaction* transaction, int from, int to, int amount) {
    std::string value;
    Status status = transaction->GetForUpdate({}, NumberedKey(from), &value);
    if (!status.ok()) return status;
    const int left = std::stoi(value) - amount;
    status = transaction->GetForUpdate({}, NumberedKey(to), &value);
    if (status.ok()) status = transaction->Put(NumberedKey(from), std::to_string(left));
    if (status.ok()) status = transaction->Put(NumberedKey(to), std::to_string(std::stoi(value) + amount));
    return status.ok() ? transaction->Prepare() : status;
  }
  // Decides all that are prepared at this moment, those that others are deciding included.
  int DecideAll(Random* random) {
    std::vector<std::unique_ptr<Transaction>> prepared;
    db_->GetAllPreparedTransactions(&prepared);
    int decided = 0;
    for (const auto& transaction : prepared) {
      const Status status = random->OneIn(3) ? transaction->Rollback() : transaction->Commit();
      EXPECT_TRUE(status.ok() || status.IsInvalidArgument()) << status.ToString();  // somebody else came before
      decided += status.ok();
    }
    return decided;
  }

  TestDirectory directory_;
  std::unique_ptr<TransactionDB> db_;
};

TEST_F(TwoPhaseConcurrentTest, TransfersKeepTheSumWhoeverDecidesThem) {
  for (int i = 0; i < kAccounts; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), std::to_string(kInitial)));
  std::atomic<bool> stop{false};
  std::atomic<int> prepared{0}, decided{0};
  std::thread auditor([&] {
    while (!stop) EXPECT_EQ(Sum(), kAccounts * kInitial);
  });
  std::thread decider([&] {
    Random random(99);
    while (!stop) decided += DecideAll(&random);
  });
  RunThreads([&](int thread) {
    Random random(static_cast<uint64_t>(thread) + 1);
    for (int i = 0; i < kTransfers; ++i) {
      const auto from = static_cast<int>(random.Uniform(kAccounts));
      const auto to = static_cast<int>((from + 1 + random.Uniform(kAccounts - 1)) % kAccounts);
      const std::string name = std::to_string(thread) + "-" + std::to_string(i);
      auto transaction = db_->BeginTransaction({});
      ASSERT_OK(transaction->SetName(name));
      const Status status = PrepareTransfer(transaction.get(), from, to, static_cast<int>(random.Uniform(100)));
      ASSERT_TRUE(status.ok() || status.IsTimedOut()) << status.ToString();
      if (!status.ok()) continue;
      ++prepared;
      if (random.OneIn(2)) transaction.reset();  // it is left to others
      const auto again = db_->GetTransactionByName(name);
      if (again == nullptr || random.OneIn(3)) continue;  // somebody has decided it, or will
      const Status decision = random.OneIn(4) ? again->Rollback() : again->Commit();
      ASSERT_TRUE(decision.ok() || decision.IsInvalidArgument()) << decision.ToString();
      decided += decision.ok();
    }
  });
  stop = true;
  decider.join();
  auditor.join();
  Open();  // what is undecided still is
  EXPECT_EQ(Sum(), kAccounts * kInitial);
  Random random(7);
  decided += DecideAll(&random);
  EXPECT_EQ(decided.load(), prepared.load());
  EXPECT_GT(prepared.load(), 0);
  EXPECT_EQ(Sum(), kAccounts * kInitial);
  EXPECT_EQ(DecideAll(&random), 0);
}

// Each thread by a handle of its own.
TEST_F(TwoPhaseConcurrentTest, ATransactionIsDecidedOnce) {
  for (int round = 0; round < 200 / kSlowdown; ++round) {
    const std::string key = NumberedKey(static_cast<uint64_t>(round));
    {
      const auto transaction = db_->BeginTransaction({});
      ASSERT_OK(transaction->SetName("x"));
      ASSERT_OK(transaction->Put(key, "1"));
      ASSERT_OK(transaction->Prepare());
    }
    std::atomic<int> commits{0}, rollbacks{0};
    RunThreads([&](int thread) {
      const auto mine = db_->GetTransactionByName("x");
      if (mine == nullptr) return;
      if (thread % 2 == 0) {
        commits += mine->Commit().ok();
      } else {
        rollbacks += mine->Rollback().ok();
      }
    });
    ASSERT_EQ(commits + rollbacks, 1);
    ASSERT_EQ(GetOrText(db_.get(), key), commits == 1 ? "1" : "<not found>");
    ASSERT_EQ(db_->GetTransactionByName("x"), nullptr);
  }
}

// The first ones in a database, which make the family of records, and after it one name for all.
TEST_F(TwoPhaseConcurrentTest, OneHasTheName) {
  std::atomic<int> named{0};
  RunThreads([&](int thread) {
    for (int i = 0; i < 50; ++i) {
      const auto transaction = db_->BeginTransaction({});
      const std::string own = "own" + std::to_string(thread);
      ASSERT_OK(transaction->SetName(own));
      ASSERT_OK(transaction->Put(own, std::to_string(i)));
      ASSERT_OK(transaction->Prepare());
      TransactionOptions patient;  // the one before loses its locks just after its name
      patient.lock_timeout_ms = 60'000;
      const auto other = db_->BeginTransaction({}, patient);
      const bool has_name = other->SetName("shared").ok();
      if (has_name) {
        EXPECT_EQ(++named, 1);
        EXPECT_OK(other->Put("shared", own));
        EXPECT_OK(other->Prepare());
        --named;
        EXPECT_OK(i % 2 == 0 ? other->Rollback() : other->Commit());
      }
      ASSERT_OK(transaction->Commit());
    }
  });
  for (int thread = 0; thread < kThreads; ++thread) {
    EXPECT_EQ(GetOrText(db_.get(), "own" + std::to_string(thread)), "49");
  }
}

// A family is dropped, or a transaction that has updates of it is prepared: never both.
TEST_F(TwoPhaseConcurrentTest, ADropAndAPrepareExcludeEachOther) {
  int drops = 0;
  for (int round = 0; round < 40 / kSlowdown; ++round) {
    std::unique_ptr<ColumnFamilyHandle> family;
    ASSERT_OK(db_->CreateColumnFamily({}, "f" + std::to_string(round), &family));
    const auto transaction = db_->BeginTransaction({});
    ASSERT_OK(transaction->SetName("x"));
    ASSERT_OK(transaction->Put(family.get(), "k", "v"));
    Status prepared, dropped;
    std::thread preparing([&] { prepared = transaction->Prepare(); });
    std::thread dropping([&] { dropped = db_->DropColumnFamily(family.get()); });
    preparing.join();
    dropping.join();
    ASSERT_NE(prepared.ok(), dropped.ok()) << prepared.ToString() << ", " << dropped.ToString();
    drops += dropped.ok();
    ASSERT_TRUE(prepared.ok() || prepared.IsInvalidArgument() || prepared.IsBusy()) << prepared.ToString();
    ASSERT_TRUE(dropped.ok() || dropped.IsBusy()) << dropped.ToString();
    ASSERT_OK(prepared.ok() ? transaction->Commit() : transaction->Rollback());
    if (!dropped.ok()) {
      ASSERT_OK(db_->DropColumnFamily(family.get()));
    }
  }
  RecordProperty("drops", drops);
}

}  // namespace
}  // namespace braiddb::test
