// db_bench with other stores than ours: each does what the interface says, and a comparison compares. A store that is not
// installed is skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "db_bench/engine.h"
#include "db_bench/results.h"
#include "db_bench/settle.h"
#include "db_bench/worker.h"
#include "tests/support/db_bench_program.h"
#include "tests/support/db_test_util.h"

namespace braiddb::bench {
namespace {

class EngineTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const Status status = MakeDriver(GetParam(), flags_, &driver_);
    if (status.IsNotSupported()) GTEST_SKIP() << status.ToString();
    ASSERT_TRUE(status.ok()) << status.ToString();
    path_ = directory_.File("db");
    Open(false);
  }

  void Open(bool exists) {
    ASSERT_TRUE(driver_->Open(path_, exists, &engine_).ok());
    ASSERT_TRUE(engine_->NewSession(false, &session_).ok());
  }
  void Close() {
    session_.reset();
    ASSERT_TRUE(engine_->Close().ok());
    engine_.reset();
  }
  std::string Value(Slice key) {
    std::string value;
    const Status status = session_->Get(key, &value);
    return status.ok() ? value : status.ToString();
  }

  test::TestDirectory directory_;
  std::string path_;
  Flags flags_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Session> session_;
};

TEST_P(EngineTest, KeepsWhatIsWrittenUntilItIsDestroyed) {
  ASSERT_TRUE(session_->Put("b", "two").ok());
  ASSERT_TRUE(session_->Put("a", "one").ok());
  ASSERT_TRUE(session_->Write({{"c", "three", false}, {"d", "", false}, {"a", "", true}}).ok());
  ASSERT_TRUE(session_->Delete("nowhere").ok());
  EXPECT_EQ(Value("b"), "two");
  EXPECT_EQ(Value("c"), "three");
  EXPECT_EQ(Value("d"), "");
  std::string value;
  EXPECT_TRUE(session_->Get("a", &value).IsNotFound());
  Close();
  Open(true);
  EXPECT_EQ(Value("b"), "two");
  ASSERT_TRUE(session_->Delete("b").ok());
  EXPECT_TRUE(session_->Get("b", &value).IsNotFound());
  Close();
  ASSERT_TRUE(driver_->Destroy(path_).ok());
  ASSERT_TRUE(driver_->Destroy(path_).ok());
  EXPECT_FALSE(driver_->Open(path_, true, &engine_).ok());
}

TEST_P(EngineTest, IteratesInOrder) {
  for (const char* key : {"b", "d", "a", "c"}) ASSERT_TRUE(session_->Put(key, std::string("v") + key).ok());
  std::unique_ptr<Iterator> iterator = session_->NewIterator();
  if (iterator == nullptr) GTEST_SKIP() << "it has no order";
  EXPECT_FALSE(iterator->Valid());
  std::string seen;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    seen += iterator->key();
    EXPECT_EQ(iterator->value(), "v" + std::string(iterator->key()));
  }
  EXPECT_EQ(seen, "abcd");
  seen.clear();
  for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) seen += iterator->key();
  EXPECT_EQ(seen, "dcba");
  iterator->Seek("bb");
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), "c");
  iterator->SeekForPrev("bb");
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), "b");
  iterator->SeekForPrev("c");
  EXPECT_EQ(iterator->key(), "c");
  iterator->SeekForPrev("z");
  EXPECT_EQ(iterator->key(), "d");
  iterator->SeekForPrev("A");
  EXPECT_FALSE(iterator->Valid());
  iterator->Seek("z");
  EXPECT_FALSE(iterator->Valid());
  EXPECT_TRUE(iterator->status().ok());
  iterator.reset();
  Close();
}

TEST_P(EngineTest, LooksSeveralKeysUp) {
  ASSERT_TRUE(session_->Put("a", "1").ok());
  ASSERT_TRUE(session_->Put("c", "3").ok());
  std::vector<std::string> values;
  std::vector<Status> statuses;
  session_->MultiGet({"a", "b", "c"}, &values, &statuses);
  ASSERT_EQ(statuses.size(), 3u);
  EXPECT_EQ(values.at(0), "1");
  EXPECT_TRUE(statuses[1].IsNotFound());
  EXPECT_EQ(values.at(2), "3");
  // What a call left does not show in the next one.
  ASSERT_TRUE(session_->Put("b", "").ok());
  ASSERT_TRUE(session_->Delete("a").ok());
  session_->MultiGet({"c", "b", "a", "c", "z"}, &values, &statuses);
  ASSERT_EQ(statuses.size(), 5u);
  ASSERT_EQ(values.size(), 5u);
  EXPECT_TRUE(statuses[0].ok() && statuses[1].ok() && statuses[3].ok());
  EXPECT_TRUE(statuses[2].IsNotFound() && statuses[4].IsNotFound());
  EXPECT_EQ(values[0], "3");
  EXPECT_EQ(values[1], "");
  EXPECT_EQ(values[3], "3");
  session_->MultiGet({}, &values, &statuses);
  EXPECT_TRUE(values.empty() && statuses.empty());
  Close();
}

// A session that syncs, administration, texts: nothing fails but by saying that it is not supported.
TEST_P(EngineTest, AdministersOrSaysWhyNot) {
  ASSERT_TRUE(session_->Put("a", "1").ok());
  std::unique_ptr<Session> synced;
  ASSERT_TRUE(engine_->NewSession(true, &synced).ok());
  ASSERT_TRUE(synced->Put("b", "2").ok());
  synced.reset();
  for (const Status& status : {engine_->Flush(), engine_->Compact(), engine_->WaitForCompaction()}) {
    EXPECT_TRUE(status.ok() || (status.IsNotSupported() && !status.message().empty())) << status.ToString();
  }
  std::string text;
  EXPECT_TRUE(engine_->GetText("stats", &text));
  EXPECT_FALSE(text.empty());
  EXPECT_FALSE(engine_->GetText("nonsense", &text));
  EXPECT_EQ(Value("a"), "1");
  EXPECT_EQ(Value("b"), "2");
  EXPECT_FALSE(driver_->Version().empty());
  EXPECT_NE(driver_->Durability(true), "");
  Close();
}

// Keys spread over three column families: that of the number k is the (k mod 3)-th.
class FamiliesTest : public EngineTest {
 protected:
  static constexpr uint64_t kFamilies = 3, kKeys = 30;

  void SetUp() override {
    flags_.num_column_families = kFamilies;
    EngineTest::SetUp();
  }

  // Valid until the next call.
  Slice Key(uint64_t number) { return keys_.Make(number); }
  std::string ValueOf(uint64_t number) { return Value(Key(number)); }
  void PutAll(const std::string& value) {
    for (uint64_t number = 0; number < kKeys; ++number)
      ASSERT_TRUE(session_->Put(Key(number), value + std::to_string(number)).ok());
  }
  // What an iterator meets, which is of the default family.
  std::vector<std::string> Iterated() {
    const std::unique_ptr<Iterator> iterator = session_->NewIterator();
    std::vector<std::string> values;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) values.emplace_back(iterator->value());
    EXPECT_TRUE(iterator->status().ok());
    return values;
  }
  // How an open with so many families of the database that is there ends.
  Status Reopened(uint64_t families) {
    Flags flags;
    flags.num_column_families = families;
    std::unique_ptr<Driver> driver;
    std::unique_ptr<Engine> engine;
    Status status = MakeDriver(GetParam(), flags, &driver);
    if (status.ok()) status = driver->Open(path_, true, &engine);
    return status.ok() ? engine->Close() : status;
  }
  // In the first part of files of the database: LMDB's is as large as its map.
  bool FilesContain(const std::string& text) const {
    std::string bytes;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      bytes.resize(size_t{16} << 20);
      file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
      bytes.resize(static_cast<size_t>(file.gcount()));
      if (test::Contains(bytes, text)) return true;
    }
    return false;
  }
  size_t CountTables() const {
    const std::filesystem::directory_iterator files(path_);
    return static_cast<size_t>(
        std::count_if(begin(files), end(files), [](const auto& file) { return file.path().extension() == ".sst"; }));
  }

 private:
  KeyMaker keys_{16};
};

TEST_P(FamiliesTest, EachKeyIsInItsFamily) {
  PutAll("v");
  EXPECT_EQ(Iterated(), (std::vector<std::string>{"v0", "v3", "v6", "v9", "v12", "v15", "v18", "v21", "v24", "v27"}));
  for (uint64_t number = 0; number < kKeys; ++number) EXPECT_EQ(ValueOf(number), "v" + std::to_string(number));
  // One batch over all of them.
  std::vector<KeyMaker> makers(4, KeyMaker(16));
  ASSERT_TRUE(session_
                  ->Write({{makers[0].Make(0), "", true},
                           {makers[1].Make(1), "new", false},
                           {makers[2].Make(2), "", true},
                           {makers[3].Make(30), "new", false}})
                  .ok());
  ASSERT_TRUE(session_->Delete(Key(4)).ok());
  ASSERT_TRUE(session_->Delete(Key(3)).ok());
  EXPECT_EQ(Iterated(), (std::vector<std::string>{"v6", "v9", "v12", "v15", "v18", "v21", "v24", "v27", "new"}));
  std::vector<std::string> values;
  std::vector<Status> statuses;
  session_->MultiGet({makers[0].Make(2), makers[1].Make(1), makers[2].Make(30), makers[3].Make(5)}, &values, &statuses);
  ASSERT_EQ(statuses.size(), 4u);
  EXPECT_TRUE(statuses[0].IsNotFound());
  EXPECT_TRUE(statuses[1].ok() && statuses[2].ok() && statuses[3].ok());
  EXPECT_EQ(values.at(1), "new");
  EXPECT_EQ(values.at(2), "new");
  EXPECT_EQ(values.at(3), "v5");
  std::string value;
  for (const uint64_t gone : {0u, 2u, 3u, 4u}) EXPECT_TRUE(session_->Get(Key(gone), &value).IsNotFound()) << gone;
  Close();
}

// With as many families as it was made with, by the names that RocksDB's db_bench gives; with others an open fails, and spoils
// nothing.
TEST_P(FamiliesTest, TheDatabaseIsReopenedWithItsFamilies) {
  PutAll("v");
  const std::vector<std::string> iterated = Iterated();
  ASSERT_EQ(iterated.size(), kKeys / kFamilies);
  Close();
  EXPECT_TRUE(FilesContain("column_family_name_000001"));
  EXPECT_TRUE(FilesContain("column_family_name_000002"));
  EXPECT_FALSE(FilesContain("column_family_name_000003"));
  for (const uint64_t families : {1u, 2u, 4u}) EXPECT_FALSE(Reopened(families).ok()) << families;
  Open(true);
  EXPECT_EQ(Iterated(), iterated);
  for (uint64_t number = 0; number < kKeys; ++number) EXPECT_EQ(ValueOf(number), "v" + std::to_string(number));
  Close();
  // A database without them is not taken for one with them.
  ASSERT_TRUE(driver_->Destroy(path_).ok());
  std::unique_ptr<Driver> plain;
  ASSERT_TRUE(MakeDriver(GetParam(), Flags(), &plain).ok());
  ASSERT_TRUE(plain->Open(path_, false, &engine_).ok());
  ASSERT_TRUE(engine_->NewSession(false, &session_).ok());
  PutAll("v");
  EXPECT_EQ(Iterated().size(), kKeys);
  Close();
  EXPECT_FALSE(driver_->Open(path_, true, &engine_).ok());
}

TEST_P(FamiliesTest, AllFamiliesAreFlushedAndCompacted) {
  const bool has_tables = std::string(GetParam()) == "rocksdb";
  for (const char* value : {"a", "b"}) {
    PutAll(value);
    for (const Status& status : {engine_->Flush(), engine_->WaitForCompaction()}) {
      EXPECT_TRUE(status.ok() || (status.IsNotSupported() && !status.message().empty())) << status.ToString();
    }
  }
  if (has_tables) {
    EXPECT_EQ(CountTables(), 2 * kFamilies);
  }
  const Status compacted = engine_->Compact();
  EXPECT_TRUE(compacted.ok() || compacted.IsNotSupported()) << compacted.ToString();
  std::string text;
  EXPECT_TRUE(engine_->GetText("stats", &text));
  for (uint64_t number = 0; number < kKeys; ++number) EXPECT_EQ(ValueOf(number), "b" + std::to_string(number));
  Close();
  if (has_tables) {
    EXPECT_EQ(CountTables(), kFamilies);
  }
}

const auto kNameOf = [](const auto& param_info) {
  std::string name = param_info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
};

INSTANTIATE_TEST_SUITE_P(All, FamiliesTest,
                         testing::Values("braiddb", "braiddb:nv_tree", "braiddb:sorted_runs", "rocksdb", "lmdb"), kNameOf);

// What MakeDriver refuses to the other engines: with one family, and with several.
class SpecialTest : public testing::TestWithParam<std::tuple<const char*, uint64_t>> {};

TEST_P(SpecialTest, MergesDeletesRangesAndPins) {
  const auto& [name, families] = GetParam();
  test::TestDirectory directory;
  Flags flags;
  flags.db = directory.File("db");
  flags.num_column_families = families;
  flags.merge_operator = "stringappend";
  std::unique_ptr<Driver> driver;
  if (const Status status = MakeDriver(name, flags, &driver); status.IsNotSupported()) GTEST_SKIP() << status.ToString();
  std::unique_ptr<Engine> engine;
  ASSERT_TRUE(driver->Open(flags.db, false, &engine).ok());
  std::unique_ptr<Session> session;
  ASSERT_TRUE(engine->NewSession(false, &session).ok());
  std::vector<KeyMaker> keys(2, KeyMaker(16));
  for (uint64_t number = 0; number < 12; ++number) {
    ASSERT_TRUE(session->Put(keys[0].Make(number), "a").ok());
    ASSERT_TRUE(session->Merge(keys[0].Make(number), "b").ok());
  }
  std::string value;
  for (uint64_t number = 0; number < 12; ++number) {
    ASSERT_TRUE(session->Get(keys[0].Make(number), &value).ok());
    EXPECT_EQ(value, "a,b");
  }
  // Iterators are of the default family, which has every so many keys.
  const auto iterated = [&](std::unique_ptr<Iterator> iterator) {
    uint64_t count = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++count;
    return count;
  };
  EXPECT_EQ(iterated(session->NewBoundedIterator(keys[0].Make(3), keys[1].Make(9))), 6 / families);
  EXPECT_EQ(iterated(session->NewBoundedIterator(std::nullopt, keys[1].Make(6))), 6 / families);
  EXPECT_EQ(iterated(session->NewBoundedIterator(keys[0].Make(6), std::nullopt)), 6 / families);
  EXPECT_EQ(iterated(session->NewBoundedIterator(std::nullopt, std::nullopt)), 12 / families);
  ASSERT_TRUE(session->PinSnapshot().ok());
  // Of the family of the first key.
  ASSERT_TRUE(session->DeleteRange(keys[0].Make(3), keys[1].Make(9)).ok());
  EXPECT_EQ(iterated(session->NewIterator()), 12 / families);
  session.reset();
  ASSERT_TRUE(engine->NewSession(false, &session).ok());
  EXPECT_EQ(iterated(session->NewIterator()), 12 / families - 6 / families);
  EXPECT_TRUE(session->Get(keys[0].Make(3), &value).IsNotFound());
  EXPECT_TRUE(session->Get(keys[0].Make(9), &value).ok());
  session.reset();
  ASSERT_TRUE(engine->Close().ok());
}

INSTANTIATE_TEST_SUITE_P(All, SpecialTest,
                         testing::Combine(testing::Values("braiddb", "braiddb:nv_tree", "rocksdb"),
                                          testing::Values<uint64_t>(1, 3)));

TEST(Special, IsRefusedByEnginesThatCannotDoIt) {
  std::vector<Flags> all(5);
  all[0].readonly = true;
  all[1].merge_operator = "put";
  all[2].range_deletions.writes_between = 1;
  all[3].explicit_snapshot = true;
  all[4].max_scan_distance = 1;
  std::unique_ptr<Driver> driver;
  for (const Flags& flags : all) {
    for (const char* engine : {"leveldb", "lmdb", "dram-checkpoint", "redis", "pmdk_map", "null"}) {
      const Status status = MakeDriver(engine, flags, &driver);
      EXPECT_TRUE(test::Contains(std::string(status.message()), " is refused: db_bench can do it with braiddb and rocksdb only"))
          << status.ToString();
    }
  }
}

// Those that have none say so, whether or not they are built in.
TEST(Families, AreRefusedByEnginesWithoutThem) {
  Flags flags;
  flags.num_column_families = 2;
  std::unique_ptr<Driver> driver;
  for (const char* engine : {"leveldb", "dram-checkpoint", "redis", "null"}) {
    const Status status = MakeDriver(engine, flags, &driver);
    EXPECT_TRUE(status.IsNotSupported()) << status.ToString();
    EXPECT_TRUE(test::Contains(std::string(status.message()), "--num_column_families above 1 is refused: ")) << status.ToString();
    EXPECT_EQ(driver, nullptr);
  }
}

INSTANTIATE_TEST_SUITE_P(All, EngineTest,
                         testing::Values("braiddb", "braiddb:nv_tree", "braiddb:sorted_runs", "rocksdb", "leveldb", "lmdb",
                                         "dram-checkpoint", "dram-checkpoint:2", "dram-checkpoint:0", "redis",
                                         BRAIDDB_REDIS_STAND_IN),
                         kNameOf);

TEST(Engines, LibraryThatIsNoneIsRefused) {
  Flags flags;
  std::unique_ptr<Driver> driver;
  for (const char* engine : {"rocksdb", "leveldb", "lmdb"}) {
    for (const char* library : {"/nonexistent/library.so", "libm.so.6"}) {
      const Status status = MakeDriver(std::string(engine) + ":" + library, flags, &driver);
      EXPECT_TRUE(status.IsNotSupported()) << status.ToString();
      EXPECT_EQ(driver, nullptr);
    }
  }
  EXPECT_TRUE(MakeDriver("null:argument", flags, &driver).IsInvalidArgument());
}

TEST(Engines, WrongRocksDbOptionIsRefused) {
  Flags flags;
  std::unique_ptr<Driver> driver;
  if (MakeDriver("rocksdb", flags, &driver).IsNotSupported()) GTEST_SKIP() << "rocksdb is not installed";
  flags.rocksdb_options = "no_such_option=1";
  EXPECT_FALSE(MakeDriver("rocksdb", flags, &driver).ok());
  flags.rocksdb_options = "max_background_jobs=3;write_buffer_size=1M";
  ASSERT_TRUE(MakeDriver("rocksdb", flags, &driver).ok());
  EXPECT_TRUE(test::Contains(driver->Settings(), "max_background_jobs=3"));
}

// What a synchronous checkpoint costs shows: how often it was made, and that an open reads it and replays the log behind it.
TEST(Engines, ACheckpointBoundsWhatIsReplayed) {
  Flags flags;
  std::unique_ptr<Driver> driver;
  if (MakeDriver("dram-checkpoint:10", flags, &driver).IsNotSupported()) GTEST_SKIP() << "Boost.Serialization is not installed";
  test::TestDirectory directory;
  const std::string path = directory.File("db");
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Session> session;
  const auto counted = [&engine](const std::string& name) {
    for (const Figure& figure : engine->Counters()) {
      if (figure.name == name) return figure.value;
    }
    ADD_FAILURE() << "no counter " << name;
    return uint64_t{0};
  };
  ASSERT_TRUE(driver->Open(path, false, &engine).ok());
  ASSERT_TRUE(engine->NewSession(false, &session).ok());
  for (int i = 0; i < 34; ++i) ASSERT_TRUE(session->Put("key" + std::to_string(i), "value").ok());
  EXPECT_EQ(counted("checkpoints"), 3u);
  EXPECT_GT(counted("checkpoint_bytes"), 60 * std::string("key0value").size());
  session.reset();
  engine.reset();  // as after a crash: nothing is closed
  // A record that a crash cut off, as the system may have written a part of it.
  std::ofstream(path + "/log-3", std::ios::app | std::ios::binary) << std::string(20, 'x');
  std::ofstream(path + "/log-2") << "left by a crash after the checkpoint got its name";
  std::ofstream(path + "/checkpoint.tmp") << "left by a crash before";
  ASSERT_TRUE(driver->Open(path, true, &engine).ok());
  ASSERT_TRUE(engine->NewSession(false, &session).ok());
  EXPECT_EQ(counted("loaded_entries"), 30u);
  EXPECT_EQ(counted("replayed_entries"), 4u);
  std::string value;
  for (int i = 0; i < 34; ++i) EXPECT_TRUE(session->Get("key" + std::to_string(i), &value).ok()) << i;
  EXPECT_FALSE(std::filesystem::exists(path + "/log-2"));
  EXPECT_FALSE(std::filesystem::exists(path + "/checkpoint.tmp"));
  ASSERT_TRUE(session->Put("last", "one").ok());
  ASSERT_TRUE(engine->Flush().ok());
  session.reset();
  ASSERT_TRUE(engine->Close().ok());
  ASSERT_TRUE(driver->Open(path, true, &engine).ok());
  EXPECT_EQ(counted("loaded_entries"), 35u);
  EXPECT_EQ(counted("replayed_entries"), 0u);
  engine.reset();
  std::filesystem::resize_file(path + "/checkpoint", 100);
  EXPECT_TRUE(driver->Open(path, true, &engine).IsCorruption());
  EXPECT_TRUE(MakeDriver("dram-checkpoint:often", flags, &driver).IsInvalidArgument());
}

TEST(Comparison, MedianIsTheMiddle) {
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({9, 1, 5}), 5);
  EXPECT_EQ(Median({4, 1, 9, 2}), 3);
}

class Program : public testing::Test {
 protected:
  test::ProgramResult Bench(const std::string& arguments) {
    return test::RunProgram(BRAIDDB_DB_BENCH,
                            "--db=" + directory_.File("db") + " --seed=1 --num=1000 --verify=true " + arguments);
  }
  nlohmann::json Json(const std::string& path) {
    std::ifstream file(path);
    return nlohmann::json::parse(file);
  }

  test::TestDirectory directory_;
};

TEST_F(Program, ComparesEnginesInTurnAndCleansUp) {
  const auto result = Bench("--engines=braiddb,braiddb:nv_tree,null --rounds=3 --benchmarks=fillrandom,readrandom --histogram");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  size_t at = 0;
  for (const char* turn :
       {"---- braiddb, round 1 of 3", "---- braiddb:nv_tree, round 1", "---- null, round 1", "---- null, round 2",
        "---- braiddb:nv_tree, round 2", "---- braiddb, round 2", "---- braiddb, round 3"}) {
    at = result.output.find(turn, at);
    ASSERT_NE(at, std::string::npos) << turn << "\n" << result.output;
  }
  for (const char* part : {"An acknowledged write survives: ", "Medians; in brackets how many times better braiddb is\n",
                           "fillrandom ops/sec ", "  P99.9 of write, us ", "  P99.9 of read, us "}) {
    EXPECT_TRUE(test::Contains(result.output, part)) << part;
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory_.File("db")));
}

// The same seed, the same draws: what is found does not depend on the engine.
TEST_F(Program, EnginesAreAskedTheSame) {
  const std::string json = directory_.File("r.json");
  const auto result = Bench(
      "--engines=braiddb,braiddb:nv_tree,rocksdb,lmdb --rounds=1 --preset=prefix_dist --mix_seek_ratio=0.1 "
      "--threads=2 --benchmarks=fillrandom,readrandom,seekrandom,mixgraph,updaterandom --json=" +
      json);
  if (test::Contains(result.output, "is not built in")) GTEST_SKIP() << result.output;
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const auto runs = Json(json)["runs"];
  ASSERT_EQ(runs.size(), 20u);
  for (size_t i = 5; i < runs.size(); ++i) {
    const auto& here = runs[i];
    const auto& first = runs[i % 5];
    EXPECT_EQ(here["benchmark"], first["benchmark"]);
    EXPECT_EQ(here["operations"], first["operations"]);
    EXPECT_EQ(here.value("found", 0), first.value("found", 0)) << here["engine"] << here["benchmark"];
  }
}

// … nor on it when keys are spread over column families: a fourth of them is in the default one, which iterators see.
TEST_F(Program, EnginesAreAskedTheSameOfColumnFamilies) {
  const std::string json = directory_.File("r.json");
  const auto result = Bench(
      "--engines=braiddb,rocksdb,lmdb --rounds=1 --num_column_families=4 --batch_size=4 --threads=2 "
      "--benchmarks=fillseq,compact,readrandom,readseq,seekrandom,deleterandom,open,multireadrandom --json=" +
      json);
  if (test::Contains(result.output, "is not built in")) GTEST_SKIP() << result.output;
  ASSERT_EQ(result.exit_code, 0) << result.output;
  std::map<std::string, std::map<std::string, nlohmann::json>> runs;  // by engine and benchmark
  const nlohmann::json document = Json(json);
  for (const auto& run : document["runs"]) runs[run["engine"]][run["benchmark"]] = run;
  ASSERT_EQ(runs.size(), 3u);
  for (const auto& [engine, of_engine] : runs) {
    SCOPED_TRACE(engine);
    EXPECT_EQ(of_engine.at("readrandom")["found"], 2000);
    EXPECT_EQ(of_engine.at("readseq")["operations"], 2 * 250);
    const int sought = of_engine.at("seekrandom")["found"], left = of_engine.at("multireadrandom")["found"];
    EXPECT_NEAR(sought, 500, 6 * std::sqrt(2000 * 0.25 * 0.75));
    EXPECT_EQ(sought, runs["braiddb"]["seekrandom"]["found"].get<int>());
    EXPECT_LT(left, 2000);
    EXPECT_EQ(left, runs["braiddb"]["multireadrandom"]["found"].get<int>());
  }
}

TEST_F(Program, JsonHasTheEnvironmentAndTheResults) {
  const std::string path = directory_.File("r.json");
  const auto result = Bench(
      "--benchmarks=fillrandom,mixgraph --histogram --duration=1 --preset=listdb --key_size=20 "
      "--sine_mix_rate --sine_a=0 --sine_d=20000 --json=" +
      path);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const auto json = Json(path);
  EXPECT_EQ(json["program"], "db_bench");
  for (const char* name : {"cpu", "kernel", "file_system", "commit", "compiler", "memory_bytes"}) {
    EXPECT_TRUE(json["environment"].contains(name)) << name;
  }
  EXPECT_EQ(json["flags"]["key_size"], "20");  // over the preset's
  EXPECT_EQ(json["flags"]["mix_put_ratio"], "0.3");
  EXPECT_EQ(json["engines"][0]["engine"], "braiddb");
  ASSERT_EQ(json["runs"].size(), 2u);
  const auto& mix = json["runs"][1];
  EXPECT_EQ(mix["benchmark"], "mixgraph");
  const uint64_t operations = mix["operations"];
  EXPECT_EQ(mix["latencies_us"]["read"]["count"].get<uint64_t>() + mix["latencies_us"]["write"]["count"].get<uint64_t>(),
            operations);
  for (const char* name : {"P50", "P99", "P99.9", "P99.99"}) {
    EXPECT_GT(mix["latencies_us"]["read"]["percentiles"][name].get<double>(), 0) << name;
  }
  const auto& distribution = mix["latencies_us"]["write"]["distribution"];
  EXPECT_DOUBLE_EQ(distribution.back()[1].get<double>(), 1);
  // The curve only rises, and ends below the whole.
  uint64_t before = 0;
  ASSERT_GE(mix["progress"].size(), 1u);
  for (const auto& sample : mix["progress"]) {
    EXPECT_GE(sample[1].get<uint64_t>(), before);
    before = sample[1];
  }
  EXPECT_LE(before, operations);
  EXPECT_DOUBLE_EQ(mix["demanded_rate"][0][1].get<double>(), 20000);
  EXPECT_LT(static_cast<double>(operations), 1.2 * 20000 * mix["seconds"].get<double>() + 1000);
}

// Every engine is waited for behind what writes, and behind nothing else; its rate is then that of writes and merges.
TEST_F(Program, SettledRatesHaveTheMergesInThem) {
  for (const std::string engine : {"braiddb", "braiddb:nv_tree", "rocksdb", "leveldb", "lmdb", "dram-checkpoint"}) {
    SCOPED_TRACE(engine);
    const std::string path = directory_.File("settled.json");
    const auto result =
        Bench("--engine=" + engine +
              " --benchmarks=fillrandom,readrandom --settle --memtable_size=65536 --l0_compaction_trigger=1 --json=" + path);
    if (test::Contains(result.output, "is not built in")) continue;
    ASSERT_EQ(result.exit_code, 0) << result.output;
    EXPECT_TRUE(test::Contains(result.output, "; settled ")) << result.output;
    const auto runs = Json(path)["runs"];
    const auto& fill = runs[0];
    EXPECT_GE(fill["settled_seconds"], fill["seconds"]);
    EXPECT_LE(fill["settled_ops_per_second"], fill["ops_per_second"]);
    EXPECT_GE(fill["settled_cpu_micros_per_op"], fill["cpu_micros_per_op"]);
    EXPECT_GT(fill["cpu_micros_per_op"], 0);
    EXPECT_FALSE(runs[1].contains("settled_seconds"));
    EXPECT_TRUE(runs[1].contains("cpu_micros_per_op"));
    if (engine.starts_with("braiddb")) {
      EXPECT_EQ(runs[1]["counters"]["merged_entries"], 0) << "merges were left behind the fill";
    }
  }
}

// An engine that does nothing in the background has settled when its last call returned, however long the watch takes.
TEST(WaitUntilSettled, AnIdleEngineSettledWhenItFinished) {
  for (const char* name : {"lmdb", "dram-checkpoint:0"}) {
    Flags flags;
    test::TestDirectory directory;
    std::unique_ptr<Driver> driver;
    std::unique_ptr<Engine> engine;
    if (MakeDriver(name, flags, &driver).IsNotSupported()) continue;
    ASSERT_TRUE(driver->Open(directory.File("db"), false, &engine).ok());
    const Clock::time_point finished = Clock::now();
    EXPECT_EQ(WaitUntilSettled(engine.get(), finished), finished) << name;
    EXPECT_TRUE(engine->Close().ok());
  }
}

// Who waits for nothing does not pause, whatever the engine.
TEST(WaitUntilIdle, PausesOnlyWhileThereIsWork) {
  for (const std::vector<bool>& work : std::vector<std::vector<bool>>{{false, false}, {true, true, false, true, false, false}}) {
    size_t asked = 0, pauses = 0;
    WaitUntilIdle([&] { return work.at(asked++); }, [&] { ++pauses; });
    EXPECT_EQ(asked, work.size());
    EXPECT_EQ(pauses, static_cast<size_t>(std::count(work.begin(), work.end(), true)));
  }
}

// What a writer beside the readers did is in the table and in the file.
TEST_F(Program, TheWriterBesideReadersIsReported) {
  const std::string path = directory_.File("r.json");
  const auto result =
      Bench("--engines=braiddb,braiddb:nv_tree --rounds=1 --benchmarks=fillseq,readwhilewriting --reads=1000000 --json=" + path);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_TRUE(test::Contains(result.output, "\n  beside them ops/sec ")) << result.output;
  const auto json = Json(path);
  ASSERT_EQ(json["runs"].size(), 4u);
  for (const auto& run : json["runs"]) {
    EXPECT_EQ(run.contains("background_ops_per_second"), run["benchmark"] == "readwhilewriting");
  }
}

// With --huge_pages=off no engine has any, and the results say so.
TEST_F(Program, PagesAreEqualIfAskedFor) {
  const std::string path = directory_.File("r.json");
  for (const std::string engine : {"braiddb", "rocksdb", "leveldb", "lmdb"}) {
    SCOPED_TRACE(engine);
    const auto result =
        Bench("--engine=" + engine + " --huge_pages=off --num=20000 --benchmarks=fillrandom,readrandom --json=" + path);
    if (test::Contains(result.output, "is not built in")) continue;
    ASSERT_EQ(result.exit_code, 0) << result.output;
    EXPECT_TRUE(test::Contains(result.output, "Pages:      4 KiB for all engines")) << result.output;
    const auto json = Json(path);
    EXPECT_TRUE(test::Contains(json["engines"][0]["pages"], "4 KiB for all engines"));
    for (const auto& run : json["runs"]) EXPECT_EQ(run["huge_page_bytes"], 0) << run["benchmark"];
    std::filesystem::remove_all(directory_.File("db"));  // no engine takes the directory of another one
  }
  const auto result = Bench("--benchmarks=fillrandom --num=20000 --json=" + path);
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_TRUE(test::Contains(result.output, "Pages:      2 MiB for files on tmpfs and for DRAM")) << result.output;
  EXPECT_TRUE(Json(path)["runs"][0].contains("huge_page_bytes"));
}

TEST(QuietWatch, QuietBeginsBehindTheLastWork) {
  QuietWatch watch;
  for (double cpu : {1.0, 1.5, 1.5, 1.5, 2.0}) EXPECT_FALSE(watch.Add(cpu));
  EXPECT_FALSE(watch.is_quiet());
  for (int i = 1; i < QuietWatch::kQuietSamples; ++i) {
    EXPECT_FALSE(watch.Add(2.0)) << i;
    EXPECT_TRUE(watch.is_quiet());
  }
  EXPECT_TRUE(watch.Add(2.0));
}

TEST_F(Program, TwoResultsCanBeCompared) {
  const std::string base = directory_.File("base.json"), head = directory_.File("head.json");
  ASSERT_EQ(Bench("--benchmarks=fillrandom,readrandom --histogram --json=" + base).exit_code, 0);
  ASSERT_EQ(Bench("--benchmarks=overwrite,readrandom --histogram --value_size=50 --json=" + head).exit_code, 0);
  const auto result = test::RunProgram(BRAIDDB_BENCH_COMPARE, base + " " + head);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_TRUE(test::Contains(result.output, "differs: flags value_size: '100' and '50'\n")) << result.output;
  EXPECT_TRUE(test::Contains(result.output, "P99.9 of read, us")) << result.output;
  EXPECT_FALSE(test::Contains(result.output, "overwrite ")) << result.output;
  EXPECT_EQ(test::RunProgram(BRAIDDB_BENCH_COMPARE, base + " /nonexistent").exit_code, 2);
  const std::string other = directory_.File("other.json");
  ASSERT_EQ(Bench("--benchmarks=fillseq --json=" + other).exit_code, 0);
  EXPECT_EQ(test::RunProgram(BRAIDDB_BENCH_COMPARE, head + " " + other).exit_code, 1);
}

// A head that does twice as many operations in a quarter of the time each is 2 and 4 times better, not worse.
TEST_F(Program, ComparedResultsAreTheRightWayRound) {
  const std::string base = directory_.File("base.json"), head = directory_.File("head.json");
  ASSERT_EQ(Bench("--benchmarks=fillrandom --histogram --json=" + base).exit_code, 0);
  nlohmann::json json = Json(base);
  auto& run = json["runs"][0];
  run["ops_per_second"] = 2 * run["ops_per_second"].get<double>();
  for (auto& percentile : run["latencies_us"]["write"]["percentiles"]) percentile = percentile.get<double>() / 4;
  std::ofstream(head) << json;
  const auto forward = test::RunProgram(BRAIDDB_BENCH_COMPARE, base + " " + head);
  EXPECT_TRUE(forward.output.ends_with(" 4.00 x\n")) << forward.output;
  EXPECT_TRUE(test::Contains(forward.output, " 2.00 x\n")) << forward.output;
  const auto backward = test::RunProgram(BRAIDDB_BENCH_COMPARE, head + " " + base);
  EXPECT_TRUE(test::Contains(backward.output, " 0.50 x\n")) << backward.output;
  EXPECT_TRUE(backward.output.ends_with(" 0.25 x\n")) << backward.output;
}

TEST_F(Program, RepeatsAsRocksDBDoes) {
  const auto result = Bench("--benchmarks=fillrandom,readrandom[X3-W1]");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  for (const char* part : {"Running warm-up benchmark for 1 times\n", "Running benchmark for 3 times\n",
                           "readrandom [AVG 2 runs] : ", "readrandom [AVG 3 runs] : ", "readrandom [MEDIAN 3 runs] : "}) {
    EXPECT_TRUE(test::Contains(result.output, part)) << part << result.output;
  }
  size_t lines = 0;
  for (size_t at = 0; (at = result.output.find("readrandom   : ", at)) != std::string::npos; ++at) ++lines;
  EXPECT_EQ(lines, 3u);
}

// All records that were loaded or inserted are found, whoever inserted them; and each kind of operation has its own percentiles.
TEST_F(Program, YcsbFindsItsRecords) {
  const auto result =
      Bench("--benchmarks=ycsb_load,ycsb_a,ycsb_b,ycsb_c,ycsb_f,ycsb_d,ycsb_e --threads=3 --histogram --reads=3000");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(test::Operations(result.output, "ycsb_load"), 1000u);
  for (const char* name : {"ycsb_a", "ycsb_b", "ycsb_c", "ycsb_d", "ycsb_e", "ycsb_f"}) {
    EXPECT_EQ(test::Operations(result.output, name), 9000u);
    const std::string line = test::LineOf(result.output, name);
    unsigned found = 0, looked_up = 1;
    ASSERT_TRUE(test::Contains(line, "(") &&
                std::sscanf(line.c_str() + line.find('('), "(%u of %u found)", &found, &looked_up) == 2)
        << line;
    EXPECT_EQ(found, looked_up) << line;
  }
  for (const char* kind : {"read", "update", "insert", "scan", "read-modify-write"}) {
    EXPECT_TRUE(test::Contains(result.output, std::string("Microseconds per ") + kind + ":\nCount: ")) << kind;
  }
  // A second run over what is there.
  const auto again = Bench("--use_existing_db --benchmarks=ycsb_c --zipf=0.5");
  EXPECT_TRUE(test::Contains(again.output, "(1000 of 1000 found)")) << again.output;
}

}  // namespace
}  // namespace braiddb::bench
