// What every memtable does: whatever is published, in whichever order, is found and visited in entry order.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/options.h"
#include "index/key_hash.h"
#include "lsm/hash_memtable.h"
#include "lsm/merging_cursor.h"
#include "lsm/skiplist_memtable.h"
#include "tests/support/entry_store.h"

namespace braiddb::test {
namespace {

class MemtableTest : public testing::TestWithParam<MemtableKind> {
 protected:
  static constexpr uint32_t kBlockBytes = 1024;

  std::unique_ptr<Memtable> NewMemtable(uint64_t entries) {
    if (GetParam() == MemtableKind::kHash)
      return HashMemtable::Create(next_id_++, store_.regions(), &store_.order(), Arena::Create(), kBlockBytes, entries);
    return std::make_unique<SkipListMemtable>(next_id_++, store_.regions(), &store_.order(), Arena::Create(), kBlockBytes, 2);
  }

  // In two steps, as a write of several updates does it.
  struct Pending {
    const LogEntry* entry;
    Memtable::Insertion insertion;
  };
  Pending Allocate(Memtable* memtable, Memtable::NodeBlock* block, uint64_t sequence) {
    const PmPtr pointer = store_.Find(sequence);
    const LogEntry* const entry = store_.Resolve(pointer);
    Pending pending{entry, {}};
    pending.insertion.key_hash = KeyHash(entry->key());
    pending.insertion.pointer = pointer;
    EXPECT_TRUE(memtable->Allocate(block, entry->height(), &pending.insertion));
    return pending;
  }
  static void Publish(Memtable* memtable, Pending* pending) {
    if (!pending->insertion.is_claimed) memtable->Prepare(pending->entry, pending->insertion.pointer, &pending->insertion);
    memtable->Publish(&pending->insertion);
  }
  // As a write of one update does it.
  Pending Claim(Memtable* memtable, Memtable::NodeBlock* block, uint64_t sequence) {
    Pending pending = Allocate(memtable, block, sequence);
    memtable->Claim(pending.entry->key(), sequence, &pending.insertion);
    return pending;
  }
  void Insert(Memtable* memtable, Memtable::NodeBlock* block, uint64_t sequence) {
    Pending pending = Allocate(memtable, block, sequence);
    Publish(memtable, &pending);
  }

  uint64_t Find(const Memtable& memtable, const std::string& key, uint64_t as_of) {
    const LogEntry* const entry = memtable.Find(SearchKey(store_.order(), key, as_of), KeyHash(key));
    EXPECT_TRUE(entry == nullptr || memtable.MayContain(KeyHash(key)));
    if (entry == nullptr) return 0;
    EXPECT_EQ(entry->key(), key);
    return entry->sequence();
  }
  // Of each array one, or one of all `together`.
  std::vector<std::unique_ptr<EntryCursor>> CursorsOf(const Memtable& memtable, bool together) {
    std::vector<std::unique_ptr<EntryCursor>> cursors;
    std::vector<OrderedArray> arrays;
    memtable.AddCursors(&cursors, &arrays);
    if (together && !arrays.empty()) {
      cursors.push_back(std::make_unique<MergingCursor>(store_.regions(), &store_.order(), std::move(arrays)));
    } else {
      for (OrderedArray& array : arrays)
        cursors.push_back(
            std::make_unique<MergingCursor>(store_.regions(), &store_.order(), std::vector<OrderedArray>{std::move(array)}));
    }
    return cursors;
  }
  // What the cursors together visit, in entry order.
  std::vector<uint64_t> Visit(const Memtable& memtable, bool forward) {
    auto cursors = CursorsOf(memtable, random_.OneIn(2));
    for (auto& cursor : cursors) forward ? cursor->SeekToFirst() : cursor->SeekToLast();
    std::vector<uint64_t> sequences;
    for (;;) {
      EntryCursor* best = nullptr;
      for (auto& cursor : cursors) {
        if (cursor->entry() == nullptr) continue;
        if (best != nullptr) {
          const int order = CompareEntries(store_.order(), *cursor->entry(), *best->entry());
          if (forward ? order > 0 : order < 0) continue;
        }
        best = cursor.get();
      }
      if (best == nullptr) return sequences;
      sequences.push_back(best->entry()->sequence());
      forward ? best->Next() : best->Prev();
    }
  }
  std::vector<uint64_t> Walk(const Memtable& memtable) {
    std::vector<uint64_t> sequences;
    PmPtr pointers[7];
    const auto walker = memtable.NewWalker();
    while (const size_t count = walker->Next(pointers, 7)) {
      for (size_t i = 0; i < count; ++i) sequences.push_back(store_.Resolve(pointers[i])->sequence());
    }
    return sequences;
  }
  std::vector<uint64_t> InOrder(std::vector<Version> versions) const {
    std::sort(versions.begin(), versions.end(),
              [](const Version& a, const Version& b) { return a.key != b.key ? a.key < b.key : a.sequence > b.sequence; });
    return EntryStore::Sequences(versions);
  }
  void ExpectHolds(const Memtable& memtable, const std::vector<Version>& versions) {
    std::vector<uint64_t> expected = InOrder(versions);
    EXPECT_EQ(Visit(memtable, true), expected);
    EXPECT_EQ(Walk(memtable), expected);
    std::reverse(expected.begin(), expected.end());
    EXPECT_EQ(Visit(memtable, false), expected);
  }

  EntryStore store_{2};
  Random random_{21};
  uint64_t next_id_ = 3;
};

INSTANTIATE_TEST_SUITE_P(Kinds, MemtableTest, testing::Values(MemtableKind::kSkipList, MemtableKind::kHash),
                         [](const auto& test) { return test.param == MemtableKind::kHash ? "Hash" : "SkipList"; });

// More than are sorted by comparing alone: keys whose first bytes are spread evenly, or hardly, or not at all.
TEST_P(MemtableTest, OrdersKeysOfAnyShape) {
  constexpr size_t kCount = 5000 / kSlowdown;
  const auto make_key = [this](int shape) -> std::string {
    const uint64_t random = random_.Next();
    std::string bytes(8, '\0');
    const auto set = [&bytes](uint64_t number) {
      for (int i = 0; i < 8; ++i) bytes[static_cast<size_t>(i)] = static_cast<char>(number >> (56 - 8 * i));
    };
    set(random);
    switch (shape) {
      case 0:
        return bytes;
      case 1:  // nothing to tell them apart in the first eight bytes
        return "the same" + bytes;
      case 2:  // a few large groups
        return std::string(1, static_cast<char>('a' + random % 3)) + "-group--" + bytes;
      case 3:  // the lowest bits alone
        set(random % 4096);
        return bytes;
      case 4:  // the highest bit and the lowest
        set((random & 1) << 63 | random >> 60);
        return bytes + bytes;
      default:
        return NumberedKey(random % 100'000);
    }
  };
  uint64_t sequence = 1;
  for (int shape = 0; shape < 6; ++shape) {
    SCOPED_TRACE(shape);
    const auto memtable = NewMemtable(kCount);
    Memtable::NodeBlock block;
    std::vector<Version> published;
    for (size_t i = 0; i < kCount; ++i, ++sequence) {
      published.push_back({make_key(shape), sequence});
      store_.Write(published.back());
      Insert(memtable.get(), &block, sequence);
    }
    const std::vector<uint64_t> expected = InOrder(published);
    EXPECT_EQ(Walk(*memtable), expected);
    ExpectHolds(*memtable, published);
  }
}

// Writes that overtake each other, and places that are taken and filled later, with looks in between. Far more than the memtable
// was made for.
TEST_P(MemtableTest, HoldsWhatWasPublishedInAnyOrder) {
  constexpr uint64_t kKeys = 300;
  const auto memtable = NewMemtable(40);
  Memtable::NodeBlock block;
  uint64_t sequence = 1;
  const std::vector<Version> all = store_.DrawVersions(&random_, 5000 / kSlowdown, kKeys, 5, &sequence);
  for (const Version& version : all) store_.Write(version);
  std::vector<Version> published;
  std::vector<std::pair<Version, Pending>> waiting;
  size_t next = 0;
  while (published.size() < all.size()) {
    if (next < all.size() && (waiting.empty() || random_.OneIn(2))) {
      waiting.emplace_back(all[next], Allocate(memtable.get(), &block, all[next].sequence));
      ++next;
    } else {
      const size_t which = random_.OneIn(3) ? random_.Uniform(waiting.size()) : waiting.size() - 1;
      Publish(memtable.get(), &waiting[which].second);
      published.push_back(waiting[which].first);
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(which));
    }
    const std::string key = NumberedKey(random_.Uniform(kKeys + 20));
    const uint64_t as_of = random_.OneIn(2) ? kMaxSequence : random_.Uniform(sequence);
    uint64_t expected = 0;
    for (const Version& version : published) {
      if (version.key == key && version.sequence <= as_of) expected = std::max(expected, version.sequence);
    }
    ASSERT_EQ(Find(*memtable, key, as_of), expected) << key << " as of " << as_of;
    if (random_.OneIn(300)) ExpectHolds(*memtable, published);
  }
  ExpectHolds(*memtable, all);
  int denied = 0;
  for (uint64_t i = 0; i < 1000; ++i) denied += !memtable->MayContain(KeyHash(NumberedKey(kKeys + i)));
  EXPECT_GE(denied, GetParam() == MemtableKind::kHash ? 990 : 0);  // but for tags that are the same
}

// A place that is claimed shows nothing until it is filled, and never if it is given up; what is published meanwhile, newer or
// older, of the same key or of another one, is there.
TEST_P(MemtableTest, ClaimedPlacesShowNothing) {
  constexpr uint64_t kKeys = 60;
  const auto memtable = NewMemtable(40);
  Memtable::NodeBlock block;
  uint64_t sequence = 1;
  std::vector<Version> all = store_.DrawVersions(&random_, 3000, kKeys, 5, &sequence);
  for (const Version& version : all) store_.Write(version);
  for (size_t i = 0; i + 1 < all.size(); ++i) std::swap(all[i], all[i + random_.Uniform(std::min<size_t>(20, all.size() - i))]);
  std::vector<Version> published;
  const auto expect_found = [&](const std::string& key, uint64_t as_of) {
    uint64_t expected = 0;
    for (const Version& version : published) {
      if (version.key == key && version.sequence <= as_of) expected = std::max(expected, version.sequence);
    }
    ASSERT_EQ(Find(*memtable, key, as_of), expected) << key << " as of " << as_of;
  };
  uint64_t abandoned = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const Version& version = all[i];
    Pending claimed = Claim(memtable.get(), &block, version.sequence);
    ASSERT_NO_FATAL_FAILURE(expect_found(version.key, kMaxSequence));
    // Another writer's; it would wait if nothing told it which key has been claimed.
    const bool has_version = Find(*memtable, version.key, kMaxSequence) != 0;
    if (i + 1 < all.size() && random_.OneIn(2) && (has_version || all[i + 1].key != version.key)) {
      Insert(memtable.get(), &block, all[++i].sequence);
      published.push_back(all[i]);
      ASSERT_NO_FATAL_FAILURE(expect_found(all[i].key, kMaxSequence));
      ASSERT_NO_FATAL_FAILURE(expect_found(version.key, random_.Uniform(sequence)));
    }
    if (random_.OneIn(300)) ExpectHolds(*memtable, published);
    if (random_.OneIn(4)) {
      memtable->Abandon(&claimed.insertion);
      ++abandoned;
    } else {
      Publish(memtable.get(), &claimed);
      published.push_back(version);
    }
    ASSERT_NO_FATAL_FAILURE(expect_found(version.key, kMaxSequence));
    ASSERT_NO_FATAL_FAILURE(expect_found(NumberedKey(random_.Uniform(kKeys)), random_.Uniform(sequence)));
  }
  EXPECT_GT(abandoned, 100u);
  ExpectHolds(*memtable, published);
}

// Two writers of a key that nothing is published of yet: the second one waits for the first, whatever becomes of it.
TEST_P(MemtableTest, TheSecondWriterOfANewKeyWaits) {
  for (const bool abandons : {false, true}) {
    const auto memtable = NewMemtable(40);
    Memtable::NodeBlock block, other_block;
    const uint64_t first = abandons ? 1 : 3;
    for (const uint64_t sequence : {first, first + 1}) store_.Write({"key", sequence});
    Pending claimed = Claim(memtable.get(), &block, first);
    std::atomic<bool> returned{false};
    std::thread second([&] {
      Pending later = Claim(memtable.get(), &other_block, first + 1);
      if (GetParam() == MemtableKind::kHash) returned = true;
      Publish(memtable.get(), &later);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(returned);
    abandons ? memtable->Abandon(&claimed.insertion) : Publish(memtable.get(), &claimed);
    second.join();
    EXPECT_EQ(Find(*memtable, "key", kMaxSequence), first + 1);
    EXPECT_EQ(Find(*memtable, "key", first), abandons ? 0 : first);
    EXPECT_EQ(Walk(*memtable).size(), abandons ? 1u : 2u);
  }
}

// As a batch does it: the last update first. Each behind all of those before it, it would never end.
TEST_P(MemtableTest, ManyVersionsOfOneKeyFromTheNewestOn) {
  constexpr uint64_t kVersions = 60000;
  const auto memtable = NewMemtable(1000);
  Memtable::NodeBlock block;
  for (uint64_t sequence = 1; sequence <= kVersions; ++sequence) {
    Version version{"key", sequence};
    while (version.height < kMaxHeight && random_.OneIn(kBranching)) ++version.height;
    store_.Write(version);
  }
  for (uint64_t sequence = kVersions; sequence > 0; --sequence) Insert(memtable.get(), &block, sequence);
  for (const uint64_t as_of : {uint64_t{1}, kVersions / 2, kVersions, kMaxSequence}) {
    EXPECT_EQ(Find(*memtable, "key", as_of), std::min(as_of, kVersions));
  }
  EXPECT_EQ(Visit(*memtable, true).size(), kVersions);
}

TEST_P(MemtableTest, CursorsSeek) {
  const auto memtable = NewMemtable(1000);
  Memtable::NodeBlock block;
  uint64_t sequence = 1;
  const std::vector<Version> all = store_.DrawVersions(&random_, 1000, 200, 5, &sequence);
  for (const Version& version : all) {
    store_.Write(version);
    Insert(memtable.get(), &block, version.sequence);
    if (version.sequence % 90 == 0) Visit(*memtable, true);
  }
  const std::vector<uint64_t> order = InOrder(all);
  auto cursors = CursorsOf(*memtable, random_.OneIn(2));
  for (int i = 0; i < 500; ++i) {
    const std::string key = i % 10 == 0 ? std::string(i % 20 == 0 ? "" : "~") : NumberedKey(random_.Uniform(220));
    const SearchKey target(store_.order(), key, i % 3 == 0 ? kMaxSequence : random_.Uniform(sequence));
    const auto at = std::partition_point(order.begin(), order.end(), [&](uint64_t number) {
      return CompareEntry(store_.order(), *store_.Resolve(store_.Find(number)), target) < 0;
    });
    uint64_t first = 0, last = 0;
    for (auto& cursor : cursors) {
      const auto better = [&](uint64_t than, bool earlier) {
        if (cursor->entry() == nullptr) return false;
        if (than == 0) return true;
        const int by = CompareEntries(store_.order(), *cursor->entry(), *store_.Resolve(store_.Find(than)));
        return earlier ? by < 0 : by > 0;
      };
      cursor->Seek(target);
      if (better(first, true)) first = cursor->entry()->sequence();
      cursor->SeekBefore(target);
      if (better(last, false)) last = cursor->entry()->sequence();
    }
    EXPECT_EQ(first, at == order.end() ? 0 : *at);
    EXPECT_EQ(last, at == order.begin() ? 0 : *std::prev(at));
  }
}

// A cursor goes from one key's newest version to that of the next, wherever runs were joined; or by way of others, if it does not
// know better.
TEST_P(MemtableTest, CursorsGoFromKeyToKey) {
  const std::vector<std::function<std::string(uint64_t)>> kinds = {
      [](uint64_t n) { return std::to_string(n * 7919 % 100003); },
      [](uint64_t n) { return "sameprefix" + std::to_string(n % 5); },
      [](uint64_t n) { return std::string(1 + n % 9, 'a') + std::string(n % 3, '\0'); },
      [](uint64_t n) { return n % 3 == 0 ? "prefix12" + std::to_string(n) : std::to_string(n * 104729 % 1000003); }};
  uint64_t sequence = 1'000'000;
  for (size_t kind = 0; kind < kinds.size(); ++kind) {
    for (int round = 0; round < 1 + 5 / kSlowdown; ++round) {
      SCOPED_TRACE(kind);
      const auto memtable = NewMemtable(1000);
      Memtable::NodeBlock block;
      std::vector<Version> all;
      const uint64_t keys = 1 + random_.Uniform(400);
      const uint64_t count = 1 + random_.Uniform(1500);
      const uint64_t between = 1 + random_.Uniform(100);
      for (uint64_t i = 0; i < count; ++i) {
        const Version version{kinds[kind](random_.Uniform(keys)), sequence++};
        store_.Write(version);
        all.push_back(version);
        Insert(memtable.get(), &block, version.sequence);
        if (i % between != 0) continue;
        const bool together = random_.OneIn(2);  // then not all that are older are known to be
        const auto cursors = CursorsOf(*memtable, together);
        size_t seen = 0;
        for (auto& cursor : cursors) {
          std::vector<const LogEntry*> newest, by_key;
          const LogEntry* before = nullptr;
          for (cursor->SeekToFirst(); cursor->entry() != nullptr; cursor->Next(), ++seen) {
            if (before != nullptr) {
              ASSERT_LT(CompareEntries(store_.order(), *before, *cursor->entry()), 0);
            }
            if (before == nullptr || before->key() != cursor->entry()->key()) newest.push_back(cursor->entry());
            before = cursor->entry();
          }
          for (cursor->SeekToFirst(); cursor->entry() != nullptr; cursor->NextKey()) by_key.push_back(cursor->entry());
          if (GetParam() == MemtableKind::kHash && !together) {
            ASSERT_EQ(by_key, newest);
          } else {
            ASSERT_TRUE(
                std::includes(by_key.begin(), by_key.end(), newest.begin(), newest.end(),
                              [this](const auto* a, const auto* b) { return CompareEntries(store_.order(), *a, *b) < 0; }));
          }
        }
        ASSERT_EQ(seen, all.size());
      }
      ExpectHolds(*memtable, all);
    }
  }
}

TEST_P(MemtableTest, AnEmptyOneHasNothing) {
  const auto memtable = NewMemtable(1000);
  EXPECT_EQ(Find(*memtable, "key", kMaxSequence), 0u);
  ExpectHolds(*memtable, {});
}

// The same few keys by all threads: one version chain per key, whoever comes first; readers see numbers that only grow, and each
// thread's own writes at once.
TEST_P(MemtableTest, ThreadsOnTheSameKeys) {
  constexpr int kThreads = 3;
  constexpr uint64_t kKeys = 40;
  const auto memtable = NewMemtable(100);
  uint64_t sequence = 1;
  const std::vector<Version> all = store_.DrawVersions(&random_, 6000, kKeys, 5, &sequence);
  for (const Version& version : all) store_.Write(version);
  std::atomic<int> writing{kThreads};
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      Memtable::NodeBlock block;
      for (size_t i = static_cast<size_t>(thread); i < all.size(); i += kThreads) {
        if (i % 2 == 0) {
          Insert(memtable.get(), &block, all[i].sequence);
        } else {
          Pending pending = Claim(memtable.get(), &block, all[i].sequence);
          Publish(memtable.get(), &pending);
        }
        failures += Find(*memtable, all[i].key, all[i].sequence) != all[i].sequence;
      }
      --writing;
    });
  }
  threads.emplace_back([&] {
    std::map<std::string, uint64_t> newest;
    Random random(5);
    while (writing > 0) {
      const std::string key = NumberedKey(random.Uniform(kKeys));
      const uint64_t found = Find(*memtable, key, kMaxSequence);
      failures += found < newest[key];
      newest[key] = found;
      if (random.OneIn(200)) {
        const std::vector<uint64_t> visited = Visit(*memtable, true);
        failures += std::adjacent_find(visited.begin(), visited.end()) != visited.end();
      }
    }
  });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  ExpectHolds(*memtable, all);
}

}  // namespace
}  // namespace braiddb::test
