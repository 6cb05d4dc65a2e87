// ThreadIndex, PerThread, sync points, NUMA topology, CHECK.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "util/check.h"
#include "util/numa_topology.h"
#include "util/per_thread.h"
#include "util/sync_point.h"
#include "util/temporary_thread_index.h"
#include "util/thread_index.h"

namespace braiddb {
namespace {

TEST(ThreadIndex, StableInAThreadAndUniqueAmongTheLiving) {
  constexpr size_t kThreads = 20;
  EXPECT_EQ(ThreadIndex(), ThreadIndex());
  std::vector<uint32_t> indexes(kThreads);
  std::atomic<size_t> arrived{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      indexes[t] = ThreadIndex();
      arrived.fetch_add(1);
      while (arrived.load() < kThreads) std::this_thread::yield();
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint32_t> distinct(indexes.begin(), indexes.end());
  distinct.insert(ThreadIndex());
  EXPECT_EQ(distinct.size(), kThreads + 1);
}

TEST(ThreadIndex, IsGivenBackWithWhatTheOldOwnerWrote) {
  (void)ThreadIndex();
  uint32_t index = kNoThreadIndex;
  PerThread<uint64_t> plain;  // not atomic: a missing happens-before is a race that ThreadSanitizer sees
  for (uint64_t round = 0; round < 100; ++round) {
    std::thread([&] {
      if (round == 0) index = ThreadIndex();
      EXPECT_EQ(ThreadIndex(), index);
      EXPECT_EQ(*plain.Get(), round);
      ++*plain.Get();
    }).join();
  }
}

struct AsksWhenDestroyed {
  ~AsksWhenDestroyed() { *seen = ThreadIndex(); }
  uint32_t* seen = nullptr;
};

TEST(ThreadIndex, EndingThreadGetsNone) {
  uint32_t seen = 0;
  std::thread([&] {
    static thread_local AsksWhenDestroyed asks;  // made before the index, so destroyed after it was given back
    asks.seen = &seen;
    EXPECT_NE(ThreadIndex(), kNoThreadIndex);
  }).join();
  EXPECT_EQ(seen, kNoThreadIndex);
}

struct TakesWhenDestroyed {
  ~TakesWhenDestroyed() {
    const TemporaryThreadIndex outer;
    {
      const TemporaryThreadIndex inner;
      *seen = ThreadIndex();
    }
    EXPECT_EQ(ThreadIndex(), *seen);
  }
  uint32_t* seen = nullptr;
};

TEST(ThreadIndex, EndingThreadsGetTemporaryOnesAndGiveThemBack) {
  (void)ThreadIndex();
  for (uint32_t i = 0; i < 2 * kMaxThreads; ++i) {
    uint32_t seen = kNoThreadIndex, index = kNoThreadIndex;
    std::thread([&] {
      static thread_local TakesWhenDestroyed takes;
      takes.seen = &seen;
      const TemporaryThreadIndex none;
      EXPECT_EQ(PeekThreadIndex(), kNoThreadIndex) << "it is not ending";
      index = ThreadIndex();
    }).join();
    ASSERT_EQ(seen, index) << "the smallest that is free";
  }
}

TEST(PerThread, EachThreadHasItsOwnAndAllAreVisited) {
  constexpr uint64_t kThreads = 40;  // more than a block
  PerThread<std::atomic<uint64_t>> counters;
  std::atomic<uint64_t> arrived{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) counters.Get()->fetch_add(1, std::memory_order_relaxed);
      arrived.fetch_add(1);
      while (arrived.load() < kThreads) std::this_thread::yield();
    });
  }
  for (std::thread& thread : threads) thread.join();
  uint64_t sum = 0, used = 0;
  counters.ForEach([&](const std::atomic<uint64_t>& counter) {
    sum += counter.load(std::memory_order_relaxed);
    if (counter.load(std::memory_order_relaxed) != 0) {
      EXPECT_EQ(counter.load(std::memory_order_relaxed), 1000u);
      ++used;
    }
  });
  EXPECT_EQ(sum, kThreads * 1000);
  EXPECT_EQ(used, kThreads);
}

class SyncPointTest : public testing::Test {
 protected:
  void TearDown() override { SyncPoints::Instance().Clear(); }
};

TEST_F(SyncPointTest, DisabledDoesNothing) {
  int calls = 0;
  SyncPoints::Instance().SetCallback("a", [&](void*) { ++calls; });
  BRAIDDB_SYNC_POINT("a");
  EXPECT_EQ(calls, 0);
  SyncPoints::Instance().Enable();
  BRAIDDB_SYNC_POINT("a");
  BRAIDDB_SYNC_POINT("b");
  EXPECT_EQ(calls, 1);
}

TEST_F(SyncPointTest, HandsOverTheArgument) {
  SyncPoints::Instance().SetCallback("a", [](void* argument) { *static_cast<int*>(argument) = 5; });
  SyncPoints::Instance().Enable();
  int value = 0;
  BRAIDDB_SYNC_POINT_ARG("a", &value);
  EXPECT_EQ(value, 5);
}

TEST_F(SyncPointTest, OrdersThreads) {
  for (int round = 0; round < 50; ++round) {
    SyncPoints::Instance().SetOrder({{"first", "second"}, {"second", "third"}});
    SyncPoints::Instance().Enable();
    int order = 0;  // not atomic: the points order the threads
    std::thread third([&] {
      BRAIDDB_SYNC_POINT("third");
      EXPECT_EQ(++order, 3);
    });
    std::thread second([&] {
      SyncPoints::Instance().SetCallback("second", [&](void*) { EXPECT_EQ(++order, 2); });
      BRAIDDB_SYNC_POINT("second");
    });
    EXPECT_EQ(++order, 1);
    BRAIDDB_SYNC_POINT("first");
    second.join();
    third.join();
    SyncPoints::Instance().Clear();
  }
}

TEST_F(SyncPointTest, DisableLetsWaitersGoAndWaitsForCallbacks) {
  std::atomic<bool> inside{false}, leave{false}, ended{false};
  SyncPoints::Instance().SetOrder({{"never", "waits"}});
  SyncPoints::Instance().SetCallback("calls", [&](void*) {
    inside = true;
    while (!leave) std::this_thread::yield();
    ended = true;
  });
  SyncPoints::Instance().Enable();
  std::thread waiter([] { BRAIDDB_SYNC_POINT("waits"); });
  std::thread caller([] { BRAIDDB_SYNC_POINT("calls"); });
  while (!inside) std::this_thread::yield();
  std::thread releaser([&] { leave = true; });
  SyncPoints::Instance().Disable();
  EXPECT_TRUE(ended);
  waiter.join();
  caller.join();
  releaser.join();
}

TEST(NumaTopology, NodesAreDense) {
  ASSERT_GE(NumaNodeCount(), 1u);
  EXPECT_LT(CurrentNumaNode(), NumaNodeCount());
  std::vector<char> memory(10000);
  for (int node = kUnknownNumaNode; node <= 1024; node += 25)
    BindToNumaNode(memory.data() + 1, memory.size() - 1, node, node % 2 == 0);
  BindToNumaNode(nullptr, 0, 0);
  EXPECT_EQ(FindNumaNodeOfMapping(nullptr, 0), kUnknownNumaNode);
  EXPECT_TRUE(NumaTopology::System().HasSystemNode(NumaTopology::System().SystemNode(CurrentNumaNode())));
}

TEST(CheckDeathTest, SaysWhatAndWhere) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(BRAIDDB_CHECK(1 + 1 == 3), "util_thread_concurrent_test.cc:[0-9]+: CHECK failed: 1 \\+ 1 == 3");
  BRAIDDB_CHECK(true);
}

}  // namespace
}  // namespace braiddb
