// Opening, locking, closing and destroying databases, and what an open refuses.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/db.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/fork_child.h"
#include "tests/support/leave_child.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;

struct ClearsSyncPoints {
  ~ClearsSyncPoints() { SyncPoints::Instance().Clear(); }
};

TEST_F(DbOpenTest, MissingDatabaseIsAnErrorUnlessItMayBeCreated) {
  Options options = TinyOptions();
  options.create_if_missing = false;
  std::unique_ptr<DB> db;
  const Status status = Open(options, &db);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(status.IsInvalidArgument() || status.IsNotFound()) << status.ToString();
  EXPECT_FALSE(status.message().empty());
  EXPECT_EQ(db, nullptr);
  EXPECT_TRUE(!fs::exists(path_) || fs::is_empty(path_)) << "a failed open left files behind";

  options.create_if_missing = true;
  ASSERT_OK(Open(options, &db));
  EXPECT_NE(db, nullptr);
  EXPECT_EQ(db->GetName(), path_);
}

// Programs take NotFound for "there is no database yet".
TEST_F(DbOpenTest, TooFewFileDescriptorsAreNoMissingDatabase) {
  for (const uint32_t regions : {1u, 3u}) {
    const std::string path = path_ + std::to_string(regions);
    { ASSERT_NE(OpenOrFail(TinyOptions(regions), path), nullptr); }
    // At first no file can be opened, at last all.
    EXPECT_EQ(RunInChild([&] {
                std::unique_ptr<DB> db;
                for (rlim_t limit = 3; limit < 100; ++limit) {
                  const rlimit few{limit, 100};
                  if (setrlimit(RLIMIT_NOFILE, &few) != 0) return 1;
                  const Status status = DB::Open(TinyOptions(regions), path, &db);
                  if (status.ok()) return 0;
                  if (status.IsNotFound() || status.IsCorruption()) {
                    std::fprintf(stderr, "%llu: %s\n", static_cast<unsigned long long>(limit), status.ToString().c_str());
                    return 2;
                  }
                }
                return 3;
              }),
              0);
  }
}

// An options file may say so.
TEST_F(DbOpenTest, AnyNumberOfRecoveryThreadsOpens) {
  Options options = TinyOptions();
  options.recovery_threads = UINT32_MAX;
  EXPECT_EQ(RunInChild([&] {
              std::unique_ptr<DB> db;
              if (!Open(options, &db).ok()) return 1;
              for (int i = 0; i < 1000; ++i) {
                if (!db->Put({}, NumberedKey(i), "value").ok()) return 2;
              }
              LeaveChild(0);
            }),
            0);
  std::unique_ptr<DB> db;
  ASSERT_OK(Open(options, &db));
  EXPECT_EQ(GetOrText(db.get(), NumberedKey(999)), "value");
}

// Each of them may take the directory away from the others.
TEST_F(DbOpenTest, CreationsAndRemovalsAtOnce) {
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < 15 / kSlowdown; ++round) {
        std::unique_ptr<DB> db;
        for (const Status& status : {Open(TinyOptions(), &db), DB::Destroy({}, path_)}) {
          if (status.ok() || status.IsBusy() || status.IsInvalidArgument()) continue;
          ADD_FAILURE() << status.ToString();
          ++failures;
        }
        db.reset();
        (void)DB::Destroy({}, path_);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

// Another call removes the database, and files of others keep the directory.
TEST_F(DbOpenTest, ARemovalThatComesTooLateLeavesNoLock) {
  const ClearsSyncPoints clears;
  Fill(TinyOptions(), 10);
  WriteFileOrDie(path_ + "/notes", "a user's");
  std::atomic<int> calls{0};
  SyncPoints::Instance().SetCallback("DB::Destroy:Found", [&](void*) {
    if (++calls == 1) {
      EXPECT_OK(DB::Destroy({}, path_));
    }
  });
  SyncPoints::Instance().Enable();
  EXPECT_OK(DB::Destroy({}, path_));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(ListFiles(path_), std::vector<std::string>{"notes"});
}

// Another call makes a database in the directory that a removal has just emptied.
TEST_F(DbOpenTest, ARemovalLeavesADatabaseThatCameMeanwhile) {
  const ClearsSyncPoints clears;
  Fill(TinyOptions(), 10);
  std::unique_ptr<DB> db;
  SyncPoints::Instance().SetCallback("DB::Destroy:Unlocked", [&](void*) { EXPECT_OK(Open(TinyOptions(), &db)); });
  SyncPoints::Instance().Enable();
  EXPECT_OK(DB::Destroy({}, path_));
  ASSERT_NE(db, nullptr);
  ASSERT_OK(db->Put({}, "a", "1"));
  db.reset();
  SyncPoints::Instance().Disable();
  ASSERT_OK(Open(TinyOptions(), &db));
  EXPECT_EQ(GetOrText(db.get(), "a"), "1");
}

TEST_F(DbOpenTest, AReaderWhoseDatabaseIsRemovedSaysSo) {
  const ClearsSyncPoints clears;
  Fill(TinyOptions(), 10);
  SyncPoints::Instance().SetCallback("DBImpl::FindFiles", [&](void*) { EXPECT_OK(DB::Destroy({}, path_)); });
  SyncPoints::Instance().Enable();
  std::unique_ptr<DB> db;
  EXPECT_CODE(DB::OpenForReadOnly(TinyOptions(), path_, &db), kNotFound);
}

TEST_F(DbOpenTest, PathsThatEndInADotAreRemoved) {
  Fill(TinyOptions(), 10);
  EXPECT_OK(DB::Destroy({}, path_ + "/."));
  EXPECT_EQ(ListFiles(path_), std::vector<std::string>{});
  EXPECT_OK(DB::Destroy({}, path_));
}

TEST_F(DbOpenTest, ExistingDatabaseIsAnErrorIfAskedFor) {
  Options options = TinyOptions();
  Fill(options, 10);
  options.error_if_exists = true;
  std::unique_ptr<DB> db;
  EXPECT_CODE(Open(options, &db), kInvalidArgument);
  EXPECT_EQ(db, nullptr);
  ExpectFilled(TinyOptions(), 10);
}

TEST_F(DbOpenTest, ExistingDatabaseOpensWithoutCreateIfMissing) {
  Options options = TinyOptions();
  Fill(options, 100);
  options.create_if_missing = false;
  ExpectFilled(options, 100);
}

// A path below a mount that is missing becomes a directory on the disk: the LOG says at once what the data lies on.
TEST_F(DbOpenTest, TheLogBeginsWithTheMediumAndThePersistMode) {
  for (const PersistMode mode : {PersistMode::kAuto, PersistMode::kPage}) {
    const std::string path = path_ + (mode == PersistMode::kPage ? "-page" : "") + "/missing/below";
    Options options = TinyOptions();
    options.info_log = nullptr;
    options.persist_mode = mode;
    options.regions = 2;
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::Open(options, path, &db));
    std::string name;
    ASSERT_TRUE(db->GetProperty("braiddb.persist-mode", &name));
    const std::string log = ReadFileOrDie(path + "/LOG"), first_lines = log.substr(0, log.find("open: serving"));
    EXPECT_NE(first_lines.find("open: persist mode " + name + ": "), std::string::npos) << log;
    for (const char* region : {"open: region 0: ", "open: region 1: "}) {
      const size_t at = first_lines.find(region + path);
      ASSERT_NE(at, std::string::npos) << log;
      EXPECT_NE(first_lines.find(" mounted at /", at), std::string::npos) << log;
    }
  }
}

// Programs for RocksDB read settings there.
TEST_F(DbOpenTest, TheLogListsTheOptions) {
  Options options = TinyOptions();
  options.info_log = nullptr;
  options.foreign_options["max_open_files"] = "123";
  options.foreign_family_options["target_file_size_base"] = "102030";
  options.create_missing_column_families = true;
  ColumnFamilyOptions family(options);
  family.foreign_options["target_file_size_base"] = "67108864";
  std::unique_ptr<DB> db;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
  ASSERT_OK(DB::Open(options, path_, {{"default", ColumnFamilyOptions(options)}, {"col0", family}}, &handles, &db));
  const std::string log = ReadFileOrDie(path_ + "/LOG");
  size_t at = 0;
  for (const char* line :
       {" Options.create_if_missing: 1\n", " Options.max_open_files: 123\n", "Options for column family [default]:\n",
        " Options.comparator: leveldb.BytewiseComparator\n", " Options.target_file_size_base: 102030\n",
        " Options.memtable_size: ", "Options for column family [col0]:\n", " Options.target_file_size_base: 67108864\n"}) {
    at = log.find(line, at);
    ASSERT_NE(at, std::string::npos) << line << " is not in\n" << log;
  }
  handles.clear();
}

TEST_F(DbOpenTest, DirectoryWithOtherFilesIsNoHindrance) {
  fs::create_directories(path_);
  WriteFileOrDie(path_ + "/notes.txt", "mine");
  Fill(TinyOptions(), 10);
  EXPECT_EQ(ReadFileOrDie(path_ + "/notes.txt"), "mine");
}

TEST_F(DbOpenTest, ParentDirectoriesOfANewDatabaseOrAClearError) {
  std::unique_ptr<DB> db;
  const Status status = DB::Open(TinyOptions(), directory_.File("a/b/c"), &db);
  EXPECT_TRUE(status.ok() || status.IsIOError()) << status.ToString();
}

TEST_F(DbOpenTest, PathThatIsAFileIsAnError) {
  WriteFileOrDie(path_, "not a directory");
  std::unique_ptr<DB> db;
  const Status status = Open(TinyOptions(), &db);
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(status.message().empty());
  EXPECT_EQ(ReadFileOrDie(path_), "not a directory");
}

TEST_F(DbOpenTest, OpenTwiceInOneProcessIsBusy) {
  auto first = OpenOrFail(TinyOptions(), path_);
  ASSERT_NE(first, nullptr);
  std::unique_ptr<DB> second;
  EXPECT_CODE(Open(TinyOptions(), &second), kBusy);
  EXPECT_EQ(second, nullptr);
  EXPECT_CODE(DB::Open(TinyOptions(), path_ + "/.", &second), kBusy) << "the same directory by another name";
  EXPECT_CODE(DB::Destroy(TinyOptions(), path_), kBusy);
  ASSERT_OK(first->Put({}, "k", "v"));
  EXPECT_EQ(GetOrText(first.get(), "k"), "v");
  first.reset();
  ASSERT_OK(Open(TinyOptions(), &second));
  EXPECT_EQ(GetOrText(second.get(), "k"), "v");
}

TEST_F(DbOpenTest, TheLastLevelIsFixedAtCreation) {
  struct Case {
    L1Kind kind;
    L1Kind other;
    const char* name;
  };
  for (const auto& [kind, another, name] :
       {Case{L1Kind::kBraidedSkipList, L1Kind::kNvTree, "kBraidedSkipList"},
        Case{L1Kind::kNvTree, L1Kind::kSortedRuns, "kNvTree"}, Case{L1Kind::kSortedRuns, L1Kind::kHybrid, "kSortedRuns"},
        Case{L1Kind::kHybrid, L1Kind::kLbTree, "kHybrid"}, Case{L1Kind::kLbTree, L1Kind::kBraidedSkipList, "kLbTree"}}) {
    Options options = TinyOptions();
    options.l1 = kind;
    Fill(options, 300);
    Options other = options;
    other.l1 = another;
    std::unique_ptr<DB> db;
    const Status status = Open(other, &db);
    EXPECT_CODE(status, kInvalidArgument);
    EXPECT_NE(status.message().find(name), std::string_view::npos) << status.ToString();
    options.nv_leaf_size = 4096;  // that of the creation stays
    ExpectFilled(options, 300);
    options.nv_leaf_size = 1000;
    EXPECT_CODE(Open(options, &db), kInvalidArgument);
    ASSERT_OK(DB::Destroy(options, path_));
  }
}

TEST_F(DbOpenTest, OpenInTwoProcessesIsBusy) {
  auto holder = OpenOrFail(TinyOptions(), path_);
  ASSERT_NE(holder, nullptr);
  // The child execs nothing, so it must not trust what it inherited: it only asks for a second open.
  const auto open_elsewhere = [this] {
    std::unique_ptr<DB> db;
    return static_cast<int>(Open(TinyOptions(), &db).code());
  };
  // A fork keeps descriptors open; the lock must not be inherited as owned. Both outcomes below come from the same process image.
  EXPECT_EQ(RunInChild(open_elsewhere), static_cast<int>(Status::Code::kBusy));
  const auto destroy_elsewhere = [this] { return static_cast<int>(DB::Destroy(TinyOptions(), path_).code()); };
  EXPECT_EQ(RunInChild(destroy_elsewhere), static_cast<int>(Status::Code::kBusy));
  ASSERT_OK(holder->Put({}, "still", "here"));
  ASSERT_OK(holder->Close());
  holder.reset();
  EXPECT_EQ(RunInChild(open_elsewhere), static_cast<int>(Status::Code::kOk));
  holder = OpenOrFail(TinyOptions(), path_);
  ASSERT_NE(holder, nullptr);
  EXPECT_EQ(GetOrText(holder.get(), "still"), "here");
}

TEST_F(DbOpenTest, LockOfAProcessThatWasNeverAParentIsRespected) {
  Fill(TinyOptions(), 10);
  int ready[2];
  int finish[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(finish), 0);
  const pid_t holder = ForkChild();
  if (holder == 0) {
    std::unique_ptr<DB> db;
    char byte = Open(TinyOptions(), &db).ok() ? 'y' : 'n';
    if (write(ready[1], &byte, 1) != 1 || read(finish[0], &byte, 1) != 1) _exit(1);
    _exit(0);  // as a crash: without closing
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  std::unique_ptr<DB> db;
  EXPECT_CODE(Open(TinyOptions(), &db), kBusy);
  EXPECT_CODE(DB::Destroy(TinyOptions(), path_), kBusy);
  ASSERT_EQ(write(finish[1], &byte, 1), 1);
  ASSERT_EQ(waitpid(holder, nullptr, 0), holder);
  ExpectFilled(TinyOptions(), 10);  // the lock died with its holder
  for (int fd : {ready[0], ready[1], finish[0], finish[1]}) close(fd);
}

TEST_F(DbOpenTest, ComparatorMustHaveTheStoredName) {
  Options options = TinyOptions();
  Fill(options, 10);
  options.comparator = ReverseBytewiseComparator();
  std::unique_ptr<DB> db;
  EXPECT_CODE(Open(options, &db), kInvalidArgument);
  EXPECT_EQ(db, nullptr);
  ExpectFilled(TinyOptions(), 10);
}

// Regions never become smaller, so only an open that succeeds makes them larger.
TEST_F(DbOpenTest, RegionsHaveTheirInitialSize) {
  const auto bytes = [this] {
    uint64_t sum = 0;
    for (const auto& file : std::filesystem::recursive_directory_iterator(path_))
      sum += file.is_regular_file() ? file.file_size() : 0;
    return sum;
  };
  Options options = TinyOptions();
  Fill(options, 10);
  const uint64_t before = bytes();
  std::unique_ptr<DB> db;
  options.initial_region_size = 64 << 20;
  options.comparator = ReverseBytewiseComparator();
  EXPECT_CODE(Open(options, &db), kInvalidArgument);
  options.comparator = BytewiseComparator();
  options.max_region_size = 0;
  options.initial_region_size = uint64_t{1} << 50;
  EXPECT_CODE(Open(options, &db), kNoSpace);
  EXPECT_NEAR(static_cast<double>(bytes()), static_cast<double>(before), 1 << 20);
  options.initial_region_size = 64 << 20;
  ExpectFilled(options, 10);
  EXPECT_GE(bytes(), uint64_t{64} << 20);
  options.initial_region_size = 0;
  ExpectFilled(options, 10);
  EXPECT_GE(bytes(), uint64_t{64} << 20);
}

TEST_F(DbOpenTest, NumberOfRegionsIsFixedAtCreation) {
  Fill(TinyOptions(2), 100);
  for (uint32_t wrong : {1u, 3u, 16u}) {
    std::unique_ptr<DB> db;
    EXPECT_CODE(Open(TinyOptions(wrong), &db), kInvalidArgument) << wrong;
  }
  ExpectFilled(TinyOptions(0), 100);  // 0: as stored
  ExpectFilled(TinyOptions(2), 100);
}

TEST_F(DbOpenTest, EveryNumberOfRegionsWorks) {
  for (uint32_t regions : {1u, 3u, 16u}) {
    ASSERT_OK(DB::Destroy(TinyOptions(), path_));
    Fill(TinyOptions(regions), 200);
    ExpectFilled(TinyOptions(regions), 200);
  }
}

TEST_F(DbOpenTest, RegionsCanLieElsewhere) {
  Options options = TinyOptions(2);
  options.region_paths = {directory_.File("node0"), directory_.File("node1")};
  for (const auto& path : options.region_paths) fs::create_directories(path);
  Fill(options, 100);
  for (const auto& path : options.region_paths) {
    EXPECT_FALSE(fs::is_empty(path)) << path;
  }
  ExpectFilled(options, 100);
  ASSERT_OK(DB::Destroy(options, path_));
  for (const auto& path : options.region_paths) {
    EXPECT_TRUE(!fs::exists(path) || fs::is_empty(path)) << path;
  }
}

TEST_F(DbOpenTest, RegionsHaveNumaNodes) {
  Options options = TinyOptions(2);
  options.region_nodes = {0, -1};
  std::string log;
  options.info_log = [&log](std::string_view line) { log.append(line); };
  Fill(options, 100);
  EXPECT_NE(log.find("region=1 node="), std::string::npos) << log;
  for (const bool reads : {false, true}) {
    std::unique_ptr<DB> db;
    ASSERT_OK(reads ? DB::OpenForReadOnly(options, path_, &db) : DB::Open(options, path_, &db));
    std::string nodes;
    ASSERT_TRUE(db->GetProperty("braiddb.region-nodes", &nodes));
    EXPECT_TRUE(nodes.starts_with("region=0 node=")) << nodes;
    EXPECT_NE(nodes.find("\nregion=1 node="), std::string::npos) << nodes;
  }
  options.region_nodes = {0, 0, 0};
  options.regions = 0;  // as stored
  std::unique_ptr<DB> db;
  EXPECT_TRUE(DB::Open(options, path_, &db).IsInvalidArgument());
}

struct BadOption {
  const char* name;
  std::function<void(Options*)> change;
};

TEST_F(DbOpenTest, OptionsOutOfRangeAreRejected) {
  const BadOption kCases[] = {
      {"too many regions", [](Options* o) { o->regions = 17; }},
      {"tiny memtable", [](Options* o) { o->memtable_size = 1; }},
      {"tiny segment", [](Options* o) { o->segment_size = 4096; }},
      {"huge segment", [](Options* o) { o->segment_size = 2ull << 30; }},
      {"tiny region", [](Options* o) { o->max_region_size = 1 << 20; }},
      {"more than the most", [](Options* o) { o->max_region_size = 32 << 20, o->initial_region_size = (32 << 20) + 1; }},
      {"no comparator", [](Options* o) { o->comparator = nullptr; }},
      {"wrong number of region paths", [](Options* o) { o->region_paths = {"/dev/shm"}; }},
      {"wrong number of NUMA nodes", [](Options* o) { o->region_nodes = {0}; }},
      {"a NUMA node that is not there",
       [](Options* o) {
         o->region_nodes = {0, 1000};
       }},
      {"unknown last level", [](Options* o) { o->l1 = static_cast<L1Kind>(99); }},
      {"unknown persist mode", [](Options* o) { o->persist_mode = static_cast<PersistMode>(99); }},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    Options options = TinyOptions(2);
    test.change(&options);
    std::unique_ptr<DB> db;
    const Status status = Open(options, &db);
    EXPECT_TRUE(status.IsInvalidArgument() || status.IsNotSupported()) << status.ToString();
    EXPECT_FALSE(status.message().empty());
    EXPECT_EQ(db, nullptr);
  }
  ASSERT_NO_FATAL_FAILURE(Fill(TinyOptions(), 10));  // nothing that a rejected open left is in the way
}

TEST_F(DbOpenTest, CloseIsIdempotentAndKeepsEverything) {
  auto db = OpenOrFail(TinyOptions(), path_);
  ASSERT_NE(db, nullptr);
  ASSERT_OK(db->Put({}, "k", "v"));
  ASSERT_OK(db->Close());
  ASSERT_OK(db->Close());
  db.reset();
  db = OpenOrFail(TinyOptions(), path_);
  ASSERT_NE(db, nullptr);
  EXPECT_EQ(GetOrText(db.get(), "k"), "v");
}

TEST_F(DbOpenTest, NothingIsReplayedAfterAClose) {
  Fill(TinyOptions(), 3000);
  auto db = OpenOrFail(TinyOptions(), path_);
  ASSERT_NE(db, nullptr);
  EXPECT_EQ(db->GetStatistics().replayed_entries, 0u);
}

TEST_F(DbOpenTest, ManyReopensWithWritesBetween) {
  std::map<std::string, std::string> expected;
  for (int round = 0; round < 30; ++round) {
    auto db = OpenOrFail(TinyOptions(1 + round % 1), path_);
    ASSERT_NE(db, nullptr);
    ASSERT_TRUE(HoldsExactly(db.get(), expected)) << "round " << round;
    for (int i = 0; i < round % 7; ++i) {
      const std::string key = NumberedKey((round * 13 + i * 7) % 50);
      expected[key] = PatternedValue(round * 100 + i, 200);
      ASSERT_OK(db->Put({}, key, expected[key]));
    }
    const std::string gone = NumberedKey(round % 50);
    ASSERT_OK(db->Delete({}, gone));
    expected.erase(gone);
  }
}

TEST_F(DbOpenTest, SequenceNumbersGoOnAfterReopen) {
  auto db = OpenOrFail(TinyOptions(), path_);
  ASSERT_NE(db, nullptr);
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK(db->Put({}, "k", std::to_string(i)));
  }
  const uint64_t before = db->GetLatestSequenceNumber();
  EXPECT_GE(before, 100u);
  db = nullptr;
  db = OpenOrFail(TinyOptions(), path_);
  ASSERT_NE(db, nullptr);
  EXPECT_GE(db->GetLatestSequenceNumber(), before);
  ASSERT_OK(db->Put({}, "k", "newest"));
  EXPECT_GT(db->GetLatestSequenceNumber(), before);
  EXPECT_EQ(GetOrText(db.get(), "k"), "newest");
}

TEST_F(DbOpenTest, SequenceNumbersGoOnAfterTheNewestEntryWasDropped) {
  auto db = OpenOrFail(TinyOptions(), path_);
  ASSERT_NE(db, nullptr);
  ASSERT_OK(db->Put({}, "k", "old"));
  ASSERT_OK(db->Delete({}, "k"));
  ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
  const uint64_t before = db->GetLatestSequenceNumber();
  db = nullptr;
  db = OpenOrFail(TinyOptions(), path_);
  ASSERT_NE(db, nullptr);
  ASSERT_OK(db->Put({}, "k", "new"));
  EXPECT_GT(db->GetLatestSequenceNumber(), before);
  EXPECT_EQ(GetOrText(db.get(), "k"), "new");
}

TEST_F(DbOpenTest, DestroyRemovesEverythingAndIsIdempotent) {
  Fill(TinyOptions(), 100);
  ASSERT_OK(DB::Destroy(TinyOptions(), path_));
  EXPECT_TRUE(!fs::exists(path_) || RegionFiles(path_).empty());
  ASSERT_OK(DB::Destroy(TinyOptions(), path_));
  Options options = TinyOptions();
  options.create_if_missing = false;
  std::unique_ptr<DB> db;
  EXPECT_FALSE(Open(options, &db).ok());
  ExpectFilled(TinyOptions(1), 0);  // a new one, even with another number of regions
}

TEST_F(DbOpenTest, TwentyDatabasesInOneProcess) {
  constexpr int kDatabases = 20;
  std::vector<std::unique_ptr<DB>> databases;
  for (int i = 0; i < kDatabases; ++i) {
    databases.push_back(OpenOrFail(TinyOptions(1 + i % 2), directory_.File("db" + std::to_string(i))));
    ASSERT_NE(databases.back(), nullptr);
  }
  for (int key = 0; key < 300; ++key) {
    for (int i = 0; i < kDatabases; ++i) {
      ASSERT_OK(databases[i]->Put({}, NumberedKey(key), PatternedValue(key * 100 + i, 60)));
    }
  }
  std::vector<std::map<std::string, std::string>> expected(kDatabases);
  for (int key = 0; key < 300; ++key) {
    for (int i = 0; i < kDatabases; ++i) expected[i][NumberedKey(key)] = PatternedValue(key * 100 + i, 60);
  }
  for (int i = 0; i < kDatabases; i += 2) databases[i].reset();
  for (int i = 0; i < kDatabases; i += 2) {
    databases[i] = OpenOrFail(TinyOptions(0), directory_.File("db" + std::to_string(i)));
    ASSERT_NE(databases[i], nullptr);
  }
  for (int i = 0; i < kDatabases; ++i) {
    EXPECT_TRUE(HoldsExactly(databases[i].get(), expected[i])) << "database " << i;
  }
}

TEST_F(DbOpenTest, NewDatabaseIsSmall) {
  auto db = OpenOrFail(TinyOptions(2), path_);
  ASSERT_NE(db, nullptr);
  EXPECT_LE(IntProperty(db.get(), "braiddb.pm-bytes-reserved"), 2 * (16ull << 20));
}

TEST_F(DbOpenTest, InfoLogGoesWhereItIsTold) {
  Options options = TinyOptions();
  options.info_log = nullptr;
  Fill(options, 10);
  EXPECT_TRUE(fs::exists(path_ + "/LOG"));
  const std::string before = ReadFileOrDie(path_ + "/LOG");
  EXPECT_NE(before.find("close: OK"), std::string::npos) << before;

  static std::atomic<int> lines;
  lines = 0;
  options.info_log = [](std::string_view line) { lines += line.empty() ? 0 : 1; };
  ExpectFilled(options, 10);
  EXPECT_GT(lines, 0);
  EXPECT_EQ(ReadFileOrDie(path_ + "/LOG"), before);
}

TEST_F(DbOpenTest, RefusedOpensTakeNoLinesFromTheInfoLog) {
  Options options = TinyOptions();
  options.info_log = nullptr;
  Fill(options, 10);
  const std::string before = ReadFileOrDie(path_ + "/LOG");
  Options refused = options;
  refused.comparator = ReverseBytewiseComparator();
  std::unique_ptr<DB> db;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(DB::Open(refused, path_, &db).IsInvalidArgument());
  const std::string after = ReadFileOrDie(path_ + "/LOG");
  EXPECT_TRUE(after.starts_with(before)) << after;
  EXPECT_NE(after.find("open: refused: Invalid argument: rocksdb.ReverseBytewiseComparator"), std::string::npos) << after;
  ExpectFilled(options, 10);
  EXPECT_TRUE(ReadFileOrDie(path_ + "/LOG").starts_with(after));
}

TEST_F(DbOpenTest, ALongInfoLogIsRenamedByAnOpenThatSucceeds) {
  Options options = TinyOptions();
  options.info_log = nullptr;
  Fill(options, 10);
  for (int life = 1; life <= 7; ++life) {
    WriteFileOrDie(path_ + "/LOG", "life " + std::to_string(life) + "\n" + std::string(4 << 20, 'x') + "\n");
    ExpectFilled(options, 10);
    EXPECT_LT(fs::file_size(path_ + "/LOG"), 1u << 20);
    EXPECT_TRUE(ReadFileOrDie(path_ + "/LOG.old").starts_with("life " + std::to_string(life) + "\n"));
  }
  EXPECT_TRUE(ReadFileOrDie(path_ + "/LOG.old.4").starts_with("life 4\n"));
  EXPECT_FALSE(fs::exists(path_ + "/LOG.old.5"));
  ASSERT_OK(DB::Destroy(options, path_));
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(DbOpenTest, ADatabaseWorksWithoutItsInfoLog) {
  Options options = TinyOptions();
  options.info_log = nullptr;
  fs::create_directories(path_ + "/LOG");
  Fill(options, 10);
  ExpectFilled(options, 10);
  fs::remove(path_ + "/LOG");
  fs::create_directories(path_ + "/LOG.old.4/in the way");
  WriteFileOrDie(path_ + "/LOG.old.3", "old");
  WriteFileOrDie(path_ + "/LOG", std::string(5 << 20, 'x'));
  ExpectFilled(options, 10);
  EXPECT_GT(fs::file_size(path_ + "/LOG"), 5u << 20) << "it grows on";
  EXPECT_EQ(ReadFileOrDie(path_ + "/LOG.old.3"), "old");
}

}  // namespace
}  // namespace braiddb::test
