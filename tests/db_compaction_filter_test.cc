// Compaction filters in a database: what goes, what changes, what snapshots see meanwhile; factories; filters that misbehave.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/compaction_filter_test.h"
#include "tests/support/wait_until.h"

namespace braiddb::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Regions, DbCompactionFilterTest, testing::Values(1, 2));

TEST_P(DbCompactionFilterTest, AMergeAsksWhenKeysLeaveL0) {
  Put("gone", "drop");
  Put("changed", "to:new");
  Put("kept", "value");
  const Statistics before = db_->GetStatistics();
  ASSERT_OK(db_->Flush());
  EXPECT_EQ(Get("gone"), "drop");
  EXPECT_EQ(filter_.Asked("gone"), 0);
  ASSERT_OK(Merge());
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"changed", "new"}, {"kept", "value"}}));
  EXPECT_EQ(db_->GetStatistics().writes, before.writes) << "only users' writes count";
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

// The close cuts the merge short. What the filter has decided until then holds.
TEST_P(DbCompactionFilterTest, ACloseBesideAMergeLosesNoDecision) {
  constexpr int kKeys = 3000;
  options_.disable_auto_compaction = false;
  options_.l0_compaction_trigger = 1;
  std::atomic<int> asked{0};
  filter_.SetDuring([&asked](Slice) {
    ++asked;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  });
  Reopen();
  for (int i = 0; i < kKeys; ++i) Put(NumberedKey(i), i % 2 == 0 ? "to:new" : "drop");
  ASSERT_OK(db_->Flush());
  ASSERT_TRUE(WaitUntil([&] { return asked > 100; }));
  ASSERT_OK(db_->Close());
  options_.disable_auto_compaction = true;
  Reopen();
  ASSERT_OK(Merge());
  ASSERT_OK(Merge());
  for (int i = 0; i < kKeys; ++i) EXPECT_EQ(Get(NumberedKey(i)), i % 2 == 0 ? "new" : kGone) << i;
  filter_.SetDuring(nullptr);
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

}  // namespace
}  // namespace braiddb::test
