// Space comes back, and when there is none left the database says so and goes on reading.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>

#include "braiddb/db.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

// Longer than the compaction thread takes to make room on a loaded machine.
constexpr uint32_t kTimeoutMs = 100'000;

INSTANTIATE_TEST_SUITE_P(Regions, DbTest, testing::Values(1, 2), [](const auto& test) { return std::to_string(test.param); });

TEST_P(DbTest, CompactionDropsWhatNoOneSees) {
  const int count = 3000 / kSlowdown;
  for (int i = 0; i < count; ++i) {
    ASSERT_OK(db_->Put({}, NumberedKey(i % 100), PatternedValue(i, 200)));
  }
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK(db_->Delete({}, NumberedKey(i)));
  }
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_GE(db_->GetStatistics().dropped_entries, static_cast<uint64_t>(count)) << "every version and its tombstone";
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.estimate-num-keys"), 0u);
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-l0-tables"), 0u);
  EXPECT_TRUE(HoldsExactly(db_.get(), Pairs{}));
}

// A whole level is walked again only if there may be something to drop.
TEST_P(DbTest, ARepeatedCompactRangeHasNothingToSweep) {
  std::atomic<int> sweeps{0};
  SyncPoints::Instance().SetCallback("DBImpl::SweepFamily", [&sweeps](void*) { ++sweeps; });
  SyncPoints::Instance().Enable();
  const auto sweeps_of_a_compaction = [&] {
    sweeps = 0;
    EXPECT_OK(db_->CompactRange({}, nullptr, nullptr));
    return sweeps.load();
  };
  ASSERT_OK(db_->Put({}, "a", "1"));
  EXPECT_EQ(sweeps_of_a_compaction(), 1);
  EXPECT_EQ(sweeps_of_a_compaction(), 0);
  const Snapshot* const snapshot = db_->GetSnapshot();
  EXPECT_EQ(sweeps_of_a_compaction(), 0);
  ASSERT_OK(db_->Put({}, "a", "2"));
  EXPECT_EQ(sweeps_of_a_compaction(), 1);
  EXPECT_EQ(sweeps_of_a_compaction(), 1) << "the snapshot may have kept something";
  db_->ReleaseSnapshot(snapshot);
  const uint64_t live = IntProperty(db_.get(), "braiddb.num-entries-l1");
  EXPECT_EQ(sweeps_of_a_compaction(), 1);
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-entries-l1"), live - 1);
  EXPECT_EQ(sweeps_of_a_compaction(), 0);
  ASSERT_OK(db_->DeleteRange({}, "a", "b"));
  EXPECT_GE(sweeps_of_a_compaction(), 1);
  SyncPoints::Instance().Clear();
  EXPECT_TRUE(HoldsExactly(db_.get(), Pairs{}));
}

// Space is used again, and nothing that is still there is lost with it. [CC-7]
TEST_P(DbTest, OverwritingForEverTakesBoundedSpace) {
  // 32 MiB per region, and five times that written.
  db_.reset();
  ASSERT_OK(DB::Destroy(options_, directory_.File("db")));
  options_.max_region_size = 32ull << 20;
  options_.no_space_timeout_ms = kTimeoutMs;
  Reopen();
  std::map<std::string, std::string> expected;
  Random random(5);
  const uint64_t target = GetParam() * (32ull << 20) * 5 / (kSlowdown > 1 ? 3 : 1);
  uint64_t written = 0;
  for (int i = 0; written < target; ++i) {
    const std::string key = NumberedKey(random.Uniform(300));
    expected[key] = PatternedValue(i, 500 + random.Uniform(3000));
    written += expected[key].size();
    ASSERT_OK(db_->Put({}, key, expected[key])) << "after " << written << " bytes";
  }
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
  EXPECT_GT(db_->GetStatistics().segments_recycled, 0u);
  Reopen();
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
}

class DbNoSpaceTest : public DbTest {
 protected:
  void SetUp() override {
    options_.max_region_size = 32ull << 20;
    options_.no_space_timeout_ms = kTimeoutMs;
    DbTest::SetUp();
  }
};

INSTANTIATE_TEST_SUITE_P(Regions, DbNoSpaceTest, testing::Values(1, 2),
                         [](const auto& test) { return std::to_string(test.param); });

TEST_P(DbNoSpaceTest, FullDatabaseRefusesWritesAndGoesOnReading) {
  std::map<std::string, std::string> expected;
  Status status;
  int i = 0;
  for (; i < 200'000; ++i) {
    const std::string value = PatternedValue(i, 4000);
    status = db_->Put({}, NumberedKey(i), value);
    if (!status.ok()) break;
    expected[NumberedKey(i)] = value;
  }
  ASSERT_TRUE(status.IsNoSpace()) << status.ToString();
  EXPECT_FALSE(status.message().empty());
  EXPECT_GT(expected.size(), GetParam() * 4500u) << "most of all regions should be usable, whoever writes";
  EXPECT_EQ(GetOrText(db_.get(), NumberedKey(i)), "<not found>") << "a refused write must not be there";
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));

  WriteBatch batch;
  for (int j = 0; j < 100; ++j) batch.Put("batch" + NumberedKey(j), PatternedValue(j, 40'000));
  EXPECT_CODE(db_->Write({}, batch), kNoSpace);
  EXPECT_CODE(db_->Put({}, "large", PatternedValue(1, 40 << 20)), kNoSpace);
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));

  Reopen();
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
  status = db_->Put({}, "one more", "?");  // either way, but cleanly
  if (status.ok()) {
    expected["one more"] = "?";
  } else {
    EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  }

  // A larger limit at the next open makes room again.
  options_.max_region_size = 64ull << 20;
  Reopen();
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
  for (int j = 0; j < 1000; ++j) {
    expected["later" + NumberedKey(j)] = PatternedValue(j, 1000);
    ASSERT_OK(db_->Put({}, "later" + NumberedKey(j), expected["later" + NumberedKey(j)]));
  }
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
}

TEST_P(DbNoSpaceTest, RefusesCleanlyAndGoesOnWithALargerLimit) {
  std::map<std::string, std::string> expected;
  Status status;
  for (int i = 0; status.ok() && i < 200'000; ++i) {
    status = db_->Put({}, NumberedKey(i), PatternedValue(i, 4000));
    if (status.ok()) expected[NumberedKey(i)] = PatternedValue(i, 4000);
  }
  ASSERT_TRUE(status.IsNoSpace()) << status.ToString();
  // A delete needs log space too, and is refused as cleanly as a put is.
  status = db_->Delete({}, expected.begin()->first);
  if (status.ok()) {
    expected.erase(expected.begin());
  } else {
    EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  }
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
  // With a larger limit everything goes on, and deletes make room.
  options_.max_region_size += 32 << 20;
  Reopen();
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
  while (expected.size() > 1000) {
    ASSERT_OK(db_->Delete({}, expected.begin()->first));
    expected.erase(expected.begin());
  }
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  // A background thread may hold a view for a moment longer, and with it the segments.
  EXPECT_TRUE(WaitUntil([&] { return db_->GetStatistics().segments_recycled > 0; }));
  for (int i = 0; i < 1000; ++i) {
    expected["new" + NumberedKey(i)] = PatternedValue(i, 4000);
    ASSERT_OK(db_->Put({}, "new" + NumberedKey(i), expected["new" + NumberedKey(i)])) << i;
  }
  Reopen();
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
}

}  // namespace
}  // namespace braiddb::test
