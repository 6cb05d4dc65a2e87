// The log as history: every write once, whole and in order, or the word that it is gone.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "braiddb/db.h"
#include "braiddb/ttl.h"
#include "db/db_impl.h"
#include "log/log_reader.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/leave_child.h"
#include "tests/support/merge_operators.h"

namespace braiddb::test {
namespace {

using LogIterator = std::unique_ptr<TransactionLogIterator>;

// The batches from where the iterator stands to its end.
std::vector<std::string> Rest(TransactionLogIterator* iterator, uint64_t* next = nullptr) {
  std::vector<std::string> batches;
  uint64_t least = 0;
  for (; iterator->Valid(); iterator->Next()) {
    LoggedBatch batch = iterator->GetBatch();
    EXPECT_TRUE(iterator->Valid());
    EXPECT_GE(batch.sequence, least);
    least = batch.sequence + batch.updates->Count();
    batches.push_back(batch.updates->Data());
  }
  if (next != nullptr) *next = least;
  return batches;
}

class LogIteratorTest : public DbOpenTest {
 protected:
  // A write of one of all kinds, noted. `keys`: how many there are.
  void WriteSomething(DB* db, Random* random, uint64_t keys, ColumnFamilyHandle* family = nullptr) {
    WriteBatch batch;
    const uint64_t count = random->OneIn(3) ? random->Range(2, 12) : 1;
    for (uint64_t i = 0; i < count; ++i) {
      const std::string key = NumberedKey(random->Uniform(keys));
      ColumnFamilyHandle* const of = random->OneIn(4) ? family : nullptr;
      if (random->OneIn(5)) {
        batch.Delete(of, key);
      } else if (random->OneIn(5)) {
        batch.Merge(of, key, "operand" + std::to_string(random->Next() % 1000));
      } else {
        batch.Put(of, key, PatternedValue(random->Next(), random->OneIn(50) ? 100'000 : random->Uniform(200)));
      }
    }
    before_.push_back(db->GetLatestSequenceNumber());
    ASSERT_OK(db->Write({}, batch));
    written_.push_back(batch.Data());
  }
  // History from the write on: all of it, or none. Whether it was there.
  bool HasAllSince(DB* db, size_t write) {
    LogIterator iterator;
    const Status status = db->GetUpdatesSince(before_[write] + 1, &iterator);
    if (status.IsNotFound()) {
      EXPECT_EQ(iterator, nullptr);
      return false;
    }
    EXPECT_OK(status);
    const std::vector<std::string> found = Rest(iterator.get());
    EXPECT_OK(iterator->status());
    EXPECT_TRUE(std::equal(found.begin(), found.end(), written_.begin() + static_cast<std::ptrdiff_t>(write), written_.end()))
        << found.size() << " batches, wanted " << written_.size() - write;
    return true;
  }

  AppendOperator append_;
  Options options_ = [this] {
    Options options = TinyOptions();
    options.merge_operator = std::shared_ptr<const MergeOperator>(std::shared_ptr<void>(), &append_);
    return options;
  }();
  std::vector<std::string> written_;
  std::vector<uint64_t> before_;  // the sequence number before each
};

TEST_F(LogIteratorTest, GivesEveryWriteOnceInOrder) {
  options_.disable_auto_compaction = true;
  auto db = OpenOrFail(options_, path_);
  std::unique_ptr<ColumnFamilyHandle> family;
  ASSERT_OK(db->CreateColumnFamily(ColumnFamilyOptions(options_), "other", &family));
  LogIterator iterator;
  EXPECT_CODE(db->GetUpdatesSince(1, &iterator), kNotFound);
  Random random(1);
  for (int i = 0; i < 3000 / kSlowdown; ++i) WriteSomething(db.get(), &random, 300, family.get());
  ASSERT_OK(db->WaitForCompaction());
  EXPECT_GT(db->GetStatistics().flushes, 1u);
  for (size_t write = 0; write < written_.size(); write += 1 + random.Uniform(200)) EXPECT_TRUE(HasAllSince(db.get(), write));
  ASSERT_OK(db->GetUpdatesSince(0, &iterator));
  EXPECT_EQ(Rest(iterator.get()), written_);
  EXPECT_CODE(db->GetUpdatesSince(db->GetLatestSequenceNumber() + 1, &iterator), kNotFound);
}

// A number inside a batch is that batch's; an iterator at its end goes on with what is written then.
TEST_F(LogIteratorTest, BatchesAreWholeAndTheEndIsNotForEver) {
  auto db = OpenOrFail(options_, path_);
  WriteBatch batch;
  for (int i = 0; i < 10; ++i) batch.Put(NumberedKey(i), "value");
  ASSERT_OK(db->Put({}, "first", "1"));
  const uint64_t first = db->GetLatestSequenceNumber() + 1;
  ASSERT_OK(db->Write({}, batch));
  for (uint64_t sequence = first; sequence < first + 10; ++sequence) {
    LogIterator iterator;
    ASSERT_OK(db->GetUpdatesSince(sequence, &iterator));
    ASSERT_TRUE(iterator->Valid());
    const LoggedBatch found = iterator->GetBatch();
    EXPECT_EQ(found.sequence, first);
    EXPECT_EQ(found.updates->Data(), batch.Data());
    iterator->Next();
    EXPECT_FALSE(iterator->Valid());
    EXPECT_OK(iterator->status());
    iterator->Next();
    EXPECT_FALSE(iterator->Valid());
  }
  LogIterator iterator;
  ASSERT_OK(db->GetUpdatesSince(first, &iterator));
  for (int i = 0; i < 100; ++i) {
    iterator->Next();
    ASSERT_FALSE(iterator->Valid());
    ASSERT_OK(db->Merge({}, NumberedKey(i), "more"));
    iterator->Next();
    ASSERT_TRUE(iterator->Valid());
    WriteBatch expected;
    expected.Merge(NumberedKey(i), "more");
    EXPECT_EQ(iterator->GetBatch().updates->Data(), expected.Data());
  }
}

// Overwrites, merges into the last level, relocations, collapses, reclaimed segments: from wherever one asks, all or nothing.
TEST_F(LogIteratorTest, WhatWasReclaimedIsSaidToBeGone) {
  auto db = OpenOrFail(options_, path_);
  std::unique_ptr<ColumnFamilyHandle> family;
  ASSERT_OK(db->CreateColumnFamily(ColumnFamilyOptions(options_), "other", &family));
  Random random(2);
  // What stays, thinly spread, makes relocations.
  size_t served = 0;
  size_t gone = 0;
  for (int round = 0; round < 60 / kSlowdown; ++round) {
    for (int i = 0; i < 400; ++i) WriteSomething(db.get(), &random, random.OneIn(20) ? 20'000 : 200, family.get());
    if (round % 8 == 7) {
      ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
    }
    for (int i = 0; i < 20; ++i) {
      const size_t write = written_.size() - 1 - random.Skewed(written_.size());
      ++(HasAllSince(db.get(), write) ? served : gone);
    }
  }
  const Statistics statistics = db->GetStatistics();
  EXPECT_GT(served, 0u);
  EXPECT_GT(gone, 0u);
  EXPECT_EQ(statistics.relocated_entries > 0, LogHoldsLastLevel());
  EXPECT_GT(statistics.collapsed_keys, 0u);
  EXPECT_GT(statistics.segments_recycled, 0u);
}

// What comes behind an iterator stays until it has been given, however much is reclaimed meanwhile.
TEST_F(LogIteratorTest, AnIteratorKeepsWhatItIsAboutToGive) {
  options_.disable_auto_compaction = true;
  auto db = OpenOrFail(options_, path_);
  Random random(3);
  for (int i = 0; i < 1000; ++i) WriteSomething(db.get(), &random, 100);
  LogIterator iterator;
  ASSERT_OK(db->GetUpdatesSince(1, &iterator));
  const auto overwrite_all = [&] {
    for (int round = 0; round < 10; ++round) {
      for (int i = 0; i < 1000 / kSlowdown; ++i) WriteSomething(db.get(), &random, 100);
      ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
    }
    LogIterator late;
    EXPECT_CODE(db->GetUpdatesSince(1, &late), kNotFound);
  };
  ASSERT_NO_FATAL_FAILURE(overwrite_all());
  EXPECT_EQ(Rest(iterator.get()), written_);
  EXPECT_OK(iterator->status());
  // And from its end on.
  written_.clear();
  ASSERT_NO_FATAL_FAILURE(overwrite_all());
  iterator->Next();
  EXPECT_EQ(Rest(iterator.get()), written_);
  EXPECT_OK(iterator->status());
  iterator.reset();
  const uint64_t recycled = db->GetStatistics().segments_recycled;
  for (int i = 0; i < 1000; ++i) WriteSomething(db.get(), &random, 100);
  ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
  EXPECT_GT(db->GetStatistics().segments_recycled, recycled) << "the pin is gone";
}

TEST_F(LogIteratorTest, AfterAnOpenThereIsWhatItReplayed) {
  options_.disable_auto_compaction = true;
  options_.memtable_size = 64 << 20;
  const auto write = [this](bool closes) {
    auto db = OpenOrFail(options_, path_);
    if (db == nullptr) LeaveChild(1);
    Random random(4);
    for (int i = 0; i < 2000; ++i) WriteSomething(db.get(), &random, 500);
    if (closes && !db->Close().ok()) LeaveChild(2);
    LeaveChild(0);
  };
  ASSERT_EQ(RunInChild([&] { return write(false), 0; }), 0);
  auto db = OpenOrFail(options_, path_);
  ASSERT_NE(db, nullptr);
  EXPECT_GT(db->GetStatistics().replayed_entries, 0u);
  // The same once more, to know what it was.
  std::vector<std::string> expected;
  {
    auto other = OpenOrFail(options_, directory_.File("other"));
    Random random(4);
    for (int i = 0; i < 2000; ++i) WriteSomething(other.get(), &random, 500);
    expected = written_;
  }
  LogIterator iterator;
  ASSERT_OK(db->GetUpdatesSince(1, &iterator));
  EXPECT_EQ(Rest(iterator.get()), expected);
  iterator.reset();
  const uint64_t last = db->GetLatestSequenceNumber();
  db.reset();
  db = OpenOrFail(options_, path_);
  ASSERT_NE(db, nullptr);
  EXPECT_CODE(db->GetUpdatesSince(last, &iterator), kNotFound) << "flushed, and so it may be reclaimed";
  written_.clear();
  before_.clear();
  Random random(5);
  for (int i = 0; i < 100; ++i) WriteSomething(db.get(), &random, 50);
  EXPECT_TRUE(HasAllSince(db.get(), 0));
}

// A follower that has all up to GetLatestSequenceNumber has nothing to wait for, whatever draws numbers of its own.
TEST_F(LogIteratorTest, TheLatestNumberIsThatOfAnUpdate) {
  auto db = OpenOrFail(options_, path_);
  uint64_t applied = 0;
  LogIterator iterator;
  const auto follow = [&] {
    ASSERT_OK(db->GetUpdatesSince(applied + 1, &iterator));
    for (; iterator->Valid(); iterator->Next()) {
      const LoggedBatch batch = iterator->GetBatch();
      applied = batch.sequence + batch.updates->Count() - 1;
    }
    ASSERT_OK(iterator->status());
    iterator.reset();
    EXPECT_EQ(applied, db->GetLatestSequenceNumber());
  };
  EXPECT_EQ(db->GetLatestSequenceNumber(), 0u);
  for (int i = 0; i < 100; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), "value"));
  follow();
  ASSERT_OK(db->Flush());  // a rotation
  EXPECT_EQ(applied, db->GetLatestSequenceNumber());
  ASSERT_OK(db->DeleteRange({}, db->DefaultColumnFamily(), NumberedKey(10), NumberedKey(90)));
  follow();
  std::unique_ptr<ColumnFamilyHandle> family;
  ASSERT_OK(db->CreateColumnFamily(ColumnFamilyOptions(options_), "other", &family));
  ASSERT_OK(db->Put({}, family.get(), "key", "value"));
  follow();
  ASSERT_OK(db->DropColumnFamily(family.get()));
  family.reset();
  ASSERT_OK(db->CompactRange({}, nullptr, nullptr));  // sweeps the range, and deletes its record
  EXPECT_EQ(IntProperty(db.get(), "braiddb.num-range-tombstones"), 0u);
  EXPECT_EQ(applied, db->GetLatestSequenceNumber());
  EXPECT_CODE(db->GetUpdatesSince(applied + 1, &iterator), kNotFound);
  ASSERT_OK(db->Put({}, "one", "more"));
  follow();
  db.reset();
  db = OpenOrFail(options_, path_);
  EXPECT_GE(db->GetLatestSequenceNumber(), applied);
  applied = db->GetLatestSequenceNumber();  // what is below is known by a copy
  ASSERT_OK(db->Put({}, "one", "more"));
  follow();
}

// Not behind a kill either: the last that was logged may be a deletion of the database's own.
TEST_F(LogIteratorTest, TheLatestNumberIsThatOfAnUpdateAfterAKill) {
  options_.memtable_size = 4 << 20;
  const auto write = [this]() -> int {
    auto db = OpenOrFail(options_, path_);
    for (int i = 0; i < 100; ++i) {
      if (!db->Put({}, NumberedKey(i), "value").ok()) LeaveChild(1);
    }
    if (!db->DeleteRange({}, db->DefaultColumnFamily(), NumberedKey(10), NumberedKey(90)).ok()) LeaveChild(2);
    if (!db->CompactRange({}, nullptr, nullptr).ok()) LeaveChild(3);
    LeaveChild(IntProperty(db.get(), "braiddb.num-range-tombstones") == 0 ? 0 : 4);
  };
  ASSERT_EQ(RunInChild(write), 0);
  auto db = OpenOrFail(options_, path_);
  const uint64_t latest = db->GetLatestSequenceNumber();
  LogIterator iterator;
  const Status status = db->GetUpdatesSince(latest, &iterator);
  if (status.ok()) {
    EXPECT_EQ(iterator->GetBatch().sequence, latest);
  } else {
    EXPECT_CODE(status, kNotFound) << "up to there it has to be copied";
  }
}

TEST_F(LogIteratorTest, ADatabaseThatIsOnlyReadHasIt) {
  options_.memtable_size = 4 << 20;
  const auto write = [this]() -> int {
    auto db = OpenOrFail(options_, path_);
    for (int i = 0; i < 1000; ++i) {
      if (!db->Put({}, NumberedKey(i % 10), "value").ok()) LeaveChild(1);
    }
    LeaveChild(0);
  };
  ASSERT_EQ(RunInChild(write), 0);
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::OpenForReadOnly(options_, path_, &db));
  LogIterator iterator;
  ASSERT_OK(db->GetUpdatesSince(1, &iterator));
  EXPECT_EQ(Rest(iterator.get()).size(), 1000u);
  iterator.reset();
}

TEST_F(LogIteratorTest, DamageIsNoHistory) {
  auto db = OpenOrFail(options_, path_);
  for (int i = 0; i < 100; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), "a value to be found"));
  int changed = 0;
  static_cast<DBImpl*>(db.get())->segments()->ForEachLog([&](Segment* segment) {
    LogReader reader(*segment, segment->used_bytes.load());
    while (LogEntry* entry = reader.NextTrusted()) {
      if (entry->key() != NumberedKey(50)) continue;
      const_cast<char*>(entry->value().data())[3] ^= 1;
      ++changed;
    }
  });
  ASSERT_EQ(changed, 1);
  LogIterator iterator;
  ASSERT_OK(db->GetUpdatesSince(1, &iterator));
  EXPECT_EQ(Rest(iterator.get()).size(), 50u);
  EXPECT_CODE(iterator->status(), kCorruption);
  iterator->Next();
  EXPECT_FALSE(iterator->Valid());
  EXPECT_CODE(iterator->status(), kCorruption);
}

TEST_F(LogIteratorTest, ClassesOnTopPassItOn) {
  std::unique_ptr<DBWithTTL> db;
  options_.merge_operator = nullptr;
  ASSERT_OK(DBWithTTL::Open(options_, TtlOptions(), path_, &db));
  ASSERT_OK(db->Put({}, "key", "value"));
  LogIterator iterator;
  ASSERT_OK(db->GetUpdatesSince(1, &iterator));
  EXPECT_EQ(Rest(iterator.get()).size(), 1u);
}

}  // namespace
}  // namespace braiddb::test
