// A database whose memtables are so small that it rotates, flushes and merges all the time. The parameter is the number of
// regions.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "braiddb/db.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {

inline constexpr auto kRelaxed = std::memory_order_relaxed;

class DbConcurrentTest : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    options_ = TinyOptions(GetParam());
    options_.memtable_size = 16 << 10;
    Reopen();
  }
  void Reopen() {
    db_.reset();
    db_ = OpenOrFail(options_, directory_.File("db"));
    ASSERT_NE(db_, nullptr);
  }
  void ExpectBackgroundWork(uint64_t compactions) {
    ASSERT_OK(db_->WaitForCompaction());
    const Statistics statistics = db_->GetStatistics();
    EXPECT_GT(statistics.rotations, compactions);
    EXPECT_GT(statistics.flushes, compactions);
    EXPECT_GT(statistics.compactions, compactions / 20);  // one takes all the tables there are
    EXPECT_EQ(IntProperty(db_.get(), "braiddb.background-errors"), 0u);
  }

  TestDirectory directory_;
  Options options_;
  std::unique_ptr<DB> db_;
};

}  // namespace braiddb::test
