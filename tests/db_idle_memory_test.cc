// DRAM follows data: what a database takes grows with what is in it, whatever its options allow.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "braiddb/db.h"
#include "tests/support/db_test_util.h"
#include "tests/support/rule_filter.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

// Anonymous memory of this process, in KiB.
uint64_t AnonymousKiB() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  std::string word;
  while (rollup >> word) {
    uint64_t kib = 0;
    if (word == "Anonymous:" && rollup >> kib) return kib;
  }
  ADD_FAILURE() << "no smaps_rollup";
  return 0;
}

void PutKeys(DB* db, int begin, int end) {
  for (int i = begin; i < end; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), PatternedValue(i, 100)));
}
void ReadKeys(DB* db, int count) {
  for (int i = 0; i < count; ++i) ASSERT_EQ(GetOrText(db, NumberedKey(i)), PatternedValue(i, 100));
}

// Whether the process runs the current test and nothing else. If not, runs the test in such a process, where it is to succeed.
// What is measured depends on what ran before in a process: databases reuse memory that others gave back to malloc. A child that
// is only forked has that memory, too.
bool IsAlone() {
  constexpr const char* kAlone = "BRAIDDB_TEST_ALONE";
  if (std::getenv(kAlone) != nullptr) return true;
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::string filter = std::string("--gtest_filter=") + test.test_suite_name() + "." + test.name();
  EXPECT_EQ(RunInChild([&] {
              setenv(kAlone, "1", 1);
              setenv("MALLOC_ARENA_MAX", "2", 1);  // else each thread has an arena where there are many CPUs
              for (const char* of_all_tests : {"GTEST_OUTPUT", "GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"}) unsetenv(of_all_tests);
              execl("/proc/self/exe", "alone", filter.c_str(), nullptr);
              return 127;
            }),
            0)
      << filter;
  return false;
}

// Sanitizers keep memory of their own for each allocation.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMeasures = false;
#else
constexpr bool kMeasures = true;
#endif

// Limits for the whole of a database, with room for what malloc keeps for each CPU. A database takes 500 KiB, of which libpmemobj
// takes some 300.
constexpr uint64_t kLeastKiBEach = 100;
constexpr uint64_t kMostKiBEach = 640;
constexpr uint64_t kMostKiBEachMerged = 1024;

// KiB that each of `count` open databases takes once `use` has written to it, without what a process takes once.
void FindKiBEach(int count, const std::function<void(DB*)>& use, uint64_t* each) {
  TestDirectory directory;
  std::vector<std::unique_ptr<DB>> databases(count + 1);
  const auto open = [&](int i) {
    Options options;
    options.create_if_missing = true;
    ASSERT_OK(DB::Open(options, directory.path() + "/" + std::to_string(i), &databases[i]));
    use(databases[i].get());
  };
  open(count);
  const uint64_t before = AnonymousKiB();
  for (int i = 0; i < count; ++i) open(i);
  *each = (AnonymousKiB() - before) / count;
  std::printf("%llu KiB each\n", static_cast<unsigned long long>(*each));
}

TEST(DbIdleMemoryTest, ThirtyDatabasesOfAHundredKeysAreSmall) {
  if (!kMeasures) GTEST_SKIP() << "a sanitizer takes memory, too";
  if (!IsAlone()) return;
  uint64_t each = 0;
  ASSERT_NO_FATAL_FAILURE(FindKiBEach(
      30,
      [](DB* db) {
        PutKeys(db, 0, 100);
        for (int key = 0; key < 100; ++key) ASSERT_EQ(GetOrText(db, NumberedKey(key)), PatternedValue(key, 100));
      },
      &each));
  EXPECT_GE(each, kLeastKiBEach);
  EXPECT_LE(each, kMostKiBEach);
}

TEST(DbIdleMemoryTest, AFlushAndAMergeOfFewKeysTakeLittle) {
  if (!kMeasures) GTEST_SKIP() << "a sanitizer takes memory, too";
  if (!IsAlone()) return;
  uint64_t each = 0;
  ASSERT_NO_FATAL_FAILURE(FindKiBEach(
      10,
      [](DB* db) {
        PutKeys(db, 0, 100);
        ASSERT_OK(db->Flush());
        ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
        PutKeys(db, 50, 150);
        ASSERT_OK(db->Flush());
      },
      &each));
  EXPECT_GE(each, kLeastKiBEach);
  EXPECT_LE(each, kMostKiBEachMerged);
}

// What the files under the directory take of the file system.
uint64_t BlockKiB(const std::string& path) {
  uint64_t blocks = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    struct stat file;
    if (lstat(entry.path().c_str(), &file) == 0) blocks += static_cast<uint64_t>(file.st_blocks);
  }
  return blocks / 2;
}
size_t OpenFiles() {
  const auto files = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

// A script of `braiddb put`. Each open takes a segment, and lasts too short for the compaction thread to count what is in others.
// On a loaded machine that thread may have no turn at all before the close.
class DbShortOpensTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!GetParam()) return;
    SyncPoints::Instance().SetCallback("DBImpl::CompactUntilStopped:Next",
                                       [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(10)); });
    SyncPoints::Instance().Enable();
  }
  void TearDown() override { SyncPoints::Instance().Clear(); }

  // Opens the database often and puts a key each time. `first`: keys that are there before, merged.
  static void OpenOften(L1Kind l1, int first) {
    constexpr int kOpens = 80;
    constexpr int kKeys = 60;
    constexpr uint64_t kMostKiB = 250 << 10;  // as docs/LIMITATIONS.md says
    TestDirectory directory;
    Options options;
    options.create_if_missing = true;
    options.l1 = l1;
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::Open(options, directory.path() + "/db", &db));
    PutKeys(db.get(), 0, first);
    ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
    db.reset();
    const uint64_t before = BlockKiB(directory.path());
    for (int i = 0; i < kOpens; ++i) {
      ASSERT_OK(DB::Open(options, directory.path() + "/db", &db));
      ASSERT_OK(db->Put({}, NumberedKey(i % kKeys), std::to_string(i)));
      ASSERT_OK(db->Close());
      db.reset();
    }
    EXPECT_LE(BlockKiB(directory.path()), before + kMostKiB);
    ASSERT_OK(DB::Open(options, directory.path() + "/db", &db));
    for (int i = kOpens - kKeys; i < kOpens; ++i) EXPECT_EQ(GetOrText(db.get(), NumberedKey(i % kKeys)), std::to_string(i));
    for (int i = kKeys; i < first; i += 1000) EXPECT_EQ(GetOrText(db.get(), NumberedKey(i)), PatternedValue(i, 100));
  }
};
INSTANTIATE_TEST_SUITE_P(ThreadIsSlow, DbShortOpensTest, testing::Bool(), testing::PrintToStringParamName());

TEST_P(DbShortOpensTest, TakeBoundedSpace) {
  if (!kMeasures) GTEST_SKIP() << "the same opens, only slower";
  for (const L1Kind l1 : {L1Kind::kBraidedSkipList, L1Kind::kNvTree, L1Kind::kSortedRuns, L1Kind::kHybrid, L1Kind::kLbTree}) {
    SCOPED_TRACE(static_cast<int>(l1));
    OpenOften(l1, 0);
  }
}

// The thread first builds the index of the last level, which takes longer than an open lasts.
TEST_P(DbShortOpensTest, TakeBoundedSpaceBesideManyKeys) {
  if (!kMeasures) GTEST_SKIP() << "the same opens, only slower";
  OpenOften(L1Kind::kBraidedSkipList, 300'000);
}

// A close merges what short sessions left. What the filter decides there holds, also if the close does not wait for the end.
TEST_P(DbShortOpensTest, AFilterIsHeard) {
  if (!GetParam() || !kMeasures) GTEST_SKIP() << "the close has work only if the thread had no turn before";
  constexpr int kOpens = 60;
  constexpr int kKeysEach = 20;
  for (const bool hurries : {false, true}) {
    SCOPED_TRACE(hurries);
    if (hurries) {
      SyncPoints::Instance().SetCallback("DBImpl::EndCompactionThread", [](void* most) {
        *static_cast<std::chrono::milliseconds*>(most) = std::chrono::milliseconds(15);
      });
    }
    TestDirectory directory;
    RuleFilter filter;
    filter.SetDuring([](Slice) { std::this_thread::sleep_for(std::chrono::microseconds(300)); });
    Options options;
    options.create_if_missing = true;
    options.compaction_filter = &filter;
    std::unique_ptr<DB> db;
    for (int i = 0; i < kOpens * kKeysEach; i += kKeysEach) {
      ASSERT_OK(DB::Open(options, directory.path() + "/db", &db));
      for (int key = i; key < i + kKeysEach; ++key)
        ASSERT_OK(db->Put({}, NumberedKey(key), key % 2 == 0 ? "drop" : "to:" + std::to_string(key)));
      ASSERT_OK(db->Close());
    }
    db.reset();
    int asked = 0;
    for (int key = 0; key < kOpens * kKeysEach; ++key) asked += filter.Asked(NumberedKey(key)) > 0;
    EXPECT_GT(asked, 0) << "no close has merged";
    filter.SetDuring(nullptr);
    ASSERT_OK(DB::Open(options, directory.path() + "/db", &db));
    CompactRangeOptions merge;
    merge.sweep_last_level = false;
    for (int round = 0; round < 2; ++round) ASSERT_OK(db->CompactRange(merge, nullptr, nullptr));
    for (int key = 0; key < kOpens * kKeysEach; ++key)
      EXPECT_EQ(GetOrText(db.get(), NumberedKey(key)), key % 2 == 0 ? "<not found>" : std::to_string(key));
  }
}

// A close that merges and relocates what short sessions left ends at one of its steps.
TEST_P(DbShortOpensTest, AKillInTheCloseLosesNothing) {
  if (!GetParam() || !kMeasures) GTEST_SKIP() << "the close has work only if the thread had no turn before";
  constexpr int kMostOpens = 60;
  Options options;
  options.create_if_missing = true;
  for (const char* point : {"DBImpl::CompactTables", "DBImpl::RelocateSparse:Copied", "DBImpl::RelocateSparse:Listed",
                            "DBImpl::RelocateSparse:Installed", "DBImpl::Release"}) {
    SCOPED_TRACE(point);
    TestDirectory directory;
    const int exit_code = RunInChild([&] {
      std::atomic<bool> closes{false};
      SyncPoints::Instance().SetCallback("DBImpl::CompactUntilStopped:Next", [&closes](void*) {
        do {
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        } while (!closes);
      });
      SyncPoints::Instance().SetCallback(point, [](void*) { _exit(42); });
      for (int i = 0; i < kMostOpens; ++i) {
        std::unique_ptr<DB> db;
        closes = false;
        if (!DB::Open(options, directory.path() + "/db", &db).ok()) return 1;
        if (!db->Put({}, NumberedKey(i), std::to_string(i)).ok()) return 2;
        std::ofstream(directory.path() + "/put") << i << std::flush;
        closes = true;
        if (!db->Close().ok()) return 3;
      }
      return 4;
    });
    EXPECT_EQ(exit_code, 42) << "the close does not come here";
    int last = 0;
    std::ifstream(directory.path() + "/put") >> last;
    EXPECT_GE(last, 5);
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::Open(options, directory.path() + "/db", &db));
    for (int i = 0; i <= last; ++i) EXPECT_EQ(GetOrText(db.get(), NumberedKey(i)), std::to_string(i));
    ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
    for (int i = 0; i <= last; ++i) EXPECT_EQ(GetOrText(db.get(), NumberedKey(i)), std::to_string(i));
  }
}

// The first open segment of a young region is small. Batches that are large for it fill the larger ones that follow, and do not
// take one each.
TEST(DbIdleFilesTest, BatchesFillTheSegmentsOfAGrowingRegion) {
  TestDirectory directory;
  Options options;
  options.create_if_missing = true;
  options.disable_auto_compaction = true;
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::Open(options, directory.path() + "/db", &db));
  constexpr uint64_t kBatches = 200;
  constexpr int kKeys = 400;
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < kBatches; ++i) {
    WriteBatch batch;
    for (int key = 0; key < kKeys; ++key) {
      const std::string value = PatternedValue(i, 200);
      batch.Put(NumberedKey(i * kKeys + static_cast<uint64_t>(key)), value);
      bytes += value.size();
    }
    ASSERT_OK(db->Write({}, batch));
  }
  EXPECT_LE(IntProperty(db.get(), "braiddb.pm-bytes-in-segments"), 2 * bytes + (16u << 20));
}

TEST(DbIdleFilesTest, FilesFollowTheData) {
  TestDirectory directory;
  const std::string path = directory.path() + "/db";
  Options options;
  options.create_if_missing = true;
  std::unique_ptr<DB> db;
  const auto reopen = [&] {
    db.reset();
    ASSERT_OK(DB::Open(options, path, &db));
  };
  for (int i = 0; i < 3; ++i) {
    ASSERT_NO_FATAL_FAILURE(reopen());
    EXPECT_LE(BlockKiB(path), 1u << 10) << "empty, open " << i;
  }
  PutKeys(db.get(), 0, 100);
  EXPECT_LE(BlockKiB(path), 2u << 10);
  ASSERT_NO_FATAL_FAILURE(reopen());
  ReadKeys(db.get(), 100);
  EXPECT_LE(BlockKiB(path), 2u << 10) << "flushed";
  PutKeys(db.get(), 0, 100);
  ASSERT_OK(db->Flush());
  ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
  EXPECT_LE(BlockKiB(path), 4u << 10) << "merged";
  PutKeys(db.get(), 100, 30'000);  // 4 MiB
  EXPECT_GE(BlockKiB(path), 4u << 10);
  EXPECT_LE(BlockKiB(path), 20u << 10);
}

TEST(DbIdleFilesTest, ManyDatabasesInOneProcess) {
  constexpr int kDatabases = 200;
  TestDirectory directory;
  std::vector<std::unique_ptr<DB>> databases(kDatabases);
  const size_t files = OpenFiles();
  for (int i = 0; i < kDatabases; ++i) {
    Options options;
    options.create_if_missing = true;
    ASSERT_OK(DB::Open(options, directory.path() + "/" + std::to_string(i), &databases[i]));
    PutKeys(databases[i].get(), 0, 10);
  }
  EXPECT_LE(OpenFiles() - files, 8u * kDatabases);
  for (const auto& db : databases) ReadKeys(db.get(), 10);
}

TEST(DbIdleMemoryTest, AGiBOfLookupCacheTakesWhatTwoThousandKeysNeed) {
  if (!kMeasures) GTEST_SKIP() << "a sanitizer takes memory, too";
  if (!IsAlone()) return;
  constexpr int kEach = 5;
  TestDirectory directory;
  std::vector<std::unique_ptr<DB>> databases;
  const auto take = [&](uint64_t cache_size) {
    const uint64_t before = AnonymousKiB();
    for (int i = 0; i < kEach; ++i) {
      Options options;
      options.create_if_missing = true;
      options.lookup_cache_size = cache_size;
      databases.emplace_back();
      EXPECT_OK(DB::Open(options, directory.path() + "/" + std::to_string(databases.size()), &databases.back()));
      PutKeys(databases.back().get(), 0, 2000);
    }
    return AnonymousKiB() - before;
  };
  (void)take(1 << 20);  // what a process takes once
  const uint64_t small = take(1 << 20);
  const uint64_t large = take(1 << 30);
  std::printf("%llu and %llu KiB\n", static_cast<unsigned long long>(small), static_cast<unsigned long long>(large));
  EXPECT_GE(small, kEach * kLeastKiBEach);
  EXPECT_LE(large, small + small / 4);
}

class DbLookupCacheSizeTest : public testing::Test {
 protected:
  void SetUp() override { options_.create_if_missing = true; }
  void TearDown() override { SyncPoints::Instance().Clear(); }

  std::unique_ptr<DB> Open(const std::string& name) {
    std::unique_ptr<DB> db;
    EXPECT_OK(DB::Open(options_, directory_.path() + "/" + name, &db));
    return db;
  }
  static uint64_t CacheBytes(DB* db) { return IntProperty(db, "braiddb.lookup-cache-bytes"); }
  // Idle databases are looked at so often.
  static void SetIdleRound(std::chrono::milliseconds round) {
    SyncPoints::Instance().SetCallback("DBImpl::WaitIdle:Round",
                                       [round](void* argument) { *static_cast<std::chrono::milliseconds*>(argument) = round; });
    SyncPoints::Instance().Enable();
  }
  static uint64_t Hits(DB* db) { return db->GetStatistics().lookup_cache_hits; }

  TestDirectory directory_;
  Options options_;
};

TEST_F(DbLookupCacheSizeTest, ItGrowsWithTheKeysUpToItsSize) {
  options_.lookup_cache_size = 1 << 20;
  const std::unique_ptr<DB> db = Open("db");
  EXPECT_LE(CacheBytes(db.get()), 32u << 10);
  constexpr int kKeys = 20'000;
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_OK(db->Put({}, NumberedKey(i), PatternedValue(i, 20)));
    if (i % 1000 == 999) {
      // A bucket of 64 bytes has room for five keys.
      const auto is_large = [&] { return CacheBytes(db.get()) >= static_cast<uint64_t>(i + 1) * 64 / 5; };
      ASSERT_TRUE(WaitUntil(is_large)) << i << " keys, " << CacheBytes(db.get());
    }
  }
  // A key that is put while the table is too small takes the slot of another one. Reads bring that one back.
  for (const uint64_t least_percent : {80, 95}) {
    const uint64_t before = Hits(db.get());
    for (int i = 0; i < kKeys; ++i) ASSERT_EQ(GetOrText(db.get(), NumberedKey(i)), PatternedValue(i, 20));
    EXPECT_GT(Hits(db.get()) - before, kKeys * least_percent / 100);
  }
  for (int i = kKeys; i < 3 * kKeys; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), PatternedValue(i, 20)));
  EXPECT_TRUE(WaitUntil([&] { return CacheBytes(db.get()) == 1u << 20; })) << CacheBytes(db.get());
}

TEST_F(DbLookupCacheSizeTest, ItGrowsByReads) {
  options_.lookup_cache_size = 1 << 20;
  std::unique_ptr<DB> db = Open("db");
  constexpr int kKeys = 10'000;
  PutKeys(db.get(), 0, kKeys);
  ASSERT_OK(db->Close());
  const std::string path = directory_.path() + "/db";
  for (const bool read_only : {false, true}) {
    SCOPED_TRACE(read_only);
    db.reset();
    ASSERT_OK(read_only ? DB::OpenForReadOnly(options_, path, &db) : DB::Open(options_, path, &db));
    EXPECT_LE(CacheBytes(db.get()), 32u << 10);
    EXPECT_TRUE(WaitUntil([&] {
      ReadKeys(db.get(), kKeys);  // the cache grows for keys that are read while it is too small
      return CacheBytes(db.get()) >= 256u << 10;
    }));
    ReadKeys(db.get(), kKeys);
    const uint64_t before = Hits(db.get());
    ReadKeys(db.get(), kKeys);
    EXPECT_GT(Hits(db.get()) - before, kKeys * 9u / 10);
  }
}

// A merge that was cut short keeps a read-only database from walking along its lists, and from nothing else.
TEST_F(DbLookupCacheSizeTest, ItGrowsWhereAMergeWasCutShort) {
  options_.lookup_cache_size = 1 << 20;
  options_.disable_auto_compaction = true;
  constexpr int kKeys = 10'000;
  const std::string path = directory_.path() + "/db";
  ASSERT_EQ(RunInChild([&] {
              std::unique_ptr<DB> db = Open("db");
              PutKeys(db.get(), 0, kKeys);
              if (!db->Flush().ok()) return 1;
              SyncPoints::Instance().SetCallback("MergeJournal::Apply:Recorded", [](void*) { _exit(0); });
              SyncPoints::Instance().Enable();
              (void)db->CompactRange({}, nullptr, nullptr);
              return 2;
            }),
            0);
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::OpenForReadOnly(options_, path, &db));
  EXPECT_TRUE(WaitUntil([&] {
    ReadKeys(db.get(), kKeys);
    return CacheBytes(db.get()) >= 256u << 10;
  }));
}

// A reader that stays in the old table holds up a resize, which goes on once the reader has left.
TEST_F(DbLookupCacheSizeTest, AResizeThatAReaderHeldUpGoesOn) {
  options_.lookup_cache_size = 1 << 20;
  std::unique_ptr<DB> db = Open("db");
  constexpr int kKeys = 10'000;
  PutKeys(db.get(), 0, kKeys);
  ASSERT_OK(db->Close());
  for (const bool read_only : {false, true}) {
    SCOPED_TRACE(read_only);
    db.reset();
    const std::string path = directory_.path() + "/db";
    ASSERT_OK(read_only ? DB::OpenForReadOnly(options_, path, &db) : DB::Open(options_, path, &db));
    std::atomic<bool> leaves{false}, is_in{false};
    static thread_local bool t_stays = false;
    SyncPoints::Instance().SetCallback("DBImpl::SearchLevels:Memtables", [&](void*) {
      if (!std::exchange(t_stays, false)) return;
      is_in = true;
      while (!leaves) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    SyncPoints::Instance().Enable();
    std::thread reader([&] {
      t_stays = true;
      EXPECT_EQ(GetOrText(db.get(), "no key"), "<not found>");
    });
    while (!is_in) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (int round = 0; round < 3; ++round) ReadKeys(db.get(), kKeys);
    EXPECT_LT(CacheBytes(db.get()), 256u << 10);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // many times the pause after which a resize lets the reader be
    leaves = true;
    reader.join();
    SyncPoints::Instance().Clear();
    EXPECT_TRUE(WaitUntil([&] {
      ReadKeys(db.get(), kKeys);
      return CacheBytes(db.get()) >= 256u << 10;
    }));
  }
}

// Three databases of which each alone would take all of it.
TEST_F(DbLookupCacheSizeTest, OneLimitIsForAllDatabasesThatShareIt) {
  constexpr uint64_t kLimit = 1 << 20;
  options_.lookup_cache_size = kLimit;
  options_.lookup_cache_limit = std::make_shared<CacheLimit>(kLimit);
  const CacheLimit& limit = *options_.lookup_cache_limit;
  std::vector<std::unique_ptr<DB>> databases;
  for (const char* name : {"a", "b", "c"}) databases.push_back(Open(name));
  const auto all = [&databases] {
    uint64_t sum = 0;
    for (const auto& db : databases) sum += CacheBytes(db.get());
    return sum;
  };
  EXPECT_EQ(limit.usage(), all());
  for (int i = 0; i < 20'000; ++i) {
    for (const auto& db : databases) ASSERT_OK(db->Put({}, NumberedKey(i), PatternedValue(i, 20)));
    ASSERT_LE(limit.usage(), kLimit);
    ASSERT_LE(all(), kLimit);
  }
  EXPECT_TRUE(WaitUntil([&] { return all() >= kLimit / 4; })) << all();
  for (const auto& db : databases) {
    for (int i = 0; i < 20'000; i += 7) ASSERT_EQ(GetOrText(db.get(), NumberedKey(i)), PatternedValue(i, 20));
  }
  databases.clear();
  EXPECT_EQ(limit.usage(), 0u);
}

TEST_F(DbLookupCacheSizeTest, AnIdleDatabaseGivesBack) {
  SetIdleRound(std::chrono::milliseconds(10));
  options_.lookup_cache_size = 4 << 20;
  options_.lookup_cache_limit = std::make_shared<CacheLimit>(4 << 20);
  const std::unique_ptr<DB> db = Open("db");
  const uint64_t first = CacheBytes(db.get());
  PutKeys(db.get(), 0, 20'000);
  EXPECT_TRUE(WaitUntil([&] { return CacheBytes(db.get()) <= first; })) << CacheBytes(db.get());
  // Until the last reader has left the old table, its memory counts.
  EXPECT_TRUE(WaitUntil([&] { return options_.lookup_cache_limit->usage() == first; })) << options_.lookup_cache_limit->usage();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 20'000; ++i) ASSERT_EQ(GetOrText(db.get(), NumberedKey(i)), PatternedValue(i, 100));
  }
  PutKeys(db.get(), 20'000, 30'000);
  for (int i = 0; i < 30'000; ++i) ASSERT_EQ(GetOrText(db.get(), NumberedKey(i)), PatternedValue(i, 100));
}

// A thread keeps what a usual batch needs, and gives back the rest of a large one.
TEST(DbBatchMemoryTest, ALargeBatchLeavesNothingBehind) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps freed memory";
#endif
  if (!IsAlone()) return;
  const TestDirectory directory;
  Options options;
  options.create_if_missing = true;
  options.lookup_cache_size = 0;
  options.filter_bits_per_key = 0;
  options.disable_auto_compaction = true;
  const std::unique_ptr<DB> db = OpenOrFail(options, directory.File("db"));
  ASSERT_NE(db, nullptr);
  constexpr int kUpdates = 400'000;
  const uint64_t before = AnonymousKiB();
  {
    WriteBatch batch;
    for (int i = 0; i < kUpdates; ++i) batch.Put("key", "value");  // one key: the table of it has one entry
    ASSERT_OK(db->Write({}, batch));
  }
  ASSERT_OK(db->Flush());
  ASSERT_OK(db->Put({}, "key", "value"));
  ASSERT_OK(db->Flush());
  // The vectors of so many updates take more than 100 MiB. What an allocator keeps, and memtables for reuse, are less.
  uint64_t after = 0;
  EXPECT_TRUE(WaitUntil([&] { return (after = AnonymousKiB()) < before + (80u << 10); })) << after - before << " KiB";
}

}  // namespace
}  // namespace braiddb::test
