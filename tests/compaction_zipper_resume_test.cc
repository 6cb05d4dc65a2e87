// A merge that the power, or a close, interrupts: the last level is whole, and the merge goes on where it was. [CC-4]
#include <gtest/gtest.h>

#include "tests/support/merge_case.h"
#include "tests/support/power_cut.h"

namespace braiddb::test {
namespace {

class ZipperResumeTest : public testing::TestWithParam<uint32_t> {
 protected:
  LevelStore& store() { return merge_.store(); }

  // What holds between two batches: the tables' entries from `progress` on are merged or dropped, the others are untouched.
  void ExpectMergedFrom(PmPtr progress, const MergeCase::Outcome& expected) {
    ASSERT_OK(store().last_level().VerifyHeads());
    ASSERT_TRUE(store().IsWhole(store().l1()));
    const std::vector<Version> now = store().Dump(store().l1());
    std::set<uint64_t> linked, staying;
    for (const Version& version : now) linked.insert(version.sequence);
    for (const Version& version : expected.last_level) staying.insert(version.sequence);
    for (const Version& version : merge_.in_tables()) {
      const LogEntry* entry = store().Resolve(store().Find(version.sequence));
      const bool done = progress && CompareEntries(store().order(), *entry, *store().Resolve(progress)) >= 0;
      const bool stays = staying.contains(version.sequence);
      ASSERT_EQ(linked.contains(version.sequence), done && stays) << testing::PrintToString(version);
      ASSERT_EQ(entry->is_dead(), done && !stays) << testing::PrintToString(version);
    }
    // Of the last level nothing is lost that stays.
    for (const Version& version : merge_.in_last_level()) {
      ASSERT_TRUE(linked.contains(version.sequence) || !staying.contains(version.sequence)) << testing::PrintToString(version);
    }
  }

  // Runs the merge, with a power cut at this fence, and at others in what comes after, until it is done. Returns whether there
  // was such a fence.
  bool RunWithPowerCuts(const std::vector<uint64_t>& snapshots, uint64_t fence, PowerCut::Luck luck,
                        const MergeCase::Outcome& expected) {
    PmPtr progress;
    EXPECT_OK(merge_.Redo(&progress));
    EXPECT_EQ(progress, PmPtr());
    for (int life = 0;; ++life) {
      PowerCut cut(store().regions(), life == 0 ? fence : life < 4 ? random_.Uniform(5) : PowerCut::kNever);
      try {
        EXPECT_OK(merge_.Run(snapshots, progress));
        merge_.ExpectMerged(expected);
        return life > 0;
      } catch (const PowerCut::Failed&) {
      }
      cut.Lose(luck, &random_);
      EXPECT_OK(merge_.Redo(&progress));
      ExpectMergedFrom(progress, expected);
      if (HasFailure()) return false;
    }
  }
  void CutAtEveryFence(const std::vector<uint64_t>& snapshots, uint64_t least_batches) {
    const MergeCase::Outcome expected = merge_.Expected(snapshots);
    const RegionImage before(store().regions());
    uint64_t fence = 0;
    for (bool is_there = true; is_there; ++fence) {
      for (const PowerCut::Luck luck : PowerCut::LucksAt(fence)) {
        SCOPED_TRACE("fence " + std::to_string(fence) + ", luck " + std::to_string(static_cast<int>(luck)));
        before.Restore(store().regions());
        is_there = RunWithPowerCuts(snapshots, fence, luck, expected);
        if (HasFailure()) return;
      }
    }
    EXPECT_GE(fence - 1, 2 * least_batches);
  }
  // All of one key, and so tall that a few make a batch.
  std::vector<Version> VersionsOfOneKey(size_t count) {
    std::vector<Version> versions = merge_.Draw(&random_, count, 1, 8);
    for (Version& version : versions) {
      version.key = NumberedKey(500);
      version.height = static_cast<uint32_t>(random_.Range(8, 16));
    }
    return versions;
  }

  MergeCase merge_{GetParam()};
  Random random_{61};
};

INSTANTIATE_TEST_SUITE_P(Regions, ZipperResumeTest, testing::Values(1, 2));

TEST_P(ZipperResumeTest, PowerCutAtEveryFence) {
  merge_.FillLastLevel(merge_.Draw(&random_, 3000, 3000, 8));
  merge_.AddTable(merge_.Draw(&random_, 3000, 5000, 4));
  const uint64_t snapshot = merge_.NextSequence();
  merge_.AddTable(merge_.Draw(&random_, 3000, 5000, 4));
  CutAtEveryFence({snapshot}, 3);
}

// More stores than a batch takes, all for one key: its batches end in the middle of the key.
TEST_P(ZipperResumeTest, PowerCutInTheMiddleOfAKeyThatIsUnlinked) {
  merge_.FillLastLevel(VersionsOfOneKey(1350));
  merge_.AddTable(merge_.Draw(&random_, 300, 1000, 4));
  merge_.AddTable(VersionsOfOneKey(1));
  CutAtEveryFence({}, 2);
}

TEST_P(ZipperResumeTest, PowerCutInTheMiddleOfAKeyThatIsMerged) {
  merge_.FillLastLevel(merge_.Draw(&random_, 300, 1000, 4));
  merge_.AddTable(VersionsOfOneKey(700));
  merge_.AddTable(VersionsOfOneKey(700));
  std::vector<uint64_t> snapshots;
  for (const Version& version : merge_.in_tables()) snapshots.push_back(version.sequence);
  CutAtEveryFence(snapshots, 2);
}

TEST_P(ZipperResumeTest, StoppedBetweenTwoBatches) {
  // Asks to stop at a fence, as a close does.
  class StopAt final : public PersistObserver {
   public:
    StopAt(RegionSet* regions, uint64_t fence) : regions_(regions), left_(fence) {
      regions->persistence()->SetObserver(this);
      stop = fence == 0;
    }
    ~StopAt() override { regions_->persistence()->SetObserver(nullptr); }
    void OnFlush(const void*, size_t) override {}
    void OnDrain() override { stop = stop || --left_ == 0; }
    std::atomic<bool> stop{false};

   private:
    RegionSet* const regions_;
    uint64_t left_;
  };
  merge_.FillLastLevel(merge_.Draw(&random_, 3000, 3000, 8));
  merge_.AddTable(merge_.Draw(&random_, 3000, 5000, 4));
  merge_.AddTable(merge_.Draw(&random_, 3000, 5000, 4));
  const MergeCase::Outcome expected = merge_.Expected({});
  const RegionImage before(store().regions());
  uint64_t stopped = 0;
  for (uint64_t fence = 0; fence < 5; ++fence) {
    before.Restore(store().regions());
    PmPtr progress;
    ASSERT_OK(merge_.Redo(&progress));
    for (;;) {
      StopAt stop(store().regions(), fence);
      const Status status = merge_.Run({}, progress, nullptr, &stop.stop);
      if (status.ok()) break;
      ASSERT_CODE(status, kAborted);
      ++stopped;
      ASSERT_OK(merge_.Redo(&progress));
      ExpectMergedFrom(progress, expected);
      if (fence == 0) {
        EXPECT_EQ(progress, PmPtr()) << "nothing was begun";
        break;
      }
    }
    if (fence != 0) merge_.ExpectMerged(expected);
  }
  EXPECT_GT(stopped, 5u);
}

// A sweep is made of batches too; it is not resumed but done again some day.
TEST_P(ZipperResumeTest, PowerCutInASweep) {
  merge_.FillLastLevel(merge_.Draw(&random_, 10'000, 2000, 4));
  MergeCase::Outcome swept;
  std::map<std::string, std::vector<Version>> by_key;
  for (const Version& version : merge_.in_last_level()) by_key[version.key].push_back(version);
  for (const auto& [key, versions] : by_key) {
    for (const Version& version : SeenOf(versions, {}, true)) swept.last_level.push_back(version);
  }
  const RegionImage before(store().regions());
  uint64_t fence = 0;
  for (bool is_there = true; is_there; ++fence) {
    for (const PowerCut::Luck luck : PowerCut::LucksAt(fence)) {
      SCOPED_TRACE("fence " + std::to_string(fence) + ", luck " + std::to_string(static_cast<int>(luck)));
      before.Restore(store().regions());
      PmPtr progress;
      MergeStats stats;
      ASSERT_OK(merge_.Redo(&progress));
      PowerCut cut(store().regions(), fence);
      try {
        ASSERT_OK(merge_.Sweep({}, &stats));
        is_there = false;
      } catch (const PowerCut::Failed&) {
        cut.Lose(luck, &random_);
        ASSERT_OK(merge_.Redo(&progress));
        ASSERT_OK(store().last_level().VerifyHeads());
        ASSERT_TRUE(store().IsWhole(store().l1()));
        ASSERT_OK(merge_.Sweep({}, &stats));
      }
      merge_.ExpectMerged(swept);
      if (HasFailure()) return;
    }
  }
  EXPECT_GE(fence, 4u);
}

}  // namespace
}  // namespace braiddb::test
