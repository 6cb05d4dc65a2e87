// Two-phase commit when DRAM or space runs out: a step is done or not, and can be made again.
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <string>
#include <vector>

#include "braiddb/transaction.h"
#include "tests/support/db_test_util.h"
#include "tests/support/failing_new.h"

namespace braiddb::test {
namespace {

class TwoPhaseFailuresTest : public testing::Test {
 protected:
  void SetUp() override {
    this_thread = true;
    Open();
  }
  void TearDown() override { this_thread = false; }
  Status TryOpen() {
    db_.reset();
    return TransactionDB::Open(options_, {}, path_, &db_);
  }
  void Open() { ASSERT_OK(TryOpen()); }

  std::unique_ptr<Transaction> BeginNamed(const std::string& name, size_t bytes = 100) {
    auto transaction = db_->BeginTransaction({});
    EXPECT_OK(transaction->SetName(name));
    EXPECT_OK(transaction->Put(name, std::string(bytes, 'v')));
    return transaction;
  }
  // Makes `step` with an allocation failing, each in turn, until none fails any more.
  template <class Step>
  void UntilItSucceeds(const Step& step) {
    for (int64_t at = 0;; ++at) {
      SCOPED_TRACE(at);
      Status status;
      {
        const Failing failing(Who::kThisThread, at);
        status = step();
      }
      if (failed == 0) {
        ASSERT_OK(status);
        return;
      }
      if (status.ok()) return;  // it could do without
      ASSERT_CODE(status, kMemoryLimit);
    }
  }
  size_t CountPrepared() {
    std::vector<std::unique_ptr<Transaction>> prepared;
    db_->GetAllPreparedTransactions(&prepared);
    return prepared.size();
  }
  static Options MakeOptions() {
    Options options = TinyOptions(1);
    options.create_if_missing = true;
    return options;
  }

  TestDirectory directory_;
  const std::string path_ = directory_.File("db");
  Options options_ = MakeOptions();
  std::unique_ptr<TransactionDB> db_;
};

TEST_F(TwoPhaseFailuresTest, EachStepWithoutDram) {
  // The first prepare makes a column family. Each tree that is not made whole leaves a segment until the next open, and the next
  // attempt has to look at that, too: there would be no end.
  if (TestedL1() == L1Kind::kNvTree || TestedL1() == L1Kind::kLbTree) {
    const auto first = BeginNamed("first");
    ASSERT_OK(first->Prepare());
    ASSERT_OK(first->Rollback());
  }
  for (const bool commits : {true, false}) {
    for (const size_t bytes : {100, 200'000}) {
      auto transaction = db_->BeginTransaction({});
      UntilItSucceeds([&] { return transaction->SetName("x"); });
      ASSERT_OK(transaction->Put("x", std::string(bytes, 'v')));
      UntilItSucceeds([&] {
        EXPECT_EQ(transaction->GetState(), TransactionState::kStarted);
        return transaction->Prepare();
      });
      UntilItSucceeds([&] {
        try {
          auto found = db_->GetTransactionByName("x");
          std::vector<std::unique_ptr<Transaction>> all;
          db_->GetAllPreparedTransactions(&all);
          EXPECT_EQ(all.size(), 1u);
          return Status::OK();
        } catch (const std::bad_alloc&) {
          return Status::MemoryLimit("bad_alloc");
        }
      });
      transaction.reset();
      db_.reset();
      UntilItSucceeds([&] { return TryOpen(); });
      transaction = db_->GetTransactionByName("x");
      ASSERT_NE(transaction, nullptr);
      UntilItSucceeds([&] {
        EXPECT_EQ(transaction->GetState(), TransactionState::kPrepared);
        return commits ? transaction->Commit() : transaction->Rollback();
      });
      transaction.reset();
      Open();
      EXPECT_EQ(CountPrepared(), 0u);
      EXPECT_EQ(GetOrText(db_.get(), "x"), commits ? std::string(bytes, 'v') : "<not found>");
      ASSERT_OK(db_->Delete({}, "x"));
    }
  }
}

TEST_F(TwoPhaseFailuresTest, WithoutSpaceItStaysAsItIs) {
  if (!LogHoldsLastLevel()) GTEST_SKIP() << "a merge that waits for space may find it meanwhile, and give back the log";
  options_.max_region_size = 32 << 20;
  Open();
  auto prepared = BeginNamed("prepared", 300'000);
  ASSERT_OK(prepared->Prepare());
  auto started = BeginNamed("started", 300'000);
  Status full;
  for (int i = 0; full.ok(); ++i) full = db_->Put({}, "filler" + std::to_string(i), std::string(100'000, 'f'));
  ASSERT_CODE(full, kNoSpace);
  EXPECT_CODE(started->Prepare(), kNoSpace);
  EXPECT_EQ(started->GetState(), TransactionState::kStarted);
  EXPECT_CODE(prepared->Commit(), kNoSpace);
  EXPECT_EQ(prepared->GetState(), TransactionState::kPrepared);
  EXPECT_EQ(CountPrepared(), 1u);
  started.reset();
  prepared.reset();
  options_.max_region_size = 64 << 20;
  Open();
  EXPECT_EQ(CountPrepared(), 1u);
  prepared = db_->GetTransactionByName("prepared");
  ASSERT_OK(prepared->Commit());
  EXPECT_EQ(GetOrText(db_.get(), "prepared"), std::string(300'000, 'v'));
  EXPECT_EQ(GetOrText(db_.get(), "started"), "<not found>");
}

}  // namespace
}  // namespace braiddb::test
