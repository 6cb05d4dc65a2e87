// The lookup cache: whatever it is told in whichever order, a hit is the newest version.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cache/lookup_cache.h"
#include "index/key_hash.h"
#include "tests/support/entry_store.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

constexpr uint64_t kBucket = 64;
constexpr uint64_t kSlots = 7;

class LookupCacheTest : public testing::TestWithParam<uint32_t> {
 protected:
  void Make(uint64_t bytes) {
    cache_ = LookupCache::Create(store_.regions(), bytes);
    ASSERT_NE(cache_, nullptr);
  }
  // What a database does with an entry that is durable.
  void Publish(
      const Version& version, const std::function<void()>& during = [] {}) {
    const PmPtr pointer = store_.Find(version.sequence);
    const uint64_t hash = KeyHash(version.key);
    const LookupCache::WriteLock lock = cache_->LockForWrite(hash);
    during();
    cache_->EndWrite(lock, hash, *store_.Resolve(pointer), pointer);
  }
  void Put(const std::string& key, uint64_t sequence) {
    const Version version = {key, sequence};
    store_.Write(version);
    Publish(version);
  }
  // The sequence number of a hit, 0 for a miss.
  uint64_t Find(const std::string& key, LookupCache::Miss* miss) {
    const LogEntry* const entry = cache_->Find(0, key, KeyHash(key), miss);
    LookupCache::Miss quick_miss;
    const LogEntry* quick = nullptr;
    if (cache_->FindQuickly(0, key, KeyHash(key), &quick_miss, &quick)) {
      EXPECT_EQ(quick, entry);
      EXPECT_EQ(quick_miss.word, miss->word);
      ++quick_answers_;
    } else {
      EXPECT_EQ(quick, nullptr);
      ++not_quick_;
    }
    // Another process finds the same, or nothing.
    for (const auto* table : {foreign_.get(), old_foreign_.get()}) {
      const LogEntry* const foreign = table == nullptr ? nullptr : table->Find(0, key, KeyHash(key));
      EXPECT_TRUE(foreign == nullptr || foreign == entry);
      foreign_hits_ += foreign != nullptr;
    }
    if (entry == nullptr) return 0;
    EXPECT_EQ(entry->key(), key);
    EXPECT_EQ(entry->type(), EntryType::kPut);
    return entry->sequence();
  }
  // From now on tables lie in memory that another process can map.
  void ShareTables() {
    heap_ = SharedHeap::Create();
    ASSERT_NE(heap_, nullptr);
    mapped_ = SharedMemory::Attach(heap_->memory().OpenToRead(), false, 1);
    ASSERT_NE(mapped_, nullptr);
  }
  // Maps the present table as another process does. The table before stays mapped.
  void AttachForeign() {
    old_foreign_ = std::move(foreign_);
    const SharedRange range = cache_->shared_range();
    ASSERT_NE(range.offset, 0u);
    ASSERT_TRUE(LookupCache::ForeignTable::IsTable(*mapped_, range));
    foreign_ = std::make_unique<LookupCache::ForeignTable>(store_.regions(), *mapped_, range, &limit_complement_);
  }
  uint64_t Find(const std::string& key) {
    LookupCache::Miss ignored;
    return Find(key, &ignored);
  }
  void Fill(const std::string& key, const LookupCache::Miss& miss, uint64_t as_of, uint64_t sequence) {
    cache_->Fill(KeyHash(key), miss, as_of, store_.Find(sequence));
  }

  EntryStore store_{GetParam()};
  std::unique_ptr<SharedHeap> heap_;
  std::unique_ptr<SharedMemory> mapped_;
  std::atomic<uint64_t> limit_complement_{0};
  std::unique_ptr<LookupCache::ForeignTable> foreign_, old_foreign_;
  uint64_t foreign_hits_ = 0;
  std::unique_ptr<LookupCache> cache_;
  uint64_t quick_answers_ = 0, not_quick_ = 0;
  Random random_{11};
};

INSTANTIATE_TEST_SUITE_P(Regions, LookupCacheTest, testing::Values(1, 3));

// Writes that were overtaken by others, deletions, removals without a newer version, lookups of the newest state and of snapshots
// whose fills come late, and resizes of which some buckets are moved meanwhile: a model says what is newest.
TEST_P(LookupCacheTest, AHitIsTheNewestVersion) {
  constexpr uint64_t kKeys = 40;
  for (const auto& [buckets, resizes] : {std::pair<uint64_t, bool>(1, false), {4, false}, {2, true}}) {
    Make(buckets * kBucket);
    if (resizes) ShareTables();
    bool is_resized = false;
    SharedRange old;  // the table that a reader may still use
    uint64_t resized = 0;
    std::map<std::string, std::vector<Version>> visible;  // in the order of their numbers
    const auto newest = [&](const std::string& key, uint64_t as_of) {
      const Version* found = nullptr;
      for (const Version& version : visible[key]) {
        if (version.sequence <= as_of && (found == nullptr || found->sequence < version.sequence)) found = &version;
      }
      return found == nullptr ? Version{key, 0, true} : *found;
    };
    struct Lookup {
      std::string key;
      LookupCache::Miss miss;
      uint64_t as_of;
      Version found;
    };
    std::deque<Lookup> lookups;
    std::vector<Version> written;  // and not visible yet
    uint64_t sequence = buckets * 1'000'000;
    uint64_t hits = 0;
    uint64_t late_hits = 0;  // right after a fill that others came before
    for (int step = 0; step < 30'000; ++step) {
      if (resizes && !is_resized && random_.OneIn(20)) {
        is_resized = true;
        ASSERT_TRUE(cache_->StartResize((1 + random_.Uniform(9)) * kBucket, heap_.get()));
      } else if (is_resized && random_.OneIn(5) && cache_->MoveBuckets(1)) {
        is_resized = false;
        if (old.offset != 0) heap_->Free(old.offset, old.bytes);
        AttachForeign();
        old = cache_->ReleaseOld();
        ++resized;
      }
      const std::string key = NumberedKey(random_.Uniform(kKeys));
      const auto is_written = [&key](const Version& version) { return version.key == key; };
      if (random_.OneIn(20) && std::none_of(written.begin(), written.end(), is_written)) {
        visible[key].clear();  // marked dead, all of them
        cache_->Forget(KeyHash(key), sequence);
        ASSERT_EQ(Find(key), 0u);
      }
      switch (random_.Uniform(4)) {
        case 0: {
          const auto region = static_cast<uint32_t>(random_.Uniform(GetParam()));
          written.push_back({key, ++sequence, random_.OneIn(4), region});
          store_.Write(written.back());
          break;
        }
        case 1: {
          if (written.empty()) break;
          const auto next = written.begin() + static_cast<std::ptrdiff_t>(random_.OneIn(2) ? 0 : random_.Uniform(written.size()));
          Publish(*next, [&] { visible[next->key].push_back(*next); });
          written.erase(next);
          break;
        }
        case 2: {
          Lookup lookup = {key, {}, kMaxSequence, {}};
          // A snapshot waits until all of before are visible.
          if (random_.OneIn(3))
            lookup.as_of = (written.empty() ? sequence + 1 : written.front().sequence) - 1 - random_.Uniform(3);
          if (Find(key, &lookup.miss) != 0) break;
          lookup.found = newest(key, lookup.as_of);
          if (!lookup.found.tombstone) lookups.push_back(lookup);
          break;
        }
        default: {
          if (lookups.empty() || (lookups.size() < 4 && random_.OneIn(2))) break;
          const Lookup& lookup = lookups.front();
          Fill(lookup.key, lookup.miss, lookup.as_of, lookup.found.sequence);
          late_hits += Find(lookup.key) != 0;
          lookups.pop_front();
        }
      }
      const std::string looked_at = NumberedKey(random_.Uniform(kKeys));
      const uint64_t hit = Find(looked_at);
      if (hit == 0) continue;
      ++hits;
      const Version expected = newest(looked_at, kMaxSequence);
      ASSERT_FALSE(expected.tombstone) << looked_at << " was deleted; found " << hit << " in step " << step;
      ASSERT_EQ(hit, expected.sequence) << looked_at << " in step " << step;
    }
    EXPECT_GT(hits, 500u);
    EXPECT_GT(late_hits, 20u);
    EXPECT_TRUE(!resizes || resized > 200) << resized;
    EXPECT_TRUE(!resizes || foreign_hits_ > hits / 4) << foreign_hits_;
  }
}

// What another process must not use: a bucket that is being written, that was moved, or that is given up; and an address that is
// not mapped.
TEST_P(LookupCacheTest, AnotherProcessUsesOnlyWhatIsRight) {
  ShareTables();
  Make(kBucket);
  ASSERT_TRUE(cache_->StartResize(kBucket, heap_.get()));
  ASSERT_TRUE(cache_->MoveBuckets(1));
  EXPECT_EQ(cache_->ReleaseOld().offset, 0u) << "the first table was private";
  AttachForeign();
  Put("key", 1);
  const auto find = [&] { return foreign_->Find(0, "key", KeyHash("key")); };
  ASSERT_NE(find(), nullptr);
  EXPECT_EQ(find()->sequence(), 1u);
  EXPECT_EQ(foreign_->Find(1, "key", KeyHash("key")), nullptr);
  const Version next = {"key", 2};
  store_.Write(next);
  Publish(next, [&] { EXPECT_EQ(find(), nullptr); });
  ASSERT_NE(find(), nullptr);
  EXPECT_EQ(find()->sequence(), 2u);
  limit_complement_.store(~uint64_t{0});
  EXPECT_EQ(find(), nullptr);
  limit_complement_.store(0);
  const PmPtr beyond(GetParam() - 1, uint64_t{1} << 40);
  cache_->Move(KeyHash("key"), store_.Find(2), beyond, 2);
  EXPECT_EQ(find(), nullptr);
  cache_->Move(KeyHash("key"), beyond, store_.Find(2), 2);
  EXPECT_NE(find(), nullptr);
  ASSERT_TRUE(cache_->StartResize(4 * kBucket, heap_.get()));
  ASSERT_TRUE(cache_->MoveBuckets(1));
  EXPECT_EQ(find(), nullptr) << "moved";
  const SharedRange old = cache_->ReleaseOld();
  EXPECT_EQ(find(), nullptr);
  heap_->Free(old.offset, old.bytes);
  EXPECT_EQ(find(), nullptr) << "zeros";
  for (const SharedRange wrong : {SharedRange{4096, 0}, {4096, 65}, {4100, 64}, {mapped_->bytes(), 64}, {4096, UINT64_MAX - 63}})
    EXPECT_FALSE(LookupCache::ForeignTable::IsTable(*mapped_, wrong)) << wrong.offset << " " << wrong.bytes;
}

TEST_P(LookupCacheTest, NobodyUsesABucketThatIsBeingWritten) {
  Make(kBucket);
  store_.Write({"unknown", 1});
  Put("key", 2);
  const Version next = {"key", 3};
  store_.Write(next);
  LookupCache::Miss miss;
  Publish(next, [&] {
    EXPECT_EQ(Find("unknown", &miss), 0u);
    Fill("unknown", miss, kMaxSequence, 1);  // returns, and does nothing
    EXPECT_EQ(Find("key", &miss), 0u);
    Fill("key", miss, kMaxSequence, 2);
  });
  EXPECT_EQ(Find("unknown"), 0u);
  EXPECT_EQ(Find("key"), 3u);
  Fill("key", miss, kMaxSequence, 2);
  EXPECT_EQ(Find("key"), 3u);
}

// However often, and also when no more late writes can be counted.
TEST_P(LookupCacheTest, WhatIsForgottenIsNotFilledIn) {
  Make(kBucket);
  Put("key", 1000);
  for (int i = 0; i < 300; ++i) {
    LookupCache::Miss before;
    cache_->Forget(KeyHash("other"), 1000);
    if (Find("key", &before) == 0) Fill("key", before, kMaxSequence, 1000);
    LookupCache::Miss miss;
    EXPECT_EQ(Find("missing", &miss), 0u);
    cache_->Forget(KeyHash("key"), 1000);
    EXPECT_EQ(Find("key"), 0u);
    Fill("key", miss, kMaxSequence, 1000);
    EXPECT_EQ(Find("key"), 0u);
  }
  Put("key", 2000);
  EXPECT_EQ(Find("key"), 2000u);
}

// Keys that the cache cannot tell apart without their entries take each other's slot; a write that was overtaken takes none from
// another key, since a newer version of its own may have been displaced from there.
TEST_P(LookupCacheTest, KeysWithOneTagDisplaceEachOther) {
  std::map<uint64_t, std::string> by_tag;
  std::string key, other;
  for (uint64_t i = 0; other.empty(); ++i) {
    key = NumberedKey(i);
    const auto [there, is_new] = by_tag.emplace(KeyHash(key) >> 47, key);
    if (!is_new) other = there->second;
  }
  Make(kBucket);
  Put(other, 15);
  Put(key, 20);
  LookupCache::Miss miss;
  EXPECT_EQ(Find(other, &miss), 0u);
  EXPECT_EQ(Find(key), 20u);
  Fill(other, miss, kMaxSequence, 15);
  EXPECT_EQ(Find(other), 15u);
  EXPECT_EQ(Find(key), 0u);
  Put(key, 19);
  EXPECT_EQ(Find(key), 0u) << "20 is the newest";
  EXPECT_EQ(Find(other), 15u);
  const Version late = {key, 18, true};
  store_.Write(late);
  Publish(late);
  EXPECT_EQ(Find(other), 15u);
  const Version deletion = {key, 21, true};
  store_.Write(deletion);
  Publish(deletion);
  EXPECT_EQ(Find(other), 0u) << "it could have been the key's";
}

// Overtaken writes are counted in seven bits.
TEST_P(LookupCacheTest, AFillIsRefusedAfterAnyNumberOfOvertakenWrites) {
  Make(kBucket);
  const uint64_t largest = 1000;
  Put("other", largest);
  uint64_t sequence = 1;
  Put("key", sequence);  // not taken: a newer one may have been here
  EXPECT_EQ(Find("key"), 0u);
  for (int round = 0; round < 300; ++round) {
    LookupCache::Miss miss;
    ASSERT_EQ(Find("key", &miss), 0u);
    const int overtaken = round == 0 ? 128 : 1;
    for (int i = 0; i < overtaken; ++i) Put("key", sequence + 1 + static_cast<uint64_t>(i));
    Fill("key", miss, kMaxSequence, sequence);
    ASSERT_EQ(Find("key"), 0u) << "round " << round;
    sequence += static_cast<uint64_t>(overtaken);
  }
  LookupCache::Miss miss;
  Put("other", largest + 1);
  ASSERT_EQ(Find("key", &miss), 0u);
  Fill("key", miss, kMaxSequence, sequence);
  EXPECT_EQ(Find("key"), sequence) << "from a larger number on it is filled again";
}

// An empty slot looks as if it had the tag 0.
TEST_P(LookupCacheTest, AnEmptySlotDoesNotHideATagOfZero) {
  uint64_t number = 0;
  while (KeyHash(NumberedKey(number)) >> 47 != 0) ++number;
  const std::string key = NumberedKey(number);
  Make(kBucket);
  EXPECT_EQ(Find(key), 0u);
  EXPECT_EQ(not_quick_, 1u);
  Put("other", 1);
  Put(key, 2);
  EXPECT_EQ(Find(key), 2u);
  EXPECT_EQ(not_quick_, 1u);
  const Version deletion = {"other", 3, true};
  store_.Write(deletion);
  Publish(deletion);
  EXPECT_EQ(Find(key), 2u);
  EXPECT_EQ(not_quick_, 2u);
}

TEST_P(LookupCacheTest, HoldsAsManyKeysAsItHasRoomFor) {
  constexpr uint64_t kBuckets = 256;
  constexpr uint64_t kKeys = kBuckets * kSlots / 2;
  Make(kBuckets * kBucket + 17);  // rounded down
  EXPECT_EQ(cache_->bytes(), kBuckets * kBucket);
  for (uint64_t i = 0; i < kKeys; ++i) Put(NumberedKey(i), i + 1);
  uint64_t hits = 0;
  for (uint64_t i = 0; i < kKeys; ++i) hits += Find(NumberedKey(i)) == i + 1;
  EXPECT_GT(hits, kKeys * 19 / 20);
  EXPECT_GT(quick_answers_, kKeys * 19 / 20);
}

// Every key that is there stays; the number of slots decides how many can be.
TEST_P(LookupCacheTest, GrowsWithItsKeys) {
  uint32_t asked = 0;
  cache_ = LookupCache::Create(store_.regions(), 32 * kBucket, [&asked] { ++asked; });
  ASSERT_NE(cache_, nullptr);
  constexpr uint64_t kKeys = 6000;
  for (uint64_t i = 0; i < kKeys; ++i) {
    Put(NumberedKey(i), i + 1);
    if (!cache_->is_crowded()) continue;
    EXPECT_GT(i, cache_->bytes() / kBucket) << "not before there is a key for each bucket";
    ASSERT_TRUE(cache_->StartResize(4 * cache_->bytes()));
    while (!cache_->MoveBuckets(7)) EXPECT_EQ(Find(NumberedKey(i)), i + 1);
    cache_->ReleaseOld();
    EXPECT_FALSE(cache_->is_crowded());
  }
  EXPECT_GE(asked, 3u);
  EXPECT_GE(cache_->bytes() / kBucket * 6, kKeys);
  uint64_t hits = 0;
  for (uint64_t i = 0; i < kKeys; ++i) hits += Find(NumberedKey(i)) == i + 1;
  EXPECT_GT(hits, kKeys * 95 / 100);
  cache_->AcceptCrowd();
  ASSERT_TRUE(cache_->StartResize(16 * kBucket));
  while (!cache_->MoveBuckets(100)) {
  }
  cache_->ReleaseOld();
  EXPECT_FALSE(cache_->is_crowded()) << "a smaller one has room for what comes";
  hits = 0;
  for (uint64_t i = 0; i < kKeys; ++i) hits += Find(NumberedKey(i)) == i + 1;
  EXPECT_GT(hits, 16u);
  EXPECT_LT(hits, 16 * kSlots);
}

// The end of a resize counts the keys. Threads that fill the new table during the count must not make it look empty for good.
TEST_P(LookupCacheTest, KeysThatComeDuringTheCountAreCounted) {
  Make(32 * kBucket);
  ASSERT_TRUE(cache_->StartResize(64 * kBucket));
  SyncPoints::Instance().SetCallback("LookupCache::MoveBuckets:Counted", [this](void*) {
    for (uint64_t i = 0; i < 64 * kSlots * 2; ++i) Put(NumberedKey(i), i + 1);
  });
  SyncPoints::Instance().Enable();
  while (!cache_->MoveBuckets(100)) {
  }
  SyncPoints::Instance().Clear();
  cache_->ReleaseOld();
  EXPECT_TRUE(cache_->is_crowded());
  cache_->AcceptCrowd();
  cache_->AskAgain();
  EXPECT_TRUE(cache_->is_crowded());
}

// Keys that are asked for again and again outlast four times as many that are written once.
TEST_P(LookupCacheTest, WhatIsUsedStays) {
  constexpr uint64_t kBuckets = 64;
  constexpr uint64_t kHot = kBuckets * 2;
  Make(kBuckets * kBucket);
  for (uint64_t i = 0; i < kHot; ++i) Put(NumberedKey(i), i + 1);
  uint64_t next = kHot;
  for (uint64_t i = 0; i < kBuckets * kSlots * 4; ++i) {
    for (uint64_t j = 0; j < 8; ++j) Find(NumberedKey((i * 8 + j) % kHot));
    Put(NumberedKey(next), next + 1);
    ++next;
  }
  uint64_t hits = 0;
  for (uint64_t i = 0; i < kHot; ++i) hits += Find(NumberedKey(i)) != 0;
  EXPECT_GT(hits, kHot * 3 / 4);
  uint64_t new_hits = 0;
  for (uint64_t i = next - kBuckets; i < next; ++i) new_hits += Find(NumberedKey(i)) != 0;
  EXPECT_GT(new_hits, kBuckets / 2) << "what is new has a place, too";
}

// What is given up is not there any more, for lookups and for writes; nothing that comes later is found in an older version.
TEST_P(LookupCacheTest, ASmallerOneHitsLess) {
  constexpr uint64_t kKeys = 2000;
  Make(1024 * kBucket);
  const auto hits = [&](uint64_t least) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < kKeys; ++i) {
      const uint64_t hit = Find(NumberedKey(i));
      EXPECT_TRUE(hit == 0 || hit >= least);
      count += hit != 0;
    }
    return count;
  };
  uint64_t sequence = 0;
  for (uint64_t i = 0; i < kKeys; ++i) Put(NumberedKey(i), ++sequence);
  const uint64_t all = hits(1);
  EXPECT_GT(all, kKeys * 9 / 10);
  uint64_t before = all;
  for (const uint64_t buckets : {700, 512, 100, 0}) {
    SCOPED_TRACE(buckets);
    cache_->Shrink(buckets * kBucket);
    EXPECT_EQ(cache_->bytes(), buckets * kBucket);
    const uint64_t left = hits(1);
    EXPECT_LT(left, before);
    EXPECT_NEAR(static_cast<double>(left), static_cast<double>(all * buckets) / 1024, 120);
    cache_->ReleaseGivenUp(buckets * kBucket);
    EXPECT_EQ(hits(1), left);
    const uint64_t least = sequence + 1;
    for (uint64_t i = 0; i < kKeys; ++i) {
      LookupCache::Miss miss;
      const std::string key = NumberedKey(i);
      if (Find(key, &miss) == 0) Fill(key, miss, kMaxSequence, i + 1);  // the first version
      Put(key, ++sequence);
    }
    before = hits(least);
    EXPECT_NEAR(static_cast<double>(before), static_cast<double>(left), 60);
  }
  cache_->Shrink(512 * kBucket);
  EXPECT_EQ(cache_->bytes(), 0u) << "it does not grow";
  EXPECT_FALSE(cache_->StartResize(512 * kBucket));
  EXPECT_EQ(hits(1), 0u);
}

}  // namespace
}  // namespace braiddb::test
