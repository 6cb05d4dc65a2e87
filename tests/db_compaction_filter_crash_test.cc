// Compaction filters and what is on media: space that comes back, processes that are killed, and a model.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/test_hooks.h"
#include "tests/support/compaction_filter_test.h"

namespace braiddb::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Regions, DbCompactionFilterTest, testing::Values(1, 2));

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
  for (int i = 0; i < 20000; ++i) Put(NumberedKey(i), "more" + PatternedValue(i, 400));
  ASSERT_OK(db_->Flush());
  ASSERT_OK(Merge());
  for (int i = 0; i < 20000; ++i) {
    if (i % 20 == 0) continue;
    ASSERT_OK(db_->Delete({}, NumberedKey(i)));
  }
  ASSERT_OK(db_->Flush());
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
    for (const char* point : {"MergeJournal::Apply:Recorded", "MergeJournal::Apply:Done", "LevelMerge:Marked",
                              "LevelMerge:Applied", "DBImpl::WriteIfNewest:Waited", "DBImpl::AppendAndPublish:Durable"}) {
      for (const int nth : {1, 2, 60}) {
        if (nth == 2 && kSlowdown != 1) continue;
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
