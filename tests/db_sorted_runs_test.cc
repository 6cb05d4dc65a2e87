// A database whose last level is one of sorted runs: what is its own; the rest is tested by what runs with each kind. [CC-52]
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <thread>

#include "braiddb/check.h"
#include "braiddb/db.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

using Content = std::map<std::string, std::string>;

class DbSortedRunsTest : public DbTest {
 protected:
  void SetUp() override {
    options_.l1 = L1Kind::kSortedRuns;
    options_.segment_size = 256 << 10;  // runs of 1 MiB
    DbTest::SetUp();
  }
  // Overwrites the keys in [from, to), up to the first put that fails.
  Status TryWrite(int from, int to, int version, Content* content) {
    for (int i = from; i < to; ++i) {
      const std::string value = PatternedValue(i + 7 * version, 500);
      if (Status status = db_->Put({}, NumberedKey(i), value); !status.ok()) return status;
      (*content)[NumberedKey(i)] = value;
    }
    return Status::OK();
  }
  void Write(int from, int to, int version, Content* content) { ASSERT_OK(TryWrite(from, to, version, content)); }
  void ExpectGets(const Content& content) {
    for (const auto& [key, value] : content) ASSERT_EQ(GetOrText(db_.get(), key), value);
  }
  // What writing and merging these keys flushes.
  uint64_t LinesOf(int from, int to, int version, Content* content) {
    EXPECT_OK(db_->CompactRange({}, nullptr, nullptr));
    const uint64_t before = db_->GetStatistics().flushed_lines;
    Write(from, to, version, content);
    EXPECT_OK(db_->CompactRange({.sweep_last_level = false}, nullptr, nullptr));
    return db_->GetStatistics().flushed_lines - before;
  }
};

INSTANTIATE_TEST_SUITE_P(Regions, DbSortedRunsTest, testing::Values(1, 2),
                         [](const auto& test) { return std::to_string(test.param); });

// A hit of the cache is a copy that is there, whatever was released and used again meanwhile.
TEST_P(DbSortedRunsTest, GetsFindTheCopies) {
  Content content;
  Write(0, 12'000, 0, &content);
  for (int round = 1; round <= 6; ++round) {
    ExpectGets(content);
    Write(round * 1000, round * 1000 + 3000, round, &content);
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    ExpectGets(content);
  }
  EXPECT_GT(db_->GetStatistics().segments_recycled, 0u);
  EXPECT_GT(db_->GetStatistics().lookup_cache_hits, 0u);
  EXPECT_TRUE(HoldsExactly(db_.get(), content));
  Reopen();
  EXPECT_TRUE(HoldsExactly(db_.get(), content));
  db_.reset();
  EXPECT_TRUE(ChecksAsSound(directory_.File("db")));
}

// Old copies that an iterator holds may be the space that a merge needs. Meanwhile the database is read, and written as long as
// there is space beside what is kept for deletions.
TEST_P(DbSortedRunsTest, AMergeThatFindsNoSpaceIsMadeLater) {
  options_.max_region_size = 32 << 20;
  Reopen();
  for (const bool reopens : {false, true}) {
    SCOPED_TRACE(reopens);
    Content content;
    Write(0, 8000, 0, &content);
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    Content before = content;
    auto iterator = db_->NewIterator({});
    Status status;
    for (int version = 1; status.ok() && version < 100; ++version) {
      const Status written = TryWrite(0, 100, version, &content);
      ASSERT_TRUE(written.ok() || written.IsNoSpace()) << written.ToString();
      status = db_->CompactRange({}, nullptr, nullptr);
    }
    ASSERT_CODE(status, kNoSpace);
    EXPECT_EQ(IntProperty(db_.get(), "braiddb.background-errors"), 0u);
    EXPECT_CODE(db_->WaitForCompaction(), kNoSpace);
    const Status written = TryWrite(200, 210, 1, &content);
    EXPECT_TRUE(written.ok() || written.IsNoSpace()) << written.ToString();
    EXPECT_TRUE(HoldsExactly(db_.get(), content));
    iterator->SeekToFirst();
    for (const auto& [key, value] : before) {
      ASSERT_TRUE(iterator->Valid());
      ASSERT_EQ(iterator->key(), key);
      ASSERT_EQ(iterator->value(), value);
      iterator->Next();
    }
    EXPECT_CODE(db_->CompactRange({}, nullptr, nullptr), kNoSpace) << "still";
    iterator.reset();
    if (reopens) {
      Reopen();
      ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    }
    while (db_->WaitForCompaction().IsNoSpace()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_OK(db_->WaitForCompaction());
    EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-entries-l1"), content.size());
    Write(0, 100, 1000, &content);
    EXPECT_TRUE(HoldsExactly(db_.get(), content));
  }
  db_.reset();
  EXPECT_TRUE(ChecksAsSound(directory_.File("db")));
}

// A merge that found no space has marked entries of tables that count on. A purge that has begun before goes on meanwhile.
TEST_P(DbSortedRunsTest, WhatIsMarkedIsNotReleasedWhileAMergeWaits) {
  db_.reset();
  ASSERT_OK(DB::Destroy(options_, directory_.File("db")));
  options_.max_region_size = 32 << 20;
  options_.memtable_size = 256 << 20;
  options_.memtable_max_entries = 1 << 22;
  options_.space_slack = 1ull << 40;
  options_.l0_compaction_trigger = 1000;
  Reopen();
  std::unique_ptr<ColumnFamilyHandle> family;
  ASSERT_OK(db_->CreateColumnFamily(ColumnFamilyOptions(options_), "family", &family));
  ASSERT_OK(db_->Put({}, family.get(), "key", "value"));
  Content content;
  Write(0, static_cast<int>(28'500 * GetParam()), 0, &content);
  ASSERT_OK(db_->DropColumnFamily(family.get()));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  family.reset();  // the purge begins
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_CODE(db_->WaitForCompaction(), kNoSpace);
  }
  ExpectGets(content);
  ASSERT_OK(db_->Close());
  db_.reset();
  EXPECT_TRUE(ChecksAsSound(directory_.File("db")));
  options_.max_region_size = 128 << 20;
  Reopen();
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_TRUE(HoldsExactly(db_.get(), content));
}

// A family that gets the id of one that was dropped has nothing of it, also where the lookup cache knew where that lay.
TEST_P(DbSortedRunsTest, ADroppedFamilyLeavesNothingInTheCache) {
  if (kSlowdown != 1 || GetParam() != 1) GTEST_SKIP() << "takes a thousand families";
  options_.lookup_cache_size = 8 << 20;
  Reopen();
  std::unique_ptr<ColumnFamilyHandle> family;
  ASSERT_OK(db_->CreateColumnFamily(ColumnFamilyOptions(options_), "first", &family));
  const uint32_t id = family->GetID();
  for (int i = 0; i < 500; ++i) ASSERT_OK(db_->Put({}, family.get(), NumberedKey(i), "value"));
  ASSERT_OK(db_->CompactRange({}, family.get(), nullptr, nullptr));
  std::string value;
  for (int i = 0; i < 500; ++i) ASSERT_OK(db_->Get({}, family.get(), NumberedKey(i), &value));
  for (int tries = 0; tries < 20'000; ++tries) {
    if (family != nullptr) {
      ASSERT_OK(db_->DropColumnFamily(family.get()));
    }
    family.reset();
    // Refused while all ids but those that are being taken away are in use.
    if (!db_->CreateColumnFamily(ColumnFamilyOptions(options_), "another", &family).ok()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } else if (family->GetID() == id) {
      break;
    }
  }
  ASSERT_NE(family, nullptr);
  ASSERT_EQ(family->GetID(), id);
  for (int i = 0; i < 500; ++i) ASSERT_CODE(db_->Get({}, family.get(), NumberedKey(i), &value), kNotFound);
}

// A merge into one run's range costs less than one into all of them, and both say what they wrote.
TEST_P(DbSortedRunsTest, MergesWriteTheRunsThatTheyTouch) {
  Content content;
  Write(0, 16'000, 0, &content);
  const uint64_t near = LinesOf(0, 400, 1, &content);
  const uint64_t before = db_->GetStatistics().flushed_lines;
  for (int i = 0; i < 16'000; i += 40) {
    content[NumberedKey(i)] = "far";
    ASSERT_OK(db_->Put({}, NumberedKey(i), "far"));
  }
  ASSERT_OK(db_->CompactRange({.sweep_last_level = false}, nullptr, nullptr));
  const uint64_t everywhere = db_->GetStatistics().flushed_lines - before;
  EXPECT_GT(near, 400 * 500 / 64u);
  EXPECT_GT(everywhere, 16'000 * 500 / 64u);
  EXPECT_LT(near, everywhere / 2);
  EXPECT_TRUE(HoldsExactly(db_.get(), content));
}

// Without space for new runs the database says so; nothing is lost, and a larger limit lets the merge end.
TEST_P(DbSortedRunsTest, AMergeWithoutSpace) {
  db_.reset();
  ASSERT_OK(DB::Destroy(options_, directory_.File("db")));
  options_.max_region_size = 32ull << 20;
  Reopen();
  Content content;
  Status status;
  for (int i = 0; status.ok() && i < 200'000; ++i) {
    const std::string value = PatternedValue(i, 4000);
    status = db_->Put({}, NumberedKey(i), value);
    if (status.ok()) content[NumberedKey(i)] = value;
  }
  ASSERT_CODE(status, kNoSpace);
  EXPECT_NE(status.ToString().find("larger max_region_size"), std::string::npos) << status.ToString();
  EXPECT_TRUE(HoldsExactly(db_.get(), content));
  options_.max_region_size = 128ull << 20;
  Reopen();
  EXPECT_TRUE(HoldsExactly(db_.get(), content));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_TRUE(HoldsExactly(db_.get(), content));
  db_.reset();
  EXPECT_TRUE(ChecksAsSound(directory_.File("db")));
}

TEST_P(DbSortedRunsTest, IteratorsKeepTheRunsThatTheyBeganWith) {
  Content content;
  Write(0, 8000, 0, &content);
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  auto it = db_->NewIterator({});
  it->SeekToFirst();
  for (int i = 0; i < 4000; ++i) ASSERT_OK(db_->Delete({}, NumberedKey(i)));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  for (const auto& [key, value] : content) {
    ASSERT_TRUE(it->Valid());
    ASSERT_EQ(it->key(), key);
    ASSERT_EQ(it->value(), value);
    it->Next();
  }
  EXPECT_FALSE(it->Valid());
  it.reset();
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  uint64_t left = 0;
  it = db_->NewIterator({});
  for (it->SeekToFirst(); it->Valid(); it->Next()) ++left;
  EXPECT_EQ(left, 4000u);
}

}  // namespace
}  // namespace braiddb::test
