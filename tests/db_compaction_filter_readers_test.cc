// Compaction filters beside writes and reads of the same moment: nothing that is written is lost, and no cache and no iterator
// shows what went.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/test_hooks.h"
#include "tests/support/compaction_filter_test.h"

namespace braiddb::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Regions, DbCompactionFilterTest, testing::Values(1, 2));

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
  for (const char* point : {"MergeJournal::Apply:Recorded", "MergeJournal::Apply:Done", "LevelMerge:Marked", "LevelMerge:Applied",
                            "RunMerge:Exchanged"})
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
  for (const char* point :
       {"MergeJournal::Apply:Recorded", "MergeJournal::Apply:Done", "LevelMerge:Marked", "LevelMerge:Applied"})
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

}  // namespace
}  // namespace braiddb::test
