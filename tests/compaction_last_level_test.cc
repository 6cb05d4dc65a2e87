// The contract of LastLevel: what merges and sweeps leave, what cursors and readers see meanwhile. Every last level passes it.
// [CC-4] [CC-45]
#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "tests/support/last_level_test.h"
#include "tests/support/power_cut.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

class LastLevelContractTest : public LastLevelTest {};

INSTANTIATE_TEST_SUITE_P(Kinds, LastLevelContractTest, AllLastLevels(), testing::PrintToStringParamName());

// ---- Merges

TEST_P(LastLevelContractTest, MergesOfRandomTables) {
  for (int round = 0; round < 40 / kSlowdown; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    std::vector<uint64_t> snapshots;
    for (uint64_t tables = random_.Range(1, 4); tables > 0; --tables) {
      level_.AddTable(level_.Draw(&random_, random_.Skewed(400), random_.OneIn(3) ? 10 : 500, random_.Range(2, 6)));
      if (random_.OneIn(2)) snapshots.push_back(level_.NextSequence());
    }
    if (random_.OneIn(2)) snapshots.push_back(random_.Uniform(level_.NextSequence()));
    level_.Merge(snapshots, static_cast<uint32_t>(random_.Range(1, 3)));
    if (random_.OneIn(4)) level_.Restart();
    if (HasFailure()) return;
  }
}

TEST_P(LastLevelContractTest, MergesOfManyChunksOnSeveralThreads) {
  const size_t count = 30'000 / kSlowdown;
  level_.UseLargeRuns();
  level_.AddTable(level_.Draw(&random_, count, count, 8));
  level_.Merge({}, 3);
  level_.AddTable(level_.Draw(&random_, count / 2, count, 4));
  level_.AddTable(level_.Draw(&random_, count / 2, 2 * count, 4));
  level_.Merge({}, 3);
  level_.AddTable(level_.Draw(&random_, 25, 2 * count, 4));  // few entries, far apart
  level_.Merge({}, 3);
}

TEST_P(LastLevelContractTest, NothingToMerge) {
  level_.Merge({});
  level_.AddTable({});
  level_.Merge({});
  level_.Fill({{"a"}, {"b"}});
  level_.AddTable({});
  level_.AddTable({});
  level_.Merge({});
}

TEST_P(LastLevelContractTest, BeforeBehindAndBetween) {
  level_.Fill({{"d"}, {"f"}});
  level_.AddTable({{"a"}, {"b"}});
  level_.AddTable({{"x"}, {"y"}});
  level_.AddTable({{"e"}, {""}});
  level_.Merge({});
  EXPECT_EQ(level_.Forward().size(), 8u);
}

// The level and the tables have next to nothing in common: each is in a region of its own.
TEST_P(LastLevelContractTest, RegionsThatHaveNextToNothing) {
  const uint32_t last_region = GetParam().regions - 1;
  const auto move = [](std::vector<Version> versions, uint32_t region) {
    for (Version& version : versions) version.region = region;
    return versions;
  };
  level_.Fill(move(level_.Draw(&random_, 3000, 4000, 8), 0));
  level_.AddTable(move(level_.Draw(&random_, 300, 4000, 4), last_region));
  level_.Merge({});
  level_.AddTable(move(level_.Draw(&random_, 2, 4000, 4), last_region));
  level_.Merge({});
  level_.AddTable(move(level_.Draw(&random_, 4000, 4000, 2), 0));
  level_.Merge({});
}

TEST_P(LastLevelContractTest, KeysOfAllKinds) {
  // Equal in their first eight bytes, or only longer; with zeros; empty.
  const std::vector<std::string> keys = {"",
                                         std::string(1, '\0'),
                                         std::string(8, '\0'),
                                         "a",
                                         "aa",
                                         std::string("a\0", 2),
                                         "prefix--1",
                                         "prefix--2",
                                         "prefix--",
                                         "prefix--1\xff",
                                         "\xff",
                                         std::string(8, '\xff'),
                                         std::string(9, '\xff'),
                                         std::string(3000, 'k')};
  for (int round = 0; round < 6; ++round) {
    std::vector<Version> versions;
    for (const std::string& key : keys) {
      if (round == 0 || random_.OneIn(2)) versions.push_back({key, 0, random_.OneIn(4), 0, RandomHeight(random_.Next())});
    }
    level_.AddTable(versions);
    const std::vector<uint64_t> snapshots = {level_.NextSequence()};
    level_.Merge(snapshots);
  }
  EXPECT_TRUE(level_.ReadsAreRight(keys, {kMaxSequence, level_.NextSequence()}));
}

// More versions of a key than a leaf or a journal batch has room for.
TEST_P(LastLevelContractTest, ManyVersionsOfOneKey) {
  std::vector<Version> versions;
  std::vector<uint64_t> snapshots;
  for (int i = 0; i < 300; ++i)
    versions.push_back({"k", level_.NextSequence(), random_.OneIn(5), 0, RandomHeight(random_.Next())});
  for (const Version& version : versions) snapshots.push_back(version.sequence);
  level_.Fill({{"j"}, {"l"}});
  level_.AddTable(versions);
  level_.Merge(snapshots);
  EXPECT_TRUE(level_.ReadsAreRight({"j", "k", "l"}, snapshots));
  level_.AddTable({{"k"}});
  level_.Merge(snapshots);
  EXPECT_TRUE(level_.ReadsAreRight({"j", "k", "l"}, snapshots));
  level_.Restart();
  level_.AddTable({{"k"}});
  level_.Merge({});
  EXPECT_EQ(level_.Forward().size(), 3u);
}

// Sequence numbers go 1, 2, 3, … in the order in which versions are listed here.
TEST_P(LastLevelContractTest, WhichVersionsStay) {
  struct Case {
    const char* name;
    std::vector<std::vector<bool>> tables;  // versions of one key, true: a tombstone; the first table is the last level
    std::vector<uint64_t> snapshots;
    std::vector<uint64_t> stay;
  };
  const std::vector<Case> cases = {
      {"an overwrite takes the place", {{false}, {false}}, {}, {2}},
      {"a snapshot keeps what it sees", {{false}, {false}}, {1}, {2, 1}},
      {"a snapshot of the newest keeps nothing else", {{false}, {false}}, {2}, {2}},
      {"a delete leaves nothing", {{false}, {true}}, {}, {}},
      {"a delete that a snapshot does not see yet stays", {{false}, {true}}, {1}, {2, 1}},
      {"a delete of nothing leaves nothing", {{}, {true}}, {}, {}},
      {"a snapshot of a delete of nothing needs no tombstone", {{}, {true}}, {1}, {}},
      {"of two tombstones none stays", {{false}, {true}, {true}}, {}, {}},
      {"between a delete and a put", {{false}, {true, false}}, {2}, {3}},
      {"a snapshot of the first put needs the delete only if it is seen", {{false}, {true, false}}, {1}, {3, 1}},
      {"all three are seen", {{false}, {true, false}}, {1, 2}, {3, 2, 1}},
      {"several tables, newest wins", {{}, {false}, {false}, {false}}, {}, {3}},
      {"several tables, one snapshot between", {{}, {false}, {false}, {false}}, {2}, {3, 2}},
      {"a put after a delete in tables only", {{}, {false}, {true}, {false}}, {}, {3}},
      {"put, delete, snapshot, put", {{}, {false}, {true}, {false}}, {2}, {3}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    LevelCase level(GetParam());
    // Neighbours before and behind, and towers of all kinds.
    const auto versions = [&](const std::vector<bool>& tombstones) {
      std::vector<Version> result;
      for (const bool tombstone : tombstones) {
        result.push_back({"k", 0, tombstone, static_cast<uint32_t>(random_.Uniform(GetParam().regions)),
                          static_cast<uint32_t>(random_.Range(1, 4))});
      }
      return result;
    };
    level.Fill(versions(c.tables[0]));
    for (size_t i = 1; i < c.tables.size(); ++i) level.AddTable(versions(c.tables[i]));
    level.Merge(c.snapshots);
    EXPECT_EQ(EntryStore::Sequences(level.Forward()), c.stay);
  }
}

// ---- Cursors

TEST_P(LastLevelContractTest, CursorsSeekToEveryPlace) {
  level_.AddTable(level_.Draw(&random_, 2000, 700, 6));
  level_.Merge({500, 1000, 1500});
  const std::vector<Version> all = level_.Forward();
  const auto cursor = level_.level().View()->NewCursor();
  const auto at = [&] { return cursor->entry() == nullptr ? Version() : level_.VersionOf(cursor->entry()); };
  for (int i = 0; i < 3000; ++i) {
    const std::string key = NumberedKey(random_.Uniform(720));
    const SearchKey target(store().order(), key, random_.OneIn(2) ? kMaxSequence : random_.Uniform(2100));
    const auto first = std::partition_point(all.begin(), all.end(), [&](const Version& version) {
      return version.key != key ? version.key < key : version.sequence > target.sequence;
    });
    cursor->Seek(target);
    EXPECT_EQ(at(), first == all.end() ? Version() : *first);
    cursor->SeekBefore(target);
    EXPECT_EQ(at(), first == all.begin() ? Version() : *(first - 1));
    // A few steps from there, to and fro.
    auto here = first == all.begin() ? all.end() : first - 1;
    for (int step = 0; step < 4 && here != all.end(); ++step) {
      if (random_.OneIn(2)) {
        cursor->Next();
        ++here;
      } else {
        cursor->Prev();
        here = here == all.begin() ? all.end() : here - 1;
      }
      EXPECT_EQ(at(), here == all.end() ? Version() : *here);
    }
    if (HasFailure()) return;
  }
}

// ---- Sweeps

TEST_P(LastLevelContractTest, ASweepTakesWhatNobodySeesAnyMore) {
  level_.Fill(level_.Draw(&random_, 3000, 500, 4));
  std::map<std::string, std::vector<Version>> by_key;
  for (const Version& version : level_.in_last_level()) by_key[version.key].push_back(version);
  const std::string from = NumberedKey(100), to = NumberedKey(300);
  const Slice begin(from), end(to);
  const std::vector<std::string> bounds = {NumberedKey(310), NumberedKey(310), NumberedKey(311), NumberedKey(340),
                                           NumberedKey(340), NumberedKey(360), NumberedKey(470), NumberedKey(600)};
  const std::vector<Slice> many(bounds.begin(), bounds.end());
  struct Sweep {
    KeyRanges ranges;
    std::vector<uint64_t> snapshots;
  };
  const std::vector<uint64_t> some = {700, 1500};
  for (const Sweep& sweep : {Sweep{{{&begin, &end}}, some}, Sweep{{{nullptr, &begin}}, {}},
                             Sweep{{{&many[0], &many[1]}, {&many[2], &many[3]}, {&many[4], &many[5]}, {&many[6], &many[7]}}, {}},
                             Sweep{{}, {}}, Sweep{{{&end, nullptr}}, some}, Sweep{{KeyRange()}, {}}, Sweep{{KeyRange()}, {}}}) {
    LevelCase::Outcome expected;
    for (auto& [key, versions] : by_key) {
      const bool inside = std::any_of(sweep.ranges.begin(), sweep.ranges.end(), [&key](const KeyRange& range) {
        return (range.begin == nullptr || key >= *range.begin) && (range.end == nullptr || key < *range.end);
      });
      const std::vector<Version> stay =
          inside && !versions.empty() ? SeenOf(InEntryOrder(versions), Ascending(sweep.snapshots), true) : versions;
      std::set<uint64_t> staying;
      for (const Version& version : stay) staying.insert(version.sequence);
      for (const Version& version : versions) {
        if (!staying.contains(version.sequence)) expected.dead.insert(version.sequence);
      }
      versions = stay;
      expected.last_level.insert(expected.last_level.end(), stay.begin(), stay.end());
    }
    MergeStats stats;
    ASSERT_OK(level_.Sweep(sweep.snapshots, sweep.ranges, &stats));
    level_.ExpectMerged(expected);
    EXPECT_EQ(stats.unlinked, expected.dead.size());
    EXPECT_EQ(stats.merged + stats.dropped, 0u);
    if (HasFailure()) return;
  }
}

// ---- Readers

// At each fence, another thread reads all keys at all snapshots.
TEST_P(LastLevelContractTest, ReadersFindTheSameAtEveryFence) {
  class ReadAtFences final : public PersistObserver {
   public:
    ReadAtFences(RegionSet* regions, std::function<testing::AssertionResult()> read) : read_(std::move(read)), regions_(regions) {
      regions->persistence()->SetObserver(this);
    }
    ~ReadAtFences() override { regions_->persistence()->SetObserver(nullptr); }
    void OnFlush(const void*, size_t) override {}
    void OnDrain() override {
      ++fences;
      if (!result) return;
      std::thread([this] { result = read_(); }).join();  // the merge is inside an epoch guard
    }
    uint64_t fences = 0;
    testing::AssertionResult result = testing::AssertionSuccess();

   private:
    const std::function<testing::AssertionResult()> read_;
    RegionSet* const regions_;
  };
  const std::vector<std::string> keys = Keys(60);
  level_.Fill(level_.Draw(&random_, 300, 60, 4));
  for (int round = 0; round < 4; ++round) {
    level_.AddTable(level_.Draw(&random_, 80, 60, 3));
    std::vector<uint64_t> snapshots = {level_.NextSequence()};
    level_.AddTable(level_.Draw(&random_, 80, 60, 2));
    // A snapshot that is made after the filter sees the newest versions.
    const std::vector<uint64_t> readers = {snapshots[0], level_.NextSequence(), kMaxSequence};
    const LevelCase::Outcome expected = level_.Expected(snapshots);
    {
      ReadAtFences observer(store().regions(), [&] { return level_.ReadsAreRight(keys, readers); });
      ASSERT_OK(level_.Run(snapshots, nullptr, nullptr, 1));
      EXPECT_GE(observer.fences, 2u);
      ASSERT_TRUE(observer.result);
    }
    level_.ExpectMerged(expected);
    level_.Forget(expected);
  }
}

// A version that was visited before a merge marked it, and what hides it after that.
TEST_P(LastLevelContractTest, AMergeBetweenTwoVisitsOfOneSearch) {
  level_.Fill({{"j"}, {"l"}});
  level_.AddTable({{"k", 3}, {"k", 4, true}});
  level_.Merge({3});
  level_.AddTable({{"k", 5}});
  bool merged = false;
  SyncPoints::Instance().SetCallback("OrderedLevel::Find:Visited", [&](void*) {
    if (std::exchange(merged, true)) return;
    std::thread([&] { EXPECT_OK(level_.Run({4}, nullptr, nullptr, 1)); }).join();
  });
  SyncPoints::Instance().Enable();
  EXPECT_EQ(level_.Read("k", 4), std::nullopt);
  SyncPoints::Instance().Clear();
  if (GetParam().kind == L1Kind::kNvTree || GetParam().kind == L1Kind::kLbTree) {
    EXPECT_TRUE(merged);
    EXPECT_TRUE(store().IsDead(3));
    EXPECT_TRUE(store().IsDead(4));
  }
}

// Keys that came in order fill leaves; all of them go again, from the left.
TEST_P(LastLevelContractTest, EmptiedLeavesGo) {
  constexpr uint64_t kKeys = 3000;
  std::vector<Version> puts, tombstones;
  for (uint64_t i = 0; i < kKeys; ++i) {
    puts.push_back({NumberedKey(i), 0, false, 0, 1});
    tombstones.push_back({NumberedKey(i), 0, true, 0, 1});
  }
  level_.AddTable(puts);
  level_.Merge({});
  level_.AddTable(tombstones);
  level_.Merge({});
  EXPECT_TRUE(level_.Forward().empty());
  ASSERT_OK(level_.Close());
  level_.Restart();
  if (GetParam().kind == L1Kind::kNvTree) {
    EXPECT_TRUE(level_.level().Describe().starts_with("NV-Tree, leaves of 512 bytes: 1, ")) << level_.level().Describe();
  }
  if (GetParam().kind == L1Kind::kLbTree) {
    EXPECT_TRUE(level_.level().Describe().starts_with("LB+-Tree, leaves of 512 bytes: 1, ")) << level_.level().Describe();
  }
}

}  // namespace
}  // namespace braiddb::test
