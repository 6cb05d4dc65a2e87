// A region that is full: it keeps what deletions and relocations need, and comes back as soon as something in it is garbage.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/db.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/failing_calls.h"

namespace braiddb::test {
namespace {

using Clock = std::chrono::steady_clock;

class DbFullRegionTest : public DbTest {
 protected:
  void SetUp() override {
    options_.max_region_size = 32ull << 20;
    options_.memtable_size = 256 << 10;
    DbTest::SetUp();
  }
  // Until a put is refused. Returns how many keys there are.
  int Fill(size_t value_bytes) {
    for (int i = 0; i < 1'000'000; ++i) {
      const Status status = db_->Put({}, NumberedKey(i), PatternedValue(i, value_bytes));
      if (status.ok()) continue;
      EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
      return i;
    }
    return 0;
  }
};

INSTANTIATE_TEST_SUITE_P(Regions, DbFullRegionTest, testing::Values(1, 2),
                         [](const auto& test) { return std::to_string(test.param); });

// Four keys of five are deleted here and there, so that no segment is garbage as a whole.
TEST_P(DbFullRegionTest, DeletionsAreTakenAndMakeRoom) {
  for (int round = 0; round < 3; ++round) {
    const int count = Fill(1000);
    ASSERT_GT(count, 1000);
    Reopen();
    for (int i = 0; i < count; ++i) {
      if (i % 5 != 0) {
        ASSERT_OK(db_->Delete({}, NumberedKey(i))) << i << " of " << count << " in round " << round;
      }
    }
    for (int i = 0; i < count / 2; ++i) {
      if (i % 5 != 0) {
        ASSERT_OK(db_->Put({}, NumberedKey(i), PatternedValue(i, 1000))) << i << " of " << count << " in round " << round;
      }
    }
    for (int i = 0; i < count; i += 97) {
      const bool is_there = i % 5 == 0 || i < count / 2;
      EXPECT_EQ(GetOrText(db_.get(), NumberedKey(i)), is_there ? PatternedValue(i, 1000) : "<not found>") << i;
    }
  }
}

// What lives takes a fifth of the regions, and is overwritten all the time by several threads, also behind opens.
TEST_P(DbFullRegionTest, OverwritesAreNeverRefused) {
  options_.space_slack = 1ull << 40;  // nothing is relocated before the regions are full
  Reopen();
  constexpr int kThreads = 4;
  const int keys = static_cast<int>(GetParam()) * 6000;
  for (int life = 0; life < 3; ++life) {
    std::atomic<int64_t> longest_ms{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        Random random(100 * life + t);
        for (int i = 0; i < 20'000 / kSlowdown; ++i) {
          const int key = static_cast<int>(random.Uniform(keys)) / kThreads * kThreads + t;
          const auto start = Clock::now();
          const Status status = db_->Put({}, NumberedKey(key), PatternedValue(key, 1000));
          const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
          int64_t longest = longest_ms.load();
          while (took > longest && !longest_ms.compare_exchange_weak(longest, took)) {
          }
          ASSERT_OK(status) << "put " << i << " of thread " << t << " in life " << life;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_LT(longest_ms.load(), 5000);
    RecordProperty("longest_ms_" + std::to_string(life), static_cast<int>(longest_ms.load()));
    Reopen();
  }
}

// A region that is full of what lives refuses puts at once, and without a pile of waits.
TEST_P(DbFullRegionTest, WhatDoesNotFitIsRefusedSoon) {
  Fill(4000);
  const auto start = Clock::now();
  for (int i = 0; i < 100; ++i) EXPECT_CODE(db_->Put({}, "more", PatternedValue(i, 4000)), kNoSpace);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
}

// A call that the system refuses while a region grows fails one write. Nothing was written, so nothing is lost or closed.
TEST_P(DbFullRegionTest, APassingErrorFailsOneWriteOnly) {
  for (const int error : {EMFILE, ENFILE, ENOMEM, EINTR}) {
    FailingCalls::Arm(0, error, error == EINTR ? 3 : FailingCalls::kForEver, "posix_fallocate");
    Status status;
    for (int i = 0; status.ok() && i < 3000; ++i) status = db_->Put({}, NumberedKey(i), PatternedValue(i, 4000));
    EXPECT_EQ(status.IsIOError(), error != EINTR) << status.ToString();
    EXPECT_GT(FailingCalls::failed(), 0);
    FailingCalls::Stop();
    for (int i = 0; i < 100; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), PatternedValue(i, 4000))) << strerror(error);
    db_.reset();
    ASSERT_OK(DB::Destroy(options_, directory_.File("db")));
    Reopen();
  }
}

}  // namespace
}  // namespace braiddb::test
