// What compaction filters drop in merges and sweeps of every last level, also with power cuts. [CC-48]
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/support/last_level_test.h"
#include "tests/support/power_cut.h"

namespace braiddb::test {
namespace {

// Drops every third version that it is asked about and that is alone; by its number, so that threads agree.
class ThirdFilters : public EntryFilterSource {
 public:
  ThirdFilters(uint64_t rest, L1Kind kind) : rest_(rest), copies_(kind == L1Kind::kSortedRuns) {}

  bool Drops(uint64_t sequence) const { return sequence % 3 == rest_; }
  std::unique_ptr<EntryFilter> NewFilter() override { return std::make_unique<Filter>(this); }

  std::atomic<uint64_t> asked{0};
  std::atomic<uint64_t> asked_in_level{0};
  std::atomic<uint64_t> not_alone{0};
  std::atomic<uint64_t> dropped{0};
  std::atomic<uint64_t> forgotten{0};

 private:
  class Filter : public EntryFilter {
   public:
    explicit Filter(ThirdFilters* all) : all_(*all) {}
    bool Drops(const LogEntry& entry, bool from_table, bool alone) override {
      EXPECT_EQ(entry.type(), EntryType::kPut);
      EXPECT_FALSE(entry.is_dead());
      ++all_.asked;
      all_.asked_in_level += !from_table;
      all_.not_alone += !alone;
      const bool drops = alone && all_.Drops(entry.sequence());
      all_.dropped += drops;
      return drops;
    }
    void Forget(const LogEntry& entry) override {
      EXPECT_TRUE(all_.Drops(entry.sequence()));
      EXPECT_TRUE(all_.copies_ ? entry.is_obsolete() : entry.is_dead()) << "told before anybody can see the mark";
      ++all_.forgotten;
    }

   private:
    ThirdFilters& all_;
  };

  const uint64_t rest_;
  const bool copies_;  // merges do, and mark what they have taken from tables moved
};

class LastLevelFilterTest : public LastLevelTest {
 protected:
  // The number of the newest version of each key; 0 for one that is deleted.
  std::map<std::string, uint64_t> Newest() const {
    std::map<std::string, Version> newest;
    for (const auto* versions : {&level_.in_last_level(), &level_.in_tables()}) {
      for (const Version& version : *versions) {
        const auto [at, is_new] = newest.emplace(version.key, version);
        if (!is_new && at->second.sequence < version.sequence) at->second = version;
      }
    }
    std::map<std::string, uint64_t> result;
    for (const auto& [key, version] : newest) result[key] = version.tombstone ? 0 : version.sequence;
    return result;
  }
  // Every key is as it was, or gone, if one of the filters drops it; never older.
  void ExpectNothingOlder(const std::map<std::string, uint64_t>& newest, const std::vector<const ThirdFilters*>& filters) {
    for (const auto& [key, sequence] : newest) {
      const uint64_t found = level_.Read(key, kMaxSequence).value_or(0);
      bool may_be_gone = sequence == 0;
      for (const ThirdFilters* filter : filters) may_be_gone |= filter->Drops(sequence);
      EXPECT_TRUE(found == sequence || (found == 0 && may_be_gone)) << key << ": " << found << ", not " << sequence;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, LastLevelFilterTest, AllLastLevels(), testing::PrintToStringParamName());

TEST_P(LastLevelFilterTest, AMergeDropsAndTellsWhenItIsSeen) {
  const size_t count = 4000 / kSlowdown;
  level_.UseLargeRuns();
  level_.Fill(level_.Draw(&random_, 2 * count, count, 8));
  level_.AddTable(level_.Draw(&random_, count, 2 * count, 4));
  level_.AddTable(level_.Draw(&random_, count, 2 * count, 4));
  LevelCase::Outcome expected = level_.Expected({});
  std::map<std::string, uint64_t> of_tables;
  for (const Version& version : level_.in_tables()) of_tables[version.key] = version.sequence;
  ThirdFilters filters(0, GetParam().kind);
  uint64_t gone = 0;
  std::erase_if(expected.last_level, [&](const Version& version) {
    const bool drops = of_tables.contains(version.key) && filters.Drops(version.sequence);
    if (drops) expected.dead.insert(version.sequence);
    gone += drops;
    return drops;
  });
  level_.FilterBy(&filters);
  ASSERT_OK(level_.Run({}, nullptr, nullptr, 3));
  level_.ExpectMerged(expected);
  EXPECT_GT(gone, count / 8);
  EXPECT_EQ(filters.dropped, gone);
  EXPECT_EQ(filters.forgotten, gone);
  EXPECT_EQ(filters.not_alone, 0u);
  EXPECT_EQ(filters.asked_in_level, 0u);
}

// With versions that only snapshots see: what goes takes nothing with it, and what stays has nothing below that it would show.
TEST_P(LastLevelFilterTest, WhatIsNotAloneStays) {
  const size_t count = 2000 / kSlowdown;
  level_.UseLargeRuns();
  level_.Fill(level_.Draw(&random_, 3 * count, count, 8));
  const uint64_t snapshot = level_.NextSequence();
  level_.AddTable(level_.Draw(&random_, count, count, 4));
  const auto newest = Newest();
  ThirdFilters filters(1, GetParam().kind);
  level_.FilterBy(&filters);
  std::map<std::string, std::optional<uint64_t>> seen;
  for (const auto& [key, sequence] : newest) seen[key] = level_.ExpectedRead(key, snapshot);
  ASSERT_OK(level_.Run({snapshot}));
  EXPECT_GT(filters.not_alone, 0u);
  EXPECT_EQ(filters.forgotten, filters.dropped);
  ExpectNothingOlder(newest, {&filters});
  for (const auto& [key, sequence] : seen) {
    const auto found = level_.Read(key, snapshot);
    EXPECT_TRUE(found == sequence || (!found && filters.Drops(*sequence))) << key;
  }
}

// Over more than a batch of the journal has room for.
TEST_P(LastLevelFilterTest, ASweepAsksAboutTheNewestVersionsAndTellsWhenTheyAreGone) {
  const size_t count = 12'000 / kSlowdown;
  level_.UseLargeRuns();
  level_.Fill(level_.Draw(&random_, 2 * count, count, 16));
  ThirdFilters filters(2, GetParam().kind);
  level_.FilterBy(&filters);
  const auto newest = Newest();
  std::vector<Version> expected;
  for (const Version& version : level_.in_last_level()) {
    if (newest.at(version.key) == version.sequence && !filters.Drops(version.sequence)) expected.push_back(version);
  }
  MergeStats stats;
  ASSERT_OK(level_.Sweep({}, {KeyRange()}, &stats));
  EXPECT_TRUE(level_.Forward() == expected);
  EXPECT_EQ(filters.asked, filters.asked_in_level);
  EXPECT_GT(filters.dropped, count / 8);
  EXPECT_EQ(filters.forgotten, filters.dropped);
  for (size_t i = 0; i < expected.size(); i += 100) EXPECT_FALSE(store().IsDead(expected[i].sequence));
}

// At each fence, with every luck; what comes after has a filter that answers otherwise, or none, and may be cut as well.
TEST_P(LastLevelFilterTest, PowerCutsNeverBringBackAnOlderVersion) {
  level_.Fill(level_.Draw(&random_, 250, 100, 8));
  level_.AddTable(level_.Draw(&random_, 120, 100, 4));
  level_.AddTable(level_.Draw(&random_, 120, 100, 4));
  const auto newest = Newest();
  std::set<std::string> of_tables;
  for (const Version& version : level_.in_tables()) of_tables.insert(version.key);
  ThirdFilters first(0, GetParam().kind), second(1, GetParam().kind);
  const RegionImage before(store().regions());
  bool is_there = true;
  uint64_t fence = 0;
  for (; is_there; ++fence) {
    is_there = false;
    for (const PowerCut::Luck luck : PowerCut::LucksAt(fence)) {
      SCOPED_TRACE("fence " + std::to_string(fence) + ", luck " + std::to_string(static_cast<int>(luck)));
      before.Restore(store().regions());
      ASSERT_OK(level_.TryRestart());
      for (int life = 0; life == 0 || level_.running(); ++life) {
        level_.FilterBy(life == 0 ? &first : random_.OneIn(2) ? &second : nullptr);
        PowerCut cut(store().regions(), life == 0 ? fence : life < 3 ? random_.Uniform(12) : PowerCut::kNever);
        try {
          ASSERT_OK(level_.Run({}, nullptr, nullptr, 1));
        } catch (const PowerCut::Failed&) {
          is_there |= life == 0;
          cut.Lose(luck, &random_);
          ASSERT_OK(level_.TryRestart());
        }
        ExpectNothingOlder(newest, {&first, &second});
        if (HasFailure()) return;
      }
      // In the level alone: of the tables' keys, what was older is not there, and nothing is marked.
      for (const Version& version : level_.Forward()) {
        if (of_tables.contains(version.key)) {
          ASSERT_EQ(newest.at(version.key), version.sequence);
        }
        ASSERT_FALSE(store().IsDead(version.sequence));
      }
    }
  }
  EXPECT_GT(fence, 2u);
}

}  // namespace
}  // namespace braiddb::test
