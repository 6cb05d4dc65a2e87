// Transactions of several threads: transfers between accounts that keep their sum, counters that lose no increment.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/transaction.h"
#include "tests/support/db_test_util.h"
#include "tests/support/pmem_temp_dir.h"
#include "util/random.h"

namespace braiddb::test {
namespace {

constexpr int kThreads = 4;
constexpr int kAccounts = 8;
constexpr int kTransfers = 300;  // of each thread, that succeed
constexpr int kInitial = 1000;

// Begins a transaction in a database of one kind.
using Begin = std::function<std::unique_ptr<Transaction>()>;

void RunThreads(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(body, i);
  for (auto& thread : threads) thread.join();
}

int Sum(Iterator* iterator) {
  int sum = 0;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) sum += std::stoi(std::string(iterator->value()));
  EXPECT_OK(iterator->status());
  return sum;
}

Status Transfer(Transaction* transaction, int from, int to, int amount) {
  std::string value;
  Status status = transaction->GetForUpdate({}, NumberedKey(from), &value);
  if (!status.ok()) return status;
  const int left = std::stoi(value) - amount;
  status = transaction->GetForUpdate({}, NumberedKey(to), &value);
  if (status.ok()) status = transaction->Put(NumberedKey(from), std::to_string(left));
  if (status.ok()) status = transaction->Put(NumberedKey(to), std::to_string(std::stoi(value) + amount));
  return status.ok() ? transaction->Commit() : status;
}

void TransferMoney(DB* db, const Begin& begin) {
  for (int i = 0; i < kAccounts; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), std::to_string(kInitial)));
  std::atomic<bool> stop{false};
  std::thread auditor([&] {
    do {
      EXPECT_EQ(Sum(db->NewIterator({}).get()), kAccounts * kInitial);
    } while (!stop.load());
  });
  std::atomic<int> conflicts{0};
  RunThreads([&](int thread) {
    Random random(static_cast<uint64_t>(thread) + 1);
    for (int done = 0; done < kTransfers;) {
      const int from = static_cast<int>(random.Uniform(kAccounts));
      const int to = (from + 1 + static_cast<int>(random.Uniform(kAccounts - 1))) % kAccounts;
      const auto transaction = begin();
      const Status status = Transfer(transaction.get(), from, to, static_cast<int>(random.Uniform(100)));
      ASSERT_TRUE(status.ok() || status.IsBusy() || status.IsTimedOut()) << status.ToString();
      status.ok() ? ++done : ++conflicts;
    }
  });
  stop = true;
  auditor.join();
  EXPECT_EQ(Sum(db->NewIterator({}).get()), kAccounts * kInitial);
  testing::Test::RecordProperty("conflicts", conflicts.load());
}

// Half of the increments are made by a read through a snapshot and a protected write.
void CountUp(DB* db, const Begin& begin) {
  ASSERT_OK(db->Put({}, "counter", "0"));
  RunThreads([&](int thread) {
    for (int done = 0; done < kTransfers;) {
      const auto transaction = begin();
      std::string value;
      Status status;
      if ((done + thread) % 2 == 0) {
        status = transaction->GetForUpdate({}, "counter", &value);
      } else {
        transaction->SetSnapshot();
        ReadOptions options;
        options.snapshot = transaction->GetSnapshot();
        status = transaction->Get(options, "counter", &value);
      }
      if (status.ok()) status = transaction->Put("counter", std::to_string(std::stoi(value) + 1));
      if (status.ok()) status = transaction->Commit();
      ASSERT_TRUE(status.ok() || status.IsBusy() || status.IsTimedOut()) << status.ToString();
      done += status.ok();
    }
  });
  std::string value;
  ASSERT_OK(db->Get({}, "counter", &value));
  EXPECT_EQ(value, std::to_string(kThreads * kTransfers));
}

Options SmallMemtables() {
  Options options = TinyOptions(1);
  options.create_if_missing = true;
  options.memtable_size = 16 << 10;
  return options;
}

class TransactionConcurrentTest : public testing::Test {
 protected:
  void OpenPessimistic() { ASSERT_OK(TransactionDB::Open(SmallMemtables(), {}, directory_.Sub("db"), &pessimistic_)); }
  void OpenOptimistic() { ASSERT_OK(OptimisticTransactionDB::Open(SmallMemtables(), directory_.Sub("db"), &optimistic_)); }
  Begin BeginPessimistic(bool detects_deadlocks) {
    return [this, detects_deadlocks] {
      TransactionOptions options;
      options.deadlock_detect = detects_deadlocks;
      options.lock_timeout_ms = detects_deadlocks ? 60'000 : 5;
      return pessimistic_->BeginTransaction({}, options);
    };
  }
  Begin BeginOptimistic() {
    return [this] { return optimistic_->BeginTransaction({}); };
  }

  PmemTempDir directory_;
  std::unique_ptr<TransactionDB> pessimistic_;
  std::unique_ptr<OptimisticTransactionDB> optimistic_;
};

TEST_F(TransactionConcurrentTest, TransfersKeepTheSumWithDeadlocksFound) {
  OpenPessimistic();
  TransferMoney(pessimistic_.get(), BeginPessimistic(true));
}

TEST_F(TransactionConcurrentTest, TransfersKeepTheSumWithTimeouts) {
  OpenPessimistic();
  TransferMoney(pessimistic_.get(), BeginPessimistic(false));
}

TEST_F(TransactionConcurrentTest, TransfersKeepTheSumWithoutLocks) {
  OpenOptimistic();
  TransferMoney(optimistic_.get(), BeginOptimistic());
}

TEST_F(TransactionConcurrentTest, NoIncrementIsLostWithLocks) {
  OpenPessimistic();
  CountUp(pessimistic_.get(), BeginPessimistic(true));
}

TEST_F(TransactionConcurrentTest, NoIncrementIsLostWithoutLocks) {
  OpenOptimistic();
  CountUp(optimistic_.get(), BeginOptimistic());
}

// Locks of transactions that expire go over to others while their owners still work.
TEST_F(TransactionConcurrentTest, NoIncrementIsLostWhenTransactionsExpire) {
  OpenPessimistic();
  ASSERT_OK(pessimistic_->Put({}, "counter", "0"));
  std::atomic<int> committed{0};
  RunThreads([&](int thread) {
    Random random(static_cast<uint64_t>(thread) + 1);
    for (int i = 0; i < 100; ++i) {
      TransactionOptions options;
      // One in ten does not expire, so that some commit on the slowest machine.
      options.expiration_ms = i % 10 == 0 ? 600'000 : 1;
      options.lock_timeout_ms = 60'000;
      const auto transaction = pessimistic_->BeginTransaction({}, options);
      std::string value;
      Status status = transaction->GetForUpdate({}, "counter", &value);
      if (random.OneIn(4)) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (status.ok()) status = transaction->Put("counter", std::to_string(std::stoi(value) + 1));
      if (status.ok()) status = transaction->Commit();
      ASSERT_TRUE(status.ok() || status.IsExpired()) << status.ToString();
      committed += status.ok();
    }
  });
  std::string value;
  ASSERT_OK(pessimistic_->Get({}, "counter", &value));
  EXPECT_EQ(value, std::to_string(committed.load()));
  EXPECT_GT(committed.load(), 0);
}

}  // namespace
}  // namespace braiddb::test
