// The contract of LastLevel: what a power cut or a close does to a job. Every last level passes it. [CC-4] [CC-45]
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "tests/support/last_level_test.h"
#include "tests/support/power_cut.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

class LastLevelResumeTest : public LastLevelTest {
 protected:
  // Calls `body(fence, luck)` for each number of a fence and each luck, with the level as it is now, until it says that there was
  // no such fence.
  template <class Body>
  void AtEveryFence(uint64_t least, const Body& body) {
    const RegionImage before(store().regions());
    bool is_there = true;
    uint64_t fence = 0;
    for (; is_there; ++fence) {
      for (const PowerCut::Luck luck : PowerCut::LucksAt(fence)) {
        SCOPED_TRACE("fence " + std::to_string(fence) + ", luck " + std::to_string(static_cast<int>(luck)));
        before.Restore(store().regions());
        ASSERT_OK(level_.TryRestart());
        is_there = body(fence, luck);
        if (HasFailure()) return;
      }
    }
    EXPECT_GT(fence, least);
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, LastLevelResumeTest, AllLastLevels(), testing::PrintToStringParamName());

// With a power cut at each of the fences, and others in what comes after: until the job is done, readers find the newest
// versions, and then the outcome is that of an undisturbed merge.
TEST_P(LastLevelResumeTest, PowerCutAtEveryFenceOfAMerge) {
  const std::vector<std::string> keys = Keys(150);
  level_.Fill(level_.Draw(&random_, 250, 150, 8));
  level_.AddTable(level_.Draw(&random_, 150, 150, 2));
  level_.AddTable(level_.Draw(&random_, 150, 150, 2));
  const LevelCase::Outcome expected = level_.Expected({});
  AtEveryFence(2, [&](uint64_t fence, PowerCut::Luck luck) {
    bool is_there = false;
    for (int life = 0; life == 0 || level_.running(); ++life) {
      PowerCut cut(store().regions(), life == 0 ? fence : life < 4 ? random_.Uniform(12) : PowerCut::kNever);
      try {
        EXPECT_OK(level_.Run({}, nullptr, nullptr, 1));
      } catch (const PowerCut::Failed&) {
        is_there |= life == 0;
        cut.Lose(luck, &random_);
        EXPECT_OK(level_.TryRestart());
        EXPECT_TRUE(level_.ReadsAreRight(keys, {kMaxSequence}));
      }
      if (HasFailure()) return false;
    }
    level_.ExpectMerged(expected);
    return is_there;
  });
}

// The same if the merge adds no key: it replaces versions, or removes them, and places nothing new.
TEST_P(LastLevelResumeTest, PowerCutAtEveryFenceOfAMergeWithoutNewKeys) {
  constexpr uint64_t kKeys = 40;
  const std::vector<std::string> keys = Keys(kKeys);
  for (const bool removes : {false, true}) {
    SCOPED_TRACE(removes);
    std::vector<Version> first, second;
    for (uint64_t i = 0; i < kKeys; ++i) {
      first.push_back({NumberedKey(i)});
      second.push_back({NumberedKey(i), 0, removes});
    }
    level_.Fill(first);
    level_.AddTable(second);
    const LevelCase::Outcome expected = level_.Expected({});
    AtEveryFence(0, [&](uint64_t fence, PowerCut::Luck luck) {
      bool is_there = false;
      while (!is_there || level_.running()) {
        PowerCut cut(store().regions(), is_there ? PowerCut::kNever : fence);
        try {
          EXPECT_OK(level_.Run({}, nullptr, nullptr, 1));
          break;
        } catch (const PowerCut::Failed&) {
          is_there = true;
          cut.Lose(luck, &random_);
          EXPECT_OK(level_.TryRestart());
          EXPECT_TRUE(level_.ReadsAreRight(keys, {kMaxSequence}));
        }
      }
      level_.ExpectMerged(expected);
      return is_there;
    });
    if (HasFailure()) return;
    level_.Forget(expected);
  }
}

// A sweep that is cut short is made up for by a merge of no tables.
TEST_P(LastLevelResumeTest, PowerCutAtEveryFenceOfASweep) {
  const std::vector<std::string> keys = Keys(100);
  level_.Fill(level_.Draw(&random_, 400, 100, 4));
  AtEveryFence(1, [&](uint64_t fence, PowerCut::Luck luck) {
    bool is_there = false;
    MergeStats stats;
    {
      PowerCut cut(store().regions(), fence);
      try {
        EXPECT_OK(level_.Sweep({}, {KeyRange()}, &stats));
      } catch (const PowerCut::Failed&) {
        is_there = true;
        cut.Lose(luck, &random_);
      }
    }
    if (is_there) {
      EXPECT_OK(level_.TryRestart());
      EXPECT_TRUE(level_.ReadsAreRight(keys, {kMaxSequence}));
      EXPECT_OK(level_.Run({}));
    }
    EXPECT_TRUE(level_.ReadsAreRight(keys, {kMaxSequence}));
    // Nothing that is in the level is marked; what a second sweep leaves has one version of each key.
    for (const Version& version : level_.Forward()) EXPECT_FALSE(store().IsDead(version.sequence));
    EXPECT_OK(level_.Sweep({}, {KeyRange()}, &stats));
    for (const Version& version : level_.Forward()) {
      EXPECT_FALSE(version.tombstone);
      EXPECT_EQ(level_.ExpectedRead(version.key, kMaxSequence), version.sequence);
    }
    return is_there;
  });
}

// The MANIFEST forgets a job that has returned OK, so a power cut right after it must find all of its effects.
TEST_P(LastLevelResumeTest, AMergeThatHasEndedIsDurable) {
  level_.Fill(level_.Draw(&random_, 250, 150, 8));
  level_.AddTable(level_.Draw(&random_, 150, 150, 2));
  level_.AddTable(level_.Draw(&random_, 150, 150, 2));
  const LevelCase::Outcome expected = level_.Expected({});
  const RegionImage before(store().regions());
  for (const PowerCut::Luck luck : PowerCut::kEveryLuck) {
    SCOPED_TRACE("luck " + std::to_string(static_cast<int>(luck)));
    before.Restore(store().regions());
    ASSERT_OK(level_.TryRestart());
    PowerCut cut(store().regions(), PowerCut::kNever);
    ASSERT_OK(level_.Run({}, nullptr, nullptr, 1));
    cut.Lose(luck, &random_);
    ASSERT_OK(level_.TryRestart());
    level_.ExpectMerged(expected);
  }
}

// Counts the flushes behind the last fence. One thread.
class FlushedLines final : public PersistObserver {
 public:
  explicit FlushedLines(Persistence* persistence) : persistence_(persistence) { persistence_->SetObserver(this); }
  ~FlushedLines() override { persistence_->SetObserver(nullptr); }
  void OnFlush(const void*, size_t) override { ++not_fenced_; }
  void OnDrain() override { not_fenced_ = 0; }
  uint64_t not_fenced() const { return not_fenced_; }

 private:
  Persistence* const persistence_;
  uint64_t not_fenced_ = 0;
};

// The same process runs a job again that was stopped or has failed, and takes what it finds for done. Another thread may do
// that, so the first one must fence all of its flushes. [CC-45]
TEST_P(LastLevelResumeTest, AStoppedJobLeavesNothingBehindItsLastFence) {
  const size_t count = 20'000 / kSlowdown;
  level_.UseLargeRuns();
  level_.Fill(level_.Draw(&random_, count, count, 8));
  level_.AddTable(level_.Draw(&random_, count, 2 * count, 4));
  const LevelCase::Outcome expected = level_.Expected({});
  std::atomic<bool> stop{false};
  SyncPoints::Instance().SetCallback("LevelMerge:Applied", [&stop](void*) { stop = true; });
  SyncPoints::Instance().Enable();
  {
    const FlushedLines lines(store().regions()->persistence());
    const Status status = level_.Run({}, nullptr, &stop, 1);
    SyncPoints::Instance().Clear();
    EXPECT_EQ(status.IsAborted(), stop) << status.ToString();
    EXPECT_EQ(lines.not_fenced(), 0u);
    stop = false;
    if (!status.ok()) {
      ASSERT_OK(level_.Run({}, nullptr, &stop, 1));
    }
    EXPECT_EQ(lines.not_fenced(), 0u);
  }
  level_.ExpectMerged(expected);
}

TEST_P(LastLevelResumeTest, StoppedAndResumed) {
  const size_t count = 20'000 / kSlowdown;
  level_.UseLargeRuns();
  level_.Fill(level_.Draw(&random_, count, count, 8));
  level_.AddTable(level_.Draw(&random_, count, 2 * count, 4));
  const LevelCase::Outcome expected = level_.Expected({});
  const std::atomic<bool> stop{true};
  ASSERT_CODE(level_.Run({}, nullptr, &stop), kAborted);
  EXPECT_TRUE(level_.running());
  level_.Restart();
  EXPECT_TRUE(level_.ReadsAreRight({NumberedKey(1), NumberedKey(2), NumberedKey(3)}, {kMaxSequence}));
  ASSERT_OK(level_.Run({}));
  level_.ExpectMerged(expected);
}

TEST_P(LastLevelResumeTest, ACloseStoresNothingThatAnOpenMissesOrMistrusts) {
  for (int round = 0; round < 4; ++round) {
    level_.AddTable(level_.Draw(&random_, 800, 1000, 4));
    level_.Merge({});
    ASSERT_OK(level_.Close());
    level_.Restart();
    const std::vector<Version> there = level_.Forward();
    EXPECT_TRUE(there == level_.in_last_level());
    EXPECT_FALSE(level_.level().Describe().empty());
    EXPECT_LT(level_.level().DramBytes(), uint64_t{1} << 24);
  }
}

}  // namespace
}  // namespace braiddb::test
