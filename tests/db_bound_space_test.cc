// Options::bound_space: writers wait for space, and never for ever.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/db_fixture.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

constexpr int kKeys = 1000;
constexpr size_t kValue = 2000;
constexpr std::chrono::milliseconds kSlowMerge{80};

class DbBoundSpaceTest : public DbTest {
 protected:
  void SetUp() override {
    options_.bound_space = true;
    options_.max_space_amplification = 1.3;
    options_.space_slack = 8 << 20;
    DbTest::SetUp();
  }
  void TearDown() override { SyncPoints::Instance().Clear(); }

  // Merges take longer than writers do for what is merged.
  void SlowMerges() {
    SyncPoints::Instance().SetCallback("DBImpl::MergeTables:Announced", [](void*) { std::this_thread::sleep_for(kSlowMerge); });
    SyncPoints::Instance().Enable();
  }
  uint64_t Taken() const { return IntProperty(db_.get(), "braiddb.pm-bytes-in-segments"); }
  // With what writers have not filled, and copies are begun in.
  uint64_t Bound() const {
    const uint64_t live = kKeys * (kValue + 100);
    return live * 13 / 10 + options_.space_slack + 4 * GetParam() * options_.segment_size;
  }
  // The most that was taken.
  uint64_t Overwrite(int writes) {
    uint64_t most = 0;
    for (int i = 0; i < writes; ++i) {
      const std::string key = NumberedKey(random_.Uniform(kKeys));
      expected_[key] = PatternedValue(random_.Next(), kValue);
      EXPECT_OK(db_->Put({}, key, expected_[key]));
      if (i % 10 == 0) most = std::max(most, Taken());
    }
    return most;
  }

  Random random_{3};
  std::map<std::string, std::string> expected_;
};

INSTANTIATE_TEST_SUITE_P(Regions, DbBoundSpaceTest, testing::Values(1u, 2u));

TEST_P(DbBoundSpaceTest, WritersWaitForSpace) {
  if (options_.l1 == L1Kind::kSortedRuns) GTEST_SKIP() << "not for merges that copy";
  // The first merge does not go on before writers have waited.
  SyncPoints::Instance().SetCallback("DBImpl::MergeTables:Announced",
                                     [db = db_.get(), is_first = std::make_shared<std::atomic<bool>>(true)](void*) {
                                       if (is_first->exchange(false)) {
                                         EXPECT_TRUE(WaitUntil([db] { return db->GetStatistics().write_delays > 0; }));
                                       } else {
                                         std::this_thread::sleep_for(kSlowMerge);
                                       }
                                     });
  SyncPoints::Instance().Enable();
  EXPECT_LE(Overwrite(20000), Bound());
  EXPECT_GT(db_->GetStatistics().write_delays, 0u);
  EXPECT_GT(db_->GetStatistics().relocated_entries, 0u);
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
  Reopen();
  Overwrite(1000);
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));  // counts what the session before has left
  EXPECT_LE(Overwrite(5000), Bound());
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
}

TEST_P(DbBoundSpaceTest, WithoutItTheyDoNot) {
  if (options_.l1 == L1Kind::kSortedRuns) GTEST_SKIP() << "not for merges that copy";
  options_.bound_space = false;
  Reopen();
  std::atomic<bool> goes_on{false};
  SyncPoints::Instance().SetCallback("DBImpl::MergeTables:Announced", [&](void*) {
    while (!goes_on) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  SyncPoints::Instance().Enable();
  uint64_t most = 0;
  for (int i = 0; i < 200 && most <= Bound(); ++i) most = std::max(most, Overwrite(100));
  EXPECT_GT(most, Bound());
  goes_on = true;
  SyncPoints::Instance().Clear();  // it has a local
}

TEST_P(DbBoundSpaceTest, ManyWritersWait) {
  if (options_.l1 == L1Kind::kSortedRuns) GTEST_SKIP() << "not for merges that copy";
  SlowMerges();
  std::atomic<uint64_t> most{0};
  std::vector<std::thread> writers;
  for (int thread = 0; thread < 4; ++thread) {
    writers.emplace_back([this, thread, &most] {
      Random random(static_cast<uint64_t>(thread));
      for (int i = 0; i < 5000; ++i) {
        EXPECT_OK(db_->Put({}, NumberedKey(random.Uniform(kKeys)), PatternedValue(random.Next(), kValue)));
        if (i % 10 == 0) most = std::max(most.load(), Taken());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_LE(most, Bound() + 4 * options_.segment_size);
}

// What a snapshot or an iterator holds does not come back.
TEST_P(DbBoundSpaceTest, NobodyWaitsForWhatReadersHold) {
  const Snapshot* const snapshot = db_->GetSnapshot();
  Overwrite(2000);
  const auto iterator = db_->NewIterator({});
  iterator->SeekToFirst();
  Overwrite(6000);
  db_->ReleaseSnapshot(snapshot);
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
}

// New keys leave no garbage: the bound grows with what lives.
TEST_P(DbBoundSpaceTest, ADatabaseThatGrowsIsFilled) {
  for (int i = 0; i < 20000; ++i) {
    expected_[NumberedKey(i)] = PatternedValue(i, kValue);
    ASSERT_OK(db_->Put({}, NumberedKey(i), expected_[NumberedKey(i)]));
  }
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
}

TEST_P(DbBoundSpaceTest, NobodyWaitsWhereNothingIsMerged) {
  ChangedOptions changed;
  changed.disable_auto_compaction = true;
  ASSERT_OK(db_->SetOptions(db_->DefaultColumnFamily(), changed));
  EXPECT_GT(Overwrite(12000), Bound());
}

// The thread that makes room gets no CPU for half a second. Behind an open and a CompactRange nobody else sets a limit.
TEST_P(DbBoundSpaceTest, WritersWaitForAThreadThatIsSlow) {
  if (options_.l1 == L1Kind::kSortedRuns) GTEST_SKIP() << "not for merges that copy";
  const auto slow = [] {
    SyncPoints::Instance().SetCallback("DBImpl::CompactUntilStopped:Next",
                                       [looks = std::make_shared<std::atomic<int>>(0)](void*) {
                                         if (looks->fetch_add(1) == 0)
                                           std::this_thread::sleep_for(std::chrono::milliseconds(500));
                                       });
    SyncPoints::Instance().Enable();
  };
  db_.reset();
  slow();
  Reopen();
  EXPECT_LE(Overwrite(8000), Bound());
  ASSERT_OK(db_->WaitForCompaction());
  slow();
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_LE(Overwrite(8000), Bound());
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
}

// A merge that somebody asked for has the place of the thread that makes room.
TEST_P(DbBoundSpaceTest, ManualMergesLetWritersGo) {
  if (options_.l1 == L1Kind::kSortedRuns) GTEST_SKIP() << "not for merges that copy";
  Overwrite(3000);
  std::atomic<bool> is_stopped{false}, goes_on{false}, wrote{false};
  SyncPoints::Instance().SetCallback("DBImpl::CompactUntilStopped:Next", [&](void*) {
    is_stopped = true;
    while (!goes_on) std::this_thread::yield();
  });
  const std::thread::id here = std::this_thread::get_id();
  SyncPoints::Instance().SetCallback("DBImpl::MergeTables:Announced", [&](void*) {
    if (std::this_thread::get_id() != here || wrote.exchange(true)) return;
    const auto begin = std::chrono::steady_clock::now();
    std::thread writer([this] { Overwrite(5000); });
    writer.join();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  });
  SyncPoints::Instance().Enable();
  for (int i = 0; i < 10000 && !is_stopped; ++i) {
    Overwrite(1);
    EXPECT_OK(db_->Flush());
  }
  EXPECT_TRUE(is_stopped);
  Overwrite(1);
  EXPECT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_TRUE(wrote);
  goes_on = true;
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
  SyncPoints::Instance().Clear();
}

// Segments that they have just begun are no garbage. Nothing could be merged.
TEST_P(DbBoundSpaceTest, NobodyWaitsBehindAPause) {
  db_.reset();
  ASSERT_OK(DB::Destroy(options_, directory_.File("db")));
  options_.space_slack = 4 * options_.segment_size;
  options_.memtable_size = 1 << 20;
  Reopen();
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // the compaction thread sleeps
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> writers;
  for (int thread = 0; thread < 8; ++thread) {
    writers.emplace_back([this, thread] {
      for (int i = 0; i < 200; ++i) EXPECT_OK(db_->Put({}, NumberedKey(200 * thread + i), PatternedValue(i, 100)));
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(9));
}

// The compaction thread makes room, and deletes records of ranges itself.
TEST_P(DbBoundSpaceTest, DeletedRanges) {
  for (int round = 0; round < 60; ++round) {
    Overwrite(200);
    const std::string begin = NumberedKey(10 * round), end = NumberedKey(10 * round + 5);
    ASSERT_OK(db_->DeleteRange({}, begin, end));
    expected_.erase(expected_.lower_bound(begin), expected_.lower_bound(end));
  }
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
}

TEST_P(DbBoundSpaceTest, NeedsRelocation) {
  db_.reset();
  options_.max_space_amplification = 0;
  std::unique_ptr<DB> db;
  EXPECT_CODE(DB::Open(options_, directory_.File("db"), &db), kInvalidArgument);
}

}  // namespace
}  // namespace braiddb::test
