// NV-Tree with several writers and readers at once. TSan runs it.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "tests/support/tree_store.h"

namespace braiddb::test {
namespace {

class NvTreeConcurrentTest : public testing::TestWithParam<uint32_t> {
 protected:
  static constexpr uint64_t kThreads = 3;

  // Keys of different writers are neighbors.
  static uint64_t Key(uint64_t i, uint64_t writer) { return Mix64(i) / kThreads * kThreads + writer; }
  bool Find(uint64_t key, uint64_t* value) {
    const EpochManager::Guard guard = store_.epochs()->Enter();
    bool found = false;
    store_.tree()->VisitKey(SearchKey(key, Slice(), 0), [&](const Element& element) {
      *value = element.value;
      found = true;
      return Visited::kEnough;
    });
    return found;
  }

  const KeyOrder order_{BytewiseComparator()};
  const PlainKeys keys_;
  TreeStore store_{2, GetParam(), &keys_, &order_};
};

INSTANTIATE_TEST_SUITE_P(Leaves, NvTreeConcurrentTest, testing::Values(512, 4096));

// Each writer inserts keys, updates all of them again and again, and deletes every fourth; readers know what must be there.
TEST_P(NvTreeConcurrentTest, ReadersSeeWhatWasAcknowledged) {
  constexpr uint64_t kKeys = 12000 / kSlowdown;
  constexpr uint64_t kDeleted = UINT64_MAX;
  struct Writer {
    std::vector<std::atomic<uint64_t>> versions;  // acknowledged, by key; 0: not there yet
    Writer() : versions(kKeys) {}
  };
  std::vector<Writer> writers(kThreads);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> checked{0}, walked{0};
  std::vector<std::thread> threads;
  std::atomic<uint64_t> running{kThreads};
  for (uint64_t w = 0; w < kThreads; ++w) {
    threads.emplace_back([&, w] {
      Random random(w);
      const auto apply = [&](std::vector<LeafChange> changes) { ASSERT_OK(store_.tree()->Apply(changes)); };
      for (uint64_t i = 0; i < kKeys; ++i) {
        // All readers read beside the second half of the writes.
        while (i == kKeys / 2 && (checked == 0 || walked == 0) && !HasFailure()) std::this_thread::yield();
        apply({{{Key(i, w), 1}}});
        writers[w].versions[i].store(1, std::memory_order_release);
        const uint64_t j = random.Uniform(i + 1);
        const uint64_t version = writers[w].versions[j].load(std::memory_order_relaxed);
        if (version == kDeleted) continue;
        if (j % 4 == 3) {
          // Readers may see either until it is marked.
          writers[w].versions[j].store(kDeleted, std::memory_order_release);
          apply({{{Key(j, w), version}, true}});
        } else {
          apply({{{Key(j, w), version}, true}, {{Key(j, w), version + 1}}});
          writers[w].versions[j].store(version + 1, std::memory_order_release);
        }
      }
      --running;
    });
  }
  for (uint64_t r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      Random random(100 + r);
      while (!stop.load(std::memory_order_relaxed)) {
        const uint64_t w = random.Uniform(kThreads), i = random.Uniform(kKeys);
        const uint64_t before = writers[w].versions[i].load(std::memory_order_acquire);
        uint64_t value = 0;
        const bool found = Find(Key(i, w), &value);
        const uint64_t after = writers[w].versions[i].load(std::memory_order_acquire);
        if (before != 0 && before != kDeleted && after != kDeleted) {
          ASSERT_TRUE(found) << i;
          ASSERT_GE(value, before);
        }
        if (found && after != kDeleted) {
          ASSERT_LE(value, after + 1);
        }
        checked.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  // One that walks: in order, and misses nothing that was there before.
  threads.emplace_back([&] {
    Random random(7);
    while (!stop.load(std::memory_order_relaxed)) {
      const uint64_t w = random.Uniform(kThreads), i = random.Uniform(kKeys);
      const bool is_there = i % 4 != 3 && writers[w].versions[i].load(std::memory_order_acquire) != 0;
      LeafCursor cursor(store_.tree());
      const bool forward = random.OneIn(2);
      bool met = false;
      uint64_t last = forward ? 0 : UINT64_MAX;
      // Or from somewhere before the key on: then it begins with a part of a leaf.
      const SearchKey somewhere(random.Uniform(Key(i, w) + 1), Slice(), kMaxSequence);
      const auto begin = [&] {
        if (!forward) return cursor.SeekToLast();
        random.OneIn(2) ? cursor.Seek(somewhere) : cursor.SeekToFirst();
      };
      for (begin(); cursor.element() != nullptr; forward ? cursor.Next() : cursor.Prev()) {
        const uint64_t key = cursor.element()->key;
        ASSERT_TRUE(forward ? last < key : last > key) << "out of order, or twice";
        last = key;
        met |= key == Key(i, w);
        if (forward && random.Uniform(50) == 0) cursor.CopyMore();
      }
      ASSERT_TRUE(met || !is_there);
      ++walked;
    }
  });
  while (running.load() > 0) std::this_thread::yield();
  stop.store(true);
  for (std::thread& thread : threads) thread.join();

  std::map<uint64_t, uint64_t> expected;
  for (uint64_t w = 0; w < kThreads; ++w) {
    for (uint64_t i = 0; i < kKeys; ++i) {
      if (writers[w].versions[i] != kDeleted) expected[Key(i, w)] = writers[w].versions[i];
    }
  }
  const auto expect_same = [&] {
    std::map<uint64_t, uint64_t> there;
    for (const Element& element : store_.Forward()) there[element.key] = element.value;
    EXPECT_EQ(there, expected);
  };
  expect_same();
  store_.Reopen();
  expect_same();
  EXPECT_GT(checked.load(), 0u);
  EXPECT_GT(walked.load(), 0u);
}

// Keys that begin alike. An element's value is the number of its key and, above it, its version, which is its sequence number.
class AlikeKeys final : public ElementKeys {
 public:
  static constexpr int kVersionShift = 32;

  explicit AlikeKeys(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) keys_.push_back("tenant-0001/object/" + NumberedKey(i));
  }
  SearchKey KeyOf(const Element& element) const override {
    return SearchKey(element.key, KeyAt(element), element.value >> kVersionShift);
  }
  void Prefetch(const Element&) const override {}
  Element At(uint64_t i, uint64_t version) const { return {order_.Prefix(keys_[i]), version << kVersionShift | i}; }
  const std::string& KeyAt(const Element& element) const { return keys_[element.value & ((uint64_t{1} << kVersionShift) - 1)]; }
  SearchKey Target(uint64_t i) const { return SearchKey(order_, keys_[i], kMaxSequence); }
  const KeyOrder& order() const { return order_; }

 private:
  const KeyOrder order_{BytewiseComparator()};
  std::vector<std::string> keys_;
};

// Leaves have orders here, which readers make and writers update at the same time. Readers and cursors see each key once, in a
// version at least as new as the one acknowledged before.
TEST_P(NvTreeConcurrentTest, OrdersOfLeavesFollowChanges) {
  constexpr uint64_t kKeys = 3000, kChanges = 6000 / kSlowdown;
  const AlikeKeys keys(kKeys);
  TreeStore store(2, GetParam(), &keys, &keys.order());
  std::vector<LeafChange> all;
  for (uint64_t i = 0; i < kKeys; ++i) all.push_back({keys.At(i, 1)});
  ASSERT_OK(store.tree()->Apply(all));
  std::vector<std::atomic<uint64_t>> versions(kKeys);
  for (auto& version : versions) version = 1;
  std::atomic<uint64_t> running{kThreads};
  std::vector<std::thread> threads;
  for (uint64_t w = 0; w < kThreads; ++w) {
    threads.emplace_back([&, w] {
      Random random(w);
      for (uint64_t n = 0; n < kChanges; ++n) {
        const uint64_t i = random.Uniform(kKeys / kThreads) * kThreads + w;
        const uint64_t version = versions[i].load(std::memory_order_relaxed);
        ASSERT_OK(store.tree()->Apply(std::vector<LeafChange>{{keys.At(i, version + 1)}, {keys.At(i, version), true}}));
        versions[i].store(version + 1, std::memory_order_release);
      }
      --running;
    });
  }
  std::atomic<uint64_t> checked{0};
  for (uint64_t r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      Random random(100 + r);
      do {
        const uint64_t i = random.Uniform(kKeys - 10);
        const uint64_t before = versions[i].load(std::memory_order_acquire);
        if (r == 0) {
          uint64_t newest = 0;
          const EpochManager::Guard guard = store.epochs()->Enter();
          store.tree()->VisitKey(keys.Target(i), [&](const Element& element) {
            if (keys.KeyAt(element) == keys.Target(i).key) newest = std::max(newest, element.value >> AlikeKeys::kVersionShift);
            return Visited::kGoOn;
          });
          ASSERT_GE(newest, before) << i;
        } else {
          const bool forward = random.OneIn(2);
          LeafCursor cursor(store.tree());
          forward ? cursor.Seek(keys.Target(i)) : cursor.SeekBefore(keys.Target(i));
          uint64_t expected = i;
          for (int steps = 0; steps < 10; ++steps) {
            if (!forward && expected-- == 0) break;
            ASSERT_TRUE(cursor.element() != nullptr);
            ASSERT_EQ(keys.KeyAt(*cursor.element()), keys.Target(expected).key);
            forward ? cursor.Next() : cursor.Prev();
            expected += forward ? 1 : 0;
          }
        }
        checked.fetch_add(1, std::memory_order_relaxed);
      } while (running.load() > 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<Element> there = store.Forward();
  ASSERT_EQ(there.size(), kKeys);
  for (uint64_t i = 0; i < kKeys; ++i) EXPECT_EQ(there[i], keys.At(i, versions[i])) << i;
  EXPECT_GE(checked.load(), 2u);
}

// Runs of keys that interleave, as several mergers make them.
TEST_P(NvTreeConcurrentTest, RunsSideBySide) {
  constexpr uint64_t kRuns = 40, kLength = 2000 / kSlowdown;
  std::vector<std::thread> threads;
  for (uint64_t w = 0; w < kThreads; ++w) {
    threads.emplace_back([&, w] {
      for (uint64_t run = 0; run < kRuns; ++run) {
        std::set<uint64_t> sorted;
        for (uint64_t i = 0; i < kLength; ++i) sorted.insert(Key(run * kLength + i, w));
        std::vector<LeafChange> changes;
        for (const uint64_t key : sorted) changes.push_back({{key, w}});
        ASSERT_OK(store_.tree()->Apply(changes));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> expected;
  for (uint64_t w = 0; w < kThreads; ++w) {
    for (uint64_t i = 0; i < kRuns * kLength; ++i) expected.insert(Key(i, w));
  }
  std::vector<uint64_t> there;
  for (const Element& element : store_.Forward()) there.push_back(element.key);
  EXPECT_EQ(there, std::vector<uint64_t>(expected.begin(), expected.end()));
}

}  // namespace
}  // namespace braiddb::test
