// Deletions of ranges: what everybody sees, in which order, what comes back as space, and what kills leave.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "braiddb/backup.h"
#include "braiddb/check.h"
#include "braiddb/transaction.h"
#include "braiddb/write_batch_with_index.h"
#include "tests/support/db_fixture.h"
#include "tests/support/merge_operators.h"
#include "tests/support/rule_filter.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

constexpr const char* kGone = "<not found>";

class DbRangeDeleteTest : public DbTest {
 protected:
  void SetUp() override {
    options_.disable_auto_compaction = true;  // each test says when
    options_.lookup_cache_size = 1 << 20;
    Reopen();
  }
  void TearDown() override { SyncPoints::Instance().Clear(); }

  // With usual options but for the budget.
  void ReopenWithBudget() {
    options_ = Options();
    options_.create_if_missing = true;
    options_.regions = static_cast<uint32_t>(GetParam());
    options_.l1 = TestedL1();
    options_.dram_budget = uint64_t{128} << 20;
    Reopen();
  }
  void Put(const std::string& key, const std::string& value) { ASSERT_OK(db_->Put({}, key, value)); }
  void PutKeys(int begin, int end, const std::string& value) {
    for (int i = begin; i < end; ++i) Put(NumberedKey(i), value);
  }
  Status DeleteRange(int begin, int end) { return db_->DeleteRange({}, NumberedKey(begin), NumberedKey(end)); }
  Status Compact() { return db_->CompactRange({}, nullptr, nullptr); }
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
  uint64_t Live() { return IntProperty(db_.get(), "braiddb.num-range-tombstones"); }
  uint64_t LiveBytes() { return IntProperty(db_.get(), "braiddb.pm-bytes-live"); }
  // By get, MultiGet and both directions.
  testing::AssertionResult Holds(const std::map<std::string, std::string>& expected, const std::vector<std::string>& absent) {
    for (const std::string& key : absent) {
      if (Get(key) != kGone) return testing::AssertionFailure() << key << " is there: " << Get(key);
    }
    std::vector<Slice> keys(absent.begin(), absent.end());
    std::vector<std::string> values;
    for (const Status& status : db_->MultiGet({}, keys, &values)) {
      if (!status.IsNotFound()) return testing::AssertionFailure() << "MultiGet: " << status.ToString();
    }
    for (const auto& [key, value] : expected) {
      if (Get(key) != value) return testing::AssertionFailure() << key << " is " << Get(key);
    }
    return HoldsExactly(db_.get(), expected);
  }
  void ExpectSound() {
    ASSERT_OK(db_->Close());
    db_.reset();
    EXPECT_TRUE(ChecksAsSound(directory_.File("db")));
    Reopen();
  }
};

INSTANTIATE_TEST_SUITE_P(Regions, DbRangeDeleteTest, testing::Values(1, 2));

TEST_P(DbRangeDeleteTest, DeletesWhatIsThereAndNothingElse) {
  const std::map<std::string, std::string> expected{{"a", "1"}, {"d", "4"}, {"e", "5"}, {"bb", "new"}};
  for (const char* key : {"a", "b", "c", "d", "e"}) Put(key, std::to_string(key[0] - 'a' + 1));
  Put("cc", "7");
  EXPECT_EQ(Get("b"), "2");  // the cache has it
  const uint64_t before = db_->GetLatestSequenceNumber();
  ASSERT_OK(db_->DeleteRange({}, "b", "d"));
  EXPECT_EQ(db_->GetLatestSequenceNumber(), before + 1);
  Put("bb", "new");
  AtEveryStage([&] { EXPECT_TRUE(Holds(expected, {"b", "c", "cc"})); });
  ExpectSound();
  EXPECT_TRUE(Holds(expected, {"b", "c", "cc"}));
}

TEST_P(DbRangeDeleteTest, EveryMixtureOfLevels) {
  for (int where_keys = 0; where_keys < 3; ++where_keys) {
    for (int where_range = 0; where_range < 3; ++where_range) {
      SCOPED_TRACE(std::to_string(where_keys) + " " + std::to_string(where_range));
      const auto move = [this](int where) {
        if (where == 1) {
          ASSERT_OK(db_->Flush());
        }
        if (where == 2) {
          ASSERT_OK(Merge());
        }
      };
      PutKeys(0, 30, "old");
      move(where_keys);
      ASSERT_OK(DeleteRange(5, 25));
      move(where_range);
      PutKeys(10, 12, "new");
      std::map<std::string, std::string> expected;
      for (int i = 0; i < 30; ++i) {
        if (i < 5 || i >= 25) expected[NumberedKey(i)] = "old";
        if (i == 10 || i == 11) expected[NumberedKey(i)] = "new";
      }
      EXPECT_TRUE(Holds(expected, {NumberedKey(5), NumberedKey(24), NumberedKey(12)}));
      Reopen();
      EXPECT_TRUE(Holds(expected, {NumberedKey(5), NumberedKey(24), NumberedKey(12)}));
      ASSERT_OK(Compact());
      EXPECT_TRUE(Holds(expected, {NumberedKey(5), NumberedKey(24), NumberedKey(12)}));
      EXPECT_EQ(Live(), 0u);
      ExpectSound();
      ASSERT_OK(DeleteRange(0, 30));
    }
  }
}

TEST_P(DbRangeDeleteTest, BoundsThatAreWrong) {
  Put("b", "1");
  EXPECT_CODE(db_->DeleteRange({}, "c", "a"), kInvalidArgument);
  ASSERT_OK(db_->DeleteRange({}, "b", "b"));
  EXPECT_CODE(db_->DeleteRange({}, nullptr, "a", "c"), kInvalidArgument);
  EXPECT_CODE(db_->DeleteRange({}, "a", std::string(70000, 'b')), kInvalidArgument);
  WriteBatch batch;
  batch.Put("b", "2");
  batch.DeleteRange("x", "w");
  EXPECT_CODE(db_->Write({}, batch), kInvalidArgument);
  batch.Clear();
  batch.DeleteRangeCF(77, "a", "b");
  EXPECT_CODE(db_->Write({}, batch), kInvalidArgument);
  EXPECT_EQ(Get("b"), "1");
  EXPECT_EQ(Live(), 0u);
  ASSERT_OK(db_->DeleteRange({}, std::string(65536, 'a'), std::string(65536, 'c')));
  EXPECT_EQ(Get("b"), kGone);
}

TEST_P(DbRangeDeleteTest, ABatchIsAppliedInItsOrder) {
  PutKeys(0, 10, "old");
  WriteBatch batch;
  batch.Put(NumberedKey(1), "before");
  batch.DeleteRange(NumberedKey(0), NumberedKey(5));
  batch.Put(NumberedKey(2), "after");
  batch.Put(NumberedKey(6), "kept");
  batch.DeleteRange(NumberedKey(7), NumberedKey(9));
  batch.Delete(NumberedKey(9));
  EXPECT_TRUE(batch.HasDeleteRange());
  ASSERT_OK(db_->Write({}, batch));
  AtEveryStage([&] {
    EXPECT_TRUE(Holds({{NumberedKey(2), "after"}, {NumberedKey(5), "old"}, {NumberedKey(6), "kept"}},
                      {NumberedKey(0), NumberedKey(1), NumberedKey(3), NumberedKey(7), NumberedKey(8), NumberedKey(9)}));
  });
}

TEST_P(DbRangeDeleteTest, SnapshotsAndIteratorsOfBeforeSeeOn) {
  PutKeys(0, 50, "old");
  ASSERT_OK(Compact());
  std::map<std::string, std::string> before;
  for (int i = 0; i < 50; ++i) before[NumberedKey(i)] = "old";
  const Snapshot* const snapshot = db_->GetSnapshot();
  const auto iterator = db_->NewIterator({});
  ASSERT_OK(DeleteRange(10, 40));
  const Snapshot* const between = db_->GetSnapshot();
  PutKeys(20, 22, "new");
  ASSERT_OK(DeleteRange(0, 30));
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    ReadOptions read;
    read.snapshot = snapshot;
    EXPECT_TRUE(HoldsExactly(db_.get(), before, read));
    EXPECT_EQ(Get(NumberedKey(20), snapshot), "old");
    EXPECT_EQ(Get(NumberedKey(20), between), kGone);
    EXPECT_EQ(Get(NumberedKey(5), between), "old");
    EXPECT_EQ(Get(NumberedKey(5)), kGone);
    EXPECT_EQ(Get(NumberedKey(20)), kGone);
    int count = 0;
    for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) ++count;
    EXPECT_EQ(count, 50);
    EXPECT_EQ(Live(), 2u);
    ASSERT_OK(round == 0 ? db_->Flush() : Compact());
  }
  db_->ReleaseSnapshot(snapshot);
  db_->ReleaseSnapshot(between);
  ASSERT_OK(Compact());
  EXPECT_EQ(Live(), 2u) << "the iterator is there";
}

TEST_P(DbRangeDeleteTest, SpaceComesBackAndNothingIsWrittenForIt) {
  PutKeys(0, 3000, std::string(200, 'x'));
  ASSERT_OK(Compact());
  const uint64_t full = LiveBytes();
  EXPECT_EQ(full > 3000u * 200, LogHoldsLastLevel());
  const uint64_t before = db_->GetLatestSequenceNumber();
  ASSERT_OK(DeleteRange(100, 2900));
  ASSERT_OK(Compact());
  EXPECT_EQ(Live(), 0u);
  if (LogHoldsLastLevel()) {
    EXPECT_LT(LiveBytes(), full / 10);
  }
  EXPECT_LT(db_->GetLatestSequenceNumber(), before + 20);
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-entries-l1"), 200u);
  ExpectSound();
  EXPECT_EQ(Get(NumberedKey(100)), kGone);
  EXPECT_EQ(Get(NumberedKey(99)), std::string(200, 'x'));
}

TEST_P(DbRangeDeleteTest, ItHappensInTheBackground) {
  options_.disable_auto_compaction = false;
  Reopen();
  PutKeys(0, 1000, "value");
  ASSERT_OK(DeleteRange(0, 900));
  for (int i = 0; i < 3000 && Live() != 0; ++i) usleep(10000);
  EXPECT_EQ(Live(), 0u) << "though nothing more was written";
  EXPECT_EQ(Get(NumberedKey(899)), kGone);
  EXPECT_EQ(Get(NumberedKey(900)), "value");
  ExpectSound();
}

TEST_P(DbRangeDeleteTest, ReopensAndReadOnly) {
  PutKeys(0, 20, "old");
  ASSERT_OK(DeleteRange(3, 9));
  ASSERT_OK(DeleteRange(3, 12));  // with the same begin
  PutKeys(4, 5, "new");
  for (int round = 0; round < 3; ++round) {
    Reopen();
    EXPECT_EQ(Live(), 2u);
    EXPECT_EQ(Get(NumberedKey(3)), kGone);
    EXPECT_EQ(Get(NumberedKey(11)), kGone);
    EXPECT_EQ(Get(NumberedKey(12)), "old");
    EXPECT_EQ(Get(NumberedKey(4)), "new");
  }
  db_.reset();
  std::unique_ptr<DB> reader;
  ASSERT_OK(DB::OpenForReadOnly(options_, directory_.File("db"), &reader));
  EXPECT_EQ(GetOrText(reader.get(), NumberedKey(3)), kGone);
  EXPECT_EQ(GetOrText(reader.get(), NumberedKey(4)), "new");
  EXPECT_CODE(reader->DeleteRange({}, "a", "b"), kNotSupported);
  reader.reset();
  std::vector<std::string> names;
  ASSERT_OK(DB::ListColumnFamilies(options_, directory_.File("db"), &names));
  EXPECT_EQ(names, std::vector<std::string>{"default"});
  Reopen();
  std::unique_ptr<ColumnFamilyHandle> handle;
  EXPECT_CODE(db_->CreateColumnFamily({}, "__braiddb_range_tombstones", &handle), kInvalidArgument);
}

TEST_P(DbRangeDeleteTest, AKilledProcessBetweenItsSteps) {
  for (const char* point : {"DBImpl::AppendAndPublish:Durable", "DBImpl::EndRangeRound:Swept", "DBImpl::EndRangeRound:Deleted"}) {
    SCOPED_TRACE(point);
    PutKeys(0, 200, "old");
    PutKeys(50, 60, "");
    ASSERT_OK(Compact());
    db_.reset();
    const int exit = RunInChild([&] {
      Reopen();
      SyncPoints::Instance().SetCallback(point, [](void*) { _exit(7); });
      SyncPoints::Instance().Enable();
      return DeleteRange(10, 190).ok() && Compact().ok() ? 0 : 1;
    });
    EXPECT_EQ(exit, 7);
    EXPECT_TRUE(ChecksAsSound(directory_.File("db")));
    Reopen();
    std::map<std::string, std::string> expected;
    for (int i = 0; i < 200; ++i) {
      if (i < 10 || i >= 190) expected[NumberedKey(i)] = "old";
    }
    EXPECT_TRUE(Holds(expected, {NumberedKey(10), NumberedKey(100), NumberedKey(189)}));
    ASSERT_OK(Compact());
    EXPECT_EQ(Live(), 0u);
    EXPECT_TRUE(Holds(expected, {NumberedKey(10), NumberedKey(100), NumberedKey(189)}));
    Reopen();
    EXPECT_TRUE(Holds(expected, {NumberedKey(10), NumberedKey(100), NumberedKey(189)}));
  }
}

TEST_P(DbRangeDeleteTest, OperandsEndAtIt) {
  options_.merge_operator = std::make_shared<AppendOperator>(false);
  Reopen();
  for (const char* key : {"a", "b", "c"}) Put(key, "base");
  ASSERT_OK(db_->Merge({}, "b", "1"));
  ASSERT_OK(Merge());
  const Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_OK(db_->Merge({}, "b", "2"));
  ASSERT_OK(db_->DeleteRange({}, "b", "c"));
  EXPECT_EQ(Get("b"), kGone);
  ASSERT_OK(db_->Merge({}, "b", "3"));
  ASSERT_OK(db_->Merge({}, "b", "4"));
  const std::string whole = AppendOperator::Apply(AppendOperator::Apply("", "3"), "4");
  const std::map<std::string, std::string> expected{{"a", "base"}, {"b", whole}, {"c", "base"}};
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(Holds(expected, {}));
    EXPECT_EQ(Get("b", snapshot), AppendOperator::Apply("base", "1"));
    if (round == 0) {
      ASSERT_OK(db_->Flush());
    }
    if (round == 1) {
      ASSERT_OK(Compact());
    }
  }
  db_->ReleaseSnapshot(snapshot);
  ASSERT_OK(Compact());
  ASSERT_OK(Compact());
  EXPECT_EQ(Live(), 0u);
  EXPECT_TRUE(Holds(expected, {}));
  ExpectSound();
  EXPECT_TRUE(Holds(expected, {}));
  // What is nothing but operands goes, too.
  ASSERT_OK(db_->Merge({}, "m", "1"));
  ASSERT_OK(Merge());
  ASSERT_OK(db_->DeleteRange({}, "k", "z"));
  ASSERT_OK(Compact());
  EXPECT_EQ(Live(), 0u);
  EXPECT_TRUE(Holds(expected, {"m"}));
}

TEST_P(DbRangeDeleteTest, FiltersAreNotShownItAndChangeNothingOfIt) {
  RuleFilter filter;
  options_.compaction_filter = &filter;
  Reopen();
  Put("a", "to:new");
  Put("b", "to:new");
  Put("c", "drop");
  ASSERT_OK(db_->DeleteRange({}, "b", "d"));
  ASSERT_OK(Compact());
  EXPECT_TRUE(Holds({{"a", "new"}}, {"b", "c"}));
  EXPECT_EQ(filter.Asked("b"), 0);
  EXPECT_EQ(filter.Asked("c"), 0);
  // A range that is deleted while the filter is asked: what it says comes too late.
  Put("e", "to:new");
  filter.SetDuring([this](Slice key) {
    if (key == "e") {
      EXPECT_OK(db_->DeleteRange({}, "e", "f"));
    }
  });
  ASSERT_OK(Compact());
  filter.SetDuring(nullptr);
  EXPECT_TRUE(Holds({{"a", "new"}}, {"b", "c", "e"}));
  ASSERT_OK(Compact());
  EXPECT_TRUE(Holds({{"a", "new"}}, {"b", "c", "e"}));
  db_.reset();
}

TEST_P(DbRangeDeleteTest, FamiliesComeAndGo) {
  std::unique_ptr<ColumnFamilyHandle> first, second;
  ColumnFamilyOptions reverse;
  reverse.comparator = ReverseBytewiseComparator();
  reverse.l1 = L1Kind::kNvTree;
  ASSERT_OK(db_->CreateColumnFamily(reverse, "first", &first));
  for (const char* key : {"a", "b", "c", "d"}) {
    Put(key, "default");
    ASSERT_OK(db_->Put({}, first.get(), key, "first"));
  }
  WriteBatch batch;
  batch.DeleteRange(first.get(), "c", "a");
  batch.DeleteRange("a", "b");
  ASSERT_OK(db_->Write({}, batch));
  const auto get = [&](ColumnFamilyHandle* family, const char* key) {
    std::string value;
    const Status status = db_->Get({}, family, key, &value);
    return status.ok() ? value : status.IsNotFound() ? kGone : status.ToString();
  };
  EXPECT_EQ(get(first.get(), "d"), "first");
  EXPECT_EQ(get(first.get(), "c"), kGone);
  EXPECT_EQ(get(first.get(), "b"), kGone);
  EXPECT_EQ(get(first.get(), "a"), "first");
  EXPECT_EQ(Get("a"), kGone);
  EXPECT_EQ(Get("b"), "default");
  EXPECT_CODE(db_->DeleteRange({}, first.get(), "a", "c"), kInvalidArgument) << "the order is another one";
  const uint32_t id = first->GetID();
  ASSERT_OK(db_->DropColumnFamily(first.get()));
  EXPECT_EQ(get(first.get(), "c"), kGone) << "who has a handle reads on";
  EXPECT_CODE(db_->DeleteRange({}, first.get(), "c", "a"), kInvalidArgument);
  first.reset();
  // Its id is given again, after an open soon, and the new family's keys are its own.
  for (int i = 0; i < 200; ++i) {
    ASSERT_OK(Compact());
    Reopen();
    ASSERT_OK(db_->CreateColumnFamily({}, "second", &second));
    if (second->GetID() == id) break;
    ASSERT_OK(db_->DropColumnFamily(second.get()));
    second.reset();
  }
  ASSERT_EQ(second->GetID(), id);
  EXPECT_EQ(Live(), 0u);
  ASSERT_OK(db_->Put({}, second.get(), "b", "second"));
  EXPECT_EQ(get(second.get(), "b"), "second");
}

TEST_P(DbRangeDeleteTest, TheNewestVersionIsTheRange) {
  uint64_t sequence = 0;
  Put("b", "1");
  ASSERT_OK(db_->DeleteRange({}, "a", "c"));
  const uint64_t range = db_->GetLatestSequenceNumber();
  ASSERT_OK(db_->GetLatestSequenceForKey("b", &sequence));
  EXPECT_EQ(sequence, range);
  ASSERT_OK(db_->GetLatestSequenceForKey("bb", &sequence));
  EXPECT_EQ(sequence, range);
  EXPECT_CODE(db_->GetLatestSequenceForKey("c", &sequence), kNotFound);
  Put("b", "2");
  ASSERT_OK(db_->GetLatestSequenceForKey("b", &sequence));
  EXPECT_EQ(sequence, db_->GetLatestSequenceNumber());
}

// A reader that has found a key, and is stopped until its range is forgotten, still sees the deletion.
TEST_P(DbRangeDeleteTest, AReaderThatIsLate) {
  options_.lookup_cache_size = 0;
  Reopen();
  Put("b", "1");
  ASSERT_OK(Compact());
  ASSERT_OK(db_->DeleteRange({}, "a", "c"));
  std::atomic<bool> forgotten{false};
  std::thread compaction;
  std::atomic<bool> first{true};
  SyncPoints::Instance().SetCallback("DBImpl::FindPut:Found", [&](void*) {
    if (!first.exchange(false)) return;
    compaction = std::thread([&] {
      EXPECT_OK(Compact());
      forgotten = true;
    });
    usleep(300000);
    EXPECT_FALSE(forgotten.load()) << "it waits for the reader";
  });
  SyncPoints::Instance().Enable();
  EXPECT_EQ(Get("b"), kGone);
  SyncPoints::Instance().Clear();
  compaction.join();
  EXPECT_EQ(Live(), 0u);
  EXPECT_EQ(Get("b"), kGone);
}

// A sweep makes the index of the last level anew.
TEST_P(DbRangeDeleteTest, ManySmallRangesShareASweep) {
  constexpr int kKeys = 6000;
  PutKeys(0, kKeys, "value");
  ASSERT_OK(Compact());
  int ranges = 0;
  for (int begin = 0; begin < kKeys; begin += 10, ++ranges) ASSERT_OK(DeleteRange(begin, begin + 3));
  ASSERT_OK(db_->DeleteRange({}, "nothing", "there"));
  std::atomic<int> sweeps{0};
  SyncPoints::Instance().SetCallback("DBImpl::SweepFamily", [&](void*) { ++sweeps; });
  SyncPoints::Instance().Enable();
  ASSERT_OK(Compact());
  SyncPoints::Instance().Clear();
  EXPECT_LT(sweeps, ranges / 20);
  EXPECT_EQ(Live(), 0u);
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-entries-l1"), kKeys - 3u * ranges);
  std::vector<std::string> absent;
  std::map<std::string, std::string> expected;
  for (int i = 0; i < kKeys; ++i) {
    if (i % 10 < 3) {
      absent.push_back(NumberedKey(i));
    } else {
      expected[NumberedKey(i)] = "value";
    }
  }
  EXPECT_TRUE(Holds(expected, absent));
}

// A reader looks for a newer version before a batch has it, and for the older one after a sweep has taken that away, with the
// newer one still in L0.
TEST_P(DbRangeDeleteTest, AReaderThatIsLateForBoth) {
  options_.lookup_cache_size = 0;
  Reopen();
  uint64_t number = 0;  // of the newer version
  const auto read_late = [&](const std::function<std::string()>& read) {
    EXPECT_OK(Compact());
    std::atomic<bool> looked{false};
    std::atomic<bool> written{false};
    SyncPoints::Instance().SetCallback("DBImpl::SearchLevels:Memtables", [&](void*) {
      if (looked.exchange(true)) return;
      std::thread([this] {
        Put("z", "merged, so that there may be something to sweep");
        EXPECT_OK(Compact());
      }).join();
    });
    SyncPoints::Instance().SetCallback("DBImpl::SweepFamily", [&](void*) {
      if (written.exchange(true)) return;
      WriteBatch batch;
      batch.DeleteRange("a", "c");
      batch.Put("b", "new");
      EXPECT_OK(db_->Write({}, batch));
      number = db_->GetLatestSequenceNumber();
      EXPECT_OK(db_->Flush());
    });
    SyncPoints::Instance().Enable();
    const std::string result = read();
    SyncPoints::Instance().Clear();
    EXPECT_TRUE(looked && written);
    EXPECT_EQ(Live(), 1u);
    return result;
  };
  Put("b", "old");
  EXPECT_EQ(read_late([this] { return Get("b"); }), "new") << "it was deleted and written at once";
  uint64_t latest = 0;
  read_late([&] { return db_->GetLatestSequenceForKey("b", &latest).ToString(); });
  EXPECT_EQ(latest, number) << "not of the range";
  // The last level has an older deletion, for the sake of snapshots.
  const Snapshot* const before = db_->GetSnapshot();
  ASSERT_OK(db_->Delete({}, "b"));
  const Snapshot* const behind = db_->GetSnapshot();
  Put("b", "old");
  EXPECT_EQ(read_late([this] { return Get("b"); }), "new");
  EXPECT_EQ(Get("b", before), "new");
  EXPECT_EQ(Get("b", behind), kGone);
  db_->ReleaseSnapshot(before);
  db_->ReleaseSnapshot(behind);
}

// A reader that has found an older version when a batch of a range and a newer version comes sees all of it, or nothing.
TEST_P(DbRangeDeleteTest, ABatchIsSeenWhole) {
  Put("b", "old");
  std::thread writer;
  std::atomic<bool> first{true};
  std::atomic<int> state{0};
  SyncPoints::Instance().SetCallback("DBImpl::FindPut:Found", [&](void*) {
    if (!first.exchange(false)) return;
    // The writer has installed its range and published nothing.
    writer = std::thread([&] {
      WriteBatch batch;
      batch.DeleteRange("a", "c");
      batch.Put("b", "new");
      EXPECT_OK(db_->Write({}, batch));
    });
    while (state != 1) usleep(100);
  });
  SyncPoints::Instance().SetCallback("RangeUpdate::Installed", [&](void*) {
    state = 1;
    usleep(200000);
  });
  ReadOptions verified;
  verified.verify_checksums = true;  // not by the shortest way
  SyncPoints::Instance().Enable();
  EXPECT_EQ(GetOrText(db_.get(), "b", verified), "new") << "it was deleted and written at once";
  SyncPoints::Instance().Clear();
  writer.join();
  EXPECT_EQ(Get("b"), "new");
}

// What a repair saves, also of what was hidden and is not gone.
TEST_P(DbRangeDeleteTest, ARepairBringsNothingBack) {
  for (const bool merged : {false, true}) {
    PutKeys(0, 100, "old");
    if (merged) {
      ASSERT_OK(Merge());
    }
    ASSERT_OK(DeleteRange(10, 90));
    PutKeys(20, 22, "new");
    db_.reset();
    const std::string repaired = directory_.File(merged ? "merged" : "log");
    RepairReport report;
    ASSERT_OK(RepairDatabase({}, directory_.File("db"), repaired, &report));
    EXPECT_EQ(report.doubtful_keys, 0u);
    std::map<std::string, std::string> expected;
    for (int i = 0; i < 100; ++i) {
      if (i < 10 || i >= 90) expected[NumberedKey(i)] = "old";
      if (i == 20 || i == 21) expected[NumberedKey(i)] = "new";
    }
    Options options = options_;
    options.create_if_missing = false;
    const auto db = OpenOrFail(options, repaired);
    ASSERT_NE(db, nullptr);
    EXPECT_TRUE(HoldsExactly(db.get(), expected));
    EXPECT_EQ(IntProperty(db.get(), "braiddb.num-range-tombstones"), 0u);
    Reopen();
  }
}

TEST_P(DbRangeDeleteTest, CheckpointsHaveWhatIsThere) {
  PutKeys(0, 100, "old");
  ASSERT_OK(DeleteRange(10, 90));
  const std::string path = directory_.File("copy");
  ASSERT_OK(CreateCheckpoint(db_.get(), path));
  const auto copy = OpenOrFail(options_, path);
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(ScanForward(copy.get()).size(), 20u);
  EXPECT_EQ(IntProperty(copy.get(), "braiddb.num-range-tombstones"), 0u);
}

TEST_P(DbRangeDeleteTest, TheLogShowsIt) {
  Put("a", "1");
  const uint64_t begin = db_->GetLatestSequenceNumber() + 1;
  WriteBatch batch;
  batch.Put("b", "2");
  batch.DeleteRange("a", "c");
  batch.Put("c", "3");
  ASSERT_OK(db_->Write({}, batch));
  std::unique_ptr<TransactionLogIterator> iterator;
  ASSERT_OK(db_->GetUpdatesSince(begin, &iterator));
  ASSERT_TRUE(iterator->Valid());
  const LoggedBatch logged = iterator->GetBatch();
  EXPECT_EQ(logged.sequence, begin);
  EXPECT_EQ(logged.updates->Data(), batch.Data());
  iterator->Next();
  EXPECT_FALSE(iterator->Valid());
  ASSERT_OK(iterator->status());
  ASSERT_OK(Compact());  // deletes the record
  ASSERT_EQ(Live(), 0u);
  Put("d", "4");
  iterator->Next();
  ASSERT_OK(iterator->status());
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->GetBatch().sequence, db_->GetLatestSequenceNumber()) << "what the database does for itself is not shown";
}

TEST_P(DbRangeDeleteTest, TransactionsRefuseIt) {
  db_.reset();
  std::unique_ptr<TransactionDB> pessimistic;
  ASSERT_OK(TransactionDB::Open(options_, {}, directory_.File("db"), &pessimistic));
  WriteBatch batch;
  batch.DeleteRange("a", "b");
  EXPECT_CODE(pessimistic->DeleteRange({}, pessimistic->DefaultColumnFamily(), "a", "b"), kNotSupported);
  EXPECT_CODE(pessimistic->Write({}, batch), kNotSupported);
  pessimistic.reset();
  std::unique_ptr<OptimisticTransactionDB> optimistic;
  ASSERT_OK(OptimisticTransactionDB::Open(options_, directory_.File("db"), &optimistic));
  EXPECT_CODE(optimistic->DeleteRange({}, optimistic->DefaultColumnFamily(), "a", "b"), kNotSupported);
  EXPECT_CODE(optimistic->Write({}, batch), kNotSupported);
  optimistic.reset();
  WriteBatchWithIndex indexed;
  EXPECT_CODE(indexed.DeleteRange("a", "b"), kNotSupported);
  EXPECT_CODE(indexed.Rebuild(batch), kNotSupported);
  Reopen();
}

TEST_P(DbRangeDeleteTest, VeryMany) {
  constexpr int kRanges = 3000 / kSlowdown;
  PutKeys(0, 2 * kRanges, "value");
  ASSERT_OK(Compact());
  for (int i = 0; i < kRanges; ++i) ASSERT_OK(DeleteRange(2 * i, 2 * i + 1));
  EXPECT_EQ(Live(), static_cast<uint64_t>(kRanges));
  std::map<std::string, std::string> expected;
  for (int i = 0; i < kRanges; ++i) expected[NumberedKey(2 * i + 1)] = "value";
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
  Reopen();
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
  ASSERT_OK(Compact());
  EXPECT_EQ(Live(), 0u);
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
}

// Tombstones take DRAM until what they hide is swept. With a budget they are forgotten before they take more than their share.
TEST_P(DbRangeDeleteTest, TombstonesStayWithinTheBudget) {
  ReopenWithBudget();
  const uint64_t share = options_.dram_budget / 16;
  constexpr uint64_t kBytesEach = 150;
  std::atomic<int> waits{0};
  SyncPoints::Instance().SetCallback("DBImpl::WaitForRanges", [&](void*) { ++waits; });
  SyncPoints::Instance().Enable();
  PutKeys(0, 1000, "value");
  const uint64_t most = 3 * share / kBytesEach;
  uint64_t live = 0;
  for (uint64_t i = 0; i < most; i += 1000) {
    WriteBatch batch;
    for (uint64_t j = i; j < i + 1000; ++j) {
      const std::string begin = EightByteKey(j);
      batch.DeleteRange(begin, begin + "x");
    }
    ASSERT_OK(db_->Write({}, batch));
    live = std::max(live, Live());
  }
  RecordProperty("tombstones", static_cast<int>(live));
  EXPECT_LE(live * kBytesEach, share + share / 4);
  EXPECT_GE(IntProperty(db_.get(), "braiddb.dram-bytes"), Live() * 100) << "they are counted";
  ASSERT_OK(db_->WaitForCompaction());
  EXPECT_EQ(Get(NumberedKey(7)), "value");
}

// A snapshot keeps all tombstones. Deletions wait, and go on.
TEST_P(DbRangeDeleteTest, ASnapshotHoldsUpNoDeletionForEver) {
  ReopenWithBudget();
  std::atomic<int> waits{0};
  SyncPoints::Instance().SetCallback("DBImpl::WaitForRanges", [&](void*) { ++waits; });
  SyncPoints::Instance().Enable();
  const Snapshot* const snapshot = db_->GetSnapshot();
  uint64_t count = 0;
  while (waits == 0 && count < 200'000) {
    WriteBatch batch;
    for (const uint64_t end = count + 1000; count < end; ++count) {
      const std::string begin = EightByteKey(count);
      batch.DeleteRange(begin, begin + "x");
    }
    ASSERT_OK(db_->Write({}, batch));
  }
  EXPECT_GT(waits, 0);
  for (int i = 0; i < 3; ++i) ASSERT_OK(DeleteRange(i, i + 1));
  EXPECT_EQ(Live(), count + 3);
  db_->ReleaseSnapshot(snapshot);
}

}  // namespace
}  // namespace braiddb::test
