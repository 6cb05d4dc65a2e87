// LB+-Tree across power cuts: at every fence of inserts, moves, updates, deletes, splits and removals, with prefixes of stores
// to each line. Built with mutants (util/mutant.h), each of which must be noticed. [CC-46] [CC-70] [CC-71] [CC-72] [CC-73]
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>

#include "tests/lb_tree/mutants.h"
#include "tests/lb_tree/traced_cut.h"
#include "tests/support/lb_tree_store.h"
#include "util/mutant.h"
#include "util/random.h"

namespace braiddb::test {
namespace {

using Luck = TracedCut::Luck;
using Model = std::map<uint64_t, uint64_t>;

struct Shape {
  uint32_t regions;
  uint32_t leaf_bytes;
};

// A tree with some leaves, and operations on it until the power fails.
class CutTree {
 public:
  explicit CutTree(const Shape& shape) : store_(shape.regions, shape.leaf_bytes) {
    for (uint64_t i = 0; i < kKeys; ++i) {
      EXPECT_OK(store_.tree()->Put(Key(i), 1));
      before_[Key(i)] = 1;
    }
    EXPECT_GT(store_.tree()->GetStats().free_leaves, 40u);
    fresh_.emplace(store_.regions());
  }

  struct Outcome {
    Model done;   // what was acknowledged
    Model begun;  // the same with the operation that was not
    bool failed = false;
    LbTree::Stats stats;
  };

  static constexpr uint64_t kKeys = 120;
  static uint64_t Key(uint64_t i) { return (i + 1) << 32; }

  void StartAfresh() {
    fresh_->Restore(store_.regions());
    before_ = {};
    EXPECT_OK(store_.Rebuild());
    for (uint64_t i = 0; i < kKeys; ++i) before_[Key(i)] = 1;
  }

  // One random operation. The seed says whether deletes or inserts dominate. Keys of a run are neighbors, so that leaves become
  // full and empty.
  void Operate(uint64_t seed, Random* random, Outcome* outcome) {
    if (run_ == 0) {
      run_ = random->OneIn(3) ? 1 : 1 + random->Uniform(30);
      next_ = random->Uniform(kKeys + 40);
      is_removal_ = random->Uniform(100) < (seed % 2 == 0 ? 75 : 25);
    }
    --run_;
    uint64_t key = Key(next_) + random->Uniform(3);
    if (is_removal_) {
      const auto found = outcome->done.lower_bound(Key(next_));
      if (found != outcome->done.end()) key = found->first;
    } else if (random->OneIn(3)) {
      ++next_;
    }
    const bool there = outcome->done.contains(key);
    if (is_removal_) {
      outcome->begun.erase(key);
      EXPECT_EQ(store_.tree()->Remove(key).ok(), there);
    } else {
      outcome->begun[key] = random->Next();
      EXPECT_OK(store_.tree()->Put(key, outcome->begun[key]));
    }
    outcome->done = outcome->begun;
  }

  // Operations until the power fails.
  Outcome RunUntil(uint64_t seed) {
    Random random(seed);
    Outcome outcome;
    outcome.done = outcome.begun = before_;
    run_ = 0;
    try {
      for (int i = 0; i < kOperations; ++i) Operate(seed, &random, &outcome);
    } catch (const TracedCut::Failed&) {
      outcome.failed = true;
    }
    outcome.stats = store_.tree()->GetStats();
    return outcome;
  }

  // What is there after an open is what was acknowledged, with or without the operation that was not. Empty, or what is wrong.
  std::string Judge(const Outcome& outcome) {
    if (Status status = store_.Rebuild(); !status.ok()) return status.ToString();
    const std::vector<LbEntry> forward = store_.Forward();
    if (store_.Backward() != forward) return "the directions differ";
    Model there;
    uint64_t last = 0;
    for (const LbEntry& entry : forward) {
      if (entry.key <= last) return "out of order, or twice";
      last = entry.key;
      there[entry.key] = entry.value;
      uint64_t value = 0;
      if (!store_.tree()->Get(entry.key, &value) || value != entry.value) return "a scan and a get differ";
    }
    if (there != outcome.done && there != outcome.begun) return "not what was acknowledged";
    // No block is lost.
    uint64_t leaves = 0;
    for (uint64_t link = store_.root()->first; LinkTarget(link); ++leaves)
      link = LbLeaf(store_.regions()->Resolve<uint64_t>(LinkTarget(link)), store_.tree()->leaf_bytes() / kLbBlockBytes).link();
    if (blocks_ == 0) blocks_ = leaves + store_.tree()->GetStats().free_leaves;
    return leaves + store_.tree()->GetStats().free_leaves == blocks_ ? "" : "blocks are lost";
  }
  // The next run begins with what is there.
  void GoOn() {
    before_.clear();
    for (const LbEntry& entry : store_.Forward()) before_[entry.key] = entry.value;
  }

  LbTreeStore& store() { return store_; }
  const Model& before() const { return before_; }

 private:
  static constexpr int kOperations = 90;
  LbTreeStore store_;
  std::optional<RegionImage> fresh_;
  Model before_;
  uint64_t blocks_ = 0;
  uint64_t run_ = 0, next_ = 0;
  bool is_removal_ = false;
};

class LbTreePowerCutTest : public testing::TestWithParam<Shape> {
 protected:
  CutTree tree_{GetParam()};
  Random random_{71};
};

INSTANTIATE_TEST_SUITE_P(Shapes, LbTreePowerCutTest, testing::Values(Shape{1, 256}, Shape{2, 256}, Shape{1, 768}),
                         [](const auto& suite) {
                           return std::to_string(suite.param.leaf_bytes) + "In" + std::to_string(suite.param.regions);
                         });

TEST_P(LbTreePowerCutTest, AcknowledgedChangesSurvive) {
  uint64_t cuts = 0, splits = 0, removals = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    bool failed = true;
    for (uint64_t fence = 0; failed; ++fence) {
      for (const Luck luck : TracedCut::kEveryLuck) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", fence " + std::to_string(fence) + ", luck " +
                     std::to_string(static_cast<int>(luck)));
        tree_.StartAfresh();
        TracedCut cut(tree_.store().regions(), fence);
        const CutTree::Outcome outcome = tree_.RunUntil(seed);
        ASSERT_EQ(cut.Lose(luck, &random_), 0u) << "a store to a leaf was not traced";
        failed = outcome.failed;
        cuts += failed;
        splits += outcome.stats.splits;
        removals += outcome.stats.removals;
        ASSERT_EQ(tree_.Judge(outcome), "");
      }
    }
  }
  EXPECT_GT(cuts, 1000u);
  EXPECT_GT(splits, 0u);
  EXPECT_GT(removals, 0u);
}

// Opens after a cut, goes on, and is cut again.
TEST_P(LbTreePowerCutTest, ASecondCutWhileGoingOn) {
  for (uint64_t round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    tree_.StartAfresh();
    for (const uint64_t seed : {round, round + 1000}) {
      TracedCut cut(tree_.store().regions(), random_.Uniform(120));
      const CutTree::Outcome outcome = tree_.RunUntil(seed);
      cut.Lose(TracedCut::kEveryLuck[random_.Uniform(4)], &random_);
      ASSERT_EQ(tree_.Judge(outcome), "");
      tree_.GoOn();
    }
  }
}

// The process is killed at a fence, and the power fails after the next open: what the open found is still there. [CC-46]
std::string KillOpenAndCut(CutTree* tree, uint64_t fence, uint64_t seed, Random* random, bool* failed) {
  tree->StartAfresh();
  TracedCut cut(tree->store().regions(), fence);
  CutTree::Outcome outcome = tree->RunUntil(seed);
  *failed = outcome.failed;
  cut.Kill();
  if (Status status = tree->store().Rebuild(1); !status.ok()) return status.ToString();
  const std::vector<LbEntry> found = tree->store().Forward();
  cut.Lose(Luck::kNothing, random);
  std::string wrong = tree->Judge(outcome);
  if (wrong.empty() && tree->store().Forward() != found) wrong = "an entry that was found is gone";
  return wrong;
}

TEST_P(LbTreePowerCutTest, AnOpenMakesDurableWhatItFinds) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    bool failed = true;
    for (uint64_t fence = 0; failed; ++fence) ASSERT_EQ(KillOpenAndCut(&tree_, fence, seed, &random_, &failed), "") << fence;
  }
}

// Cuts an open that removes empty leaves, or the operations after it.
std::string CutWhileEmptyLeavesGo(CutTree* tree, uint64_t fence, Luck luck, Random* random, bool* failed) {
  // A removal that is cut at its last fence leaves an empty leaf, also the first one.
  tree->StartAfresh();
  Model rest = tree->before();
  {
    TracedCut cut(tree->store().regions(), TracedCut::kNever);
    const uint64_t first = tree->store().Forward().front().key;
    LbTree::LeafCopy copy;
    tree->store().tree()->CopyLeaf(first, &copy);
    for (const LbEntry& entry : copy.entries) rest.erase(entry.key);
    for (size_t i = 0; i + 1 < copy.entries.size(); ++i) EXPECT_OK(tree->store().tree()->Remove(copy.entries[i].key));
    cut.Lose(Luck::kEverything, random);
    TracedCut last(tree->store().regions(), 1);
    try {
      (void)tree->store().tree()->Remove(copy.entries.back().key);
      return "the leaf was not removed";
    } catch (const TracedCut::Failed&) {
    }
    last.Lose(Luck::kNothing, random);
  }
  CutTree::Outcome outcome;
  outcome.done = outcome.begun = rest;
  TracedCut cut(tree->store().regions(), fence);
  *failed = false;
  try {
    if (Status status = tree->store().Rebuild(1); !status.ok()) return status.ToString();
    for (uint64_t i = 0; i < 60; ++i) {
      outcome.begun[CutTree::Key(300 + i)] = i;
      if (Status status = tree->store().tree()->Put(CutTree::Key(300 + i), i); !status.ok()) return status.ToString();
      outcome.done = outcome.begun;
    }
  } catch (const TracedCut::Failed&) {
    *failed = true;
  }
  cut.Lose(luck, random);
  return tree->Judge(outcome);
}

TEST_P(LbTreePowerCutTest, ACutWhileEmptyLeavesAreTakenOut) {
  bool failed = true;
  uint64_t fence = 0;
  for (; failed; ++fence) {
    for (const Luck luck : TracedCut::kEveryLuck) {
      ASSERT_EQ(CutWhileEmptyLeavesGo(&tree_, fence, luck, &random_, &failed), "") << fence;
    }
  }
  EXPECT_GT(fence, 60u);
}

// A load of sorted keys is there whole or not at all. [CC-72]
TEST(LbTreeLoadPowerCutTest, ALoadIsThereWholeOrNotAtAll) {
  LbTreeStore store(1, 512);
  const RegionImage fresh(store.regions());
  std::vector<LbEntry> entries;
  for (uint64_t i = 0; i < 2000; ++i) entries.push_back({CutTree::Key(i), i});
  Random random(9);
  bool failed = true;
  uint64_t fence = 0, whole = 0;
  for (; failed; ++fence) {
    for (const Luck luck : TracedCut::kEveryLuck) {
      fresh.Restore(store.regions());
      ASSERT_OK(store.Rebuild());
      TracedCut cut(store.regions(), fence);
      failed = false;
      try {
        ASSERT_OK(store.tree()->BulkLoad(entries, 0.7, 1));
      } catch (const TracedCut::Failed&) {
        failed = true;
      }
      ASSERT_EQ(cut.Lose(luck, &random), 0u);
      ASSERT_OK(store.Rebuild());
      const std::vector<LbEntry> there = store.Forward();
      ASSERT_TRUE(there == entries || (failed && there.empty())) << fence;
      whole += there == entries;
    }
  }
  EXPECT_EQ(fence, 3u);
  EXPECT_GE(whole, 4u);
}

// Leaves in segments that are taken meanwhile.
TEST_P(LbTreePowerCutTest, SegmentsThatAreTaken) {
  LbTreeStore& store = tree_.store();
  // Free segments, so that PMDK is not asked for more.
  std::vector<Segment*> segments(2 * GetParam().regions);
  for (size_t i = 0; i < segments.size(); ++i) {
    ASSERT_OK(store.segments()->Allocate(static_cast<uint32_t>(i) % GetParam().regions, 1, &segments[i]));
  }
  for (Segment* segment : segments) ASSERT_OK(store.segments()->Release(segment));
  store.Reopen();
  const RegionImage fresh(store.regions());
  const uint64_t kept = store.Forward().size();
  const auto put_until_full = [&](uint64_t* done) {
    for (; store.tree()->GetStats().free_leaves > 1; ++*done) ASSERT_OK(store.tree()->Put(CutTree::Key(1000) + *done, *done));
    for (const uint64_t end = *done + 3 * LbLeaf::kMaxEntries; *done < end; ++*done)
      ASSERT_OK(store.tree()->Put(CutTree::Key(1000) + *done, *done));
  };
  uint64_t first = 0, last = 0;
  {
    TracedCut cut(store.regions(), TracedCut::kNever);
    uint64_t done = 0;
    for (; store.tree()->GetStats().free_leaves > 1; ++done) ASSERT_OK(store.tree()->Put(CutTree::Key(1000) + done, done));
    first = cut.fences();
    done = 0;
    put_until_full(&done);
    last = cut.fences();
    cut.Lose(Luck::kEverything, &random_);
  }
  ASSERT_GT(last, first);
  for (uint64_t fence = first; fence < first + 60; ++fence) {
    for (const Luck luck : {TracedCut::kEveryLuck[fence % 4], TracedCut::kEveryLuck[(fence + 2) % 4]}) {
      fresh.Restore(store.regions());
      store.Reopen();
      TracedCut cut(store.regions(), fence);
      uint64_t done = 0;
      try {
        put_until_full(&done);
        FAIL() << "there is no such fence";
      } catch (const TracedCut::Failed&) {
        cut.Lose(luck, &random_);
      }
      store.Reopen();
      const uint64_t there = store.Forward().size() - kept;
      ASSERT_TRUE(there == done || there == done + 1) << there << " after " << done;
    }
  }
}

// A process is killed while it takes a segment, and the power fails after the next process has used the segment. [CC-42] [CC-46]
class GrowingTree {
 public:
  GrowingTree() {
    // A free segment, so that PMDK is not asked for more.
    Segment* segment = nullptr;
    EXPECT_OK(store_.segments()->Allocate(0, 1, &segment));
    EXPECT_OK(store_.segments()->Release(segment));
    store_.Reopen();
    while (store_.tree()->GetStats().free_leaves > 0) Put(&kept_);
    fresh_.emplace(store_.regions());
  }
  // The number of fences of the puts until the tree has taken a segment and used it.
  uint64_t CountFences() {
    uint64_t done = kept_;
    TracedCut cut(store_.regions(), TracedCut::kNever);
    while (store_.tree()->GetStats().free_leaves == 0) Put(&done);
    return cut.fences();
  }
  // Empty, or what is wrong.
  std::string KillAndCut(uint64_t fence, Random* random) {
    fresh_->Restore(store_.regions());
    if (Status status = store_.ReopenInPlace(); !status.ok()) return status.ToString();
    uint64_t done = kept_;
    TracedCut cut(store_.regions(), fence);
    try {
      for (;;) Put(&done);
    } catch (const TracedCut::Failed&) {
    }
    cut.Kill();
    if (Status status = store_.ReopenInPlace(); !status.ok()) return status.ToString();
    for (int i = 0; i < 100; ++i) Put(&done);
    cut.Lose(Luck::kNothing, random);
    if (Status status = store_.ReopenInPlace(); !status.ok()) return status.ToString();
    return store_.Forward().size() == done ? "" : "keys are missing";
  }

 private:
  void Put(uint64_t* key) {
    EXPECT_OK(store_.tree()->Put(*key, *key));
    ++*key;
  }
  LbTreeStore store_{1, 256};
  uint64_t kept_ = 0;
  std::optional<RegionImage> fresh_;
};

TEST(LbTreeGrowthTest, ASegmentThatAKilledProcessTookIsUsed) {
  Random random(5);
  GrowingTree tree;
  const uint64_t fences = tree.CountFences();
  ASSERT_GT(fences, 3u);
  for (uint64_t fence = 0; fence < fences; ++fence) ASSERT_EQ(tree.KillAndCut(fence, &random), "") << fence;
  for (const char* mutant : {"leaf-space-not-persisted", "found-leaf-space-not-flushed"}) {
    uint64_t hits = 0, noticed = 0;
    live_mutant = mutant;
    mutant_hits = &hits;
    for (uint64_t fence = 0; fence < fences; ++fence) noticed += !tree.KillAndCut(fence, &random).empty();
    live_mutant = nullptr;
    EXPECT_GT(hits, 0u) << mutant;
    EXPECT_GT(noticed, 0u) << mutant;
  }
}

// ---- Mutants

class LbTreeMutantTest : public testing::TestWithParam<LbMutant> {};

INSTANTIATE_TEST_SUITE_P(Mutants, LbTreeMutantTest, testing::ValuesIn(kLbMutants), [](const auto& suite) {
  std::string name = suite.param.name;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
});

// Each promise above is broken by some cut.
TEST_P(LbTreeMutantTest, IsNoticed) {
  uint64_t hits = 0;
  live_mutant = GetParam().name;
  mutant_hits = &hits;
  uint64_t noticed = 0;
  Random random(3);
  for (const Shape& shape : {Shape{1, 256}, Shape{1, 768}}) {
    live_mutant = nullptr;
    CutTree tree(shape);
    live_mutant = GetParam().name;
    for (uint64_t seed = 1; seed <= 6 && noticed == 0; ++seed) {
      bool failed = true;
      for (uint64_t fence = 0; failed && noticed == 0; ++fence) {
        for (const Luck luck : {Luck::kNothing, Luck::kPrefixes, Luck::kPrefixes, Luck::kSomeLines}) {
          tree.StartAfresh();
          TracedCut cut(tree.store().regions(), fence);
          const CutTree::Outcome outcome = tree.RunUntil(seed);
          failed = outcome.failed;
          cut.Lose(luck, &random);
          noticed += !tree.Judge(outcome).empty();
        }
        noticed += !KillOpenAndCut(&tree, fence, seed, &random, &failed).empty();
      }
    }
  }
  live_mutant = nullptr;
  EXPECT_GT(hits, 0u);
  EXPECT_GT(noticed, 0u);
}

}  // namespace
}  // namespace braiddb::test
