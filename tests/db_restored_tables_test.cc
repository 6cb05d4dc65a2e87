// Tables of L0 that an open restored: lookups and iterators soon cost what they cost before, and find the same.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braiddb/db.h"
#include "tests/support/db_test_util.h"
#include "tests/support/merge_operators.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

struct Case {
  const char* name;
  uint32_t regions;
  bool read_only;
};

class DbRestoredTablesTest : public testing::TestWithParam<Case> {
 protected:
  static constexpr int kTables = 70;
  static constexpr uint64_t kKeys = 60;  // of a table, of 200

  DbRestoredTablesTest() {
    options_ = TinyOptions(GetParam().regions);
    options_.create_if_missing = true;
    options_.create_missing_column_families = true;
    options_.disable_auto_compaction = true;
    options_.memtable_size = 1 << 20;
    options_.lookup_cache_size = 0;
    options_.filter_bits_per_key = 0;
  }

  Status Open(bool read_only) {
    handles_.clear();
    db_.reset();
    const std::vector<ColumnFamilyDescriptor> families{{kDefaultColumnFamilyName, ColumnFamilyOptions(options_)},
                                                       {"other", ColumnFamilyOptions(options_)}};
    return read_only ? DB::OpenForReadOnly(options_, path_, families, &handles_, &db_)
                     : DB::Open(options_, path_, families, &handles_, &db_);
  }

  // A table in each family.
  void WriteTable(uint64_t number) {
    Random random(number);
    for (size_t family = 0; family < 2; ++family) {
      for (uint64_t i = 0; i < kKeys; ++i) {
        const std::string key = NumberedKey(random.Uniform(200));
        if (random.OneIn(8)) {
          ASSERT_OK(db_->Delete({}, handles_[family].get(), key));
          model_[family].erase(key);
        } else if (options_.merge_operator != nullptr && random.OneIn(3)) {
          ASSERT_OK(db_->Merge({}, handles_[family].get(), key, "+"));
          std::string* const value = &model_[family][key];
          *value = AppendOperator::Apply(std::move(*value), "+");
        } else {
          const std::string value = PatternedValue(number * kKeys + i, 10);
          ASSERT_OK(db_->Put({}, handles_[family].get(), key, value));
          model_[family][key] = value;
        }
      }
    }
  }

  void Fill(int tables) {
    for (int i = 0; i < tables; ++i) {
      ASSERT_NO_FATAL_FAILURE(WriteTable(static_cast<uint64_t>(i)));
      ASSERT_OK(db_->Flush());
    }
    ASSERT_GE(IntProperty(db_.get(), "braiddb.num-l0-tables"), static_cast<uint64_t>(tables));
  }

  double MeanVisits() {
    uint64_t lookups = 0;
    const Statistics before = db_->GetStatistics();
    for (size_t family = 0; family < 2; ++family) {
      for (const auto& [key, value] : model_[family]) {
        std::string found;
        EXPECT_OK(db_->Get({}, handles_[family].get(), key, &found));
        EXPECT_EQ(found, value) << key;
        ++lookups;
      }
    }
    const Statistics after = db_->GetStatistics();
    return static_cast<double>(after.local_visits + after.remote_visits - before.local_visits - before.remote_visits) /
           static_cast<double>(lookups);
  }

  void ExpectModel() {
    for (size_t family = 0; family < 2; ++family) {
      const std::unique_ptr<Iterator> iterator = db_->NewIterator({}, handles_[family].get());
      auto expected = model_[family].begin();
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++expected) {
        ASSERT_NE(expected, model_[family].end());
        EXPECT_EQ(iterator->key(), expected->first);
        EXPECT_EQ(iterator->value(), expected->second);
      }
      EXPECT_OK(iterator->status());
      EXPECT_EQ(expected, model_[family].end());
      for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) {
        ASSERT_NE(expected, model_[family].begin());
        EXPECT_EQ(iterator->key(), (--expected)->first);
        EXPECT_EQ(iterator->value(), expected->second);
      }
      EXPECT_EQ(expected, model_[family].begin());
    }
  }

  void ExpectFewVisitsSoon() {
    double visits = 0;
    EXPECT_TRUE(WaitUntil([&] { return (visits = MeanVisits()) <= kMostVisits; })) << visits;
  }

  static constexpr double kMostVisits = 6;  // tables that have the key are looked at together, an entry of each
  TestDirectory directory_;
  std::string path_ = directory_.File("db");
  Options options_;
  std::unique_ptr<DB> db_;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles_;  // which end before it does
  std::map<std::string, std::string> model_[2];
};

INSTANTIATE_TEST_SUITE_P(Ways, DbRestoredTablesTest,
                         testing::Values(Case{"OneRegion", 1, false}, Case{"TwoRegions", 2, false}, Case{"ReadOnly", 1, true},
                                         Case{"ReadOnlyTwoRegions", 2, true}),
                         [](const auto& suite) { return suite.param.name; });

TEST_P(DbRestoredTablesTest, AGetDoesNotSearchEachOfThem) {
  ASSERT_OK(Open(false));
  ASSERT_NO_FATAL_FAILURE(Fill(kTables));
  EXPECT_LE(MeanVisits(), kMostVisits) << "before the open";
  ASSERT_OK(Open(GetParam().read_only));
  ExpectFewVisitsSoon();
  ExpectModel();
}

// Merges of restored tables, and what is flushed meanwhile.
TEST_P(DbRestoredTablesTest, WhatIsWrittenAndMergedBehindIsRight) {
  if (GetParam().read_only) GTEST_SKIP() << "nothing is written then";
  options_.merge_operator = std::make_shared<AppendOperator>();
  ASSERT_OK(Open(false));
  ASSERT_NO_FATAL_FAILURE(Fill(40));
  for (const int then : {0, 1}) {
    ASSERT_OK(Open(false));
    if (then == 0) {
      for (uint64_t i = 40; i < 50; ++i) {
        ASSERT_NO_FATAL_FAILURE(WriteTable(i));
        ASSERT_OK(db_->Flush());
        (void)MeanVisits();
      }
    } else {
      for (const auto& handle : handles_) ASSERT_OK(db_->CompactRange({}, handle.get(), nullptr, nullptr));
    }
    (void)MeanVisits();
    ExpectModel();
  }
}

// A table whose walk fails, for damage or for want of memory, stays a list among tables that have an index.
TEST_P(DbRestoredTablesTest, SomeStayLists) {
  ASSERT_OK(Open(false));
  ASSERT_NO_FATAL_FAILURE(Fill(40));
  std::atomic<int> walks{0};
  SyncPoints::Instance().SetCallback("DBImpl::WalkTable:Walked",
                                     [&](void* is_sound) { *static_cast<bool*>(is_sound) &= ++walks % 3 != 0; });
  SyncPoints::Instance().Enable();
  ASSERT_OK(Open(GetParam().read_only));
  (void)WaitUntil([&] {
    (void)MeanVisits();
    return walks >= 80;
  });
  EXPECT_EQ(walks, 80) << "each table once";
  (void)MeanVisits();
  ExpectModel();
  SyncPoints::Instance().Clear();
}

TEST_P(DbRestoredTablesTest, AReplayedTableIsOneOfThem) {
  const auto fill = [&] {
    if (!Open(false).ok()) return 1;
    Fill(kTables);
    WriteTable(kTables);
    if (HasFatalFailure()) return 2;
    (void)db_.release();  // as a kill would leave it
    return 0;
  };
  ASSERT_EQ(RunInChild(fill), 0);
  // What the child has written.
  path_ = directory_.File("model");
  ASSERT_OK(Open(false));
  for (uint64_t i = 0; i <= kTables; ++i) ASSERT_NO_FATAL_FAILURE(WriteTable(i));
  path_ = directory_.File("db");
  ASSERT_OK(Open(GetParam().read_only));
  ExpectFewVisitsSoon();
  ExpectModel();
}

}  // namespace
}  // namespace braiddb::test
