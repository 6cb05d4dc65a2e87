// HashIndex with several writers and readers at once. TSan runs it.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/hash_store.h"

namespace braiddb::test {
namespace {

// Each writer adds keys, replaces their entries again and again, and removes every fourth. Readers know what must be there: pages
// are split and joined meanwhile.
TEST(HashIndexConcurrentTest, ReadersSeeWhatWasAcknowledged) {
  constexpr uint64_t kThreads = 2, kKeys = 30000 / kSlowdown;
  constexpr uint32_t kRemoved = UINT32_MAX, kRemoving = kRemoved - 1;
  HashStore store(2);
  std::vector<std::atomic<uint32_t>> acknowledged(kKeys * kThreads);  // the version of each key; 0: not there yet
  std::atomic<uint64_t> running{kThreads}, checked{0};
  std::vector<std::thread> threads;
  for (uint64_t writer = 0; writer < kThreads; ++writer) {
    threads.emplace_back([&, writer] {
      Random random(writer);
      const auto number = [&](uint64_t i) { return i * kThreads + writer; };
      const auto replace = [&](uint64_t key, uint32_t from, uint32_t to) {
        const auto entry = [key](uint32_t version) { return version == 0 ? PmPtr() : NumberedEntries::Entry(key, version); };
        const HashChange change = store.Change(key, entry(from), entry(to));
        ASSERT_OK(store.index()->Apply({&change, 1}));
      };
      for (uint64_t i = 0; i < kKeys; ++i) {
        while (i == kKeys / 2 && checked == 0 && !testing::Test::HasFailure()) std::this_thread::yield();
        replace(number(i), 0, 1);
        acknowledged[number(i)].store(1, std::memory_order_release);
        const uint64_t other = number(random.Uniform(i + 1));
        const uint32_t version = acknowledged[other].load(std::memory_order_relaxed);
        replace(other, version, version + 1);
        acknowledged[other].store(version + 1, std::memory_order_release);
      }
      for (uint64_t i = 0; i < kKeys; ++i) {
        if (i % 8 == 0) continue;
        const uint32_t version = acknowledged[number(i)].load(std::memory_order_relaxed);
        acknowledged[number(i)].store(kRemoving, std::memory_order_release);
        replace(number(i), version, 0);
        acknowledged[number(i)].store(kRemoved, std::memory_order_release);
        if (i % (kKeys / 16) != 0) continue;
        ASSERT_OK(store.index()->Shrink());
      }
      ASSERT_OK(store.index()->Shrink());
      --running;
    });
  }
  for (uint64_t reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&, reader] {
      Random random(100 + reader);
      while (running > 0 && !testing::Test::HasFailure()) {
        const uint64_t key = random.Uniform(kKeys * kThreads);
        const uint32_t before = acknowledged[key].load(std::memory_order_acquire);
        const HashStore::Entries entries = store.Of(key);
        const uint32_t after = acknowledged[key].load(std::memory_order_acquire);
        checked.fetch_add(1, std::memory_order_relaxed);
        if (before == kRemoved) {
          ASSERT_TRUE(entries.empty()) << "key " << key;
        } else if (before != 0 && after < kRemoving) {
          ASSERT_FALSE(entries.empty()) << "key " << key << " version " << before;
        }
        for (const uint64_t entry : entries) {
          ASSERT_TRUE(before >= kRemoving || (entry / 8 - 1) % NumberedEntries::kVersions >= before) << "key " << key;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(store.index()->GetStats().splits, kKeys * kThreads / HashPage::kSlots / 2);
  EXPECT_GT(store.index()->GetStats().joins, 0u);
  HashStore::Entries expected;
  for (uint64_t key = 0; key < kKeys * kThreads; ++key) {
    const uint32_t version = acknowledged[key];
    if (version != kRemoved && version != 0) expected.insert(NumberedEntries::Entry(key, version).raw());
  }
  EXPECT_EQ(store.All(), expected);
}

// A key always has an entry: each is removed after the next one was added, perhaps to the other bucket. A reader that has passed
// the slot of the new one and finds the slot of the old one empty learns of the removal.
TEST(HashIndexConcurrentTest, AReaderThatFindsNothingLearnsOfARemoval) {
  constexpr uint64_t kKeys = 64, kRounds = 200000 / kSlowdown;
  HashStore store(1);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> reads{0};
  for (uint64_t key = 0; key < kKeys; ++key) ASSERT_OK(store.Apply(store.Change(key, PmPtr(), NumberedEntries::Entry(key, 0))));
  std::vector<std::thread> readers;
  for (uint64_t reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&, reader] {
      Random random(reader);
      while (!stop && !testing::Test::HasFailure()) {
        const uint64_t key = random.Uniform(kKeys);
        const EpochManager::Guard guard = store.epochs()->Enter();
        bool found = false;
        const bool is_stable = store.index()->VisitEntries(store.keys.signature_of(key), [&](PmPtr entry) {
          found |= (entry.raw() / 8 - 1) / NumberedEntries::kVersions == key;
        });
        ASSERT_TRUE(found || !is_stable) << "key " << key;
        ++reads;
      }
    });
  }
  Random random(7);
  std::vector<uint64_t> versions(kKeys, 0);
  for (uint64_t round = 0; round < kRounds || reads < 1000; ++round) {
    const uint64_t key = random.Uniform(kKeys);
    const uint64_t next = (versions[key] + 1) % NumberedEntries::kVersions;
    const HashChange changes[] = {store.Change(key, PmPtr(), NumberedEntries::Entry(key, next)),
                                  store.Change(key, NumberedEntries::Entry(key, versions[key]), PmPtr())};
    ASSERT_OK(store.index()->Apply(changes));
    versions[key] = next;
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace braiddb::test
