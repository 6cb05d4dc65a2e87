// LB+-Tree under several threads: readers see what was acknowledged, whatever splits and removals happen beside them.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "tests/support/lb_tree_store.h"
#include "util/random.h"

namespace braiddb::test {
namespace {

class LbTreeConcurrentTest : public testing::TestWithParam<uint32_t> {
 protected:
  static constexpr uint64_t kWriters = 3, kReaders = 2;
  LbTreeStore store_{2, GetParam()};
};

INSTANTIATE_TEST_SUITE_P(LeafBytes, LbTreeConcurrentTest, testing::Values(256, 1024));

// Each writer has keys of its own, between those of the others. A value is a version, which only grows; readers know the least
// that they must see.
TEST_P(LbTreeConcurrentTest, ReadersSeeAcknowledgedVersions) {
  constexpr uint64_t kKeys = 3000, kChanges = 400000 / kSlowdown;
  std::vector<std::atomic<uint64_t>> versions(kKeys);  // << 1; odd: the key may be missing
  for (uint64_t i = 0; i < kKeys; i += 2) {
    ASSERT_OK(store_.tree()->Put(Mix64(i), 1));
    versions[i] = 2;
  }
  for (uint64_t i = 1; i < kKeys; i += 2) versions[i] = 1;
  std::atomic<uint64_t> running{kWriters};
  std::vector<std::thread> threads;
  for (uint64_t w = 0; w < kWriters; ++w) {
    threads.emplace_back([&, w] {
      Random random(w);
      for (uint64_t n = 0; n < kChanges; ++n) {
        const uint64_t i = random.Uniform(kKeys / kWriters) * kWriters + w;
        const uint64_t version = versions[i].load(std::memory_order_relaxed) / 2 + 1;
        if (i % 2 == 1 && random.OneIn(2)) {
          const Status status = store_.tree()->Remove(Mix64(i));
          ASSERT_TRUE(status.ok() || status.IsNotFound());
        } else {
          ASSERT_OK(store_.tree()->Put(Mix64(i), version));
        }
        versions[i].store(version * 2 + i % 2, std::memory_order_release);
      }
      --running;
    });
  }
  std::atomic<uint64_t> checked{0};
  for (uint64_t r = 0; r < kReaders; ++r) {
    threads.emplace_back([&, r] {
      Random random(100 + r);
      do {
        const uint64_t i = random.Uniform(kKeys);
        const uint64_t before = versions[i].load(std::memory_order_acquire);
        uint64_t value = 0;
        const bool there = store_.tree()->Get(Mix64(i), &value);
        if (before % 2 == 0) {
          ASSERT_TRUE(there) << i;
          ASSERT_GE(value, before / 2) << i;
        }
        ++checked;
      } while (running.load() > 0);
    });
  }
  // All keys that are never removed are in every scan, in order.
  threads.emplace_back([&] {
    std::map<uint64_t, uint64_t> number;
    for (uint64_t i = 0; i < kKeys; ++i) number[Mix64(i)] = i;
    do {
      const std::vector<LbEntry> scan = ++checked % 2 == 0 ? store_.Forward() : store_.Backward();
      uint64_t stable = 0;
      for (size_t i = 0; i < scan.size(); ++i) {
        ASSERT_TRUE(number.contains(scan[i].key));
        if (i > 0) {
          ASSERT_LT(scan[i - 1].key, scan[i].key);
        }
        stable += number[scan[i].key] % 2 == 0;
      }
      ASSERT_EQ(stable, kKeys / 2);
    } while (running.load() > 0);
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(checked.load(), 3u);
  store_.Reopen();
  for (uint64_t i = 0; i < kKeys; i += 2) {
    uint64_t value = 0;
    ASSERT_TRUE(store_.tree()->Get(Mix64(i), &value));
    ASSERT_EQ(value, versions[i] / 2);
  }
}

// Queues beside one another: leaves become empty and are removed, while others split in front of and behind them.
TEST_P(LbTreeConcurrentTest, QueuesSideBySide) {
  constexpr uint64_t kLength = 500, kSteps = 200000 / kSlowdown;
  std::vector<std::thread> threads;
  for (uint64_t w = 0; w < kWriters; ++w) {
    threads.emplace_back([&, w] {
      const auto key = [&](uint64_t i) { return i * kWriters + w; };
      for (uint64_t i = 0; i < kSteps; ++i) {
        ASSERT_OK(store_.tree()->Put(key(i), i));
        if (i >= kLength) {
          ASSERT_OK(store_.tree()->Remove(key(i - kLength)));
        }
        uint64_t value = 0;
        ASSERT_TRUE(store_.tree()->Get(key(i - std::min(i, kLength / 2)), &value));
        ASSERT_EQ(value, i - std::min(i, kLength / 2));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(store_.tree()->GetStats().removals, 0u);
  const std::vector<LbEntry> there = store_.Forward();
  EXPECT_EQ(there.size(), kWriters * std::min(kLength, kSteps));
  EXPECT_EQ(store_.Backward(), there);
  store_.Reopen();
  EXPECT_EQ(store_.Forward(), there);
}

// Threads that fill and empty the whole tree: all leaves go, levels come and go.
TEST_P(LbTreeConcurrentTest, TheTreeShrinksAndGrows) {
  constexpr uint64_t kKeys = 2000 / kSlowdown + 100, kRounds = 30;
  std::vector<std::thread> threads;
  for (uint64_t w = 0; w < kWriters; ++w) {
    threads.emplace_back([&, w] {
      const auto key = [&](uint64_t i) { return Mix64(i * kWriters + w); };
      for (uint64_t round = 0; round < kRounds; ++round) {
        for (uint64_t i = 0; i < kKeys; ++i) ASSERT_OK(store_.tree()->Put(key(i), round));
        for (uint64_t i = 0; i < kKeys; ++i) {
          uint64_t value = kRounds;
          ASSERT_TRUE(store_.tree()->Get(key(i), &value));
          ASSERT_EQ(value, round);
          ASSERT_OK(store_.tree()->Remove(key(i)));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(store_.Forward().empty());
  const uint64_t free_leaves = store_.tree()->GetStats().free_leaves;
  store_.Reopen();
  EXPECT_GE(store_.tree()->GetStats().free_leaves, free_leaves);
  EXPECT_TRUE(store_.Forward().empty());
}

}  // namespace
}  // namespace braiddb::test
