// A database without index-unified logging: flushes copy, and the log is released; readers, caches and opens see no difference.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/check.h"
#include "db/test_hooks.h"
#include "log/log_entry.h"
#include "pmem/segment_allocator.h"
#include "tests/support/db_fixture.h"
#include "tests/support/leave_child.h"
#include "tests/support/merge_operators.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

class DbCopyingFlushTest : public DbTest {
 protected:
  void SetUp() override {
    options_.index_unified_logging = false;
    options_.lookup_cache_size = 1 << 20;
    options_.merge_operator = std::make_shared<AppendOperator>();
    Reopen();
  }
  void TearDown() override { SyncPoints::Instance().Clear(); }

  void Put(const std::string& key, const std::string& value) {
    ASSERT_OK(db_->Put({}, key, value));
    expected_[key] = value;
  }
  void Delete(const std::string& key) {
    ASSERT_OK(db_->Delete({}, key));
    expected_.erase(key);
  }
  void Write(int begin, int end) {
    for (int i = begin; i < end; ++i) {
      Put(NumberedKey(i % 3000), PatternedValue(static_cast<uint64_t>(i), 100));
      if (i % 7 == 0) Delete(NumberedKey((i + 1500) % 3000));
    }
  }
  // Sealed segments of the log, and those that hold copies.
  struct Count {
    uint64_t log = 0;
    uint64_t copies = 0;
  };
  Count Segments() {
    Count count;
    SegmentsOf(db_.get())->ForEachLog([&count](Segment* segment) {
      if (segment->state() == SegmentState::kSealed) ++(segment->holds_copies ? count.copies : count.log);
    });
    return count;
  }
  void ExpectSound() {
    CheckReport report;
    ASSERT_OK(CheckDatabase({}, directory_.File("db"), &report));
    EXPECT_TRUE(report.sound()) << report.findings[0].what << ": " << report.findings[0].where;
  }

  std::map<std::string, std::string> expected_;
};

INSTANTIATE_TEST_SUITE_P(Regions, DbCopyingFlushTest, testing::Values(1, 2));

TEST_P(DbCopyingFlushTest, HoldsWhatWasWrittenAtEveryStage) {
  ASSERT_NO_FATAL_FAILURE(Write(0, 20'000));
  AtEveryStage([this] { EXPECT_TRUE(HoldsExactly(db_.get(), expected_)); });
  EXPECT_FALSE(db_->GetOptions().index_unified_logging);
  ASSERT_OK(db_->Close());
  db_.reset();
  ExpectSound();
  options_.index_unified_logging = true;  // what is stored counts
  options_.verify_at_open = true;
  Reopen();
  EXPECT_FALSE(db_->GetOptions().index_unified_logging);
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
}

// Whether a segment is the log or copies, its entries say: one bit of one of them does not make an open release it, and a repair
// finds what is behind a damaged one.
TEST_P(DbCopyingFlushTest, DamageDoesNotDecideWhatASegmentHolds) {
  if (!LogHoldsLastLevel()) GTEST_SKIP() << "a merge takes all out of these segments";
  // Each key once: a segment whose copies are all replaced may be taken back.
  for (int i = 0; i < 6000; ++i) ASSERT_NO_FATAL_FAILURE(Put(NumberedKey(i), PatternedValue(static_cast<uint64_t>(i), 100)));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  std::vector<PmPtr> first;
  std::vector<std::string> damaged;
  SegmentsOf(db_.get())->ForEachLog([&](Segment* segment) {
    if (segment->state() != SegmentState::kSealed || !segment->holds_copies) return;
    first.push_back(segment->ptr(0));
    damaged.emplace_back(reinterpret_cast<const LogEntry*>(segment->data())->key());
  });
  ASSERT_GT(first.size(), 2u);
  ASSERT_OK(db_->Close());
  db_.reset();
  SetPoolsMappedHook([&first](RegionSet* regions) {
    for (const PmPtr place : first) regions->Resolve<LogEntry>(place)->tag ^= LogEntry::kCopy;
  });
  Reopen();
  SetPoolsMappedHook(nullptr);
  const auto expect_all = [&](DB* db) {
    for (const auto& [key, value] : expected_) {
      if (std::find(damaged.begin(), damaged.end(), key) != damaged.end()) continue;
      ASSERT_EQ(GetOrText(db, key), value) << key;
    }
  };
  for (int i = 0; i < 3000; ++i)
    ASSERT_NO_FATAL_FAILURE(Put("new" + NumberedKey(i), PatternedValue(static_cast<uint64_t>(i), 100)));
  ASSERT_OK(db_->Flush());
  ASSERT_NO_FATAL_FAILURE(expect_all(db_.get()));
  ASSERT_OK(db_->Close());
  db_.reset();
  RepairOptions options;
  options.target = options_;
  RepairReport report;
  ASSERT_OK(RepairDatabase(options, directory_.File("db"), directory_.File("saved"), &report));
  std::unique_ptr<DB> saved;
  ASSERT_OK(DB::Open(options_, directory_.File("saved"), &saved));
  expect_all(saved.get());
}

// Without a merge, and without a look at what lives: the log comes back as soon as it is flushed.
TEST_P(DbCopyingFlushTest, TheLogComesBackBehindEachFlush) {
  options_.disable_auto_compaction = true;
  Reopen();
  for (int i = 0; i < 40'000; ++i) ASSERT_NO_FATAL_FAILURE(Put(NumberedKey(i), PatternedValue(static_cast<uint64_t>(i), 100)));
  ASSERT_OK(db_->Flush());
  // The flush thread lets go of them after its next flush, and when no thread reads at this moment.
  for (int i = 0; i < 100 && (i == 0 || Segments().log > 2 * GetParam()); ++i) {
    ASSERT_NO_FATAL_FAILURE(Put("one more", std::to_string(i)));
    ASSERT_OK(db_->Flush());
  }
  EXPECT_GT(db_->GetStatistics().segments_recycled, 10u);
  EXPECT_LE(Segments().log, 2 * GetParam());
  EXPECT_GT(Segments().copies, 10u);
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
}

// What a reader has found in a memtable stays where it is until he has left.
TEST_P(DbCopyingFlushTest, ReadersOfBeforeKeepTheLog) {
  ASSERT_NO_FATAL_FAILURE(Write(0, 1000));
  const auto expected = expected_;
  auto iterator = db_->NewIterator({});
  PinnableSlice pinned;
  ASSERT_OK(db_->Get({}, expected.begin()->first, &pinned));
  iterator->SeekToFirst();
  for (int round = 1; round < 6; ++round) {
    ASSERT_NO_FATAL_FAILURE(Write(round * 10'000, (round + 1) * 10'000));
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  }
  EXPECT_EQ(pinned.ToString(), expected.begin()->second);
  auto next = expected.begin();
  for (; iterator->Valid(); iterator->Next(), ++next) {
    ASSERT_NE(next, expected.end());
    ASSERT_EQ(iterator->key(), next->first);
    ASSERT_EQ(iterator->value(), next->second);
  }
  EXPECT_EQ(next, expected.end());
  for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) ASSERT_EQ(iterator->value(), (--next)->second);
  EXPECT_EQ(next, expected.begin());
  const uint64_t before = db_->GetStatistics().segments_recycled;
  pinned.Reset();
  iterator.reset();
  // The flush thread lets go of them after a flush, and when that has been acknowledged.
  for (int i = 0; i < 100 && db_->GetStatistics().segments_recycled == before; ++i) {
    ASSERT_NO_FATAL_FAILURE(Put("one more", std::to_string(i)));
    ASSERT_OK(db_->Flush());
  }
  EXPECT_GT(db_->GetStatistics().segments_recycled, before);
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
}

// The cache knows the copies before the log is gone, and a lookup that began before does not fill in an original.
TEST_P(DbCopyingFlushTest, TheCacheIsToldOfTheCopies) {
  ASSERT_NO_FATAL_FAILURE(Write(0, 2000));
  for (const auto& [key, value] : expected_) ASSERT_EQ(GetOrText(db_.get(), key), value);
  const std::string key = expected_.begin()->first, value = expected_.begin()->second;
  options_.lookup_cache_size = 1 << 20;
  bool once = true;
  SyncPoints::Instance().SetCallback("DBImpl::FindPut:Found", [&](void*) {
    if (!std::exchange(once, false)) return;
    std::thread([&] { EXPECT_OK(db_->Flush()); }).join();
  });
  SyncPoints::Instance().Enable();
  for (const auto& [each, its] : expected_) ASSERT_EQ(GetOrText(db_.get(), each), its);
  SyncPoints::Instance().Clear();
  const auto before = expected_;
  ASSERT_NO_FATAL_FAILURE(Write(50'000, 90'000));  // where the log was
  for (int i = 0; i < 3000; ++i) {
    const auto found = expected_.find(NumberedKey(i));
    ASSERT_EQ(GetOrText(db_.get(), NumberedKey(i)), found == expected_.end() ? "<not found>" : found->second) << i;
  }
  EXPECT_GT(db_->GetStatistics().lookup_cache_hits, 1000u);
}

TEST_P(DbCopyingFlushTest, OperandsAndFamiliesAreCopied) {
  std::unique_ptr<ColumnFamilyHandle> family;
  ColumnFamilyOptions of_family(options_);
  of_family.l1 = options_.l1 == L1Kind::kNvTree ? L1Kind::kBraidedSkipList : L1Kind::kNvTree;
  ASSERT_OK(db_->CreateColumnFamily(of_family, "other", &family));
  for (int i = 0; i < 2000; ++i) {
    ASSERT_OK(db_->Merge({}, NumberedKey(i % 100), std::string(1, static_cast<char>('a' + i / 100))));
    ASSERT_OK(db_->Put({}, family.get(), NumberedKey(i % 300), PatternedValue(static_cast<uint64_t>(i), 60)));
    if (i % 501 == 500) {
      ASSERT_OK(db_->Flush());
    }
  }
  const std::string all = GetOrText(db_.get(), NumberedKey(7));
  EXPECT_EQ(all.substr(0, 1), "a");
  std::string value;
  const auto check = [&] {
    for (int i = 0; i < 100; ++i) EXPECT_EQ(GetOrText(db_.get(), NumberedKey(i)), all) << i;
    for (int i = 0; i < 300; ++i) {
      ASSERT_OK(db_->Get({}, family.get(), NumberedKey(i), &value));
      EXPECT_EQ(value, PatternedValue(static_cast<uint64_t>(i < 200 ? 1800 + i : 1500 + i), 60)) << i;
    }
  };
  check();
  ASSERT_OK(db_->Flush());
  check();
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  check();
  ASSERT_OK(db_->DropColumnFamily(family.get()));
  family.reset();
  for (int round = 0; round < 10; ++round) ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  ASSERT_OK(db_->Close());
  db_.reset();
  ExpectSound();
  Reopen();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(GetOrText(db_.get(), NumberedKey(i)), all) << i;
}

// Between its steps the process ends: the copies go, or count, and the log the other way round.
TEST_P(DbCopyingFlushTest, AKilledProcessLeavesNothingBehind) {
  ASSERT_NO_FATAL_FAILURE(Write(0, 5000));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  for (const char* point : {"DBImpl::FinishCopies", "DBImpl::FlushOne:Linked", "DBImpl::ReleaseFlushedLog"}) {
    SCOPED_TRACE(point);
    db_.reset();
    const int exit = RunInChild([&] {
      Reopen();
      for (int i = 0; i < 3000; ++i) {
        if (!db_->Put({}, NumberedKey(i), std::string("by ") + point).ok()) return 1;
      }
      for (int i = 0; i < 20; ++i) {
        if (!db_->Merge({}, "operands", "+").ok()) return 1;
      }
      SyncPoints::Instance().SetCallback(point, [](void*) { LeaveChild(7); });
      SyncPoints::Instance().Enable();
      return db_->Flush().ok() ? 0 : 2;
    });
    ASSERT_EQ(exit, 7);
    for (int i = 0; i < 3000; ++i) expected_[NumberedKey(i)] = std::string("by ") + point;
    expected_["operands"] += std::string(20, '+');
    ExpectSound();
    Reopen();
    EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
    uint64_t written = 0;
    SegmentsOf(db_.get())->ForEachFlushed([&written](Segment*) { ++written; });
    EXPECT_EQ(written, 0u);
  }
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  ASSERT_OK(db_->Close());
  db_.reset();
  ExpectSound();
}

// An open for reading only cannot copy what it replays, and does not need to.
TEST_P(DbCopyingFlushTest, AReadOnlyOpenLinksTheLogWhereItLies) {
  ASSERT_NO_FATAL_FAILURE(Write(0, 5000));
  db_.reset();
  const int exit = RunInChild([&] {
    Reopen();
    for (int i = 0; i < 1000; ++i) {
      if (!db_->Put({}, NumberedKey(i), "not flushed").ok()) return 1;
    }
    LeaveChild(7);
  });
  ASSERT_EQ(exit, 7);
  for (int i = 0; i < 1000; ++i) expected_[NumberedKey(i)] = "not flushed";
  for (int round = 0; round < 2; ++round) {
    std::unique_ptr<DB> reader;
    ASSERT_OK(DB::OpenForReadOnly(options_, directory_.File("db"), &reader));
    EXPECT_FALSE(reader->GetOptions().index_unified_logging);
    EXPECT_TRUE(HoldsExactly(reader.get(), expected_));
  }
  Reopen();
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
}

// What the log has left behind does not come back by a repair.
TEST_P(DbCopyingFlushTest, ARepairTakesNoGarbage) {
  ASSERT_NO_FATAL_FAILURE(Write(0, 5000));
  for (int i = 0; i < 3000; i += 2) ASSERT_NO_FATAL_FAILURE(Delete(NumberedKey(i)));
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(db_->Merge({}, "operands", "+"));
    expected_["operands"] += '+';
  }
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));  // the tombstones are gone, and what was open of the log is there
  ASSERT_NO_FATAL_FAILURE(Put("last", "one"));
  db_.reset();
  RepairOptions repair;
  repair.target = options_;
  RepairReport report;
  ASSERT_OK(RepairDatabase(repair, directory_.File("db"), directory_.File("saved"), &report));
  const auto saved = OpenOrFail(options_, directory_.File("saved"));
  EXPECT_TRUE(HoldsExactly(saved.get(), expected_));
}

// Without room for the copies nothing is lost, and the error says what it is.
TEST_P(DbCopyingFlushTest, WithoutSpaceItTakesNoMoreWrites) {
  db_.reset();
  ASSERT_OK(DB::Destroy(options_, directory_.File("db")));
  options_.max_region_size = 32ull << 20;
  options_.memtable_size = 64ull << 20;
  options_.memtable_max_entries = 1 << 20;
  Reopen();
  Status status;
  for (int i = 0; i < 1'000'000 && status.ok(); ++i) {
    status = db_->Put({}, NumberedKey(i), PatternedValue(static_cast<uint64_t>(i), 1000));
    if (status.ok()) expected_[NumberedKey(i)] = PatternedValue(static_cast<uint64_t>(i), 1000);
  }
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
  EXPECT_FALSE(db_->Flush().ok());
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
  db_.reset();
  options_.max_region_size = 128ull << 20;
  Reopen();
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
}

}  // namespace
}  // namespace braiddb::test
