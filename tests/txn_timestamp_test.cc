// User-defined timestamps: versions, reads at a timestamp, iterators over versions, history, and wrong use.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braiddb/backup.h"
#include "braiddb/check.h"
#include "braiddb/transaction.h"
#include "braiddb/ttl.h"
#include "tests/support/rule_filter.h"
#include "tests/support/timestamps.h"

namespace braiddb::test {
namespace {

using Strings = std::vector<std::string>;

class TimestampTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.comparator = BytewiseComparatorWithU64Ts();
    options_.disable_auto_compaction = true;
    Reopen();
  }
  void Reopen() {
    db_.reset();
    db_ = OpenOrFail(options_, path_);
    ASSERT_NE(db_, nullptr);
  }
  ColumnFamilyHandle* Default() { return db_->DefaultColumnFamily(); }
  void Put(const std::string& key, uint64_t timestamp, const std::string& value) {
    ASSERT_OK(db_->PutAt({}, Default(), key, Ts(timestamp), value));
  }
  void Delete(const std::string& key, uint64_t timestamp) { ASSERT_OK(db_->DeleteAt({}, Default(), key, Ts(timestamp))); }
  std::string Get(const std::string& key, uint64_t timestamp) { return GetAtOrText(db_.get(), key, ReadAt(timestamp)); }
  Status Compact() { return db_->CompactRange({}, nullptr, nullptr); }
  // The number of stored entries.
  size_t Stored() { return ScanForward(db_->GetRootDB()).size(); }

  TestDirectory directory_;
  const std::string path_ = directory_.File("db");
  Options options_ = TinyOptions(1);
  std::unique_ptr<DB> db_;
};

constexpr const char* kGone = "<not found>";

// The built-in comparators need not be named.
TEST_F(TimestampTest, ADatabaseIsCheckedAndRepaired) {
  ColumnFamilyOptions reverse;
  reverse.comparator = ReverseBytewiseComparatorWithU64Ts();
  std::unique_ptr<ColumnFamilyHandle> family;
  ASSERT_OK(db_->CreateColumnFamily(reverse, "reverse", &family));
  Put("key", 10, "ten");
  ASSERT_OK(db_->PutAt({}, family.get(), "key", Ts(20), "twenty"));
  family.reset();
  db_.reset();
  CheckReport report;
  ASSERT_OK(CheckDatabase({}, path_, &report));
  EXPECT_TRUE(report.sound());
  RepairOptions options;
  RepairReport repaired;
  const std::string copy = directory_.File("repaired");
  ASSERT_OK(RepairDatabase(options, path_, copy, &repaired));
  EXPECT_EQ(repaired.keys, 2u);
  ASSERT_OK(CheckDatabase({}, copy, &report));
  EXPECT_TRUE(report.sound());
}

TEST_F(TimestampTest, AReadSeesTheNewestVersionUpToItsTimestamp) {
  Put("key", 10, "ten");
  Put("key", 20, "");
  Put("other", 15, "fifteen");
  Delete("key", 30);
  Put("key", 40, "forty");
  for (int step = 0; step < 4; ++step) {
    EXPECT_EQ(Get("key", 9), kGone);
    EXPECT_EQ(Get("key", 10), "ten@10");
    EXPECT_EQ(Get("key", 19), "ten@10");
    EXPECT_EQ(Get("key", 29), "@20");
    EXPECT_EQ(Get("key", 30), kGone);
    EXPECT_EQ(Get("key", 39), kGone);
    EXPECT_EQ(Get("key", UINT64_MAX), "forty@40");
    EXPECT_EQ(Get("other", 14), kGone);
    EXPECT_EQ(Get("other", 15), "fifteen@15");
    EXPECT_EQ(Get("ke", 50), kGone);
    EXPECT_EQ(Get("key1", 50), kGone);
    if (step == 0) {
      ASSERT_OK(db_->Flush());
    } else if (step == 1) {
      ASSERT_OK(Compact());
    } else if (step == 2) {
      Reopen();
    }
  }
}

// A batch is its updates in order: a range sees the updates of the batch before it.
TEST_F(TimestampTest, ARangeInABatchSeesTheUpdatesBeforeIt) {
  for (const bool in_a_batch : {false, true}) {
    SCOPED_TRACE(in_a_batch);
    const std::string k = in_a_batch ? "batch/" : "calls/";
    const auto key = [&](const char* name) { return k + name; };
    Put(key("deleted"), 3, "old");
    Put(key("old"), 3, "old");
    Put(key("replaced"), 3, "old");
    const std::string end = k.substr(0, k.size() - 1) + "0";
    if (in_a_batch) {
      WriteBatch batch;
      batch.DeleteAt(Default(), key("deleted"), Ts(5));
      batch.PutAt(Default(), key("both"), Ts(4), "own");
      batch.DeleteAt(Default(), key("both"), Ts(5));
      batch.PutAt(Default(), key("own"), Ts(6), "own");
      batch.PutAt(Default(), key("later"), Ts(11), "own");
      batch.DeleteAt(Default(), key("replaced"), Ts(2));
      batch.DeleteRangeAt(Default(), k, end, Ts(10));
      batch.PutAt(Default(), key("own"), Ts(10), "again");
      ASSERT_OK(db_->Write({}, batch));
    } else {
      Delete(key("deleted"), 5);
      Put(key("both"), 4, "own");
      Delete(key("both"), 5);
      Put(key("own"), 6, "own");
      Put(key("later"), 11, "own");
      Delete(key("replaced"), 2);
      ASSERT_OK(db_->DeleteRangeAt({}, Default(), k, end, Ts(10)));
      Put(key("own"), 10, "again");
    }
    for (const char* name : {"deleted", "both", "old"}) Put(key(name), 7, "back-dated");
    EXPECT_EQ(Get(key("deleted"), 10), "back-dated@7") << "it had no value at 10";
    EXPECT_EQ(Get(key("both"), 10), "back-dated@7");
    EXPECT_EQ(Get(key("old"), 10), kGone);
    EXPECT_EQ(Get(key("replaced"), 10), kGone);
    EXPECT_EQ(Get(key("own"), 9), "own@6");
    EXPECT_EQ(Get(key("own"), 10), "again@10");
    EXPECT_EQ(Get(key("later"), 20), "own@11");
  }
}

TEST_F(TimestampTest, AVersionReplacesTheOneOfItsTimestamp) {
  Put("key", 10, "first");
  Put("key", 10, "second");
  EXPECT_EQ(Get("key", 10), "second@10");
  Delete("key", 10);
  EXPECT_EQ(Get("key", 10), kGone);
  Put("key", 10, "third");
  ASSERT_OK(Compact());
  EXPECT_EQ(Get("key", 11), "third@10");
  EXPECT_EQ(Stored(), 1u);
}

TEST_F(TimestampTest, TimestampsOfAnyBytes) {
  Put("key", 0, "zero");
  Put("key", UINT64_MAX, "last");
  Put("kez", UINT64_MAX, "z");
  EXPECT_EQ(Get("key", 0), "zero@0");
  EXPECT_EQ(Get("key", UINT64_MAX), "last@18446744073709551615");
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(5)), Strings({"key=zero@0"}));
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(5), false), Strings({"key=zero@0"}));
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(0, UINT64_MAX)),
            Strings({"key=last@18446744073709551615", "key=zero@0", "kez=z@18446744073709551615"}));
  ReadAt options(5);
  options->iterate_upper_bound = "kez";
  options->iterate_lower_bound = "key";
  EXPECT_EQ(ScanAt(db_.get(), options), Strings({"key=zero@0"}));
}

// A key that ends like a timestamp, keys that are prefixes of others, and the empty key.
TEST_F(TimestampTest, KeysOfAnyBytes) {
  const std::string keys[] = {"", std::string(8, '\0'), std::string(8, '\xff'), "a", "a" + std::string(8, '\0'), "a" + Ts(7)};
  for (const std::string& key : keys) {
    for (uint64_t timestamp : {1, 7, 300}) ASSERT_OK(db_->PutAt({}, Default(), key, Ts(timestamp), key + "v"));
  }
  for (const std::string& key : keys) {
    EXPECT_EQ(Get(key, 0), kGone);
    EXPECT_EQ(Get(key, 8), key + "v@7");
    EXPECT_EQ(Get(key, 1000), key + "v@300");
  }
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(8)).size(), std::size(keys));
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(8), false).size(), std::size(keys));
}

TEST_F(TimestampTest, AnIteratorShowsOneVersionOfEachKey) {
  for (int i = 0; i < 10; ++i) {
    for (uint64_t timestamp = 10; timestamp <= 300; timestamp += 10) Put(NumberedKey(i), timestamp, std::to_string(timestamp));
  }
  for (int i = 0; i < 10; i += 2) Delete(NumberedKey(i), 155);
  Put("zz", 400, "late");
  for (const bool compacted : {false, true}) {
    if (compacted) {
      ASSERT_OK(Compact());
    }
    Strings expected;
    for (int i = 1; i < 10; i += 2) expected.push_back(NumberedKey(i) + "=150@150");
    EXPECT_EQ(ScanAt(db_.get(), ReadAt(157)), expected);
    std::reverse(expected.begin(), expected.end());
    EXPECT_EQ(ScanAt(db_.get(), ReadAt(157), false), expected);
    EXPECT_EQ(ScanAt(db_.get(), ReadAt(9)), Strings());
    EXPECT_EQ(ScanAt(db_.get(), ReadAt(9), false), Strings());
    EXPECT_EQ(ScanAt(db_.get(), ReadAt(399)).size(), 10u);

    const ReadAt at(157);
    const auto iterator = db_->NewIterator(at);
    iterator->Seek(NumberedKey(4));
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->key(), NumberedKey(5));
    EXPECT_EQ(NumberOf(iterator->timestamp()), 150u);
    iterator->Prev();
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->key(), NumberedKey(3));
    iterator->Next();
    iterator->Next();
    EXPECT_EQ(iterator->key(), NumberedKey(7));
    iterator->SeekForPrev(NumberedKey(8));
    EXPECT_EQ(iterator->key(), NumberedKey(7));
    iterator->SeekForPrev(NumberedKey(7));
    EXPECT_EQ(iterator->key(), NumberedKey(7));
    iterator->Next();
    iterator->Next();
    EXPECT_FALSE(iterator->Valid());
    EXPECT_OK(iterator->status());
    iterator->SeekForPrev("");
    EXPECT_FALSE(iterator->Valid());
  }
}

TEST_F(TimestampTest, BoundsAreKeysWithoutTimestamps) {
  for (const char* key : {"a", "b", "c", "d"}) {
    Put(key, 10, "old");
    Put(key, 20, "new");
  }
  ReadAt options(15);
  options->iterate_lower_bound = "b";
  options->iterate_upper_bound = "d";
  EXPECT_EQ(ScanAt(db_.get(), options), Strings({"b=old@10", "c=old@10"}));
  EXPECT_EQ(ScanAt(db_.get(), options, false), Strings({"c=old@10", "b=old@10"}));
  ReadAt versions(0, 30);
  versions->iterate_lower_bound = "b";
  versions->iterate_upper_bound = "c";
  EXPECT_EQ(ScanAt(db_.get(), versions), Strings({"b=new@20", "b=old@10"}));
  EXPECT_EQ(ScanAt(db_.get(), versions, false), Strings({"b=old@10", "b=new@20"}));
}

TEST_F(TimestampTest, AnIteratorShowsAllVersionsBetweenTwoTimestamps) {
  Put("key1", 1, "val1");
  Put("key1", 2, "val2");
  Put("key2", 3, "value1");
  Delete("key1", 4);
  ASSERT_OK(db_->SingleDeleteAt({}, Default(), "key2", Ts(4)));
  Put("key3", 4, "value2");
  const Strings all{"key1-@4", "key1=val2@2", "key1=val1@1", "key2~@4", "key2=value1@3", "key3=value2@4"};
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(1, 5)), all);
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(1, 5), false), Strings(all.rbegin(), all.rend()));
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(2, 3)), Strings({"key1=val2@2", "key2=value1@3"}));
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(4, 4)), Strings({"key1-@4", "key2~@4", "key3=value2@4"}));
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(5, 9)), Strings());
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(5)), Strings({"key3=value2@4"}));
  ASSERT_OK(Compact());
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(1, 5)), all) << "no merge drops a deletion";
  const ReadAt options(1, 5);
  const auto iterator = db_->NewIterator(options);
  iterator->Seek("key2");
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(Shown(*iterator, true), "key2~@4");
  iterator->SeekForPrev("key2");
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(Shown(*iterator, true), "key2=value1@3");
  uint64_t sequence = 0;
  ASSERT_OK(db_->GetLatestSequenceForKey("key2", &sequence));
  iterator->Prev();
  uint64_t packed = 0;
  memcpy(&packed, iterator->key().data() + iterator->key().size() - sizeof packed, sizeof packed);
  EXPECT_EQ(packed, sequence << 8 | 0x07);
}

TEST_F(TimestampTest, AllReadsAgree) {
  Put("a", 10, "one");
  Put("b", 10, std::string(5000, 'b'));
  Delete("a", 20);
  const ReadAt at15(15), at25(25);
  std::string value;
  ASSERT_OK(db_->Get(at15, "a", &value));
  EXPECT_EQ(value, "one");
  EXPECT_TRUE(db_->Get(at25, "a", &value).IsNotFound());
  PinnableSlice pinned;
  ASSERT_OK(db_->Get(at25, "b", &pinned));
  EXPECT_EQ(pinned.slice(), std::string(5000, 'b'));
  EXPECT_TRUE(db_->Get(at25, "a", &pinned).IsNotFound());
  struct Receiver final : ValueReceiver {
    bool Receive(Slice received) override {
      text = std::string(received);
      return true;
    }
    std::string text;
  } receiver;
  ASSERT_OK(db_->GetTo(at15, "a", &receiver));
  EXPECT_EQ(receiver.text, "one");
  Strings values, timestamps;
  const auto statuses = db_->MultiGetAt(at15, {Default(), Default(), Default()}, {"b", "none", "a"}, &values, &timestamps);
  EXPECT_TRUE(statuses[0].ok() && statuses[1].IsNotFound() && statuses[2].ok());
  EXPECT_EQ(values[2], "one");
  EXPECT_EQ(timestamps, Strings({Ts(10), "", Ts(10)}));
  EXPECT_TRUE(db_->MultiGet(at25, {"a"}, &values)[0].IsNotFound());
}

TEST_F(TimestampTest, SnapshotsAndTimestampsTogether) {
  Put("key", 10, "first");
  const Snapshot* const snapshot = db_->GetSnapshot();
  Put("key", 10, "replaced");
  Put("key", 5, "older");
  Put("key", 20, "newer");
  EXPECT_EQ(GetAtOrText(db_.get(), "key", ReadAt(30, snapshot)), "first@10");
  EXPECT_EQ(GetAtOrText(db_.get(), "key", ReadAt(9, snapshot)), kGone);
  EXPECT_EQ(Get("key", 9), "older@5");
  ASSERT_OK(db_->IncreaseFullHistoryTsLow(Default(), Ts(25)));
  ASSERT_OK(Compact());
  EXPECT_EQ(GetAtOrText(db_.get(), "key", ReadAt(30, snapshot)), "first@10") << "a trim changes no snapshot";
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(30, snapshot)), Strings({"key=first@10"}));
  EXPECT_EQ(Get("key", 30), "newer@20");
  db_->ReleaseSnapshot(snapshot);
  ASSERT_OK(Compact());
  EXPECT_EQ(Stored(), 1u);
}

TEST_F(TimestampTest, ABatchIsOneWrite) {
  WriteBatch batch;
  batch.PutAt(nullptr, "a", Ts(10), "1");
  batch.PutAt(nullptr, "b", Ts(10), "2");
  batch.DeleteAt(nullptr, "a", Ts(20));
  batch.SingleDeleteAt(nullptr, "b", Ts(20));
  EXPECT_EQ(batch.Count(), 4u);
  WriteBatch copy;
  ASSERT_OK(WriteBatch::FromData(batch.Data(), &copy));
  ASSERT_OK(db_->Write({}, copy));
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(0, 30)), Strings({"a-@20", "a=1@10", "b~@20", "b=2@10"}));
}

TEST_F(TimestampTest, ARangeDeletionDeletesWhatIsThereAtItsTimestamp) {
  for (const char* key : {"a", "b", "c", "d"}) Put(key, 10, "old");
  Put("b", 30, "newer");
  Delete("c", 15);
  ASSERT_OK(db_->DeleteRangeAt({}, Default(), "b", "d", Ts(20)));
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(19)), Strings({"a=old@10", "b=old@10", "d=old@10"}));
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(20)), Strings({"a=old@10", "d=old@10"}));
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(30)), Strings({"a=old@10", "b=newer@30", "d=old@10"}));
  ASSERT_OK(db_->DeleteRangeAt({}, Default(), "x", "x", Ts(20)));
  EXPECT_CODE(db_->DeleteRangeAt({}, Default(), "y", "x", Ts(20)), kInvalidArgument);
  // Earlier updates of the batch are deleted, later ones stay.
  WriteBatch batch;
  batch.PutAt(nullptr, "c", Ts(40), "gone");
  batch.DeleteRangeAt(nullptr, "a", "z", Ts(50));
  batch.PutAt(nullptr, "c", Ts(60), "stays");
  EXPECT_TRUE(batch.HasDeleteRange());
  ASSERT_OK(db_->Write({}, batch));
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(49)), Strings({"a=old@10", "b=newer@30", "c=gone@40", "d=old@10"}));
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(70)), Strings({"c=stays@60"}));
}

// One deletion for each key, and the updates of the batch keep their order.
TEST_F(TimestampTest, ABatchThatDeletesARangeOftenIsSmall) {
  constexpr int kKeys = 200;
  const auto key_of = [](int i) { return "key" + std::to_string(1000 + i); };
  WriteBatch batch;
  for (int i = 0; i < kKeys / 2; ++i) Put(key_of(i), 5, "stored");
  for (int i = kKeys / 2; i < kKeys; ++i) batch.PutAt(nullptr, key_of(i), Ts(5), "of the batch");
  for (int i = 0; i < kKeys; ++i) batch.DeleteRangeAt(nullptr, "key", "kez", Ts(6));
  batch.PutAt(nullptr, key_of(1), Ts(6), "gone");
  batch.DeleteRangeAt(nullptr, "key", "kez", Ts(6));
  batch.PutAt(nullptr, key_of(2), Ts(6), "stays");
  const uint64_t before = db_->GetLatestSequenceNumber();
  ASSERT_OK(db_->Write({}, batch));
  EXPECT_LE(db_->GetLatestSequenceNumber() - before, 2u * kKeys);
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(6)), Strings({key_of(2) + "=stays@6"}));
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(5)).size(), static_cast<size_t>(kKeys));
}

// ---- History

TEST_F(TimestampTest, HistoryBelowTheLimitGoes) {
  for (int i = 0; i < 100; ++i) {
    for (uint64_t timestamp = 10; timestamp <= 50; timestamp += 10) Put(NumberedKey(i), timestamp, std::to_string(timestamp));
  }
  for (int i = 0; i < 100; i += 2) Delete(NumberedKey(i), 35);
  std::string limit = "x";
  ASSERT_OK(db_->GetFullHistoryTsLow(Default(), &limit));
  EXPECT_EQ(limit, "");
  ASSERT_OK(Compact());
  EXPECT_EQ(Stored(), 550u) << "without a limit everything stays";
  CompactRangeOptions compact;
  const std::string low = Ts(45);
  compact.full_history_ts_low = low;
  ASSERT_OK(db_->CompactRange(compact, nullptr, nullptr));
  ASSERT_OK(db_->GetFullHistoryTsLow(Default(), &limit));
  EXPECT_EQ(limit, Ts(45));
  EXPECT_EQ(Stored(), 200u) << "of each key the versions 40 and 50";
  EXPECT_EQ(Get(NumberedKey(4), 45), "40@40");
  EXPECT_EQ(Get(NumberedKey(4), 50), "50@50");
  EXPECT_NE(Get(NumberedKey(4), 44).find("is smaller than full_history_ts_low"), std::string::npos);
  EXPECT_CODE(db_->NewIterator(ReadAt(44))->status(), kInvalidArgument);
  EXPECT_CODE(db_->IncreaseFullHistoryTsLow(Default(), Ts(44)), kInvalidArgument);
  ASSERT_OK(db_->IncreaseFullHistoryTsLow(Default(), Ts(45)));
  EXPECT_CODE(db_->IncreaseFullHistoryTsLow(Default(), "short"), kInvalidArgument);
  Reopen();
  ASSERT_OK(db_->GetFullHistoryTsLow(Default(), &limit));
  EXPECT_EQ(limit, Ts(45));
  EXPECT_CODE(db_->IncreaseFullHistoryTsLow(Default(), Ts(44)), kInvalidArgument);
  EXPECT_EQ(Get(NumberedKey(4), 45), "40@40");
}

TEST_F(TimestampTest, DeletedKeysGoWithTheirHistory) {
  for (int i = 0; i < 100; ++i) {
    Put(NumberedKey(i), 10, "value");
    Delete(NumberedKey(i), i % 2 == 0 ? 20 : 30);
  }
  ASSERT_OK(db_->IncreaseFullHistoryTsLow(Default(), Ts(30)));
  ASSERT_OK(Compact());
  EXPECT_EQ(Stored(), 50u) << "deletions at the limit stay";
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(30)), Strings());
  ASSERT_OK(db_->IncreaseFullHistoryTsLow(Default(), Ts(31)));
  ASSERT_OK(Compact());
  EXPECT_EQ(Stored(), 0u);
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(31)), Strings());
}

TEST_F(TimestampTest, AnOpenCanTrimTheNewestHistory) {
  Put("a", 10, "old");
  Put("a", 20, "new");
  Delete("b", 20);
  Put("b", 10, "back");
  Put("c", 30, "c");
  db_.reset();
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
  ASSERT_OK(DB::OpenAndTrimHistory(options_, path_, {{"default", ColumnFamilyOptions(options_)}}, &handles, &db_, Ts(15)));
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(100)), Strings({"a=old@10", "b=back@10"}));
  handles.clear();
  Reopen();
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(100)), Strings({"a=old@10", "b=back@10"}));
  db_.reset();
  EXPECT_CODE(DB::OpenAndTrimHistory(options_, path_, {}, &handles, &db_, "short"), kInvalidArgument);
  EXPECT_EQ(db_, nullptr);
  EXPECT_CODE(DB::OpenAndTrimHistory(options_, path_, {}, nullptr, &db_, "short"), kInvalidArgument);
  EXPECT_EQ(db_, nullptr);
}

// The versions that the open trims count as skipped entries.
TEST_F(TimestampTest, AScanWithTooManySkippedEntriesIsIncomplete) {
  for (const char* key : {"j", "k", "l"}) Put(key, 1, "old");
  for (uint64_t timestamp = 51; timestamp <= 100; ++timestamp) Put("k", timestamp, "trimmed");
  db_.reset();
  ASSERT_OK(DB::OpenAndTrimHistory(options_, path_, {}, nullptr, &db_, Ts(50)));
  Put("k", 200, "newest");
  ReadAt options(100);
  options->max_skippable_internal_keys = 10;
  const auto iterator = db_->NewIterator(options);
  Strings keys;
  for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) keys.emplace_back(iterator->key());
  EXPECT_EQ(keys, Strings({"l"}));
  EXPECT_CODE(iterator->status(), kIncomplete);
  options->max_skippable_internal_keys = 0;
  EXPECT_EQ(ScanAt(db_.get(), options, false), Strings({"l=old@1", "k=old@1", "j=old@1"}));
}

TEST_F(TimestampTest, TheUsersFilterSeesTheUsersValues) {
  const RuleFilter filter(true);
  options_.compaction_filter = &filter;
  Reopen();
  Put("keep", 10, "keep");
  Put("drop", 10, "older");
  Put("drop", 20, "drop");
  Put("change", 10, "to:new");
  ASSERT_OK(Compact());
  EXPECT_EQ(Get("keep", 30), "keep@10");
  EXPECT_EQ(Get("drop", 30), kGone);
  EXPECT_EQ(Get("drop", 19), "older@10");
  EXPECT_EQ(Get("change", 30), "new@10");
}

// ---- Families

class TimestampFamilyTest : public TimestampTest {
 protected:
  void SetUp() override {
    options_.create_missing_column_families = true;
    plain_ = ColumnFamilyOptions(options_);
    timestamped_ = plain_;
    timestamped_.comparator = ReverseBytewiseComparatorWithU64Ts();
    options_.disable_auto_compaction = true;
    OpenBoth();
  }
  void TearDown() override { Close(); }
  void Close() {
    handles_.clear();
    db_.reset();
  }
  void OpenBoth() {
    Close();
    const std::vector<ColumnFamilyDescriptor> families{{"default", plain_}, {"history", timestamped_}};
    ASSERT_OK(DB::Open(options_, path_, families, &handles_, &db_));
  }
  ColumnFamilyHandle* History() { return handles_[1].get(); }

  ColumnFamilyOptions plain_, timestamped_;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles_;
};

TEST_F(TimestampFamilyTest, FamiliesWithAndWithoutTimestamps) {
  ASSERT_OK(db_->Put({}, "key", "plain"));
  ASSERT_OK(db_->PutAt({}, History(), "a", Ts(10), "1"));
  ASSERT_OK(db_->PutAt({}, History(), "b", Ts(20), "2"));
  WriteBatch batch;
  batch.Put("key2", "plain");
  batch.DeleteAt(History(), "a", Ts(15));
  ASSERT_OK(db_->Write({}, batch));
  for (const bool reopened : {false, true}) {
    if (reopened) OpenBoth();
    EXPECT_EQ(ScanAt(db_.get(), ReadAt(12), true, History()), Strings({"a=1@10"}));
    EXPECT_EQ(ScanAt(db_.get(), ReadAt(0, 30), true, History()), Strings({"b=2@20", "a-@15", "a=1@10"}));
    EXPECT_EQ(GetOrText(db_.get(), "key2"), "plain");
    EXPECT_TRUE(HoldsExactly(db_.get(), {{"key", "plain"}, {"key2", "plain"}}));
  }
  Strings values, timestamps;
  const ReadAt at(30);
  const auto statuses = db_->MultiGetAt(at, {History(), Default(), nullptr}, {"b", "key", "b"}, &values, &timestamps);
  EXPECT_EQ(values[0] + timestamps[0], "2" + Ts(20));
  EXPECT_CODE(statuses[1], kInvalidArgument);
  EXPECT_CODE(statuses[2], kInvalidArgument);
  ASSERT_OK(db_->IncreaseFullHistoryTsLow(History(), Ts(5)));
  EXPECT_CODE(db_->IncreaseFullHistoryTsLow(Default(), Ts(5)), kInvalidArgument);
}

TEST_F(TimestampFamilyTest, ANewFamilyHasNoLimit) {
  ASSERT_OK(db_->IncreaseFullHistoryTsLow(History(), Ts(50)));
  ASSERT_OK(db_->DropColumnFamily(History()));
  handles_.pop_back();
  std::unique_ptr<ColumnFamilyHandle> made;
  ASSERT_OK(db_->CreateColumnFamily(timestamped_, "history", &made));
  std::string limit = "x";
  ASSERT_OK(db_->GetFullHistoryTsLow(made.get(), &limit));
  EXPECT_EQ(limit, "");
  ASSERT_OK(db_->PutAt({}, made.get(), "a", Ts(1), "1"));
  EXPECT_EQ(GetAtOrText(db_.get(), "a", ReadAt(2), made.get()), "1@1");
  ASSERT_OK(db_->IncreaseFullHistoryTsLow(made.get(), Ts(2)));
  made.reset();
  OpenBoth();
  ASSERT_OK(db_->GetFullHistoryTsLow(History(), &limit));
  EXPECT_EQ(limit, Ts(2));
}

TEST_F(TimestampFamilyTest, AHandleOfADroppedFamilyDoesNotReachItsNamesake) {
  ASSERT_OK(db_->PutAt({}, History(), "a", Ts(1), "1"));
  ASSERT_OK(db_->DropColumnFamily(History()));
  std::unique_ptr<ColumnFamilyHandle> made;
  for (const bool has_namesake : {false, true}) {
    if (has_namesake) {
      ASSERT_OK(db_->CreateColumnFamily(timestamped_, "history", &made));
    }
    EXPECT_CODE(db_->IncreaseFullHistoryTsLow(History(), Ts(100)), kInvalidArgument);
    CompactRangeOptions compact;
    compact.full_history_ts_low = Ts(100);
    EXPECT_CODE(db_->CompactRange(compact, History(), nullptr, nullptr), kInvalidArgument);
    std::string limit;
    EXPECT_CODE(db_->GetFullHistoryTsLow(History(), &limit), kInvalidArgument);
    EXPECT_CODE(db_->PutAt({}, History(), "a", Ts(2), "2"), kInvalidArgument);
    EXPECT_CODE(db_->DeleteAt({}, History(), "a", Ts(2)), kInvalidArgument);
    EXPECT_CODE(db_->SingleDeleteAt({}, History(), "a", Ts(2)), kInvalidArgument);
    EXPECT_CODE(db_->DeleteRangeAt({}, History(), "a", "z", Ts(2)), kInvalidArgument);
  }
  ASSERT_OK(db_->PutAt({}, made.get(), "b", Ts(1), "1"));
  made.reset();
  OpenBoth();
  std::string limit = "x";
  ASSERT_OK(db_->GetFullHistoryTsLow(History(), &limit));
  EXPECT_EQ(limit, "");
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(0, 9), true, History()), Strings({"b=1@1"}));
}

TEST_F(TimestampFamilyTest, APlainFamilyMayGetTheIdOfOneWithTimestamps) {
  const uint32_t id = History()->GetID();
  ASSERT_OK(db_->DropColumnFamily(History()));
  handles_.clear();
  std::unique_ptr<ColumnFamilyHandle> plain;
  constexpr int kMaxTries = 2000;
  for (int i = 0; i < kMaxTries; ++i) {
    ASSERT_OK(db_->CreateColumnFamily(plain_, "plain", &plain));
    if (plain->GetID() == id) break;
    ASSERT_OK(db_->DropColumnFamily(plain.get()));
    plain.reset();
  }
  ASSERT_NE(plain, nullptr);
  WriteBatch batch;
  batch.Put(plain.get(), "key", "value");
  ASSERT_OK(db_->Write({}, batch));
  WriteBatch at;
  at.PutAt(plain.get(), "key", Ts(1), "value");
  EXPECT_CODE(db_->Write({}, at), kInvalidArgument);
  std::string value;
  ASSERT_OK(db_->Get({}, plain.get(), "key", &value));
  EXPECT_EQ(value, "value");
}

TEST_F(TimestampFamilyTest, UpdatesOfMissingFamiliesMayBeSkipped) {
  ASSERT_OK(db_->DropColumnFamily(History()));
  WriteBatch batch;
  batch.PutAt(History(), "a", Ts(1), "1");
  batch.DeleteAt(History(), "a", Ts(1));
  batch.SingleDeleteAt(History(), "a", Ts(1));
  batch.DeleteRangeAt(History(), "a", "z", Ts(1));
  batch.Put(History(), "a", "1");
  batch.PutAtCF(77, "a", Ts(1), "1");
  batch.Put("key", "value");
  EXPECT_CODE(db_->Write({}, batch), kInvalidArgument);
  WriteOptions skips;
  skips.ignore_missing_column_families = true;
  ASSERT_OK(db_->Write(skips, batch));
  EXPECT_EQ(GetOrText(db_.get(), "key"), "value");
  ASSERT_OK(db_->DeleteRangeAt(skips, History(), "a", "z", Ts(1)));
  batch.PutAt(nullptr, "a", Ts(1), "1");
  EXPECT_CODE(db_->Write(skips, batch), kInvalidArgument) << "the default family exists and has no timestamps";
}

TEST_F(TimestampFamilyTest, OpensThatMustFail) {
  ASSERT_OK(db_->PutAt({}, History(), "a", Ts(10), "1"));
  Close();
  struct OtherSize final : Comparator {
    int Compare(Slice a, Slice b) const override { return a.compare(b); }
    const char* Name() const override { return ReverseBytewiseComparatorWithU64Ts()->Name(); }
    size_t timestamp_size() const override { return size; }
    size_t size = 4;
  } other;
  for (const size_t size : {0, 4, 16}) {
    other.size = size;
    ColumnFamilyOptions wrong = plain_;
    wrong.comparator = &other;
    EXPECT_CODE(DB::Open(options_, path_, {{"default", plain_}, {"history", wrong}}, &handles_, &db_), kInvalidArgument) << size;
  }
  EXPECT_CODE(DB::Open(options_, path_, &db_), kInvalidArgument);
  const std::vector<ColumnFamilyDescriptor> families{{"default", plain_}, {"history", timestamped_}};
  std::unique_ptr<DBWithTTL> ttl;
  EXPECT_CODE(DBWithTTL::Open(options_, {}, path_, families, &handles_, &ttl), kNotSupported);
  std::unique_ptr<TransactionDB> transactions;
  EXPECT_CODE(TransactionDB::Open(options_, {}, path_, families, &handles_, &transactions), kNotSupported);
  std::unique_ptr<OptimisticTransactionDB> optimistic;
  EXPECT_CODE(OptimisticTransactionDB::Open(options_, path_, families, &handles_, &optimistic), kNotSupported);
  EXPECT_CODE(DB::OpenAsSecondary(options_, path_, directory_.File("second"), families, &handles_, &db_), kNotSupported);
  OpenBoth();
  EXPECT_EQ(GetAtOrText(db_.get(), "a", ReadAt(20), History()), "1@10");
}

TEST_F(TimestampFamilyTest, ReadingOnly) {
  ASSERT_OK(db_->PutAt({}, History(), "a", Ts(10), "1"));
  ASSERT_OK(db_->PutAt({}, History(), "a", Ts(20), "2"));
  ASSERT_OK(db_->IncreaseFullHistoryTsLow(History(), Ts(5)));
  Close();
  ASSERT_OK(DB::OpenForReadOnly(options_, path_, {{"default", plain_}, {"history", timestamped_}}, &handles_, &db_));
  EXPECT_EQ(GetAtOrText(db_.get(), "a", ReadAt(15), History()), "1@10");
  EXPECT_CODE(db_->NewIterator(ReadAt(4), History())->status(), kInvalidArgument);
  EXPECT_CODE(db_->PutAt({}, History(), "a", Ts(30), "3"), kNotSupported);
  EXPECT_CODE(db_->IncreaseFullHistoryTsLow(History(), Ts(6)), kNotSupported);
}

TEST_F(TimestampFamilyTest, CopiesHaveVersionsAndLimits) {
  ASSERT_OK(db_->PutAt({}, History(), "a", Ts(10), "1"));
  ASSERT_OK(db_->DeleteAt({}, History(), "a", Ts(20)));
  ASSERT_OK(db_->IncreaseFullHistoryTsLow(History(), Ts(7)));
  CopyOptions copy;
  copy.comparators = {ReverseBytewiseComparatorWithU64Ts()};
  uint64_t sequence = 0;
  const std::string path = directory_.File("copy");
  ASSERT_OK(CreateCheckpoint(db_.get(), path, &sequence, copy));
  Close();
  ASSERT_OK(DB::Open(options_, path, {{"default", plain_}, {"history", timestamped_}}, &handles_, &db_));
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(0, 30), true, History()), Strings({"a-@20", "a=1@10"}));
  std::string limit;
  ASSERT_OK(db_->GetFullHistoryTsLow(History(), &limit));
  EXPECT_EQ(limit, Ts(7));
}

TEST_F(TimestampFamilyTest, BackupsKnowTheBuiltInComparators) {
  ASSERT_OK(db_->PutAt({}, History(), "a", Ts(10), "1"));
  std::unique_ptr<BackupEngine> engine;
  ASSERT_OK(BackupEngine::Open(directory_.File("backups"), &engine));
  ASSERT_OK(engine->CreateBackup(db_.get()));
  const std::string path = directory_.File("restored");
  ASSERT_OK(engine->RestoreBackup(1, options_, path));
  Close();
  ASSERT_OK(DB::Open(options_, path, {{"default", plain_}, {"history", timestamped_}}, &handles_, &db_));
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(0, 30), true, History()), Strings({"a=1@10"}));
}

// ---- Wrong use

TEST_F(TimestampTest, CallsWithoutATimestampAreRefused) {
  std::string value;
  EXPECT_CODE(db_->Put({}, "key", "value"), kInvalidArgument);
  EXPECT_CODE(db_->Delete({}, "key"), kInvalidArgument);
  EXPECT_CODE(db_->Merge({}, "key", "value"), kInvalidArgument);
  EXPECT_CODE(db_->DeleteRange({}, "a", "b"), kInvalidArgument);
  EXPECT_CODE(db_->Get({}, "key", &value), kInvalidArgument);
  EXPECT_CODE(db_->NewIterator({})->status(), kInvalidArgument);
  Strings values;
  EXPECT_CODE(db_->MultiGet({}, {"key"}, &values)[0], kInvalidArgument);
  WriteBatch batch;
  batch.Put("key", "value");
  EXPECT_CODE(db_->Write({}, batch), kInvalidArgument);
  batch.Clear();
  batch.DeleteRange("a", "b");
  EXPECT_CODE(db_->Write({}, batch), kInvalidArgument);
  EXPECT_EQ(Stored(), 0u);
}

TEST_F(TimestampTest, TimestampsOfAWrongSizeAreRefused) {
  EXPECT_CODE(db_->PutAt({}, Default(), "key", "short", "value"), kInvalidArgument);
  EXPECT_CODE(db_->PutAt({}, nullptr, "key", Ts(1), "value"), kInvalidArgument);
  EXPECT_CODE(db_->DeleteRangeAt({}, Default(), "a", "b", ""), kInvalidArgument);
  WriteBatch batch;
  batch.PutAt(nullptr, "key", Ts(1), "value");
  batch.DeleteAt(nullptr, "key", "too long a timestamp");
  EXPECT_CODE(db_->Write({}, batch), kInvalidArgument);
  EXPECT_EQ(Stored(), 0u) << "nothing of the batch was written";
  ReadOptions options;
  options.timestamp = "short";
  std::string value;
  EXPECT_CODE(db_->Get(options, "key", &value), kInvalidArgument);
  EXPECT_CODE(db_->NewIterator(options)->status(), kInvalidArgument);
  ReadAt versions(1);
  versions->iter_start_ts = "short";
  EXPECT_CODE(db_->NewIterator(versions)->status(), kInvalidArgument);
  EXPECT_CODE(db_->PutAt({}, Default(), std::string(kMaxKeySize, 'k'), Ts(1), "value"), kInvalidArgument);
}

TEST(TimestampErrorsTest, FamiliesWithoutTimestampsTakeNone) {
  TestDirectory directory;
  const auto db = OpenOrFail(TinyOptions(1), directory.File("db"));
  ASSERT_NE(db, nullptr);
  ASSERT_OK(db->Put({}, "key", "value"));
  ColumnFamilyHandle* const family = db->DefaultColumnFamily();
  EXPECT_CODE(db->PutAt({}, family, "key", Ts(1), "value"), kInvalidArgument);
  EXPECT_CODE(db->DeleteAt({}, family, "key", Ts(1)), kInvalidArgument);
  EXPECT_CODE(db->SingleDeleteAt({}, family, "key", Ts(1)), kInvalidArgument);
  EXPECT_CODE(db->DeleteRangeAt({}, family, "a", "b", Ts(1)), kInvalidArgument);
  EXPECT_CODE(db->PutAt({}, nullptr, "key", Ts(1), "value"), kInvalidArgument);
  WriteBatch batch;
  batch.PutAt(nullptr, "key", Ts(1), "value");
  EXPECT_CODE(db->Write({}, batch), kInvalidArgument);
  const ReadAt at(1);
  std::string value, timestamp;
  Strings values, timestamps;
  for (int round = 0; round < 3; ++round) {  // whichever path the read takes
    EXPECT_CODE(db->Get(at, "key", &value), kInvalidArgument);
    EXPECT_CODE(db->GetAt(at, family, "none", &value, &timestamp), kInvalidArgument);
    EXPECT_OK(db->Get({}, "key", &value));
    EXPECT_OK(db->GetAt({}, family, "key", &value, &timestamp));
  }
  EXPECT_CODE(db->MultiGet(at, {"key"}, &values)[0], kInvalidArgument);
  EXPECT_CODE(db->NewIterator(at)->status(), kInvalidArgument);
  EXPECT_CODE(db->IncreaseFullHistoryTsLow(family, Ts(1)), kInvalidArgument);
  EXPECT_CODE(db->GetFullHistoryTsLow(family, &value), kInvalidArgument);
  CompactRangeOptions compact;
  compact.full_history_ts_low = "12345678";
  EXPECT_CODE(db->CompactRange(compact, nullptr, nullptr), kInvalidArgument);
  ColumnFamilyOptions timestamped;
  timestamped.comparator = BytewiseComparatorWithU64Ts();
  std::unique_ptr<ColumnFamilyHandle> handle;
  EXPECT_CODE(db->CreateColumnFamily(timestamped, "history", &handle), kNotSupported);
  EXPECT_TRUE(HoldsExactly(db.get(), {{"key", "value"}}));
}

// ---- Other parts

TEST_F(TimestampTest, TheLogShowsTheUsersUpdates) {
  const uint64_t before = db_->GetLatestSequenceNumber();
  Put("a", 10, "1");
  ASSERT_OK(db_->SingleDeleteAt({}, Default(), "a", Ts(20)));
  WriteBatch batch;
  batch.PutAt(nullptr, "b", Ts(30), "2");
  batch.DeleteAt(nullptr, "c", Ts(30));
  ASSERT_OK(db_->Write({}, batch));
  std::unique_ptr<TransactionLogIterator> log;
  ASSERT_OK(db_->GetUpdatesSince(before + 1, &log));
  struct Reader : WriteBatch::Handler {
    void Put(Slice, Slice) override { text += "?"; }
    void Delete(Slice) override { text += "?"; }
    void Merge(Slice, Slice) override { text += "?"; }
    Status PutAtCF(uint32_t, Slice key, Slice timestamp, Slice value) override {
      text += std::string(key) + "=" + std::string(value) + "@" + std::to_string(NumberOf(timestamp)) + " ";
      return Status::OK();
    }
    Status DeleteAtCF(uint32_t, Slice key, Slice timestamp) override {
      text += std::string(key) + "-@" + std::to_string(NumberOf(timestamp)) + " ";
      return Status::OK();
    }
    Status SingleDeleteAtCF(uint32_t, Slice key, Slice timestamp) override {
      text += std::string(key) + "~@" + std::to_string(NumberOf(timestamp)) + " ";
      return Status::OK();
    }
    std::string text;
  } reader;
  for (; log->Valid(); log->Next()) ASSERT_OK(log->GetBatch().updates->Iterate(&reader));
  EXPECT_OK(log->status());
  EXPECT_EQ(reader.text, "a=1@10 a~@20 b=2@30 c-@30 ");
}

TEST_F(TimestampTest, SortedFilesWithTimestamps) {
  Put("b", 5, "old");
  const std::string file = directory_.File("file");
  std::unique_ptr<SortedFileWriter> writer;
  ASSERT_OK(SortedFileWriter::Create(file, options_.comparator, &writer));
  ASSERT_OK(writer->PutAt("a", Ts(20), "2"));
  ASSERT_OK(writer->PutAt("a", Ts(10), "1"));
  EXPECT_CODE(writer->PutAt("a", Ts(15), "between"), kInvalidArgument);
  EXPECT_CODE(writer->Put("c", "value"), kInvalidArgument);
  EXPECT_CODE(writer->Delete("c"), kInvalidArgument);
  ASSERT_OK(writer->DeleteAt("b", Ts(10)));
  ASSERT_OK(writer->Finish());
  IngestOptions ingest;
  ingest.any_comparator = true;
  ASSERT_OK(IngestExternalFiles(db_.get(), {file}, ingest));
  EXPECT_EQ(ScanAt(db_.get(), ReadAt(0, 30)), Strings({"a=2@20", "a=1@10", "b-@10", "b=old@5"}));
  // A file with timestamps and a family without them, and the other way round.
  const auto plain = OpenOrFail(TinyOptions(1), directory_.File("plain"));
  EXPECT_CODE(IngestExternalFiles(plain.get(), {file}, ingest), kInvalidArgument);
  ASSERT_OK(SortedFileWriter::Create(directory_.File("plain-file"), BytewiseComparator(), &writer));
  EXPECT_CODE(writer->PutAt("a", Ts(1), "value"), kInvalidArgument);
  ASSERT_OK(writer->Put("a", "value"));
  ASSERT_OK(writer->Finish());
  EXPECT_CODE(IngestExternalFiles(db_.get(), {directory_.File("plain-file")}, ingest), kInvalidArgument);
}

TEST_F(TimestampTest, TheBatchRefusesDamagedData) {
  WriteBatch batch;
  batch.PutAtCF(3, "key", Ts(1), "value");
  const std::string data = batch.Data();
  WriteBatch copy;
  for (size_t size = 1; size < data.size(); ++size) EXPECT_CODE(WriteBatch::FromData(data.substr(0, size), &copy), kCorruption);
  std::string longer_timestamp = data;
  longer_timestamp[13] = 100;
  EXPECT_CODE(WriteBatch::FromData(longer_timestamp, &copy), kCorruption);
  std::string merge = data;
  merge[0] = static_cast<char>((merge[0] & ~3) | 2);
  EXPECT_CODE(WriteBatch::FromData(merge, &copy), kCorruption);
}

}  // namespace
}  // namespace braiddb::test
