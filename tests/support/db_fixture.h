// Fixtures of the database tests: DbOpenTest opens and closes by itself, DbTest has a tiny database open.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {

class DbOpenTest : public testing::Test {
 protected:
  Status Open(const Options& options, std::unique_ptr<DB>* db) { return DB::Open(options, path_, db); }

  // Makes a database with `keys` numbered keys, part of them merged, and closes it.
  void Fill(const Options& options, int keys) {
    auto db = OpenOrFail(options, path_);
    ASSERT_NE(db, nullptr);
    for (int i = 0; i < keys; ++i) {
      ASSERT_OK(db->Put({}, NumberedKey(i), PatternedValue(i, 100)));
      if (i == keys / 2) {
        ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
      }
    }
    ASSERT_OK(db->Close());
  }
  void ExpectFilled(const Options& options, int keys) {
    auto db = OpenOrFail(options, path_);
    ASSERT_NE(db, nullptr);
    std::map<std::string, std::string> expected;
    for (int i = 0; i < keys; ++i) expected[NumberedKey(i)] = PatternedValue(i, 100);
    EXPECT_TRUE(HoldsExactly(db.get(), expected));
  }

  TestDirectory directory_;
  const std::string path_ = directory_.File("db");
};

// The parameter is the number of regions.
class DbTest : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override { Reopen(); }
  void Reopen() {
    db_.reset();
    db_ = OpenOrFail(options_, directory_.File("db"));
    ASSERT_NE(db_, nullptr);
  }

  // The states through which what was written passes; each case below is checked in all of them.
  struct Stage {
    const char* name;
    std::function<Status(DbTest*)> enter;
  };
  static const std::vector<Stage>& Stages() {
    static const std::vector<Stage> stages = {
        {"memtable", [](DbTest*) { return Status::OK(); }},
        {"L0", [](DbTest* test) { return test->db_->Flush(); }},
        {"L1", [](DbTest* test) { return test->db_->CompactRange({}, nullptr, nullptr); }},
        {"reopened",
         [](DbTest* test) {
           test->Reopen();
           return Status::OK();
         }},
    };
    return stages;
  }
  template <class Check>
  void AtEveryStage(Check&& check) {
    for (const auto& stage : Stages()) {
      SCOPED_TRACE(stage.name);
      ASSERT_OK(stage.enter(this));
      check();
    }
  }

  TestDirectory directory_;
  Options options_ = TinyOptions(GetParam());
  std::unique_ptr<DB> db_;
};

}  // namespace braiddb::test
