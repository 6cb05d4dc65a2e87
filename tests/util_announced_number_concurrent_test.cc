// Announced numbers: nobody misses the number that he waits for.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/support/db_test_util.h"
#include "util/announced_number.h"
#include "util/asymmetric_fence.h"

namespace braiddb::test {
namespace {

class AnnouncedNumberTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && !HasAsymmetricFences()) GTEST_SKIP() << "there are no asymmetric fences here";
  }
};

INSTANTIATE_TEST_SUITE_P(Fences, AnnouncedNumberTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "asymmetric" : "symmetric"; });

TEST_P(AnnouncedNumberTest, NothingIsWaitedForWhereNothingIsAnnounced) {
  AnnouncedNumber number;
  number.WaitAbove(1000, GetParam());
  number.Begin(7, GetParam());
  number.WaitAbove(6, GetParam());
  EXPECT_EQ(number.value(), 7u);
  number.End(GetParam());
  EXPECT_EQ(number.value(), AnnouncedNumber::kNone);
  EXPECT_EQ(number.sleepers(), 0u);
}

TEST_P(AnnouncedNumberTest, SleepersWakeWhenTheNumberIsLargerAndWhenItEnds) {
  for (const bool ends : {false, true}) {
    AnnouncedNumber number;
    number.Begin(5, GetParam());
    std::atomic<int> woken{0};
    std::vector<std::thread> threads;
    for (const uint64_t bound : {5, 6, 7}) {
      threads.emplace_back([&, bound] {
        number.WaitAbove(bound, GetParam());
        woken.fetch_add(1);
      });
    }
    while (number.sleepers() < 3) std::this_thread::yield();
    EXPECT_EQ(woken.load(), 0);
    if (ends) {
      number.End(GetParam());
    } else {
      number.Set(6, GetParam());
      while (woken.load() < 1) std::this_thread::yield();
      number.Set(8, GetParam());
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(number.sleepers(), 0u);
  }
}

// A wake-up that is lost shows as a test that does not end.
TEST_P(AnnouncedNumberTest, NoWakingIsLost) {
  const uint64_t last = 5000 / kSlowdown;
  AnnouncedNumber number;
  std::atomic<uint64_t> written{0};
  std::thread owner([&] {
    for (uint64_t i = 1; i <= last; ++i) {
      number.Begin(i, GetParam());
      // Some waiters spin meanwhile, others fall asleep, and some are about to.
      for (uint64_t pause = 0; pause < i % 97 * 4; ++pause) std::atomic_signal_fence(std::memory_order_seq_cst);
      if (i % 61 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
      written.store(i, std::memory_order_relaxed);
      number.End(GetParam());
    }
  });
  std::vector<std::thread> waiters;
  for (int waiter = 0; waiter < 3; ++waiter) {
    waiters.emplace_back([&] {
      for (uint64_t seen = 0; seen < last;) {
        const uint64_t now = number.value();
        if (now == AnnouncedNumber::kNone) {
          seen = written.load(std::memory_order_relaxed);
          continue;
        }
        number.WaitAbove(now, GetParam());
        EXPECT_GE(written.load(std::memory_order_relaxed), now);
        seen = now;
      }
    });
  }
  owner.join();
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(number.sleepers(), 0u);
}

}  // namespace
}  // namespace braiddb::test
