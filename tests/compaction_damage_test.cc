// Merges and sweeps over damaged lists: they end, with OK where the damage is not met, and with Corruption where it is.
// Whatever word of an entry's header or towers is damaged, of a table or of the last level. What an open finds: mutation_test.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/level_case.h"

namespace braiddb::test {
namespace {

class DamagedMergeTest : public testing::TestWithParam<LevelShape> {
 protected:
  static constexpr uint64_t kKeys = 60;

  // A last level, and two tables to merge into it; many versions of some keys.
  void Fill(LevelCase* level, std::vector<uint64_t>* snapshots) {
    level->Fill(level->Draw(&random_, 120, kKeys, 6));
    for (int table = 0; table < 2; ++table) {
      snapshots->push_back(level->NextSequence());
      level->AddTable(level->Draw(&random_, 80, kKeys, 4));
    }
    if (random_.OneIn(2)) snapshots->clear();
  }

  static PmPtr Pick(const LevelCase& level, bool of_tables, Random* random, const EntryStore& store) {
    const std::vector<Version>& versions = of_tables ? level.in_tables() : level.in_last_level();
    const Version& version = versions[random->Uniform(versions.size())];
    return of_tables ? store.Find(version.sequence) : level.PlaceOf(version);
  }

  // Damages one word of an entry; says what it did. `circle`: so that a list leads back.
  std::string Damage(LevelCase* level, bool of_tables, bool circle) {
    EntryStore& store = level->store();
    const PmPtr pointer = Pick(*level, of_tables, &random_, store);
    LogEntry* entry = store.Resolve(pointer);
    const auto layer = static_cast<uint32_t>(random_.Uniform(entry->height()));
    uint64_t* next = &entry->next[layer];
    const std::string where = testing::PrintToString(store.VersionAt(pointer)) + " layer " + std::to_string(layer) + ": ";
    if (circle) {
      *next = pointer.raw();
      return where + "to itself";
    }
    switch (random_.Uniform(11)) {
      case 0:
      case 1: {
        const PmPtr other = Pick(*level, of_tables, &random_, store);
        if (CompareEntries(store.order(), *entry, *store.Resolve(other)) < 0) *next = other.raw();
        return where + "past others of its level, if it is before that";
      }
      case 2:
        *next = Pick(*level, !of_tables, &random_, store).raw();
        return where + "to one of the other level";
      case 3:
        *next = 0;
        return where + "the end";
      case 4:
        *next = PmPtr(pointer.region(), (uint64_t{1} << 47) - 64).raw();
        return where + "outside its region";
      case 5:
        *next = PmPtr(15, pointer.offset()).raw();
        return where + "to a region that is not there";
      case 6:
        *next ^= uint64_t{8} << random_.Uniform(20);
        return where + "a bit of the offset";
      case 7:
        *next ^= LogEntry::kDeadBit;
        return where + "the mark";
      case 8:
        entry->shape = LogEntry::MakeShape(entry->key_size(), random_.OneIn(2) ? 0 : 31, 0);
        return where + "a height that cannot be";
      case 9:
        entry->shape ^= 1u << random_.Uniform(LogEntry::kKeyBits);
        return where + "the key's size";
      default:
        entry->tag ^= uint64_t{1} << (8 + random_.Uniform(10));
        return where + "the sequence number";
    }
  }

  Random random_{71};
};

// Of few regions: a circle is followed for as many steps as the regions have room for entries.
INSTANTIATE_TEST_SUITE_P(Kinds, DamagedMergeTest,
                         testing::Values(LevelShape{L1Kind::kBraidedSkipList, 1}, LevelShape{L1Kind::kBraidedSkipList, 2},
                                         LevelShape{L1Kind::kNvTree, 1}, LevelShape{L1Kind::kNvTree, 2},
                                         LevelShape{L1Kind::kSortedRuns, 1}, LevelShape{L1Kind::kSortedRuns, 2},
                                         LevelShape{L1Kind::kHybrid, 1}, LevelShape{L1Kind::kHybrid, 2},
                                         LevelShape{L1Kind::kLbTree, 1}, LevelShape{L1Kind::kLbTree, 2}),
                         testing::PrintToStringParamName());

TEST_P(DamagedMergeTest, MergesEndWithAClearErrorOrDoNotMeetIt) {
  const int rounds = 100 / kSlowdown;
  int found = 0;
  for (int round = 0; round < rounds; ++round) {
    LevelCase level(GetParam());
    std::vector<uint64_t> snapshots;
    Fill(&level, &snapshots);
    const std::string what = Damage(&level, random_.OneIn(2), round == 0);
    SCOPED_TRACE(what);
    const Status merged = level.Run(snapshots, nullptr, nullptr, static_cast<uint32_t>(random_.Range(1, 2)));
    ASSERT_TRUE(merged.ok() || merged.IsCorruption()) << merged.ToString();
    found += merged.IsCorruption();
    EXPECT_TRUE(merged.ok() || merged.ToString().find("restore") != std::string::npos) << merged.ToString();
    if (HasFailure()) return;
  }
  EXPECT_GT(found, rounds / 20);
}

TEST_P(DamagedMergeTest, SweepsEndToo) {
  const int rounds = 60 / kSlowdown;
  int found = 0;
  for (int round = 0; round < rounds; ++round) {
    LevelCase level(GetParam());
    std::vector<uint64_t> snapshots;
    Fill(&level, &snapshots);
    ASSERT_OK(level.Run(snapshots));
    const std::string what = Damage(&level, random_.OneIn(2), round == 0);
    SCOPED_TRACE(what);
    const std::string low = NumberedKey(random_.Uniform(kKeys)), high = NumberedKey(random_.Uniform(kKeys));
    const Slice begin(low), end(high);
    MergeStats stats;
    const KeyRange range{random_.OneIn(2) ? &begin : nullptr, random_.OneIn(3) ? &end : nullptr};
    const Status swept = level.Sweep({}, {range}, &stats);
    ASSERT_TRUE(swept.ok() || swept.IsCorruption()) << swept.ToString();
    found += swept.IsCorruption();
    if (HasFailure()) return;
  }
  if (GetParam().kind == L1Kind::kBraidedSkipList) {
    EXPECT_GT(found, rounds / 20);
  }
}

}  // namespace
}  // namespace braiddb::test
