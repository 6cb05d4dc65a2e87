// The lookup cache is resized again and again while threads read, fill and write: a hit is never older than what was visible
// when its lookup began.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cache/lookup_cache.h"
#include "index/key_hash.h"
#include "tests/support/entry_store.h"
#include "util/epoch.h"

namespace braiddb::test {
namespace {

constexpr uint64_t kBucket = 64;
constexpr uint64_t kWriters = 2;
constexpr uint64_t kKeys = 64;
constexpr uint64_t kVersions = 1500 / kSlowdown;
// At least so many, beside the writers.
constexpr uint64_t kResizes = 30;
constexpr uint64_t kHits = 120;

class LookupCacheConcurrentTest : public testing::Test {
 protected:
  void SetUp() override {
    for (uint64_t version = 0; version < kVersions; ++version) {
      for (uint64_t key = 0; key < kKeys; ++key) {
        store_.Write({NumberedKey(key), SequenceOf(key, version), version % 7 == 6, 0, 1});
      }
    }
    cache_ = LookupCache::Create(store_.regions(), 4 * kBucket);
    ASSERT_NE(cache_, nullptr);
  }

  // Of two keys the numbers are not in the order in which the writers come by.
  static uint64_t SequenceOf(uint64_t key, uint64_t version) { return 1 + version * kKeys + key; }
  static bool IsDeletion(uint64_t sequence) { return (sequence - 1) / kKeys % 7 == 6; }

  // Whether a writer of this version waits for the other threads. It waits for hits only where its keys are not deleted.
  bool IsAhead(uint64_t version) const {
    return resizes_.load(std::memory_order_relaxed) < version * kResizes / kVersions ||
           (version % 7 == 3 && hits_.load(std::memory_order_relaxed) < version * kHits / kVersions);
  }

  void Write(uint64_t writer) {
    for (uint64_t version = 0; version < kVersions; ++version) {
      while (IsAhead(version) && !HasFailure()) std::this_thread::yield();
      for (uint64_t key = writer; key < kKeys; key += kWriters) {
        const auto guard = epochs_.Enter();  // a database waits for announced writes in its place
        const uint64_t sequence = SequenceOf(key, version);
        const PmPtr pointer = store_.Find(sequence);
        const uint64_t hash = KeyHash(NumberedKey(key));
        const LookupCache::WriteLock lock = cache_->LockForWrite(hash);
        visible_[key].store(sequence, std::memory_order_release);
        cache_->EndWrite(lock, hash, *store_.Resolve(pointer), pointer);
      }
    }
  }

  void Read(uint64_t seed) {
    Random random(seed);
    while (!stop_.load(std::memory_order_acquire)) {
      const auto guard = epochs_.Enter();
      const uint64_t key = random.Uniform(kKeys);
      const std::string text = NumberedKey(key);
      const uint64_t hash = KeyHash(text);
      const uint64_t before = visible_[key].load(std::memory_order_acquire);
      LookupCache::Miss miss;
      const LogEntry* const entry = cache_->Find(0, text, hash, &miss);
      const uint64_t after = visible_[key].load(std::memory_order_acquire);
      if (entry != nullptr) {
        const uint64_t sequence = entry->sequence();
        if (entry->key() != text || IsDeletion(sequence) || sequence < before || sequence > after) {
          stale_.fetch_add(1);
          ADD_FAILURE() << text << ": hit " << sequence << ", visible " << before << " to " << after;
        }
        hits_.fetch_add(1, std::memory_order_relaxed);
      } else if (after != 0 && !IsDeletion(after)) {
        cache_->Fill(hash, miss, kMaxSequence, store_.Find(after));
      }
    }
  }

  void Resize() {
    Random random(3);
    while (!stop_.load(std::memory_order_acquire)) {
      ASSERT_TRUE(cache_->StartResize((1 + random.Uniform(40)) * kBucket));
      while (!cache_->MoveBuckets(1 + random.Uniform(4))) {
        if (random.OneIn(8)) std::this_thread::yield();
      }
      epochs_.Synchronize();
      cache_->ReleaseOld();
      resizes_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  EntryStore store_{1};
  std::unique_ptr<LookupCache> cache_;
  EpochManager epochs_;
  std::atomic<uint64_t> visible_[kKeys] = {};
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> hits_{0}, stale_{0}, resizes_{0};
};

TEST_F(LookupCacheConcurrentTest, AResizeLosesNoWrite) {
  std::vector<std::thread> others;
  others.emplace_back([this] { Resize(); });
  for (uint64_t seed = 1; seed <= 2; ++seed) others.emplace_back([this, seed] { Read(seed); });
  std::vector<std::thread> writers;
  for (uint64_t writer = 0; writer < kWriters; ++writer) writers.emplace_back([this, writer] { Write(writer); });
  for (std::thread& writer : writers) writer.join();
  stop_.store(true, std::memory_order_release);
  for (std::thread& other : others) other.join();
  EXPECT_EQ(stale_.load(), 0u);
  EXPECT_GE(hits_.load(), kHits * 9 / 10);
  EXPECT_GE(resizes_.load(), kResizes * 9 / 10);
}

}  // namespace
}  // namespace braiddb::test
