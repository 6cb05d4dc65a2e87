// Compaction filters in a database: what goes, what changes, what readers, snapshots and caches see meanwhile, and what crashes
// leave.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "braiddb/check.h"
#include "db/test_hooks.h"
#include "tests/support/db_fixture.h"
#include "tests/support/rule_filter.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

class DbCompactionFilterTest : public DbTest {
 protected:
  void SetUp() override {
    options_.disable_auto_compaction = true;  // each test says when
    options_.lookup_cache_size = 1 << 20;
    options_.compaction_filter = &filter_;
    Reopen();
  }
  void TearDown() override { SyncPoints::Instance().Clear(); }

  // With other options from the next open on.
  void Use(const CompactionFilter* filter) {
    options_.compaction_filter = filter;
    Reopen();
  }
  void Put(const std::string& key, const std::string& value) { ASSERT_OK(db_->Put({}, key, value)); }
  Status Compact() { return db_->CompactRange({}, nullptr, nullptr); }
  // Merges L0 into the last level, which is not swept.
  Status Merge() {
    CompactRangeOptions options;
    options.sweep_last_level = false;
    return db_->CompactRange(options, nullptr, nullptr);
  }
  std::string Get(const std::string& key, const Snapshot* snapshot = nullptr) {
    ReadOptions options;
    options.snapshot = snapshot;
    return GetOrText(db_.get(), key, options);
  }
  void ExpectSound() {
    ASSERT_OK(db_->Close());
    db_.reset();
    CheckReport report;
    ASSERT_OK(CheckDatabase({}, directory_.File("db"), &report));
    EXPECT_TRUE(report.sound()) << report.findings[0].what << ": " << report.findings[0].where;
    Reopen();
  }
  // Every entry of the log that is not marked.
  uint64_t LiveBytes() { return IntProperty(db_.get(), "braiddb.pm-bytes-live"); }

  RuleFilter filter_;
};

INSTANTIATE_TEST_SUITE_P(Regions, DbCompactionFilterTest, testing::Values(1, 2));

constexpr const char* kGone = "<not found>";

TEST_P(DbCompactionFilterTest, AMergeAsksWhenKeysLeaveL0) {
  Put("gone", "drop");
  Put("changed", "to:new");
  Put("kept", "value");
  ASSERT_OK(db_->Flush());
  EXPECT_EQ(Get("gone"), "drop");
  EXPECT_EQ(filter_.Asked("gone"), 0);
  ASSERT_OK(Merge());
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"changed", "new"}, {"kept", "value"}}));
  EXPECT_EQ(Get("gone"), kGone);
  for (const char* key : {"gone", "changed", "kept"}) EXPECT_EQ(filter_.Asked(key, 0), 1) << key;
  // The last level alone is not asked about, and no merge asks about what a filter made.
  ASSERT_OK(Merge());
  ASSERT_OK(Merge());
  for (const char* key : {"gone", "changed", "kept"}) EXPECT_EQ(filter_.Asked(key), 1) << key;
  Reopen();
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"changed", "new"}, {"kept", "value"}}));
  ExpectSound();
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"changed", "new"}, {"kept", "value"}}));
}

TEST_P(DbCompactionFilterTest, CompactRangeAsksAboutWhatItMergesAndWhatIsInTheRange) {
  Use(nullptr);
  for (int i = 0; i < 100; ++i) Put(NumberedKey(i), i % 3 == 0 ? "drop" : i % 3 == 1 ? "to:new" : "value");
  ASSERT_OK(Compact());
  Use(&filter_);
  Put("in L0", "drop");
  const Slice begin = "key000010", end = "key000020";
  ASSERT_OK(db_->CompactRange({}, &begin, &end));
  EXPECT_EQ(filter_.Asked("in L0"), 1) << "nothing leaves L0 without";
  std::map<std::string, std::string> expected;
  for (int i = 0; i < 100; ++i) {
    const bool in_range = i >= 10 && i < 20;
    EXPECT_EQ(filter_.Asked(NumberedKey(i), 1), in_range) << i;
    const std::string value = i % 3 == 0 ? "drop" : i % 3 == 1 ? "to:new" : "value";
    if (!in_range) expected[NumberedKey(i)] = value;
    if (in_range && i % 3 != 0) expected[NumberedKey(i)] = *RuleFilter::Outcome(value);
  }
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
  filter_.Forget();
  Put("in L0", "value");
  expected["in L0"] = "value";
  ASSERT_OK(Compact());
  EXPECT_TRUE(HoldsExactly(db_.get(), RuleFilter::Outcomes(expected)));
  for (const auto& [key, value] : expected) EXPECT_EQ(filter_.Asked(key), 1) << key;
  ExpectSound();
}

TEST_P(DbCompactionFilterTest, NothingOlderComesBack) {
  Use(nullptr);
  for (int i = 0; i < 200; ++i) Put(NumberedKey(i), "old");
  ASSERT_OK(Compact());
  for (int i = 0; i < 200; ++i) Put(NumberedKey(i), "newer");
  ASSERT_OK(db_->Flush());
  for (int i = 0; i < 200; ++i) Put(NumberedKey(i), i % 2 == 0 ? "drop" : "to:newest");
  Use(&filter_);
  EXPECT_EQ(Get(NumberedKey(0)), "drop");
  ASSERT_OK(Merge());
  std::map<std::string, std::string> expected;
  for (int i = 1; i < 200; i += 2) expected[NumberedKey(i)] = "newest";
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
  for (int i = 0; i < 200; i += 2) EXPECT_EQ(Get(NumberedKey(i)), kGone);
  Use(nullptr);
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
  ASSERT_OK(Compact());
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
  ExpectSound();
}

TEST_P(DbCompactionFilterTest, DeletionsAreNotShownAndStayDeleted) {
  Put("key", "drop");
  ASSERT_OK(Merge());
  Put("key", "value");
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->Delete({}, "key"));
  filter_.Forget();
  ASSERT_OK(Compact());
  EXPECT_EQ(filter_.Asked("key"), 0);
  EXPECT_EQ(Get("key"), kGone);
  EXPECT_EQ(LiveBytes(), 0u);
}

// ---- Snapshots

TEST_P(DbCompactionFilterTest, ARemovalInPlaceIsSeenBySnapshotsToo) {
  Put("key", "drop");
  const Snapshot* const snapshot = db_->GetSnapshot();
  EXPECT_EQ(Get("key", snapshot), "drop");
  ASSERT_OK(Merge());
  EXPECT_EQ(Get("key", snapshot), kGone);
  EXPECT_EQ(Get("key"), kGone);
  EXPECT_EQ(LiveBytes(), 0u) << "nothing was written for it";
  db_->ReleaseSnapshot(snapshot);
}

TEST_P(DbCompactionFilterTest, VersionsThatOnlyASnapshotSeesStay) {
  Put("key", "old");
  const Snapshot* const snapshot = db_->GetSnapshot();
  Put("key", "drop");
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK(Merge());
    EXPECT_EQ(Get("key", snapshot), "old");
    EXPECT_EQ(Get("key"), kGone);
  }
  db_->ReleaseSnapshot(snapshot);
  ASSERT_OK(Compact());
  EXPECT_EQ(Get("key"), kGone);
  EXPECT_EQ(LiveBytes(), 0u);
}

TEST_P(DbCompactionFilterTest, WhatRespectsSnapshotsChangesNone) {
  const RuleFilter respectful(false);
  Use(&respectful);
  std::map<std::string, std::string> before;
  for (int i = 0; i < 300; ++i) {
    before[NumberedKey(i)] = i % 3 == 0 ? "drop" : i % 3 == 1 ? "to:new" : "value";
    Put(NumberedKey(i), before[NumberedKey(i)]);
  }
  const Snapshot* const snapshot = db_->GetSnapshot();
  ReadOptions at_snapshot;
  at_snapshot.snapshot = snapshot;
  const auto iterator = db_->NewIterator({});
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK(round == 2 ? Compact() : Merge());
    EXPECT_TRUE(HoldsExactly(db_.get(), before, at_snapshot));
    EXPECT_TRUE(HoldsExactly(db_.get(), RuleFilter::Outcomes(before)));
    auto expected = before.begin();
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++expected) {
      ASSERT_EQ(iterator->key(), expected->first);
      ASSERT_EQ(iterator->value(), expected->second);
    }
    EXPECT_TRUE(expected == before.end());
  }
  db_->ReleaseSnapshot(snapshot);
}

// Also those that were made while the merge ran.
TEST_P(DbCompactionFilterTest, SnapshotsThatAMergeDoesNotKnowOf) {
  RuleFilter respectful(false);
  Use(&respectful);
  Put("a", "drop");
  Put("b", "to:new");
  Put("c", "drop");
  const Snapshot* during = nullptr;
  respectful.SetDuring([&](Slice key) {
    if (key == "b") during = db_->GetSnapshot();
  });
  ASSERT_OK(Merge());
  ASSERT_NE(during, nullptr);
  EXPECT_EQ(Get("b", during), "to:new");
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"b", "new"}}));
  const std::string a = Get("a", during), c = Get("c", during);
  respectful.SetDuring(nullptr);
  ASSERT_OK(Compact());
  ASSERT_OK(Compact());
  EXPECT_EQ(Get("a", during), a);
  EXPECT_EQ(Get("b", during), "to:new");
  EXPECT_EQ(Get("c", during), c);
  db_->ReleaseSnapshot(during);
}

// ---- Writes of now

TEST_P(DbCompactionFilterTest, AWriteWhileTheFilterThinksIsNotLost) {
  Put("changed", "to:stale");
  Put("gone", "drop");
  bool once = true;
  filter_.SetDuring([&](Slice key) {
    if (key != "changed" || !std::exchange(once, false)) return;
    std::thread([&] {
      ASSERT_OK(db_->Put({}, "changed", "user's"));
      ASSERT_OK(db_->Put({}, "gone", "user's"));
    }).join();
  });
  ASSERT_OK(Merge());
  EXPECT_FALSE(once);
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"changed", "user's"}, {"gone", "user's"}}));
  ASSERT_OK(Compact());
  Reopen();
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"changed", "user's"}, {"gone", "user's"}}));
}

// Behind the number of the changed value, and before that is written.
TEST_P(DbCompactionFilterTest, AWriteThatComesAfterTheNumberWins) {
  Put("key", "to:stale");
  std::atomic<int> passed{0};
  SyncPoints::Instance().SetCallback("DBImpl::WriteIfNewest:Waited", [&](void*) {
    if (passed++ > 0) return;
    std::thread([&] { ASSERT_OK(db_->Put({}, "key", "user's")); }).join();
  });
  SyncPoints::Instance().Enable();
  ASSERT_OK(Merge());
  EXPECT_EQ(passed, 1);
  EXPECT_EQ(Get("key"), "user's");
  ASSERT_OK(Merge());
  EXPECT_EQ(Get("key"), "user's");
}

// A write that has drawn the smaller number is not seen yet, and must be waited for.
TEST_P(DbCompactionFilterTest, AWriteThatIsUnderWayIsWaitedFor) {
  Put("key", "to:stale");
  std::atomic<bool> stopped{false}, asked{false};
  std::thread writer;
  SyncPoints::Instance().SetCallback("DBImpl::AppendAndPublish:Durable", [&](void*) {
    if (std::this_thread::get_id() != writer.get_id() || stopped.exchange(true)) return;
    while (!asked) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the filter's write has its number by now
  });
  filter_.SetDuring([&](Slice) {
    SyncPoints::Instance().Enable();
    std::atomic<bool> go{false};
    writer = std::thread([&] {
      while (!go) std::this_thread::yield();
      ASSERT_OK(db_->Put({}, "key", "user's"));
    });
    go = true;
    while (!stopped) std::this_thread::yield();
    asked = true;
  });
  ASSERT_OK(Merge());
  writer.join();
  EXPECT_EQ(Get("key"), "user's");
  SyncPoints::Instance().Clear();
  filter_.SetDuring(nullptr);
  ASSERT_OK(Compact());
  EXPECT_EQ(Get("key"), "user's");
}

TEST_P(DbCompactionFilterTest, LargeValuesTooAndThoseThatAreOvertaken) {
  const std::string large = PatternedValue(1, options_.segment_size + 1000);
  for (int i = 0; i < 4; ++i) Put(NumberedKey(i), "to:" + large);
  filter_.SetDuring([&](Slice key) {
    if (key != NumberedKey(1)) return;
    std::thread([&] { ASSERT_OK(db_->Put({}, NumberedKey(1), "user's")); }).join();
  });
  ASSERT_OK(Merge());
  EXPECT_TRUE(HoldsExactly(
      db_.get(), {{NumberedKey(0), large}, {NumberedKey(1), "user's"}, {NumberedKey(2), large}, {NumberedKey(3), large}}));
  filter_.SetDuring(nullptr);
  ASSERT_OK(Compact());
  ExpectSound();
}

// ---- Caches and readers

TEST_P(DbCompactionFilterTest, TheLookupCacheForgets) {
  constexpr int kDropped = 6000;
  for (int i = 0; i < kDropped; ++i) Put(NumberedKey(i), "drop" + PatternedValue(i, 300));
  for (int i = 0; i < kDropped; ++i) ASSERT_NE(Get(NumberedKey(i)), kGone);
  ASSERT_OK(Merge());
  for (int i = 0; i < kDropped; ++i) ASSERT_EQ(Get(NumberedKey(i)), kGone) << i;
  // Where they were, something else is.
  EXPECT_GT(db_->GetStatistics().segments_recycled, 0u);
  for (int i = kDropped; i < 2 * kDropped; ++i) Put(NumberedKey(i), PatternedValue(i, 300));
  for (int i = 0; i < kDropped; ++i) ASSERT_EQ(Get(NumberedKey(i)), kGone) << i;
  for (int i = kDropped; i < 2 * kDropped; ++i) ASSERT_EQ(Get(NumberedKey(i)), PatternedValue(i, 300)) << i;
}

// From the mark on nobody sees the key, though the cache is told later.
TEST_P(DbCompactionFilterTest, AHitOfWhatIsMarkedIsNone) {
  Put("key", "drop");
  ASSERT_EQ(Get("key"), "drop");
  int looks = 0;
  const auto look = [&](void*) {
    const bool by_scan = ScanForward(db_.get()).empty();
    const bool by_get = Get("key") == kGone;
    EXPECT_EQ(by_scan, by_get);
    std::vector<std::string> values;
    EXPECT_EQ(db_->MultiGet({}, {"key"}, &values)[0].IsNotFound(), by_get);
    looks += by_get;
  };
  for (const char* point :
       {"MergeJournal::Apply:Recorded", "MergeJournal::Apply:Done", "NvMerge:Marked", "NvMerge:Applied", "RunMerge:Exchanged"})
    SyncPoints::Instance().SetCallback(point, look);
  SyncPoints::Instance().Enable();
  ASSERT_OK(Merge());
  // Of sorted runs it is seen until the view loses its table.
  EXPECT_TRUE(looks > 0 || TestedL1() == L1Kind::kSortedRuns);
  EXPECT_EQ(Get("key"), kGone);
}

// A lookup that began before the key went fills the cache when it is gone.
TEST_P(DbCompactionFilterTest, ALateFillIsNotTheRemovedVersion) {
  Use(nullptr);
  Put("key", "drop");
  ASSERT_OK(Merge());
  Use(&filter_);
  bool once = true;
  SyncPoints::Instance().SetCallback("DBImpl::FindPut:Found", [&](void*) {
    if (!std::exchange(once, false)) return;
    std::thread([&] { EXPECT_OK(Compact()); }).join();
  });
  SyncPoints::Instance().Enable();
  EXPECT_EQ(Get("key"), "drop") << "it was there when the lookup began";
  SyncPoints::Instance().Clear();
  const uint64_t hits = db_->GetStatistics().lookup_cache_hits;
  EXPECT_EQ(Get("key"), kGone);
  EXPECT_EQ(db_->GetStatistics().lookup_cache_hits, hits);
}

TEST_P(DbCompactionFilterTest, IteratorsOfBeforeSeeEachKeyOnceAtMost) {
  std::map<std::string, std::string> before;
  for (int i = 0; i < 2000; ++i) {
    before[NumberedKey(i)] = i % 4 == 0 ? "drop" : i % 4 == 1 ? "to:new" : "value";
    Put(NumberedKey(i), before[NumberedKey(i)]);
    if (i == 1000) {
      ASSERT_OK(db_->Flush());
    }
  }
  ASSERT_OK(db_->Flush());
  const auto forward = db_->NewIterator({}), backward = db_->NewIterator({});
  forward->SeekToFirst();
  backward->SeekToLast();
  std::map<std::string, std::string> seen, seen_backward;
  const auto step = [&](int steps) {
    for (int i = 0; i < steps && forward->Valid(); ++i, forward->Next())
      ASSERT_TRUE(seen.emplace(forward->key(), forward->value()).second) << forward->key();
    for (int i = 0; i < steps && backward->Valid(); ++i, backward->Prev())
      ASSERT_TRUE(seen_backward.emplace(backward->key(), backward->value()).second) << backward->key();
  };
  for (const char* point : {"MergeJournal::Apply:Recorded", "MergeJournal::Apply:Done", "NvMerge:Marked", "NvMerge:Applied"})
    SyncPoints::Instance().SetCallback(point, [&](void*) { step(7); });
  SyncPoints::Instance().Enable();
  ASSERT_OK(Compact());
  SyncPoints::Instance().Clear();
  step(1 << 20);
  for (const auto* found : {&seen, &seen_backward}) {
    EXPECT_EQ(RuleFilter::Outcomes(*found), RuleFilter::Outcomes(before));
    for (const auto& [key, value] : *found) EXPECT_EQ(value, before[key]) << "an iterator sees one snapshot";
  }
}

// ---- Filters that misbehave

TEST_P(DbCompactionFilterTest, AFilterThatThrowsKeepsTheKey) {
  Put("a", "drop");
  Put("b", "throw");
  Put("c", "to:new");
  ASSERT_OK(Merge());
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"b", "throw"}, {"c", "new"}}));
  ASSERT_OK(Compact());
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"b", "throw"}, {"c", "new"}}));
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.background-errors"), 0u);
}

TEST_P(DbCompactionFilterTest, ASlowFilterHoldsUpNeitherReadersNorWriters) {
  for (int i = 0; i < 100; ++i) Put(NumberedKey(i), "drop");
  std::atomic<bool> asked{false}, goes_on{false};
  filter_.SetDuring([&](Slice) {
    asked = true;
    while (!goes_on) std::this_thread::yield();
  });
  std::thread compaction([&] { EXPECT_OK(Merge()); });
  while (!asked) std::this_thread::yield();
  for (int i = 0; i < 20000; ++i) Put("x" + NumberedKey(i), PatternedValue(i, 20));
  EXPECT_EQ(Get(NumberedKey(50)), "drop");
  EXPECT_EQ(ScanForward(db_.get()).size(), 20100u);
  ASSERT_OK(db_->Flush());
  goes_on = true;
  compaction.join();
  EXPECT_EQ(ScanForward(db_.get()).size(), 20000u);
}

// It would be asked about its own result for ever.
TEST_P(DbCompactionFilterTest, MergesEndThoughEveryAnswerIsAChange) {
  options_.disable_auto_compaction = false;
  Reopen();
  for (int i = 0; i < 3000; ++i) Put(NumberedKey(i), "more");
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->WaitForCompaction());
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->WaitForCompaction());
  for (int i = 0; i < 3000; ++i) ASSERT_EQ(Get(NumberedKey(i)), "more+") << i;
  ASSERT_OK(Compact());
  for (int i = 0; i < 3000; ++i) ASSERT_EQ(Get(NumberedKey(i)), "more++") << i;
}

// ---- Factories

class RuleFactory : public CompactionFilterFactory {
 public:
  std::unique_ptr<CompactionFilter> CreateCompactionFilter(const CompactionFilter::Context& context) override {
    const std::lock_guard lock(mutex_);
    contexts.push_back(context);
    if (throws) throw std::runtime_error("a factory of the test");
    return makes_none ? nullptr : std::make_unique<RuleFilter>();
  }
  const char* Name() const override { return "rules"; }

  std::vector<CompactionFilter::Context> contexts;
  bool throws = false;
  bool makes_none = false;

 private:
  std::mutex mutex_;
};

TEST_P(DbCompactionFilterTest, AFactoryMakesAFilterForEachCompaction) {
  const auto factory = std::make_shared<RuleFactory>();
  options_.compaction_filter_factory = factory;
  Use(nullptr);
  Put("key", "drop");
  ASSERT_OK(Merge());
  EXPECT_EQ(Get("key"), kGone);
  ASSERT_GE(factory->contexts.size(), 1u);
  for (const auto& context : factory->contexts) EXPECT_TRUE(context.is_manual_compaction && !context.is_full_compaction);
  factory->contexts.clear();
  ASSERT_OK(Compact());
  const Slice begin = "a";
  ASSERT_OK(db_->CompactRange({}, &begin, nullptr));
  ASSERT_EQ(factory->contexts.size(), 2u);
  EXPECT_TRUE(factory->contexts[0].is_full_compaction && factory->contexts[0].is_manual_compaction);
  EXPECT_TRUE(!factory->contexts[1].is_full_compaction && factory->contexts[1].is_manual_compaction);
  factory->throws = true;
  Put("key", "drop");
  ASSERT_OK(Compact());
  EXPECT_EQ(Get("key"), "drop");
  factory->throws = false;
  factory->makes_none = true;
  ASSERT_OK(Compact());
  EXPECT_EQ(Get("key"), "drop");
  factory->makes_none = false;
  factory->contexts.clear();
  options_.disable_auto_compaction = false;
  Reopen();
  Put("key", "to:new");
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->WaitForCompaction());
  EXPECT_EQ(Get("key"), "new");
  ASSERT_FALSE(factory->contexts.empty());
  EXPECT_TRUE(!factory->contexts[0].is_manual_compaction && !factory->contexts[0].is_full_compaction);
}

// ---- Space

TEST_P(DbCompactionFilterTest, SpaceOfWhatGoesComesBack) {
  for (int i = 0; i < 20000; ++i) Put(NumberedKey(i), "drop" + PatternedValue(i, 300));
  ASSERT_OK(db_->Flush());
  const uint64_t before = IntProperty(db_.get(), "braiddb.pm-bytes-in-segments");
  ASSERT_OK(Compact());
  EXPECT_EQ(LiveBytes(), 0u);
  EXPECT_LT(IntProperty(db_.get(), "braiddb.pm-bytes-in-segments"), before / 4);
  EXPECT_TRUE(ScanForward(db_.get()).empty());
  ExpectSound();
}

// A relocation copies what a filter made, and still no merge asks about it.
TEST_P(DbCompactionFilterTest, CopiesOfChangedValuesAreNotAskedAbout) {
  options_.max_space_amplification = 1.1;
  options_.space_slack = 512 << 10;
  Reopen();
  for (int i = 0; i < 20000; ++i) {
    const std::string key = i % 20 == 0 ? NumberedKey(i) : "passing" + NumberedKey(i % 500);
    Put(key, "more" + PatternedValue(i, 400));
  }
  ASSERT_OK(db_->Flush());
  for (int i = 0; i < 500; ++i) ASSERT_OK(db_->Delete({}, "passing" + NumberedKey(i)));
  for (int round = 0; round < 4; ++round) ASSERT_OK(Merge());
  EXPECT_EQ(db_->GetStatistics().relocated_entries > 0, LogHoldsLastLevel());
  for (int i = 0; i < 20000; i += 20) ASSERT_EQ(Get(NumberedKey(i)), "more" + PatternedValue(i, 400) + "+") << i;
  ExpectSound();
}

TEST_P(DbCompactionFilterTest, AFullDatabaseStillDrops) {
  options_.max_region_size = 32ull << 20;
  options_.info_log = [](std::string_view) {};
  db_.reset();
  ASSERT_OK(DB::Destroy({}, directory_.File("db")));
  Reopen();
  Status status;
  int written = 0;
  for (; status.ok(); ++written) {
    const bool changes = written % 10 == 0;
    status = db_->Put({}, NumberedKey(written), (changes ? "to:" : "keep") + PatternedValue(written, 4000));
  }
  ASSERT_TRUE(status.IsNoSpace()) << status.ToString();
  // There is no space for the changed values: they stay as they were, or are changed where there was some.
  for (int i = 0; i + 1 < written; ++i) {
    const std::string value = Get(NumberedKey(i));
    const std::string pattern = PatternedValue(i, 4000);
    ASSERT_TRUE(value == (i % 10 == 0 ? "to:" : "keep") + pattern || (i % 10 == 0 && value == pattern)) << i;
  }
  if (TestedL1() != L1Kind::kBraidedSkipList) return;  // others' merges need space
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.background-errors"), 0u);
}

// ---- Crashes

constexpr int kKeysOfALife = 300;

std::string RuleOf(int i) { return (i % 3 == 0 ? "drop" : i % 3 == 1 ? "to:new" : "newer") + std::to_string(i); }

// A life that ends at the nth passage of a point. It has one version of each key in the last level, and newer ones in L0.
void LiveUntil(const char* point, int nth, bool ignores_snapshots, Options options, const std::string& path) {
  options.compaction_filter = nullptr;
  auto db = OpenOrFail(options, path);
  for (int i = 0; i < kKeysOfALife; ++i) EXPECT_OK(db->Put({}, NumberedKey(i), "old" + std::to_string(i)));
  EXPECT_OK(db->CompactRange({}, nullptr, nullptr));
  for (int i = 0; i < kKeysOfALife; ++i) EXPECT_OK(db->Put({}, NumberedKey(i), RuleOf(i)));
  db.reset();
  const RuleFilter filter(ignores_snapshots);
  options.compaction_filter = &filter;
  db = OpenOrFail(options, path);
  std::atomic<int> left = nth;
  SyncPoints::Instance().SetCallback(point, [&](void*) {
    if (--left == 0) _exit(0);
  });
  SyncPoints::Instance().Enable();
  CompactRangeOptions merge_only;
  merge_only.sweep_last_level = false;
  EXPECT_OK(db->CompactRange(merge_only, nullptr, nullptr));
  EXPECT_OK(db->CompactRange({}, nullptr, nullptr));
  _exit(0);
}

// Each key is as it was put, or as the filter made it; `filtered`: the latter. Gets and scans agree.
void ExpectNothingOlder(DB* db, bool filtered) {
  std::map<std::string, std::string> scanned;
  for (const auto& [key, value] : ScanForward(db)) scanned[key] = value;
  EXPECT_EQ(ScanBackward(db).size(), scanned.size());
  for (int i = 0; i < kKeysOfALife; ++i) {
    const std::string key = NumberedKey(i), got = GetOrText(db, key);
    EXPECT_EQ(got, scanned.count(key) == 0 ? kGone : scanned[key]);
    const std::string outcome = RuleFilter::Outcome(RuleOf(i)).value_or(kGone);
    EXPECT_TRUE(got == outcome || (!filtered && got == RuleOf(i))) << key << ": " << got;
  }
}

// What a process left that died anywhere. The next one has no filter, the one after it has.
TEST_P(DbCompactionFilterTest, AKilledProcessLeavesNothingOlder) {
  const std::string path = directory_.File("killed");
  for (const bool ignores_snapshots : {true, false}) {
    for (const char* point : {"MergeJournal::Apply:Recorded", "MergeJournal::Apply:Done", "NvMerge:Marked", "NvMerge:Applied",
                              "DBImpl::WriteIfNewest:Waited", "DBImpl::AppendAndPublish:Durable"}) {
      for (const int nth : {1, 2, 60}) {
        SCOPED_TRACE(std::string(point) + " " + std::to_string(nth) + (ignores_snapshots ? ", in place" : ""));
        ASSERT_OK(DB::Destroy({}, path));
        const int ended = RunInChild([&]() -> int {
          LiveUntil(point, nth, ignores_snapshots, options_, path);
          return 1;
        });
        ASSERT_EQ(ended, 0);
        CheckReport report;
        ASSERT_OK(CheckDatabase({}, path, &report));
        ASSERT_TRUE(report.sound()) << report.findings[0].what << ": " << report.findings[0].where;
        Options options = options_;
        for (const bool has_filter : {false, true}) {
          options.compaction_filter = has_filter ? &filter_ : nullptr;
          const auto db = OpenOrFail(options, path);
          ASSERT_NE(db, nullptr);
          ExpectNothingOlder(db.get(), false);
          ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
          ExpectNothingOlder(db.get(), has_filter);
        }
      }
    }
  }
}

// ---- A model

// Whatever is done, all that the filter has not seen yet becomes what it would make of it.
TEST_P(DbCompactionFilterTest, AgreesWithAModel) {
  for (const uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const RuleFilter filter(seed % 2 == 0);
    options_.disable_auto_compaction = seed == 2;
    options_.lookup_cache_size = seed == 3 ? 256 : 1 << 20;
    options_.max_space_amplification = 1.05;
    options_.space_slack = 0;
    db_.reset();
    ASSERT_OK(DB::Destroy({}, directory_.File("db")));
    Use(&filter);
    std::map<std::string, std::string> model;
    struct Held {
      const Snapshot* snapshot;
      std::map<std::string, std::string> content;
    };
    std::vector<Held> held;
    const auto content = [&](const Snapshot* snapshot) {
      ReadOptions options;
      options.snapshot = snapshot;
      std::map<std::string, std::string> result;
      for (const auto& [key, value] : ScanForward(db_.get(), options)) result[key] = value;
      return result;
    };
    for (int step = 0; step < 6000; ++step) {
      const std::string key = NumberedKey(random.Uniform(200));
      const uint64_t what = random.Uniform(100);
      if (what < 70) {
        const std::string rest = PatternedValue(random.Next(), random.Uniform(200));
        const std::string value = (random.OneIn(3) ? "drop" : random.OneIn(2) ? "to:" : "v") + rest;
        ASSERT_OK(db_->Put({}, key, value));
        model[key] = value;
      } else if (what < 85) {
        ASSERT_OK(db_->Delete({}, key));
        model.erase(key);
      } else if (what < 95) {
        const std::string got = Get(key);
        const auto expected = model.find(key);
        std::map<std::string, std::string> of_get, of_model;
        if (got != kGone) of_get[key] = got;
        if (expected != model.end()) of_model[key] = expected->second;
        ASSERT_EQ(RuleFilter::Outcomes(of_get), RuleFilter::Outcomes(of_model)) << step;
      } else if (what < 96) {
        const Snapshot* const snapshot = db_->GetSnapshot();
        held.push_back({snapshot, content(snapshot)});
      } else if (what < 97 && !held.empty()) {
        db_->ReleaseSnapshot(held.back().snapshot);
        held.pop_back();
      } else if (random.OneIn(3)) {
        ASSERT_OK(random.OneIn(2) ? Merge() : Compact());
      } else {
        ASSERT_OK(db_->Flush());
      }
      if (step % 200 != 199) continue;
      ASSERT_EQ(RuleFilter::Outcomes(content(nullptr)), RuleFilter::Outcomes(model)) << step;
      for (const Held& one : held) {
        const auto seen = content(one.snapshot);
        if (!filter.IgnoreSnapshots()) {
          ASSERT_EQ(seen, one.content) << step;
        }
        ASSERT_EQ(RuleFilter::Outcomes(seen), RuleFilter::Outcomes(one.content)) << step;
        for (const auto& [seen_key, value] : seen) {
          const auto then = one.content.find(seen_key);
          ASSERT_TRUE(then != one.content.end() && then->second == value) << "a snapshot does not see what came later";
        }
      }
      if (step % 2000 != 1999) continue;
      for (const Held& one : held) db_->ReleaseSnapshot(one.snapshot);
      held.clear();
      ASSERT_NO_FATAL_FAILURE(ExpectSound());
    }
    ASSERT_OK(Compact());
    EXPECT_TRUE(HoldsExactly(db_.get(), RuleFilter::Outcomes(model)));
    for (const Held& one : held) db_->ReleaseSnapshot(one.snapshot);
    db_.reset();
  }
}

}  // namespace
}  // namespace braiddb::test
