// A database whose memtables are so small that it rotates, flushes and merges all the time. Its lookup cache holds none, a few,
// or all of the keys.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "braiddb/db.h"
#include "pmem/append_probe_for_test.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {

inline constexpr auto kRelaxed = std::memory_order_relaxed;

struct ConcurrentSetup {
  uint32_t regions;
  MemtableKind memtable;
  uint64_t lookup_cache_size;
  const char* name;
  std::optional<bool> streams = {};  // whether entries are, whatever the CPU finds faster
};

inline const auto kConcurrentSetups = testing::Values(ConcurrentSetup{1, MemtableKind::kHash, 128, "1_hash"},
                                                      ConcurrentSetup{2, MemtableKind::kSkipList, 1 << 20, "2"},
                                                      ConcurrentSetup{2, MemtableKind::kHash, 0, "2_hash_uncached"});

inline std::string NameOf(const testing::TestParamInfo<ConcurrentSetup>& test) { return test.param.name; }

class DbConcurrentTest : public testing::TestWithParam<ConcurrentSetup> {
 protected:
  void SetUp() override {
    options_ = TinyOptions(GetParam().regions);
    options_.memtable = GetParam().memtable;
    options_.lookup_cache_size = GetParam().lookup_cache_size;
    options_.memtable_size = 16 << 10;
    ForceStreamingForTest(GetParam().streams);
    Reopen();
  }
  void TearDown() override { ForceStreamingForTest({}); }
  void Reopen() {
    db_.reset();
    db_ = OpenOrFail(options_, directory_.File("db"));
    ASSERT_NE(db_, nullptr);
  }
  // Whether a writer goes on. It makes `writes` writes, and more until the background has worked and `others_are_done`, so that
  // all of them meet on a machine of any load. There is an end if they never do.
  bool WritesOn(int written, int writes, bool others_are_done = true) {
    if (written < writes) return true;
    if (written >= 20 * writes || (others_are_done && HasBackgroundWork())) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return true;
  }
  bool HasBackgroundWork() {
    const Statistics statistics = db_->GetStatistics();
    return statistics.rotations > kRotations && statistics.flushes > kRotations && statistics.compactions > kCompactions;
  }
  void ExpectBackgroundWork() {
    ASSERT_OK(db_->WaitForCompaction());
    const Statistics statistics = db_->GetStatistics();
    EXPECT_GT(statistics.rotations, kRotations);
    EXPECT_GT(statistics.flushes, kRotations);
    EXPECT_GT(statistics.compactions, kCompactions);
    EXPECT_EQ(IntProperty(db_.get(), "braiddb.background-errors"), 0u);
  }

  static constexpr uint64_t kRotations = 50 / kSlowdown;
  static constexpr uint64_t kCompactions = kRotations / 20;  // one takes all the tables there are

  TestDirectory directory_;
  Options options_;
  std::unique_ptr<DB> db_;
};

}  // namespace braiddb::test
