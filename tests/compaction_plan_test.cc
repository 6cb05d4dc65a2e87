// The plan of a merge cuts its tables into chunks of keys: nothing is left out, nothing comes twice, no key is cut.
#include <gtest/gtest.h>

#include "compaction/merge_plan.h"
#include "tests/support/level_store.h"

namespace braiddb::test {
namespace {

class MergePlanTest : public testing::TestWithParam<uint32_t> {
 protected:
  void AddTable(const std::vector<Version>& versions) {
    owned_.push_back(store_.MakeTable(versions));
    tables_.push_back(owned_.back().get());
    all_.insert(all_.end(), versions.begin(), versions.end());
  }

  // Checks the plan of what lies before `progress`.
  void Check(const MergePlan& plan, PmPtr progress) {
    std::set<uint64_t> expected;
    for (const Version& version : all_) {
      const LogEntry* entry = store_.Resolve(store_.Find(version.sequence));
      if (!progress || CompareEntries(store_.order(), *entry, *store_.Resolve(progress)) < 0) expected.insert(version.sequence);
    }
    EXPECT_EQ(plan.entries(), all_.size());
    std::set<uint64_t> found;
    std::string last_key;  // greatest of the chunks before
    for (size_t chunk = 0; chunk < plan.chunks(); ++chunk) {
      EXPECT_FALSE(plan.pieces(chunk).empty());
      std::string greatest = last_key;
      for (const MergePiece& piece : plan.pieces(chunk)) {
        ASSERT_TRUE(piece.begin);
        ASSERT_FALSE(piece.begin == piece.end);
        for (PmPtr at = piece.begin; !(at == piece.end); at = store_.Resolve(at)->Next(0)) {
          ASSERT_TRUE(at) << "the piece's end is not on its way";
          const Version version = store_.VersionAt(at);
          EXPECT_TRUE(found.insert(version.sequence).second) << testing::PrintToString(version) << " is there twice";
          if (chunk > 0) {
            EXPECT_GT(version.key, last_key) << "chunk " << chunk;
          }
          greatest = std::max(greatest, version.key);
        }
      }
      last_key = greatest;
    }
    EXPECT_EQ(found, expected);
  }
  void CheckAll() { Check(MergePlan(tables_, store_.regions(), &store_.order(), PmPtr()), PmPtr()); }

  LevelStore store_{GetParam()};
  Random random_{41};
  uint64_t sequence_ = 1;
  std::vector<std::shared_ptr<PmTable>> owned_;
  std::vector<const PmTable*> tables_;
  std::vector<Version> all_;
};

INSTANTIATE_TEST_SUITE_P(Regions, MergePlanTest, testing::Values(1, 2));

TEST_P(MergePlanTest, NoTablesAndEmptyTables) {
  CheckAll();
  AddTable({});
  CheckAll();
  AddTable({{"k", sequence_++}});
  AddTable({});
  CheckAll();
}

TEST_P(MergePlanTest, RandomTablesAreCoveredOnce) {
  for (const size_t count : {1, 50, 3000, 9000, 20}) {
    AddTable(store_.DrawVersions(&random_, count, random_.OneIn(2) ? 300 : 100'000, 8, &sequence_));
    CheckAll();
  }
  EXPECT_GT(MergePlan(tables_, store_.regions(), &store_.order(), PmPtr()).chunks(), 2u) << "12,000 entries are several chunks";
}

TEST_P(MergePlanTest, ThePartThatIsNotMergedYetIsCoveredOnce) {
  for (const size_t count : {2500, 700, 5000}) AddTable(store_.DrawVersions(&random_, count, 3000, 8, &sequence_));
  const std::vector<Version> sorted = InEntryOrder(all_);
  std::vector<size_t> places = {0, 1, sorted.size() - 1};
  for (int i = 0; i < 60; ++i) places.push_back(random_.Uniform(sorted.size()));
  for (const size_t place : places) {
    const PmPtr progress = store_.Find(sorted[place].sequence);
    Check(MergePlan(tables_, store_.regions(), &store_.order(), progress), progress);
  }
}

// One key has most of the versions, and so most of the places where a plan could be cut.
TEST_P(MergePlanTest, TheVersionsOfAKeyStayTogether) {
  for (int table = 0; table < 3; ++table) {
    std::vector<Version> versions = store_.DrawVersions(&random_, 500, 1000, 8, &sequence_);
    for (Version version : store_.DrawVersions(&random_, 4000, 1, 8, &sequence_)) {
      version.key = NumberedKey(400);
      versions.push_back(version);
    }
    AddTable(versions);
  }
  CheckAll();
}

// Entries tall enough to be cut at are in one table, or in one region, only.
TEST_P(MergePlanTest, TablesWithoutTallEntries) {
  std::vector<Version> low = store_.DrawVersions(&random_, 4000, 5000, 8, &sequence_);
  for (Version& version : low) version.height = 1;
  AddTable(low);
  CheckAll();
  AddTable(store_.DrawVersions(&random_, 4000, 5000, 8, &sequence_));
  CheckAll();
}

}  // namespace
}  // namespace braiddb::test
