// Properties, statistics, options, manual compaction and persist modes.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <ostream>
#include <string>

#include "braiddb/db.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Regions, DbTest, testing::Values(1, 2), [](const auto& test) { return std::to_string(test.param); });

TEST_P(DbTest, Properties) {
  for (int i = 0; i < 500; ++i) {
    ASSERT_OK(db_->Put({}, NumberedKey(i), PatternedValue(i, 100)));
  }
  const char* const kNumbers[] = {
      "num-immutable-mem-table", "num-l0-tables",     "estimate-num-keys",    "cur-size-active-mem-table",
      "cur-size-all-mem-tables", "pm-bytes-reserved", "pm-bytes-in-segments", "num-segments",
      "num-free-segments",       "num-snapshots",     "last-sequence-number", "background-errors",
      "is-write-stopped",        "l1-pm-bytes",       "lookup-cache-bytes",   "filter-bytes",
      "pm-bytes-punched"};
  for (const char* name : kNumbers) {
    for (const std::string prefix : {"braiddb.", "rocksdb."}) {
      SCOPED_TRACE(prefix + name);
      uint64_t number = 0;
      std::string text;
      EXPECT_TRUE(db_->GetIntProperty(prefix + name, &number));
      EXPECT_TRUE(db_->GetProperty(prefix + name, &text));
      EXPECT_FALSE(text.empty());
      EXPECT_EQ(text.find_first_not_of("0123456789"), std::string::npos) << text;
    }
  }
  for (const char* name : {"stats", "levels", "persist-mode"}) {
    std::string text;
    EXPECT_TRUE(db_->GetProperty(std::string("braiddb.") + name, &text)) << name;
    EXPECT_FALSE(text.empty()) << name;
    uint64_t number = 0;
    EXPECT_FALSE(db_->GetIntProperty(std::string("braiddb.") + name, &number)) << name << " is not a number";
  }
  for (const char* name : {"", "braiddb.", "braiddb.nonsense", "num-segments", "braiddbnum-segments", "leveldb.stats"}) {
    std::string text;
    uint64_t number = 0;
    EXPECT_FALSE(db_->GetProperty(name, &text)) << name;
    EXPECT_FALSE(db_->GetIntProperty(name, &number)) << name;
  }

  EXPECT_EQ(IntProperty(db_.get(), "braiddb.last-sequence-number"), db_->GetLatestSequenceNumber());
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.background-errors"), 0u);
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.is-write-stopped"), 0u);
  EXPECT_GT(IntProperty(db_.get(), "braiddb.num-segments"), 0u);
  EXPECT_GT(IntProperty(db_.get(), "braiddb.pm-bytes-in-segments"), 0u);
  EXPECT_GE(IntProperty(db_.get(), "braiddb.pm-bytes-reserved"), IntProperty(db_.get(), "braiddb.pm-bytes-in-segments"));

  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  const uint64_t of_leaves = IntProperty(db_.get(), "braiddb.l1-pm-bytes");
  EXPECT_EQ(of_leaves > 0, db_->GetOptions().l1 != L1Kind::kBraidedSkipList) << "a skiplist is made of the log's entries";
  EXPECT_LT(of_leaves, IntProperty(db_.get(), "braiddb.pm-bytes-in-segments"));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-immutable-mem-table"), 0u);
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-l0-tables"), 0u);
  EXPECT_GE(IntProperty(db_.get(), "braiddb.estimate-num-keys"), 450u);
  EXPECT_LE(IntProperty(db_.get(), "braiddb.estimate-num-keys"), 550u);
}

// The database deletes the records of ranges by itself.
TEST_P(DbTest, StatisticsCountNoWritesOfTheDatabaseItself) {
  const Statistics before = db_->GetStatistics();
  for (int i = 0; i < 100; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), "value"));
  for (int i = 0; i < 10; ++i) ASSERT_OK(db_->DeleteRange({}, NumberedKey(10 * i), NumberedKey(10 * i + 5)));
  const Statistics written = db_->GetStatistics();
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  ASSERT_EQ(IntProperty(db_.get(), "braiddb.num-range-tombstones"), 0u);
  const Statistics after = db_->GetStatistics();
  EXPECT_EQ(after.writes - before.writes, 110u);
  EXPECT_EQ(after.batches - before.batches, 110u);
  EXPECT_EQ(after.log_bytes, written.log_bytes);
}

TEST_P(DbTest, StatisticsCountWhatHappened) {
  const Statistics before = db_->GetStatistics();
  for (int i = 0; i < 2000; ++i) {
    ASSERT_OK(db_->Put({}, NumberedKey(i % 500), PatternedValue(i, 100)));
  }
  WriteBatch batch;
  batch.Put("a", "1");
  batch.Put("b", "2");
  batch.Delete("a");
  ASSERT_OK(db_->Write({}, batch));
  EXPECT_EQ(GetOrText(db_.get(), "b"), "2");
  EXPECT_EQ(GetOrText(db_.get(), "a"), "<not found>");
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  const Statistics after = db_->GetStatistics();
  EXPECT_EQ(after.writes - before.writes, 2003u);
  EXPECT_EQ(after.batches - before.batches, 2001u);
  EXPECT_GE(after.log_bytes - before.log_bytes, 2000u * 100);
  EXPECT_LE(after.log_bytes - before.log_bytes, 2003u * 400);
  EXPECT_EQ(after.gets - before.gets, 2u);
  EXPECT_EQ(after.gets_found - before.gets_found, 1u);
  EXPECT_LE(after.lookup_cache_hits - before.lookup_cache_hits, 1u);
  // A get of a key that a deleted range hides searches twice, and is one get that finds nothing.
  ASSERT_OK(db_->DeleteRange({}, db_->DefaultColumnFamily(), "b", "c"));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(GetOrText(db_.get(), "b"), "<not found>");
  const Statistics hidden = db_->GetStatistics();
  EXPECT_EQ(hidden.gets - after.gets, 10u);
  EXPECT_EQ(hidden.gets_found, after.gets_found);
  const uint64_t keys = IntProperty(db_.get(), "braiddb.estimate-num-keys");
  for (int i = 0; i < 3; ++i) ASSERT_OK(db_->Put({}, "more" + std::to_string(i), "1"));
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.estimate-num-keys"), keys + 3) << "every entry is counted at once";
  EXPECT_GT(after.rotations, before.rotations);
  EXPECT_GT(after.flushes, before.flushes);
  EXPECT_GT(after.checkpoints, before.checkpoints);
  EXPECT_GT(after.compactions, before.compactions);
  EXPECT_GT(after.merged_entries, 0u);
  EXPECT_GE(after.dropped_entries, 1000u);
  EXPECT_FALSE(after.ToString().empty());
}

TEST_P(DbTest, OptionsAreReported) {
  EXPECT_EQ(db_->GetOptions().regions, GetParam());
  EXPECT_EQ(db_->GetOptions().memtable_size, options_.memtable_size);
  EXPECT_EQ(db_->GetOptions().comparator, BytewiseComparator());
}

TEST_P(DbTest, CompactRangeWithBounds) {
  std::map<std::string, std::string> expected;
  for (int i = 0; i < 1000; ++i) {
    expected[NumberedKey(i)] = PatternedValue(i, 60);
    ASSERT_OK(db_->Put({}, NumberedKey(i), expected[NumberedKey(i)]));
  }
  const struct {
    const char* begin;
    const char* end;
  } kRanges[] = {
      {"key000100", "key000200"}, {nullptr, "key000500"}, {"key000900", nullptr}, {"z", nullptr}, {"b", "a"}, {"k", "k"}};
  for (const auto& range : kRanges) {
    const Slice begin = range.begin != nullptr ? range.begin : "";
    const Slice end = range.end != nullptr ? range.end : "";
    ASSERT_OK(db_->CompactRange({}, range.begin != nullptr ? &begin : nullptr, range.end != nullptr ? &end : nullptr));
    ASSERT_TRUE(HoldsExactly(db_.get(), expected));
  }
  CompactRangeOptions quick;
  quick.sweep_last_level = false;
  ASSERT_OK(db_->CompactRange(quick, nullptr, nullptr));
  AtEveryStage([&] { EXPECT_TRUE(HoldsExactly(db_.get(), expected)); });
}

TEST_P(DbTest, BackgroundWorkOnAnEmptyDatabase) {
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  ASSERT_OK(db_->WaitForCompaction());
  AtEveryStage([&] { EXPECT_TRUE(HoldsExactly(db_.get(), Pairs{})); });
}

TEST_P(DbTest, WithoutAutoCompactionTablesPileUp) {
  options_.disable_auto_compaction = true;
  Reopen();
  std::map<std::string, std::string> expected;
  for (int i = 0; i < 2000; ++i) {
    expected[NumberedKey(i)] = PatternedValue(i, 200);
    ASSERT_OK(db_->Put({}, NumberedKey(i), expected[NumberedKey(i)]));
  }
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->WaitForCompaction());
  EXPECT_EQ(db_->GetStatistics().compactions, 0u);
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-immutable-mem-table"), 0u);
  EXPECT_GT(IntProperty(db_.get(), "braiddb.num-l0-tables"), 5u);
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
  Reopen();
  EXPECT_GT(IntProperty(db_.get(), "braiddb.num-l0-tables"), 5u);
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-l0-tables"), 0u);
  AtEveryStage([&] { EXPECT_TRUE(HoldsExactly(db_.get(), expected)); });
}

// A merge that does not get on, and flushes that never count as late.
TEST_P(DbTest, LongL0SlowsWritersDownButNotWithoutAutoCompaction) {
  options_.memtable_max_entries = 1024;
  options_.l0_slowdown_writes_trigger = 8;
  options_.max_immutable_memtables = 1'000'000;
  for (const bool disabled : {true, false}) {
    options_.disable_auto_compaction = disabled;
    Reopen();
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    std::promise<void> release;
    const auto wait = [released = release.get_future().share()](void*) { released.wait(); };
    SyncPoints::Instance().SetCallback("DBImpl::MergeTables:Announced", wait);
    SyncPoints::Instance().Enable();
    for (int i = 0; IntProperty(db_.get(), "braiddb.num-l0-tables") < 60 && i < 1'000'000; ++i) {
      ASSERT_OK(db_->Put({}, NumberedKey(i), "v"));
    }
    EXPECT_EQ(db_->GetStatistics().write_delays > 0, !disabled);
    release.set_value();
    SyncPoints::Instance().Clear();
  }
}

// As long as it has no more entries than that; unless someone says how many tables there may be.
TEST_P(DbTest, L0MayBeLongBesideALargeLastLevel) {
  constexpr int kTableEntries = 1024;
  constexpr int kTables = 120;
  options_.memtable_max_entries = kTableEntries;
  options_.memtable_size = 16 << 20;
  options_.max_immutable_memtables = 1'000'000;
  Reopen();
  for (int i = 0; i < kTables * kTableEntries; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i), "v"));
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  Reopen();
  std::promise<void> release;
  const auto wait = [released = release.get_future().share()](void*) { released.wait(); };
  SyncPoints::Instance().SetCallback("DBImpl::MergeTables:Announced", wait);
  SyncPoints::Instance().Enable();
  int written = 0;
  const auto tables_now = [&] { return IntProperty(db_.get(), "braiddb.num-l0-tables"); };
  const auto write_until = [&](uint64_t tables) {
    for (; tables_now() < tables && written < 1'000'000; ++written) EXPECT_OK(db_->Put({}, NumberedKey(written), "w"));
  };
  write_until(kTables - 30);
  EXPECT_EQ(db_->GetStatistics().write_delays, 0u);
  EXPECT_OK(db_->Flush());  // else what it has not come to yet would be the tables that are waited for
  ChangedOptions changed;
  changed.l0_slowdown_writes_trigger = kTables - 100;
  EXPECT_OK(db_->SetOptions(db_->DefaultColumnFamily(), changed));
  write_until(tables_now() + 5);
  const uint64_t delays = db_->GetStatistics().write_delays;
  EXPECT_GT(delays, 0u);
  changed.l0_slowdown_writes_trigger = 0;
  EXPECT_OK(db_->SetOptions(db_->DefaultColumnFamily(), changed));
  write_until(std::max<uint64_t>(kTables, tables_now()) + 50);
  EXPECT_GT(db_->GetStatistics().write_delays, delays);
  release.set_value();
  SyncPoints::Instance().Clear();
}

TEST_P(DbTest, FewTablesAreMergedWhenWritersPauseOrSomeoneWaits) {
  options_.l0_compaction_trigger = 1000;
  Reopen();
  ASSERT_OK(db_->Put({}, "waited for", "v"));
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->WaitForCompaction());
  EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-l0-tables"), 0u);
  ASSERT_OK(db_->Put({}, "not waited for", "v"));
  ASSERT_OK(db_->Flush());
  EXPECT_TRUE(WaitUntil([this] { return IntProperty(db_.get(), "braiddb.num-l0-tables") == 0; }));
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"not waited for", "v"}, {"waited for", "v"}}));
}

TEST_P(DbTest, MoreTablesThanTheManifestLists) {
  options_.disable_auto_compaction = true;
  options_.memtable_size = 16 << 10;
  Reopen();
  std::map<std::string, std::string> expected;
  for (int i = 0; IntProperty(db_.get(), "braiddb.num-l0-tables") < 150 && i < 20'000; ++i) {
    const std::string key = NumberedKey(i * 7 % 500);
    expected[key] = PatternedValue(i, 300);
    ASSERT_OK(db_->Put({}, key, expected[key]));
  }
  ASSERT_OK(db_->Flush());
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
  Reopen();
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
  options_.disable_auto_compaction = false;
  Reopen();
  ASSERT_OK(db_->WaitForCompaction());
  EXPECT_TRUE(HoldsExactly(db_.get(), expected));
}

TEST_P(DbTest, ReverseComparatorThroughAllLevels) {
  db_.reset();
  ASSERT_OK(DB::Destroy(options_, directory_.File("db")));
  options_.comparator = ReverseBytewiseComparator();
  Reopen();
  Pairs expected;
  for (int i = 999; i >= 0; --i) expected.emplace_back(NumberedKey(i), PatternedValue(i, 80));
  for (int i = 0; i < 1000; ++i) {
    ASSERT_OK(db_->Put({}, NumberedKey(i * 7 % 1000), PatternedValue(i * 7 % 1000, 80)));
  }
  AtEveryStage([&] { EXPECT_TRUE(HoldsExactly(db_.get(), expected)); });
}

// ---- Persist modes

struct ModeCase {
  const char* name;
  PersistMode mode;
  TestDirectory::Medium medium;
  bool sync;
};

void PrintTo(const ModeCase& test, std::ostream* out) { *out << test.name; }

class DbPersistModeTest : public testing::TestWithParam<ModeCase> {};

INSTANTIATE_TEST_SUITE_P(Modes, DbPersistModeTest,
                         testing::Values(ModeCase{"AutoInMemory", PersistMode::kAuto, TestDirectory::Medium::kMemory, true},
                                         ModeCase{"EmulatedInMemory", PersistMode::kEmulated, TestDirectory::Medium::kMemory,
                                                  true},
                                         ModeCase{"PageInMemory", PersistMode::kPage, TestDirectory::Medium::kMemory, true},
                                         ModeCase{"AutoOnDisk", PersistMode::kAuto, TestDirectory::Medium::kDisk, true},
                                         ModeCase{"PageOnDiskSync", PersistMode::kPage, TestDirectory::Medium::kDisk, true},
                                         ModeCase{"PageOnDiskNoSync", PersistMode::kPage, TestDirectory::Medium::kDisk, false}),
                         [](const auto& test) { return test.param.name; });

TEST_P(DbPersistModeTest, WritesFlushesMergesAndReopens) {
  TestDirectory directory(GetParam().medium);
  Options options = TinyOptions(2);
  options.persist_mode = GetParam().mode;
  WriteOptions write_options;
  write_options.sync = GetParam().sync;
  std::map<std::string, std::string> expected;
  std::string mode;
  for (int round = 0; round < 3; ++round) {
    auto db = OpenOrFail(options, directory.File("db"));
    ASSERT_NE(db, nullptr);
    ASSERT_TRUE(db->GetProperty("braiddb.persist-mode", &mode));
    ASSERT_TRUE(HoldsExactly(db.get(), expected));
    WriteBatch batch;
    for (int i = 0; i < 300; ++i) {
      const std::string key = NumberedKey(i * 31 % 200);
      expected[key] = PatternedValue(round * 1000 + i, 150);
      batch.Put(key, expected[key]);
      if (i % 3 == 0) {
        ASSERT_OK(db->Write(write_options, batch));
        batch.Clear();
      }
    }
    ASSERT_OK(db->Write(write_options, batch));
    ASSERT_OK(db->Delete(write_options, NumberedKey(round)));
    expected.erase(NumberedKey(round));
    if (round == 1) {
      ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
    }
    ASSERT_TRUE(HoldsExactly(db.get(), expected));
    ASSERT_OK(db->Close());
  }
  RecordProperty("persist_mode", mode);
}

TEST(DbPersistMode, DatabaseMovesBetweenModes) {
  // The bytes are the same in every mode: written with one, read and continued with the other.
  TestDirectory directory;
  std::map<std::string, std::string> expected;
  int i = 0;
  for (PersistMode mode : {PersistMode::kEmulated, PersistMode::kPage, PersistMode::kEmulated}) {
    Options options = TinyOptions(2);
    options.persist_mode = mode;
    auto db = OpenOrFail(options, directory.File("db"));
    ASSERT_NE(db, nullptr);
    ASSERT_TRUE(HoldsExactly(db.get(), expected));
    for (int j = 0; j < 100; ++j, ++i) {
      expected[NumberedKey(i)] = PatternedValue(i, 50);
      ASSERT_OK(db->Put({}, NumberedKey(i), expected[NumberedKey(i)]));
    }
  }
}

TEST(DbPersistMode, InjectedLatencyIsPaid) {
  TestDirectory directory;
  Options options = TinyOptions(1);
  options.persist_mode = PersistMode::kEmulated;
  options.emulation.write_latency_ns = 100'000;
  auto db = OpenOrFail(options, directory.File("db"));
  ASSERT_NE(db, nullptr);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK(db->Put({}, NumberedKey(i), "v"));
  }
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(10));
}

}  // namespace
}  // namespace braiddb::test
