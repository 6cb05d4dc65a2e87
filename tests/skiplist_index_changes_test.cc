// An index that is made of the one before and of what a merge noted has the nodes that a walk would find, and no walk is made.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>

#include "skiplist/tall_index.h"
#include "tests/support/merge_case.h"
#include "tests/support/same_index.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

class IndexChangesTest : public testing::TestWithParam<uint32_t> {
 protected:
  IndexChangesTest() {
    SyncPoints::Instance().SetCallback("TallIndex::Walked", [this](void*) { ++walks_; });
    SyncPoints::Instance().Enable();
  }
  ~IndexChangesTest() override { SyncPoints::Instance().Clear(); }

  TallIndex Walked(uint64_t max_bytes) {
    return TallIndex(merge_.store().l1(), std::max<uint64_t>(1, merge_.in_last_level().size()), max_bytes);
  }
  uint64_t Entries() const { return std::max<uint64_t>(1, merge_.in_last_level().size()); }
  // The index after a merge, of the one before; and how many regions were walked for it.
  TallIndex Changed(const TallIndex& before, const IndexChanges& changes, uint64_t max_bytes, uint64_t* walks) {
    const uint64_t until_now = walks_;
    TallIndex index(before, changes, Entries(), max_bytes);
    *walks = walks_ - until_now;
    return index;
  }
  IndexChanges Merge(const TallIndex& index, const std::vector<uint64_t>& snapshots) {
    IndexChanges changes = index.NewChanges();
    merge_.NoteIn(&changes);
    merge_.Merge(snapshots);
    merge_.NoteIn(nullptr);
    return changes;
  }

  MergeCase merge_{GetParam()};
  Random random_{77};
  std::atomic<uint64_t> walks_{0};
};

INSTANTIATE_TEST_SUITE_P(Regions, IndexChangesTest, testing::Values(1, 2, 4));

TEST_P(IndexChangesTest, HasTheNodesThatAWalkFinds) {
  constexpr uint64_t kKeys = 2000;
  for (const uint64_t max_bytes : {uint64_t{1} << 20, uint64_t{8} << 10}) {  // all of them, and the taller ones
    merge_.FillLastLevel(merge_.Draw(&random_, 1500, kKeys, 4));
    std::optional<TallIndex> index(Walked(max_bytes));
    uint64_t without_walk = 0;
    for (int round = 0; round < 20; ++round) {
      SCOPED_TRACE("round " + std::to_string(round));
      std::vector<uint64_t> snapshots;
      for (uint64_t tables = random_.Range(1, 4); tables > 0; --tables) {
        merge_.AddTable(merge_.Draw(&random_, random_.Skewed(600), random_.OneIn(3) ? 10 : kKeys, random_.Range(2, 6)));
        if (random_.OneIn(2)) snapshots.push_back(merge_.NextSequence());
      }
      const IndexChanges changes = Merge(*index, snapshots);
      uint64_t walks = 0;
      index.emplace(Changed(*index, changes, max_bytes, &walks));
      EXPECT_TRUE(HaveSameNodes(*index, Walked(max_bytes), GetParam()));
      without_walk += walks == 0;
      if (HasFailure()) return;
    }
    EXPECT_GE(without_walk, max_bytes == 8 << 10 ? 5u : 15u);
  }
}

// To the head, from the end, and away again.
TEST_P(IndexChangesTest, AtTheEnds) {
  constexpr uint64_t kBytes = 1 << 20;
  merge_.FillLastLevel({{"d"}, {"f"}});
  for (const char* key : {"a", "z", "d", "b", "a"}) {
    TallIndex index = Walked(kBytes);
    const bool was_whole = index.NewChanges().Of(0).is_known();
    merge_.AddTable({{key}});
    uint64_t walks = 0;
    const IndexChanges changes = Merge(index, {});
    const TallIndex changed = Changed(index, changes, kBytes, &walks);
    EXPECT_TRUE(HaveSameNodes(changed, Walked(kBytes), GetParam())) << key;
    if (GetParam() == 1) {
      EXPECT_TRUE(was_whole);
      EXPECT_EQ(walks, 0u);
    }
  }
}

// What does not fit together is not believed.
TEST_P(IndexChangesTest, WalksWhereTheTwoDoNotFit) {
  constexpr uint64_t kBytes = 1 << 20;
  merge_.FillLastLevel(merge_.Draw(&random_, 500, 5000, 4));
  const TallIndex older = Walked(kBytes);
  merge_.AddTable(merge_.Draw(&random_, 500, 5000, 4));
  merge_.Merge({});
  const TallIndex index = Walked(kBytes);
  merge_.AddTable(merge_.Draw(&random_, 500, 5000, 4));
  const IndexChanges changes = Merge(index, {});
  uint64_t walks = 0;
  EXPECT_TRUE(HaveSameNodes(Changed(older, changes, kBytes, &walks), Walked(kBytes), GetParam()));
  EXPECT_EQ(walks, GetParam());
  EXPECT_TRUE(HaveSameNodes(Changed(index, changes, kBytes, &walks), Walked(kBytes), GetParam()));
  EXPECT_EQ(walks, 0u);
  EXPECT_TRUE(HaveSameNodes(Changed(index, IndexChanges(GetParam()), kBytes, &walks), Walked(kBytes), GetParam()));
  EXPECT_EQ(walks, GetParam()) << "nothing was known";
  EXPECT_LE(Changed(index, changes, 2048, &walks).bytes(), 2048u);
  EXPECT_GT(walks, 0u) << "another layer is wanted";
}

}  // namespace
}  // namespace braiddb::test
