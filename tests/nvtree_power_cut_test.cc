// NV-Tree across power cuts: at every fence of appends, splits, replaces and merges, with every kind of loss. [CC-41]
// [CC-42] [CC-43]
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "tests/support/power_cut.h"
#include "tests/support/tree_store.h"

namespace braiddb::test {
namespace {

using Luck = PowerCut::Luck;
using Model = std::map<uint64_t, uint64_t>;

// Which fences of an operation are taken out, of the two that it has: for canaries.
enum class Without { kNone, kFirst, kSecond };

class NvTreePowerCutTest : public testing::TestWithParam<uint32_t> {
 protected:
  static constexpr uint32_t kLeafBytes = 512;

  void SetUp() override {
    // A few leaves, and free ones, so that no segment is taken meanwhile.
    std::vector<LeafChange> changes;
    for (uint64_t i = 0; i < 100; ++i) changes.push_back({{Key(i), 1}});
    ASSERT_OK(store_.tree()->Apply(changes));
    for (uint64_t i = 0; i < 100; ++i) before_[Key(i)] = 1;
    ASSERT_GT(store_.tree()->GetStats().free_leaves, 300u);
    fresh_.emplace(store_.regions());
  }
  static uint64_t Key(uint64_t i) { return (i + 1) << 32; }

  // One operation: one key, or a run of keys in several leaves.
  struct Operation {
    std::vector<LeafChange> changes;
    Model after;  // what is there then
  };
  Operation Draw(Model model, Random* random) const {
    Operation operation;
    const uint64_t run = random->OneIn(4) ? random->Uniform(60) : 1;
    const uint64_t first = random->Uniform(130);
    for (uint64_t i = first; i < first + run; ++i) {
      const auto found = model.find(Key(i));
      if (found != model.end()) operation.changes.push_back({{found->first, found->second}, true});
      if (found != model.end() && random->OneIn(2)) {
        model.erase(found);
      } else {
        model[Key(i)] = random->Next();
        operation.changes.push_back({{Key(i), model[Key(i)]}});
      }
    }
    operation.after = std::move(model);
    return operation;
  }

  // Operations until the power fails at that fence. *done: what was acknowledged; *begun: with the operation that was not.
  // Whether it failed.
  bool RunUntil(uint64_t fence, Luck luck, uint64_t seed, Without without, Model* done, Model* begun) {
    Random random(seed);
    *done = *begun = before_;
    PowerCut cut(store_.regions(), fence);
    uint64_t first_fence = 0;  // of the leaf that is being changed; each has two
    if (without != Without::kNone) {
      cut.TakeOut([&](uint64_t number) { return (number - first_fence) % 2 != (without == Without::kFirst ? 0u : 1u); });
    }
    try {
      for (int i = 0; i < kOperations; ++i) {
        const Operation operation = Draw(*done, &random);
        *begun = operation.after;
        first_fence = cut.fences();
        EXPECT_OK(store_.tree()->Apply(operation.changes));
        EXPECT_EQ((cut.fences() - first_fence) % 2, 0u);
        *done = *begun;
      }
      cut.Lose(Luck::kNothing, &random_);
      return false;
    } catch (const PowerCut::Failed&) {
      cut.Lose(luck, &random_);
      return true;
    }
  }

  // What is there is what was acknowledged, and of the operation that was not, what is in some of its leaves. Else what is
  // wrong.
  std::string Judge(const Model& done, const Model& begun) {
    if (Status status = store_.Rebuild(GetParam()); !status.ok()) return status.ToString();
    return JudgeOpen(done, begun);
  }
  std::string JudgeOpen(const Model& done, const Model& begun) {
    Model there;
    uint64_t last = 0;
    for (const Element& element : store_.Forward()) {
      if (element.key <= last) return "out of order, or twice";
      last = element.key;
      there[element.key] = element.value;
    }
    const auto value_in = [](const Model& model, uint64_t key) {
      const auto found = model.find(key);
      return found == model.end() ? std::optional<uint64_t>() : found->second;
    };
    for (uint64_t i = 0; i < 200; ++i) {
      const auto now = value_in(there, Key(i));
      if (now != value_in(done, Key(i)) && now != value_in(begun, Key(i)))
        return "key " + std::to_string(i) + " has a wrong value";
      there.erase(Key(i));
    }
    return there.empty() ? "" : "keys that nobody wrote";
  }

  void StartAfresh() {
    fresh_->Restore(store_.regions());
    ASSERT_OK(store_.Rebuild());
  }

  static constexpr int kOperations = 40;
  const KeyOrder order_{BytewiseComparator()};
  const PlainKeys keys_;
  TreeStore store_{GetParam(), kLeafBytes, &keys_, &order_};
  std::optional<RegionImage> fresh_;
  Model before_;
  Random random_{71};
};

INSTANTIATE_TEST_SUITE_P(Regions, NvTreePowerCutTest, testing::Values(1, 2));

// And then goes on with what is left, until a second cut.
TEST_P(NvTreePowerCutTest, AcknowledgedChangesSurvive) {
  NvTree::Stats seen;
  uint64_t cuts = 0;
  for (uint64_t seed = 1; seed <= 12 / kSlowdown + 1; ++seed) {
    bool failed = true;
    for (uint64_t fence = 0; failed; ++fence) {
      for (const Luck luck : PowerCut::LucksAt(fence)) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", fence " + std::to_string(fence) + ", luck " +
                     std::to_string(static_cast<int>(luck)));
        StartAfresh();
        Model done, begun;
        failed = RunUntil(fence, luck, seed, Without::kNone, &done, &begun);
        const NvTree::Stats stats = store_.tree()->GetStats();
        seen.splits += stats.splits;
        seen.replaces += stats.replaces;
        seen.merges += stats.merges;
        cuts += failed;
        ASSERT_EQ(Judge(done, begun), "");
      }
    }
  }
  EXPECT_GT(cuts, 300u);
  EXPECT_GT(seen.splits, 0u);
  EXPECT_GT(seen.replaces, 0u);
  EXPECT_GT(seen.merges, 0u);
}

TEST_P(NvTreePowerCutTest, ASecondCutWhileGoingOn) {
  for (uint64_t round = 0; round < 300 / kSlowdown; ++round) {
    SCOPED_TRACE(round);
    StartAfresh();
    Model done, begun;
    const Model start = before_;
    RunUntil(random_.Uniform(60), PowerCut::kEveryLuck[random_.Uniform(4)], round, Without::kNone, &done, &begun);
    ASSERT_EQ(Judge(done, begun), "");
    before_.clear();
    for (const Element& element : store_.Forward()) before_[element.key] = element.value;
    RunUntil(random_.Uniform(60), PowerCut::kEveryLuck[random_.Uniform(4)], round + 1000, Without::kNone, &done, &begun);
    ASSERT_EQ(Judge(done, begun), "");
    before_ = start;
  }
}

// A process is killed at each fence, and only when the tree was opened again the power fails: what the open found is there.
// [CC-46]
TEST_P(NvTreePowerCutTest, AnOpenMakesDurableWhatItFinds) {
  bool killed = true;
  uint64_t fence = 0;
  for (; killed; ++fence) {
    SCOPED_TRACE(fence);
    StartAfresh();
    Random random(7);
    Model done = before_, begun = before_;
    PowerCut cut(store_.regions(), fence);
    try {
      for (int i = 0; i < kOperations; ++i) {
        const Operation operation = Draw(done, &random);
        begun = operation.after;
        ASSERT_OK(store_.tree()->Apply(operation.changes));
        done = begun;
      }
      killed = false;
    } catch (const PowerCut::Failed&) {
    }
    cut.Kill();
    ASSERT_EQ(Judge(done, begun), "");
    const std::vector<Element> found = store_.Forward();
    cut.Lose(Luck::kNothing, &random_);
    ASSERT_EQ(Judge(done, begun), "");
    ASSERT_EQ(store_.Forward(), found);
  }
  EXPECT_GT(fence, 20u);
}

// Empty leaves are taken out of the list at open: a cut there changes nothing.
TEST_P(NvTreePowerCutTest, ACutWhileEmptyLeavesAreTakenOut) {
  std::vector<LeafChange> changes;
  Model rest = before_;
  for (uint64_t i = 10; i < 90; ++i) {
    changes.push_back({{Key(i), 1}, true});
    rest.erase(Key(i));
  }
  bool failed = true;
  uint64_t fence = 0;
  for (; failed; ++fence) {
    for (const Luck luck : PowerCut::LucksAt(fence)) {
      StartAfresh();
      // One by one, so that nothing is merged.
      for (const LeafChange& change : changes) ASSERT_OK(store_.tree()->Apply({&change, 1}));
      PowerCut cut(store_.regions(), fence);
      try {
        ASSERT_OK(store_.Rebuild());
        failed = false;
        cut.Lose(Luck::kNothing, &random_);
      } catch (const PowerCut::Failed&) {
        cut.Lose(luck, &random_);
      }
      ASSERT_EQ(Judge(rest, rest), "") << fence;
    }
  }
  EXPECT_GT(fence, 1u) << "there was no empty leaf";
}

// Leaves in segments that are taken meanwhile.
TEST_P(NvTreePowerCutTest, SegmentsThatAreTaken) {
  // Free segments, so that PMDK is not asked for more.
  std::vector<Segment*> segments(2 * GetParam());
  for (size_t i = 0; i < segments.size(); ++i) {
    ASSERT_OK(store_.segments()->Allocate(static_cast<uint32_t>(i) % GetParam(), 1, &segments[i]));
  }
  for (Segment* segment : segments) ASSERT_OK(store_.segments()->Release(segment));
  store_.Reopen();
  fresh_.emplace(store_.regions());
  std::vector<LeafChange> changes;
  for (uint64_t i = 0; i < 60000; ++i) changes.push_back({{Key(1000) + i, 2}});
  const uint64_t free_before = store_.tree()->GetStats().free_leaves;
  uint64_t fences = 0;
  {
    PowerCut cut(store_.regions(), PowerCut::kNever);
    // Each of these makes about 450 leaves of one.
    for (size_t i = 0; i < changes.size(); i += 8000)
      ASSERT_OK(store_.tree()->Apply({&changes[i], std::min<size_t>(8000, changes.size() - i)}));
    fences = cut.fences();
    cut.Lose(Luck::kNothing, &random_);
  }
  ASSERT_GT(changes.size() / Leaf::Capacity(kLeafBytes), free_before) << "no segment is taken";
  for (uint64_t fence = 0; fence < fences; ++fence) {
    for (const Luck luck : PowerCut::LucksAt(fence)) {
      fresh_->Restore(store_.regions());
      store_.Reopen();
      size_t done = 0;
      PowerCut cut(store_.regions(), fence);
      try {
        for (; done < changes.size(); done += 8000)
          ASSERT_OK(store_.tree()->Apply({&changes[done], std::min<size_t>(8000, changes.size() - done)}));
        FAIL() << "there is no such fence";
      } catch (const PowerCut::Failed&) {
        cut.Lose(luck, &random_);
      }
      store_.Reopen();
      const std::vector<Element> there = store_.Forward();
      ASSERT_TRUE(there.size() == before_.size() + done || there.size() == before_.size() + std::min(done + 8000, changes.size()))
          << there.size() << " after " << done;
      for (size_t i = before_.size(); i < there.size(); ++i) ASSERT_EQ(there[i], changes[i - before_.size()].element);
    }
  }
}

// The inner nodes of a clean close are those of the leaves, or nobody uses them. [CC-44]
class NvTreeClosePowerCutTest : public NvTreePowerCutTest {
 protected:
  void SetUp() override {
    NvTreePowerCutTest::SetUp();
    // Free segments for images, so that PMDK is not asked for more.
    std::vector<Segment*> segments(3);
    for (Segment*& segment : segments) ASSERT_OK(store_.segments()->Allocate(0, 1, &segment));
    for (Segment* segment : segments) ASSERT_OK(store_.segments()->Release(segment));
    store_.Reopen();
    fresh_.emplace(store_.regions());
  }
  LeafTreeRoot* Root() const { return static_cast<LeafTreeRoot*>(store_.regions()->Metadata(0, MetadataSlot::kL1)); }

  // Closes and opens, and changes many leaves: as long as the power lasts. Whether it failed. `forget`: false for the canary.
  bool RunUntil(uint64_t fence, Luck luck, bool forget, Model* done, Model* begun) {
    *done = *begun = before_;
    PowerCut cut(store_.regions(), fence);
    try {
      for (uint64_t round = 0; round < 3; ++round) {
        EXPECT_OK(store_.tree()->Close());
        if (!forget) cut.TakeOutFlushesOf(Root());
        EXPECT_OK(store_.Rebuild(GetParam()));
        cut.TakeOutFlushesOf(nullptr);
        EXPECT_TRUE(store_.tree()->GetStats().from_image);
        // Not in the first leaf: the link to it is in the line of the link to the image.
        for (uint64_t i = 30 + round; i < 100; i += 3) {
          const LeafChange changes[] = {{{Key(i), (*done)[Key(i)]}, true}, {{Key(i), round + 10}}};
          (*begun)[Key(i)] = round + 10;
          EXPECT_OK(store_.tree()->Apply(changes));
          *done = *begun;
        }
      }
      cut.Lose(Luck::kNothing, &random_);
      return false;
    } catch (const PowerCut::Failed&) {
      cut.Lose(luck, &random_);
      return true;
    }
  }
  void StartAfresh() {
    fresh_->Restore(store_.regions());
    store_.Reopen();
  }
};

INSTANTIATE_TEST_SUITE_P(Regions, NvTreeClosePowerCutTest, testing::Values(1, 2));

TEST_P(NvTreeClosePowerCutTest, AnImageIsRightOrNotUsed) {
  uint64_t images = 0;
  bool failed = true;
  for (uint64_t fence = 0; failed; fence += fence < 20 ? 1 : 3) {
    for (const Luck luck : PowerCut::LucksAt(fence)) {
      SCOPED_TRACE(fence);
      StartAfresh();
      Model done, begun;
      failed = RunUntil(fence, luck, true, &done, &begun);
      store_.Reopen();
      images += store_.tree()->GetStats().from_image;
      ASSERT_EQ(JudgeOpen(done, begun), "");
    }
  }
  EXPECT_GT(images, 0u);
}

// A process is killed when an open has stored that the image is forgotten. [CC-46]
TEST_P(NvTreeClosePowerCutTest, AnImageThatAKilledProcessForgotIsForgotten) {
  ASSERT_OK(store_.tree()->Close());
  PowerCut cut(store_.regions(), PowerCut::kNever);
  const uint64_t link = std::exchange(Root()->image, 0);
  ASSERT_NE(link, 0u);
  ASSERT_OK(store_.Rebuild(GetParam()));
  EXPECT_FALSE(store_.tree()->GetStats().from_image);
  cut.Lose(Luck::kNothing, &random_);
  EXPECT_EQ(Root()->image, 0u);
}

TEST_P(NvTreeClosePowerCutTest, AnImageThatIsNotForgottenIsNoticed) {
  uint64_t violations = 0;
  for (uint64_t fence = 0; fence < 200; fence += 5) {
    StartAfresh();
    Model done, begun;
    RunUntil(fence, Luck::kNothing, false, &done, &begun);
    store_.Reopen();
    violations += !JudgeOpen(done, begun).empty();
  }
  EXPECT_GT(violations, 0u);
}

// An open that reads the leaves takes empty ones out: an image from before must be gone by then.
TEST_P(NvTreeClosePowerCutTest, ARebuildForgetsTheImageFirst) {
  bool failed = true;
  uint64_t fence = 0;
  for (; failed; ++fence) {
    for (const Luck luck : PowerCut::LucksAt(fence)) {
      SCOPED_TRACE(fence);
      StartAfresh();
      Model model = before_;
      for (uint64_t i = 20; i < 80; ++i) {
        const LeafChange change = {{Key(i), 1}, true};
        ASSERT_OK(store_.tree()->Apply({&change, 1}));
        model.erase(Key(i));
      }
      ASSERT_OK(store_.tree()->Close());
      PowerCut cut(store_.regions(), fence);
      try {
        ASSERT_OK(store_.Rebuild(GetParam(), true));
        failed = false;
        cut.Lose(Luck::kNothing, &random_);
      } catch (const PowerCut::Failed&) {
        cut.Lose(luck, &random_);
      }
      store_.Reopen();
      for (uint64_t i = 20; i < 80; i += 3) {
        const LeafChange change = {{Key(i), 7}};
        ASSERT_OK(store_.tree()->Apply({&change, 1}));
        model[Key(i)] = 7;
      }
      ASSERT_EQ(JudgeOpen(model, model), "");
      ASSERT_OK(store_.Rebuild(GetParam(), true));
      ASSERT_EQ(JudgeOpen(model, model), "");
    }
  }
  EXPECT_GT(fence, 2u) << "there was no empty leaf";
}

// The canaries: without the one fence or the other the same test fails.
TEST_P(NvTreePowerCutTest, AFenceThatIsMissingIsNoticed) {
  for (const Without without : {Without::kFirst, Without::kSecond}) {
    uint64_t violations = 0;
    for (uint64_t fence = 0; fence < 120; ++fence) {
      for (const Luck luck : PowerCut::kEveryLuck) {
        StartAfresh();
        Model done, begun;
        RunUntil(fence, luck, 3, without, &done, &begun);
        violations += !Judge(done, begun).empty();
      }
    }
    EXPECT_GT(violations, 0u) << "the fence " << (without == Without::kFirst ? "before" : "behind") << " what publishes";
  }
}

}  // namespace
}  // namespace braiddb::test
