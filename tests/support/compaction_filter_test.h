// The fixture of the tests of compaction filters: a database in which nothing is compacted unless the test says so.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "braiddb/check.h"
#include "tests/support/db_fixture.h"
#include "tests/support/rule_filter.h"
#include "util/sync_point.h"

namespace braiddb::test {

inline constexpr const char* kGone = "<not found>";

class DbCompactionFilterTest : public DbTest {
 protected:
  void SetUp() override {
    options_.disable_auto_compaction = true;  // each test says when
    options_.lookup_cache_size = 1 << 20;
    options_.compaction_filter = &filter_;
    Reopen();
  }
  void TearDown() override { SyncPoints::Instance().Clear(); }

  // With other options from the next open on.
  void Use(const CompactionFilter* filter) {
    options_.compaction_filter = filter;
    Reopen();
  }
  void Put(const std::string& key, const std::string& value) { ASSERT_OK(db_->Put({}, key, value)); }
  Status Compact() { return db_->CompactRange({}, nullptr, nullptr); }
  // Merges L0 into the last level, which is not swept.
  Status Merge() {
    CompactRangeOptions options;
    options.sweep_last_level = false;
    return db_->CompactRange(options, nullptr, nullptr);
  }
  std::string Get(const std::string& key, const Snapshot* snapshot = nullptr) {
    ReadOptions options;
    options.snapshot = snapshot;
    return GetOrText(db_.get(), key, options);
  }
  void ExpectSound() {
    ASSERT_OK(db_->Close());
    db_.reset();
    CheckReport report;
    ASSERT_OK(CheckDatabase({}, directory_.File("db"), &report));
    EXPECT_TRUE(report.sound()) << report.findings[0].what << ": " << report.findings[0].where;
    Reopen();
  }
  // Every entry of the log that is not marked.
  uint64_t LiveBytes() { return IntProperty(db_.get(), "braiddb.pm-bytes-live"); }

  RuleFilter filter_;
};

}  // namespace braiddb::test
