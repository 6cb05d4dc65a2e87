// The hash index over tables of L0: every answer is what the tables themselves say.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>

#include "index/key_hash.h"
#include "lsm/l0_index.h"
#include "tests/support/level_store.h"
#include "tests/support/thread_cpu_time.h"
#include "tests/support/wait_until.h"

namespace braiddb::test {
namespace {

class L0IndexTest : public testing::TestWithParam<uint32_t> {
 protected:
  // Enters versions that are in entry order.
  void Enter(L0IndexWriter* writer, const std::vector<Version>& versions) {
    for (const Version& version : versions) writer->Add(KeyHash(version.key), store_.Find(version.sequence));
  }
  L0IndexWriter::Table EnterTable(L0IndexWriter* writer, const std::vector<Version>& versions) {
    return EnterTable(writer, versions, store_.order());
  }
  L0IndexWriter::Table EnterTable(L0IndexWriter* writer, const std::vector<Version>& versions, const KeyOrder& order) {
    for (const Version& version : versions) store_.Write(version);
    writer->Begin(versions.size(), order);
    Enter(writer, InEntryOrder(versions));
    return writer->Finish();
  }
  // The sequence number of what the index finds, 0 for nothing.
  uint64_t Find(const L0Index& index, const std::string& key, uint64_t snapshot, uint32_t columns, LookupTrace* trace) {
    const LogEntry* entry = index.Find(SearchKey(store_.order(), key, snapshot), KeyHash(key), columns, trace);
    const bool may_contain = index.MayContain(KeyHash(key));
    EXPECT_TRUE(may_contain || entry == nullptr);
    denied_ += !may_contain;
    if (entry == nullptr) return 0;
    EXPECT_EQ(entry->key(), key);
    return entry->sequence();
  }

  LevelStore store_{GetParam()};
  uint64_t denied_ = 0;  // answers of MayContain
  Random random_{5};
};

INSTANTIATE_TEST_SUITE_P(Regions, L0IndexTest, testing::Values(1, 3));

TEST_P(L0IndexTest, FindsTheNewestVisibleVersionInTheTablesAskedFor) {
  constexpr uint64_t kKeys = 150;
  uint64_t sequence = 1;
  L0IndexWriter writer(store_.regions(), 200);
  std::vector<std::vector<Version>> tables;
  std::shared_ptr<const L0Index> index;
  for (uint32_t t = 0; t < L0Index::kMaxTables; ++t) {
    // The last table is of one key only, and has more of it than a lookup collects at once.
    const bool one_key = t + 1 == L0Index::kMaxTables;
    tables.push_back(store_.DrawVersions(&random_, one_key ? 90 : 200, one_key ? 1 : kKeys, 5, &sequence));
    const L0IndexWriter::Table table = EnterTable(&writer, tables.back());
    ASSERT_NE(table.index, nullptr);
    EXPECT_EQ(table.column, t);
    EXPECT_TRUE(index == nullptr || table.index == index);
    index = table.index;
  }
  for (int i = 0; i < 20000; ++i) {
    const std::string key = NumberedKey(i % 10 == 0 ? 0 : random_.Uniform(kKeys + 20));
    const uint64_t snapshot = i % 3 == 0 ? kMaxSequence : random_.Uniform(sequence + 2);
    const auto columns = static_cast<uint32_t>(random_.Uniform(1u << L0Index::kMaxTables));
    uint64_t expected = 0;
    for (uint32_t t = 0; t < L0Index::kMaxTables; ++t) {
      if ((columns >> t & 1) == 0) continue;
      for (const Version& version : tables[t]) {
        if (version.key == key && version.sequence <= snapshot) expected = std::max(expected, version.sequence);
      }
    }
    LookupTrace trace;
    ASSERT_EQ(Find(*index, key, snapshot, columns, &trace), expected) << key << " at " << snapshot << " in " << columns;
    EXPECT_FALSE(trace.met_dead);
  }
  EXPECT_GT(denied_, 1500u);  // most of those that are not there
}

// A key that every table has costs one visit, not one per table.
TEST_P(L0IndexTest, LooksAtTheNewestTableFirst) {
  L0IndexWriter writer(store_.regions(), 100);
  L0IndexWriter::Table table;
  for (uint64_t sequence = 1; sequence <= L0Index::kMaxTables; ++sequence) table = EnterTable(&writer, {{"key", sequence}});
  LookupTrace trace;
  EXPECT_EQ(Find(*table.index, "key", kMaxSequence, UINT32_MAX, &trace), L0Index::kMaxTables);
  EXPECT_EQ(trace.local + trace.remote, 1u);
}

TEST_P(L0IndexTest, PassesOverTheDeadAndSaysSo) {
  L0IndexWriter writer(store_.regions(), 100);
  EnterTable(&writer, {{"key", 1}});
  const L0IndexWriter::Table table = EnterTable(&writer, {{"key", 3}, {"key", 2}});
  for (const uint64_t dead : {3u, 2u}) ListBuilder::Drop(store_.Resolve(store_.Find(dead)));
  LookupTrace trace;
  EXPECT_EQ(Find(*table.index, "key", kMaxSequence, UINT32_MAX, &trace), 1u);
  EXPECT_TRUE(trace.met_dead);
}

// A merge drops a tombstone and what it hides: it marks the older version first. A lookup beside it finds the tombstone or
// nothing, and never what the tombstone hides.
TEST_P(L0IndexTest, NeverFindsWhatADroppedTombstoneHides) {
  L0IndexWriter writer(store_.regions(), 100);
  const L0IndexWriter::Table table = EnterTable(&writer, {{"key", 3}, {"key", 2}});
  uint64_t* const hidden = store_.Resolve(store_.Find(2))->next;
  uint64_t* const tombstone = store_.Resolve(store_.Find(3))->next;
  std::atomic<int> round{0};  // odd: the reader may look
  std::atomic<bool> reading{false};
  std::atomic<bool> ends{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    while (!ends) {
      const int now = round.load();
      if (now % 2 == 0) {
        std::this_thread::yield();
        continue;
      }
      reading = true;
      for (int lookups = 1; round.load() == now; ++lookups) {
        if (lookups % 64 == 0) std::this_thread::yield();  // there may be one CPU only
        LookupTrace trace;
        wrong += Find(*table.index, "key", 10, UINT32_MAX, &trace) == 2;
      }
      reading = false;
    }
  });
  for (Rounds rounds(5000 / kSlowdown); rounds.Next();) {
    StoreRelease(tombstone, 0);
    StoreRelease(hidden, 0);
    ++round;
    while (!reading) std::this_thread::yield();
    StoreRelease(hidden, LogEntry::kDeadBit);
    StoreRelease(tombstone, LogEntry::kDeadBit);
    ++round;
    while (reading) std::this_thread::yield();
  }
  ends = true;
  reader.join();
  EXPECT_EQ(wrong, 0);
}

// A key's slots go on in the next bucket, and one of another key with the same tag may stand there between them.
TEST_P(L0IndexTest, AnotherKeyWithTheSameTagDoesNotHideTheNewestVersion) {
  constexpr uint64_t kTwoBuckets = 8;
  const auto tag = [](const std::string& key) { return KeyHash(key) >> 50; };
  const auto bucket = [](const std::string& key) { return KeyHash(key) & 1; };
  std::map<uint64_t, std::string> in_first;  // by tag
  std::string key, other;
  for (uint64_t i = 0; other.empty(); ++i) {
    const std::string candidate = NumberedKey(i);
    const auto same = in_first.find(tag(candidate));
    if (bucket(candidate) == 0) {
      in_first.emplace(tag(candidate), candidate);
    } else if (same != in_first.end()) {
      key = same->second, other = candidate;
    }
  }
  in_first.erase(tag(key));
  ASSERT_GE(in_first.size(), 7u);

  const auto index = L0Index::Create(store_.regions(), kTwoBuckets);
  ASSERT_NE(index, nullptr);
  uint64_t sequence = 0;
  const auto add = [&](uint32_t column, const std::string& of, uint64_t number) {
    store_.Write({of, number});
    EXPECT_TRUE(index->Add(column, KeyHash(of), store_.Find(number)));
  };
  auto filler = in_first.begin();
  for (int i = 0; i < 7; ++i, ++filler) add(0, filler->second, ++sequence);
  add(0, other, ++sequence);
  add(1, key, 20);  // takes the last slot of the first bucket
  add(1, key, 19);  // comes behind the other key
  LookupTrace trace;
  EXPECT_EQ(Find(*index, key, kMaxSequence, UINT32_MAX, &trace), 20u);
  EXPECT_EQ(Find(*index, other, kMaxSequence, UINT32_MAX, &trace), sequence);
}

// Those that are there never, whatever the number of buckets, and in whichever bucket they are; most others by their word alone.
TEST_P(L0IndexTest, DeniesKeysThatAreNotThere) {
  for (const uint64_t entries : {1, 8, 30, 64, 5000}) {
    SCOPED_TRACE(entries);
    const auto index = L0Index::Create(store_.regions(), entries);
    ASSERT_NE(index, nullptr);
    const uint64_t room = index->free_slots();
    for (uint64_t i = 0; i < room; ++i) {
      ASSERT_TRUE(index->Add(0, KeyHash("key " + std::to_string(i)), store_.Write({"key " + std::to_string(i), i + 1})));
      for (uint64_t j = i < 50 ? 0 : i; j <= i; ++j) ASSERT_TRUE(index->MayContain(KeyHash("key " + std::to_string(j))));
    }
    EXPECT_EQ(index->free_slots(), 0u);
    uint64_t maybe = 0, by_words = 0;
    for (int i = 0; i < 10000; ++i) {
      maybe += index->MayContain(KeyHash("other " + std::to_string(i)));
      by_words += index->BitsSayMaybe(KeyHash("other " + std::to_string(i)));
    }
    EXPECT_LT(maybe, 50u);
    EXPECT_GE(by_words, maybe);
    EXPECT_LT(by_words, 600u);
  }
}

// A table that turns out larger than announced makes the index overflow: the table stays without one, the others keep theirs.
TEST_P(L0IndexTest, ATableThatDoesNotFitIsLeftOut) {
  uint64_t sequence = 1;
  L0IndexWriter writer(store_.regions(), 10);
  const std::vector<Version> small = store_.DrawVersions(&random_, 10, 1000, 1000, &sequence);
  const L0IndexWriter::Table first = EnterTable(&writer, small);
  ASSERT_NE(first.index, nullptr);

  const std::vector<Version> large = store_.DrawVersions(&random_, 2000, 100000, 1000, &sequence);
  for (const Version& version : large) store_.Write(version);
  writer.Begin(1, store_.order());
  Enter(&writer, InEntryOrder(large));
  EXPECT_EQ(writer.Finish().index, nullptr);
  const L0IndexWriter::Table next = EnterTable(&writer, {{"next", sequence}});
  ASSERT_NE(next.index, nullptr);
  EXPECT_NE(next.index, first.index);
  LookupTrace trace;
  for (const Version& version : small) {
    EXPECT_EQ(Find(*first.index, version.key, version.sequence, 1u << first.column, &trace), version.sequence);
  }
}

TEST_P(L0IndexTest, AnIndexTakesAsManyTablesAsItHasColumns) {
  L0IndexWriter writer(store_.regions(), 4);
  uint64_t sequence = 1;
  const L0Index* last = nullptr;
  for (uint32_t t = 0; t < 3 * L0Index::kMaxTables; ++t) {
    const L0IndexWriter::Table table = EnterTable(&writer, {{"key", sequence++}});
    ASSERT_NE(table.index, nullptr);
    EXPECT_EQ(table.column, t % L0Index::kMaxTables);
    EXPECT_EQ(table.index.get() == last, t % L0Index::kMaxTables != 0);
    last = table.index.get();
  }
}

class CaseBlind final : public Comparator {
 public:
  const char* Name() const override { return "case-blind"; }
  int Compare(Slice a, Slice b) const override { return strncasecmp(a.data(), b.data(), std::max(a.size(), b.size())); }
};

// Versions that many snapshots see are entered as fast as other keys, and all are found.
TEST_P(L0IndexTest, TakesManyVersionsOfOneKeyWithoutAWalk) {
  constexpr uint64_t kVersions = 30'000;
  std::vector<Version> versions;
  for (uint64_t i = kVersions; i > 0; --i) versions.push_back({"hot", i});
  for (const Version& version : versions) store_.Write(version);
  double best[2] = {1e9, 1e9};
  for (int round = 0; round < 6; ++round) {
    const bool one_key = round % 2 == 0;
    L0IndexWriter writer(store_.regions(), kVersions);
    writer.Begin(kVersions + 2, store_.order());
    const double begin = ThreadCpuSeconds();
    writer.Add(KeyHash("a"), store_.Find(1));
    for (uint64_t i = kVersions; i > 0; --i) writer.Add(one_key ? KeyHash("hot") : KeyHash(std::to_string(i)), store_.Find(i));
    const L0IndexWriter::Table table = writer.Finish();
    best[round % 2] = std::min(best[round % 2], ThreadCpuSeconds() - begin);
    ASSERT_NE(table.index, nullptr);
    if (!one_key) continue;
    for (const uint64_t snapshot : {uint64_t{1}, uint64_t{2}, kVersions / 2, kVersions - 1, kVersions, kMaxSequence}) {
      LookupTrace trace;
      EXPECT_EQ(Find(*table.index, "hot", snapshot, UINT32_MAX, &trace), std::min(snapshot, kVersions));
    }
  }
  EXPECT_LT(best[0], 20 * best[1]);
}

TEST_P(L0IndexTest, ThereIsNoneWhereEqualKeysMayDiffer) {
  const CaseBlind comparator;
  const KeyOrder order(&comparator);
  L0IndexWriter writer(store_.regions(), 100);
  EXPECT_EQ(EnterTable(&writer, {{"key", 1}}, order).index, nullptr);
}

}  // namespace
}  // namespace braiddb::test
