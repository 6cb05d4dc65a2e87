// HashIndex across power cuts: at every fence of changes, splits, joins and overflow pages, with every kind of loss. [CC-74]
// [CC-75]
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/hash_store.h"
#include "tests/support/power_cut.h"

namespace braiddb::test {
namespace {

using Luck = PowerCut::Luck;
using Model = std::map<uint64_t, std::vector<uint64_t>>;  // from keys to entries

class HashIndexPowerCutTest : public testing::TestWithParam<uint32_t> {
 protected:
  static constexpr int kOperations = 18;
  static constexpr uint64_t kKeys = 900;

  // One partition, with a page that is nearly full, and free pages, so that no segment is taken meanwhile. `hot`: one signature
  // has more entries than its buckets.
  void Prepare(bool hot) {
    for (uint64_t key = 0; key < 440; ++key) Add(&before_, key, 0);
    if (hot) {
      for (uint64_t i = 1; i <= 30; ++i) Add(&before_, 1, i);
    }
    std::vector<HashChange> changes;
    for (const auto& [key, entries] : before_) {
      for (const uint64_t entry : entries) changes.push_back(store_.Change(key, PmPtr(), PmPtr(entry)));
    }
    // Others come and go, so that each region has free pages.
    std::vector<HashChange> added, removed;
    for (uint64_t key = 10000; key < 14000; ++key) {
      added.push_back(store_.Change(key, PmPtr(), NumberedEntries::Entry(key, 0)));
      removed.push_back(store_.Change(key, NumberedEntries::Entry(key, 0), PmPtr()));
    }
    ASSERT_OK(store_.Apply(added));
    ASSERT_OK(store_.Apply(removed));
    ASSERT_OK(store_.index()->Shrink());
    store_.epochs()->Reclaim();
    ASSERT_OK(store_.Apply(changes));
    ASSERT_GT(store_.index()->GetStats().free_pages, 30u);
    fresh_.emplace(store_.regions());
  }
  static void Add(Model* model, uint64_t key, uint64_t version) {
    (*model)[key].push_back(NumberedEntries::Entry(key, version).raw());
  }

  // Draws changes of several keys: additions, removals, replacements.
  std::vector<HashChange> Draw(Model* model, bool grows, uint64_t* next, Random* random) const {
    std::vector<HashChange> changes;
    for (int i = 0; i < (grows ? 24 : 150); ++i) {
      const uint64_t key = random->Uniform(kKeys);
      const uint64_t signature = store_.keys.signature_of(key);
      std::vector<uint64_t>& entries = (*model)[key];
      bool is_changed = false;
      for (const HashChange& change : changes) is_changed |= change.signature == signature;
      if (is_changed) continue;
      const PmPtr added = NumberedEntries::Entry(key, 1000 + (*next)++);
      if (entries.empty() || (grows && random->OneIn(3))) {
        if (!grows) continue;
        changes.push_back({signature, PmPtr(), added});
        entries.push_back(added.raw());
      } else if (grows || random->OneIn(4)) {
        changes.push_back({signature, PmPtr(entries.front()), added});
        entries.front() = added.raw();
      } else {
        changes.push_back({signature, PmPtr(entries.back()), PmPtr()});
        entries.pop_back();
      }
    }
    return changes;
  }

  // Operations until the power fails at that fence. *done: what was acknowledged; *begun: with the operation that was not.
  // Returns whether it failed.
  bool RunUntil(uint64_t fence, Luck luck, uint64_t seed, Model* done, Model* begun) {
    Random random(seed);
    uint64_t next = seed * 500;  // each entry is used once
    *done = *begun = before_;
    PowerCut cut(store_.regions(), fence);
    try {
      for (int i = 0; i < kOperations; ++i) {
        const bool grows = i < kOperations / 3;
        const std::vector<HashChange> changes = Draw(begun, grows, &next, &random);
        EXPECT_OK(store_.Apply(changes));
        *done = *begun;
        if (!grows) {
          EXPECT_OK(store_.index()->Shrink());
        }
      }
      cut.Lose(Luck::kNothing, &random_);
      return false;
    } catch (const PowerCut::Failed&) {
      cut.Lose(luck, &random_);
      return true;
    }
  }

  // What is there is what was acknowledged, and any part of the operation that was not. A replacement is done or not done.
  // Returns what is wrong.
  std::string Judge(const Model& done, const Model& begun) {
    if (Status status = store_.Rebuild(GetParam()); !status.ok()) return status.ToString();
    Model there;
    for (const uint64_t entry : store_.All()) there[KeyOf(entry)].push_back(entry);
    const auto sorted = [](const Model& model, uint64_t key) {
      const auto found = model.find(key);
      std::vector<uint64_t> entries = found == model.end() ? std::vector<uint64_t>() : found->second;
      std::sort(entries.begin(), entries.end());
      return entries;
    };
    for (uint64_t key = 0; key < kKeys; ++key) {
      const std::vector<uint64_t> now = sorted(there, key);
      if (now != sorted(done, key) && now != sorted(begun, key)) return "key " + std::to_string(key) + " has wrong entries";
      there.erase(key);
    }
    return there.empty() ? "" : "entries that nobody added";
  }

  void StartAfresh() {
    fresh_->Restore(store_.regions());
    ASSERT_OK(store_.Rebuild());
  }

  void CutEverywhere(HashIndex::Stats* seen) {
    uint64_t cuts = 0;
    for (uint64_t seed = 1; seed <= 4 / kSlowdown + 1; ++seed) {
      bool failed = true;
      for (uint64_t fence = 0; failed; ++fence) {
        for (const Luck luck : PowerCut::LucksAt(fence)) {
          SCOPED_TRACE("seed " + std::to_string(seed) + ", fence " + std::to_string(fence) + ", luck " +
                       std::to_string(static_cast<int>(luck)));
          StartAfresh();
          Model done, begun;
          failed = RunUntil(fence, luck, seed, &done, &begun);
          const HashIndex::Stats stats = store_.index()->GetStats();
          seen->splits += stats.splits;
          seen->joins += stats.joins;
          seen->overflow_pages += stats.overflow_pages;
          cuts += failed;
          ASSERT_EQ(Judge(done, begun), "");
          // And goes on with what is left, until a second cut.
          Model again = begun;
          for (auto& [key, entries] : again) entries.clear();
          for (const uint64_t entry : store_.All()) again[KeyOf(entry)].push_back(entry);
          before_.swap(again);
          (void)RunUntil(fence / 2, luck, seed + 100, &done, &begun);
          before_.swap(again);
          ASSERT_EQ(Judge(done, begun), "");
        }
      }
    }
    EXPECT_GT(cuts, 20u);
  }

  static uint64_t KeyOf(uint64_t entry) { return (entry / 8 - 1) / NumberedEntries::kVersions; }

  HashStore store_{GetParam()};
  std::optional<RegionImage> fresh_;
  Model before_;
  Random random_{71};
};

INSTANTIATE_TEST_SUITE_P(Regions, HashIndexPowerCutTest, testing::Values(1, 2));

TEST_P(HashIndexPowerCutTest, AcknowledgedChangesSurvive) {
  Prepare(false);
  HashIndex::Stats seen;
  CutEverywhere(&seen);
  EXPECT_GT(seen.splits, 0u);
  EXPECT_GT(seen.joins, 0u);
}

TEST_P(HashIndexPowerCutTest, AcknowledgedChangesSurviveBesideOverflowPages) {
  Prepare(true);
  HashIndex::Stats seen;
  CutEverywhere(&seen);
  EXPECT_GT(seen.overflow_pages, 0u);
  EXPECT_GT(seen.splits, 0u);
}

// The process is killed at any fence; another one opens the index; then the power fails. What the open has found is durable
// before it clears a state or sets a bit of the root. [CC-46]
TEST_P(HashIndexPowerCutTest, WhatAKilledProcessHasStoredIsMadeDurableByTheOpen) {
  Prepare(false);
  for (const uint64_t seed : {1, 2}) {
    bool failed = true;
    for (uint64_t fence = 0; failed; ++fence) {
      SCOPED_TRACE("fence " + std::to_string(fence));
      StartAfresh();
      Random random(seed);
      uint64_t next = 500;
      Model done = before_, begun = before_;
      PowerCut cut(store_.regions(), fence);
      failed = false;
      try {
        for (int i = 0; i < kOperations; ++i) {
          const bool grows = i < kOperations / 3;
          const std::vector<HashChange> changes = Draw(&begun, grows, &next, &random);
          ASSERT_OK(store_.Apply(changes));
          done = begun;
          if (!grows) {
            ASSERT_OK(store_.index()->Shrink());
          }
        }
      } catch (const PowerCut::Failed&) {
        failed = true;
        cut.Kill();
        ASSERT_OK(store_.Rebuild(1));
      }
      cut.Lose(Luck::kNothing, &random_);
      ASSERT_EQ(Judge(done, begun), "");
    }
  }
}

// The test would find an index that does not flush: then the power fails behind changes that nobody made durable.
TEST_P(HashIndexPowerCutTest, ChangesWithoutAFenceAreLost) {
  Prepare(false);
  Model done = before_, begun = before_;
  {
    PowerCut cut(store_.regions(), PowerCut::kNever);
    ASSERT_OK(store_.index()->Apply(std::vector{store_.Change(7, NumberedEntries::Entry(7, 0), NumberedEntries::Entry(7, 9))}));
    cut.Lose(Luck::kNothing, &random_);
  }
  begun[7] = {NumberedEntries::Entry(7, 9).raw()};
  done = begun;
  EXPECT_NE(Judge(done, begun), "");
}

}  // namespace
}  // namespace braiddb::test
