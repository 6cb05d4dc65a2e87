// The way from a memtable to a table of L0: which versions go along, how they are linked, what the flush makes of it all.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "compaction/flush_job.h"
#include "compaction/list_builder.h"
#include "compaction/version_filter.h"
#include "index/key_hash.h"
#include "lsm/hash_memtable.h"
#include "lsm/skiplist_memtable.h"
#include "tests/support/level_store.h"

namespace braiddb::test {
namespace {

// ---- VersionFilter

TEST(VersionFilterTest, WithoutSnapshotsOnlyTheNewestVersionIsVisible) {
  const VersionFilter filter({});
  EXPECT_FALSE(filter.Visible(1, 2));
  EXPECT_FALSE(filter.Visible(1, kMaxSequence));
}

TEST(VersionFilterTest, AVersionIsVisibleToASnapshotFromItselfToBeforeTheNewerOne) {
  const VersionFilter filter({20, 10, 20});  // in any order, and more than once
  struct Case {
    uint64_t older, newer;
    bool visible;
  };
  const Case cases[] = {
      {5, 8, false},    // both older than every snapshot
      {5, 10, false},   // the snapshot sees the newer one
      {5, 11, true},    // …
      {10, 11, true},   // it sees the version that has its own number
      {10, 30, true},   //
      {11, 20, false},  // between the snapshots
      {11, 21, true},   //
      {20, 21, true},   //
      {21, 30, false},  // both newer than every snapshot
  };
  for (const Case& c : cases) EXPECT_EQ(filter.Visible(c.older, c.newer), c.visible) << c.older << ", " << c.newer;
}

// ---- ListBuilder

class ListBuilderTest : public testing::TestWithParam<uint32_t> {
 protected:
  // Entries in entry order, written in another, with pointers that mean nothing.
  std::vector<PmPtr> WriteSorted(size_t count) {
    std::vector<PmPtr> pointers;
    uint64_t sequence = 1;
    for (const Version& version : store_.DrawVersions(&random_, count, count, 8, &sequence)) pointers.push_back(Soil(version));
    std::sort(pointers.begin(), pointers.end(),
              [this](PmPtr a, PmPtr b) { return CompareEntries(store_.order(), *store_.Resolve(a), *store_.Resolve(b)) < 0; });
    return pointers;
  }
  PmPtr Soil(const Version& version) {
    const PmPtr pointer = store_.Write(version);
    LogEntry* entry = store_.Resolve(pointer);
    for (uint32_t layer = 0; layer < entry->height(); ++layer) StoreRelaxed(&entry->next[layer], pointer.raw());
    return pointer;
  }
  std::unique_ptr<PmTable> NewTable() {
    auto table = std::make_unique<PmTable>(1, 1, store_.regions(), &store_.order());
    for (uint64_t& word : table->heads()) word = 8;
    return table;
  }
  void ExpectHolds(const PmTable& table, const std::vector<PmPtr>& pointers) {
    EXPECT_TRUE(store_.IsWhole(table.list));
    EXPECT_EQ(table.entries, pointers.size());
    std::vector<Version> expected;
    for (const PmPtr pointer : pointers) expected.push_back(store_.VersionAt(pointer));
    EXPECT_EQ(store_.Dump(table.list), expected);
  }

  LevelStore store_{GetParam()};
  Random random_{11};
};

INSTANTIATE_TEST_SUITE_P(Regions, ListBuilderTest, testing::Values(1, 2, 3));

TEST_P(ListBuilderTest, LinksEveryLayerAndEndsEveryList) {
  for (const size_t count : {0, 1, 2, 700}) {
    const std::vector<PmPtr> pointers = WriteSorted(count);
    const auto table = NewTable();
    ListBuilder builder(store_.regions(), table.get());
    for (const PmPtr pointer : pointers) builder.Append(store_.Resolve(pointer), pointer);
    builder.Finish();
    ExpectHolds(*table, pointers);
  }
}

// Parts of every size: most have nothing on most layers, some have nothing at all.
TEST_P(ListBuilderTest, PartsThatAreJoinedAreOneList) {
  for (const size_t parts : {2, 5, 40}) {
    const std::vector<PmPtr> pointers = WriteSorted(300);
    std::vector<std::unique_ptr<PmTable>> tables;
    std::vector<std::unique_ptr<ListBuilder>> builders;
    size_t from = 0;
    for (size_t part = 0; part < parts; ++part) {
      tables.push_back(NewTable());
      builders.push_back(std::make_unique<ListBuilder>(store_.regions(), tables.back().get()));
      const size_t most = pointers.size() - from;
      const size_t take = part + 1 == parts ? most : random_.OneIn(3) ? 0 : random_.Uniform(most / 2 + 1);
      for (size_t end = from + take; from < end; ++from) {
        builders.back()->Append(store_.Resolve(pointers[from]), pointers[from]);
      }
    }
    for (size_t part = 1; part < parts; ++part) builders[0]->Join(*tables[part], *builders[part]);
    builders[0]->Finish();
    ExpectHolds(*tables[0], pointers);
  }
}

TEST_P(ListBuilderTest, WhatIsDroppedIsDead) {
  const PmPtr pointer = Soil({"k", 1});
  ListBuilder::Drop(store_.Resolve(pointer));
  EXPECT_TRUE(store_.IsDead(1));
  EXPECT_EQ(store_.Resolve(pointer)->Next(0), PmPtr());
}

// ---- FlushMemtable

struct FlushSetup {
  uint32_t regions;
  MemtableKind memtable;
};

class FlushJobTest : public testing::TestWithParam<FlushSetup> {
 protected:
  static constexpr uint32_t kShards = 2;

  // A hash is not for a comparator of one's own.
  std::unique_ptr<Memtable> NewMemtable(const KeyOrder* order) {
    std::unique_ptr<Memtable> memtable;
    if (GetParam().memtable == MemtableKind::kHash && order->equal_means_same()) {
      memtable = HashMemtable::Create(next_id_++, store_.regions(), order, Arena::Create(), 4096, 100);
    } else {
      memtable = std::make_unique<SkipListMemtable>(next_id_++, store_.regions(), order, Arena::Create(), 4096, kShards);
    }
    memtable->boundary.store(5000);
    return memtable;
  }
  void Insert(Memtable* memtable, PmPtr pointer) {
    const LogEntry* entry = store_.Resolve(pointer);
    Memtable::Insertion insertion;
    insertion.key_hash = KeyHash(entry->key());
    ASSERT_TRUE(memtable->Allocate(&block_, entry->height(), &insertion));
    memtable->Prepare(entry, pointer, &insertion);
    memtable->Publish(&insertion);
    memtable->entry_count.fetch_add(1);
    memtable->charged_bytes.fetch_add(LogEntrySize(*entry));
  }
  // Half of them on a thread of its own, which has another shard.
  void InsertAll(Memtable* memtable, const std::vector<Version>& versions) {
    std::vector<PmPtr> pointers;
    for (const Version& version : versions) pointers.push_back(store_.Write(version));
    for (size_t i = 0; i < pointers.size(); i += 2) Insert(memtable, pointers[i]);
    std::thread([&] {
      block_ = {};
      for (size_t i = 1; i < pointers.size(); i += 2) Insert(memtable, pointers[i]);
    }).join();
  }

  LevelStore store_{GetParam().regions};
  Random random_{12};
  Memtable::NodeBlock block_;
  uint64_t next_id_ = 7;
};

INSTANTIATE_TEST_SUITE_P(Setups, FlushJobTest,
                         testing::Values(FlushSetup{1, MemtableKind::kHash}, FlushSetup{2, MemtableKind::kSkipList}));

TEST_P(FlushJobTest, TheTableHasTheVersionsThatSomebodySees) {
  L0IndexWriter index(store_.regions(), 1000);
  for (const std::vector<uint64_t>& snapshots : std::vector<std::vector<uint64_t>>{{}, {0}, {300}, {150, 151, 900}}) {
    const auto memtable = NewMemtable(&store_.order());
    uint64_t sequence = 100;
    const std::vector<Version> versions = store_.DrawVersions(&random_, 1000, 150, 5, &sequence);
    InsertAll(memtable.get(), versions);
    const auto extent = memtable->AddExtent(nullptr, 64);
    uint64_t dead_before = 0;
    store_.segments()->ForEachLog([&](Segment* segment) { dead_before += segment->dead_entries; });

    const FlushResult flushed =
        FlushMemtable(memtable.get(), store_.regions(), &store_.order(), *store_.segments(), VersionFilter(snapshots), &index);

    // A tombstone goes along: it hides what older levels have.
    std::map<std::string, std::vector<Version>> by_key;
    for (const Version& version : InEntryOrder(versions)) by_key[version.key].push_back(version);
    std::vector<Version> expected;
    std::set<uint64_t> linked;
    for (const auto& [key, of_key] : by_key) {
      for (const Version& version : SeenOf(of_key, Ascending(snapshots), false)) {
        expected.push_back(version);
        linked.insert(version.sequence);
      }
    }
    EXPECT_TRUE(store_.IsWhole(flushed.table->list));
    EXPECT_EQ(store_.Dump(flushed.table->list), expected);
    EXPECT_EQ(flushed.table->entries, expected.size());
    EXPECT_EQ(flushed.dropped, versions.size() - expected.size());
    for (const Version& version : versions) EXPECT_EQ(store_.IsDead(version.sequence), !linked.contains(version.sequence));
    uint64_t dead = 0;
    store_.segments()->ForEachLog([&](Segment* segment) { dead += segment->dead_entries; });
    EXPECT_EQ(dead - dead_before, flushed.dropped);

    EXPECT_EQ(flushed.table->id(), memtable->id());
    EXPECT_EQ(flushed.table->boundary(), 5000u);
    EXPECT_EQ(flushed.table->log_bytes, memtable->charged_bytes.load());
    EXPECT_EQ(flushed.table->extents, std::vector<std::shared_ptr<LogExtent>>{extent});
    // So has the order in DRAM what is linked.
    ASSERT_NE(flushed.in_order, nullptr);
    const auto cursor = flushed.in_order->NewCursor(store_.regions(), &store_.order());
    std::vector<uint64_t> forward;
    for (cursor->SeekToFirst(); cursor->entry() != nullptr; cursor->Next()) {
      EXPECT_EQ(cursor->prefix(), store_.order().Prefix(cursor->entry()->key()));
      forward.push_back(cursor->entry()->sequence());
    }
    std::vector<uint64_t> backward;
    for (cursor->SeekToLast(); cursor->entry() != nullptr; cursor->Prev()) backward.push_back(cursor->entry()->sequence());
    std::reverse(backward.begin(), backward.end());
    EXPECT_EQ(backward, forward);
    ASSERT_EQ(forward.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(forward[i], expected[i].sequence);
      const SearchKey target(store_.order(), expected[i].key, expected[i].sequence);
      if (i % 2 == 0) cursor->FetchForSeek(target);
      cursor->Seek(target);
      ASSERT_NE(cursor->entry(), nullptr);
      EXPECT_EQ(cursor->entry()->sequence(), expected[i].sequence);
      cursor->SeekBefore(target);
      ASSERT_EQ(cursor->entry() == nullptr, i == 0);
      if (i > 0) {
        EXPECT_EQ(cursor->entry()->sequence(), expected[i - 1].sequence);
      }
    }
    EXPECT_GE(flushed.in_order->bytes(), 16 * expected.size());

    // The index has what is linked; the memtable goes on serving.
    const L0Index* const indexed = flushed.table->index();
    ASSERT_NE(indexed, nullptr);
    for (const Version& version : expected) {
      LookupTrace trace;
      const SearchKey target(store_.order(), version.key, version.sequence);
      const LogEntry* found = indexed->Find(target, KeyHash(version.key), 1u << flushed.table->column(), &trace);
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(found->sequence(), version.sequence);
    }
    for (const auto& [key, of_key] : by_key) {
      const LogEntry* found = memtable->Find(SearchKey(store_.order(), key, kMaxSequence), KeyHash(key));
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(found->sequence(), of_key.front().sequence);
    }
  }
}

TEST_P(FlushJobTest, AnEmptyMemtableMakesAnEmptyTable) {
  const auto memtable = NewMemtable(&store_.order());
  const FlushResult flushed =
      FlushMemtable(memtable.get(), store_.regions(), &store_.order(), *store_.segments(), VersionFilter({}));
  EXPECT_EQ(flushed.table->entries, 0u);
  EXPECT_EQ(flushed.table->list.First(), nullptr);
  EXPECT_TRUE(store_.IsWhole(flushed.table->list));
}

class IgnoringCase final : public Comparator {
 public:
  const char* Name() const override { return "ignoring case"; }
  int Compare(Slice a, Slice b) const override {
    std::string x(a), y(b);
    for (char& c : x) c = static_cast<char>(std::tolower(c));
    for (char& c : y) c = static_cast<char>(std::tolower(c));
    return x.compare(y);
  }
};

// An index of bytes would not find what the comparator takes for the same key.
TEST_P(FlushJobTest, NoIndexWhereEqualKeysMayDiffer) {
  const IgnoringCase comparator;
  const KeyOrder order(&comparator);
  const auto memtable = NewMemtable(&order);
  InsertAll(memtable.get(), {{"Key", 1}, {"kEY", 2}});
  L0IndexWriter index(store_.regions(), 100);
  const FlushResult flushed =
      FlushMemtable(memtable.get(), store_.regions(), &order, *store_.segments(), VersionFilter({}), &index);
  EXPECT_EQ(flushed.table->index(), nullptr);
  EXPECT_EQ(flushed.dropped, 1u);
  LookupTrace trace;
  const LogEntry* found = flushed.table->list.Find(SearchKey(order, "KEY", kMaxSequence), &trace);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->sequence(), 2u);
}

}  // namespace
}  // namespace braiddb::test
