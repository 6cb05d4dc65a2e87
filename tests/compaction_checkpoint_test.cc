// A checkpoint makes the pointers of a table durable. [CC-3]
#include <gtest/gtest.h>

#include "compaction/checkpoint.h"
#include "tests/support/level_store.h"
#include "tests/support/power_cut.h"

namespace braiddb::test {
namespace {

class CheckpointTest : public testing::TestWithParam<uint32_t> {
 protected:
  static constexpr size_t kEntries = 15000;  // several segments per region

  // A table whose entries are durable and whose pointers are not. Before them, in the same segments, come others' entries.
  std::shared_ptr<PmTable> MakeTable() {
    uint64_t sequence = 1;
    for (const Version& version : store_.DrawVersions(&random_, 20, 20, 8, &sequence)) store_.Write(version);
    std::vector<std::shared_ptr<LogExtent>> extents;
    for (uint32_t region = 0; region < GetParam(); ++region) {
      extents.push_back(std::make_shared<LogExtent>());
      extents.back()->segment = store_.writer(region)->segment();
      extents.back()->begin = extents.back()->segment->used_bytes;
    }
    const std::vector<Version> versions = store_.DrawVersions(&random_, kEntries, kEntries, 8, &sequence);
    for (const Version& version : versions) {
      store_.Write(version);
      Segment* segment = store_.writer(version.region)->segment();
      bool known = false;
      for (const auto& extent : extents) known = known || extent->segment == segment;
      if (known) continue;
      extents.push_back(std::make_shared<LogExtent>());
      extents.back()->segment = segment;
    }
    // The segments in which writers still are have no end yet.
    for (const auto& extent : extents) {
      if (extent->segment->state() == SegmentState::kSealed) extent->end.store(extent->segment->used_bytes);
    }
    EXPECT_GE(extents.size(), 2 * GetParam()) << "full ones and open ones";

    cut_ = std::make_unique<PowerCut>(store_.regions(), PowerCut::kNever);
    auto table = std::make_shared<PmTable>(1, sequence, store_.regions(), &store_.order());
    ListBuilder builder(store_.regions(), table.get());
    expected_ = InEntryOrder(versions);
    for (const Version& version : expected_)
      builder.Append(store_.Resolve(store_.Find(version.sequence)), store_.Find(version.sequence));
    builder.Finish();
    table->extents = extents;
    return table;
  }

  LevelStore store_{GetParam()};
  Random random_{21};
  std::unique_ptr<PowerCut> cut_;
  std::vector<Version> expected_;
};

INSTANTIATE_TEST_SUITE_P(Regions, CheckpointTest, testing::Values(1, 2));

TEST_P(CheckpointTest, WithoutItThePointersAreLost) {
  const auto table = MakeTable();
  cut_->Lose(PowerCut::Luck::kNothing, &random_);
  EXPECT_NE(store_.Dump(table->list), expected_);
}

TEST_P(CheckpointTest, AfterItTheListSurvives) {
  const auto table = MakeTable();
  uint64_t flushed_lines = 0;
  ASSERT_OK(PersistTablePointers(*table, store_.regions()->persistence(), &flushed_lines));
  cut_->Lose(PowerCut::Luck::kNothing, &random_);
  EXPECT_TRUE(store_.IsWhole(table->list));
  EXPECT_EQ(store_.Dump(table->list), expected_);
  uint64_t bytes = 0;
  for (const auto& extent : table->extents) bytes += extent->segment->used_bytes - extent->begin;
  EXPECT_GE(flushed_lines, bytes / kCacheLine);
  EXPECT_LE(flushed_lines, bytes / kCacheLine + table->extents.size());
  EXPECT_EQ(cut_->fences(), 1u);
}

TEST_P(CheckpointTest, AnExtentInWhichNothingWasWrittenCostsNothing) {
  PmTable table(1, 1, store_.regions(), &store_.order());
  store_.Write({"k", 1});
  table.extents.push_back(std::make_shared<LogExtent>());
  table.extents[0]->segment = store_.writer(0)->segment();
  table.extents[0]->begin = table.extents[0]->segment->used_bytes;
  PowerCut cut(store_.regions(), PowerCut::kNever);
  uint64_t flushed_lines = 0;
  ASSERT_OK(PersistTablePointers(table, store_.regions()->persistence(), &flushed_lines));
  EXPECT_EQ(flushed_lines, 0u);
  EXPECT_EQ(cut.fences(), 0u);
}

TEST(CheckpointFailureTest, AFailedSyncIsReported) {
  LevelStore store(1, PersistMode::kPage);
  const auto table = store.MakeTable({{"k", 1}});
  table->extents.push_back(std::make_shared<LogExtent>());
  table->extents[0]->segment = store.writer(0)->segment();
  store.regions()->persistence()->FailSyncsForTest();
  uint64_t flushed_lines = 0;
  EXPECT_CODE(PersistTablePointers(*table, store.regions()->persistence(), &flushed_lines), kIOError);
}

}  // namespace
}  // namespace braiddb::test
