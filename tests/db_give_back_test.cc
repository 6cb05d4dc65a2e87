// A database gives the blocks of free segments back to the file system: readers see no difference, the space is used again, and a
// full file system is an error. [CC-66]
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/check.h"
#include "check/media.h"
#include "pmem/layout.h"
#include "pmem/part_list.h"
#include "tests/support/db_fixture.h"
#include "tests/support/load_media.h"
#include "tests/support/wait_until.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMiB = 1ull << 20;

// Bytes of all files of the database that have blocks.
uint64_t BlockBytes(const std::string& path) {
  uint64_t bytes = 0;
  for (const auto& file : fs::recursive_directory_iterator(path)) {
    struct stat st;
    if (file.is_regular_file() && stat(file.path().c_str(), &st) == 0) bytes += static_cast<uint64_t>(st.st_blocks) * 512;
  }
  return bytes;
}

class DbGiveBackTest : public DbTest {
 protected:
  void SetUp() override {
    options_.kept_free_space = 0;
    options_.memtable_size = 128 << 10;
    DbTest::SetUp();
  }
  void TearDown() override {
    db_.reset();
    SyncPoints::Instance().Clear();
  }
  // Rounds of milliseconds in place of seconds.
  static void HurryUp() {
    SyncPoints::Instance().SetCallback("DBImpl::NextGiveBack:Round", [](void* round) {
      *static_cast<std::chrono::milliseconds*>(round) = std::chrono::milliseconds(2);
    });
    SyncPoints::Instance().Enable();
  }
  uint64_t Property(const char* name) const { return IntProperty(db_.get(), std::string("braiddb.") + name); }
  uint64_t Punched() const { return Property("pm-bytes-punched"); }
  uint64_t Blocks() const { return BlockBytes(directory_.File("db")); }
  void Put(int begin, int end) {
    for (int i = begin; i < end; ++i) {
      ASSERT_OK(db_->Put({}, NumberedKey(i), PatternedValue(i, 400)));
      expected_[NumberedKey(i)] = PatternedValue(i, 400);
    }
  }
  // Deletes nine keys of ten.
  void DeleteMost(int begin, int end) {
    for (int i = begin; i < end; ++i) {
      if (i % 10 == 0) continue;
      ASSERT_OK(db_->Delete({}, NumberedKey(i)));
      expected_.erase(NumberedKey(i));
    }
  }
  // Twice the live bytes, and what regions keep: four segments, those of writers, what the last level has for itself, and space
  // that no segment has. Rewritten runs leave the most of the latter. Each further region keeps its own four segments, and its
  // last part may be one that no segment was taken from.
  uint64_t Bound() const {
    const uint64_t beside = TestedL1() == L1Kind::kBraidedSkipList ? 8 : LogHoldsLastLevel() ? 12 : 20;
    const uint64_t further_regions = static_cast<uint64_t>(GetParam()) - 1;
    return 2 * 480 * expected_.size() + (beside + 3 * further_regions) * kMiB;
  }
  bool BlocksFall(uint64_t min_punched = 1) {
    return WaitUntil([&] { return Punched() >= min_punched && Blocks() <= Bound(); });
  }
  void ExpectSound() {
    db_.reset();
    EXPECT_TRUE(ChecksAsSound(directory_.File("db")));
    Reopen();
    EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
  }

  std::map<std::string, std::string> expected_;
};

INSTANTIATE_TEST_SUITE_P(Regions, DbGiveBackTest, testing::Values(1, 2),
                         [](const auto& test) { return std::to_string(test.param); });

TEST_P(DbGiveBackTest, BlocksFallWithTheDataAndComeBackWithIt) {
  HurryUp();
  Put(0, 40'000);
  ASSERT_GT(Blocks(), 22 * kMiB);
  for (int round = 0; round < (kSlowdown == 1 ? 2 : 1); ++round) {
    DeleteMost(0, 40'000);
    EXPECT_TRUE(BlocksFall()) << Blocks() << " have blocks, " << Property("pm-bytes-live") << " live, " << Punched()
                              << " punched";
    EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
    // After this, no flush and no merge of the next open needs blocks.
    ASSERT_OK(db_->Flush());
    ASSERT_OK(db_->WaitForCompaction());
    EXPECT_TRUE(BlocksFall()) << Blocks();
    const uint64_t reserved = Property("pm-bytes-reserved");
    // Blocks may be given back between the two figures. A free segment counts as punched as a whole, but the pages that it shares
    // with its neighbors have blocks.
    const uint64_t shared = 2 * static_cast<uint64_t>(getpagesize()) * Property("num-free-segments");
    constexpr uint64_t kOtherFiles = 64 << 10;  // what the files without segments have
    EXPECT_TRUE(WaitUntil([&] { return reserved >= Blocks() + Punched() - shared - kOtherFiles; }))
        << Blocks() << " and " << Punched() << ", of " << reserved;
    ExpectSound();
    EXPECT_EQ(Property("pm-bytes-reserved"), reserved) << "the files keep their lengths";
    EXPECT_LT(Blocks(), Bound() + kMiB) << "an open leaves the holes";
    Put(0, 40'000);
    ASSERT_OK(db_->Flush());
    EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
  }
  ExpectSound();
}

// The default is patient: within ten seconds all the same.
TEST_P(DbGiveBackTest, BlocksFallWithinTenSeconds) {
  Put(0, 40'000);
  DeleteMost(0, 40'000);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(BlocksFall());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60)) << "10 s on a machine that is not busy";
}

TEST_P(DbGiveBackTest, TheLargestValueKeepsAllBlocks) {
  options_.kept_free_space = UINT64_MAX;
  Reopen();
  HurryUp();
  Put(0, 20'000);
  DeleteMost(0, 20'000);
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  ASSERT_GT(Property("num-free-segments"), 10u);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(Punched(), 0u);
}

// Views of before read what they saw, whatever comes to the segments of later.
TEST_P(DbGiveBackTest, OpenIteratorsAndSnapshotsReadOn) {
  HurryUp();
  Put(0, 20'000);
  const std::map<std::string, std::string> before = expected_;
  const Snapshot* const snapshot = db_->GetSnapshot();
  std::unique_ptr<Iterator> iterator(db_->NewIterator({}));
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  DeleteMost(0, 20'000);
  Put(20'000, 40'000);
  DeleteMost(20'000, 40'000);
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  for (const auto& [key, value] : before) {
    ASSERT_TRUE(iterator->Valid());
    ASSERT_EQ(std::string(iterator->key()), key);
    ASSERT_EQ(std::string(iterator->value()), value);
    iterator->Next();
  }
  EXPECT_FALSE(iterator->Valid());
  EXPECT_OK(iterator->status());
  ReadOptions old;
  old.snapshot = snapshot;
  EXPECT_TRUE(HoldsExactly(db_.get(), before, old));
  iterator.reset();
  db_->ReleaseSnapshot(snapshot);
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  ExpectSound();
}

// Writers take segments, merges and relocations free them, and blocks come and go meanwhile.
TEST_P(DbGiveBackTest, ReadersAndWritersGoOn) {
  HurryUp();
  constexpr int kKeys = 4000;
  const auto value_of = [](int key, int round) { return PatternedValue(key, 200) + "/" + std::to_string(round); };
  std::atomic<bool> ends{false};
  std::atomic<uint64_t> most_punched{0};
  std::atomic<uint64_t> reads{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < 2; ++number) {
    threads.emplace_back([&] {
      for (Random random(301 + reads.load()); !ends.load();) {
        const int key = static_cast<int>(random.Range(0, kKeys - 1));
        std::string value;
        const Status status = db_->Get({}, NumberedKey(key), &value);
        ASSERT_TRUE(status.ok() || status.IsNotFound()) << status.ToString();
        if (status.ok()) {
          ASSERT_TRUE(value.starts_with(PatternedValue(key, 200)));
        }
        reads.fetch_add(1);
      }
    });
  }
  threads.emplace_back([&] {
    while (!ends.load()) {
      std::unique_ptr<Iterator> iterator(db_->NewIterator({}));
      std::string last;
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
        ASSERT_LT(last, std::string(iterator->key()));
        last = std::string(iterator->key());
        const int key = std::stoi(last.substr(last.find_first_of("0123456789")));
        ASSERT_TRUE(std::string(iterator->value()).starts_with(PatternedValue(static_cast<uint64_t>(key), 200)));
      }
      ASSERT_OK(iterator->status());
      most_punched.store(std::max(most_punched.load(), Punched()));
    }
  });
  Rounds rounds(12 / kSlowdown);
  while (rounds.Next() || most_punched.load() == 0) {
    const int round = static_cast<int>(rounds.number());
    for (int i = 0; i < 3 * kKeys; ++i) ASSERT_OK(db_->Put({}, NumberedKey(i % kKeys), value_of(i % kKeys, round)));
    for (int i = 0; i < kKeys; ++i) {
      if (i % 10 != 0) {
        ASSERT_OK(db_->Delete({}, NumberedKey(i)));
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    expected_.clear();
    for (int i = 0; i < kKeys; i += 10) expected_[NumberedKey(i)] = value_of(i, round);
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(most_punched.load(), 0u);
  ExpectSound();
}

// ---- A full file system

class DbFullFileSystemTest : public DbGiveBackTest {
 protected:
  void SetUp() override {
    fs::create_directory(directory_.File("db"));
    if (mount("none", directory_.File("db").c_str(), "tmpfs", 0, "size=64m") != 0) GTEST_SKIP() << "cannot mount a tmpfs";
    is_mounted_ = true;
    options_.no_space_timeout_ms = 100;
    DbGiveBackTest::SetUp();
  }
  void TearDown() override {
    DbGiveBackTest::TearDown();
    if (is_mounted_) umount2(directory_.File("db").c_str(), MNT_DETACH);
  }
  std::string Filler() const { return directory_.File("db") + "/filler"; }
  void FillFileSystem(std::ios::openmode mode = std::ios::trunc) {
    std::ofstream out(Filler(), std::ios::binary | mode);
    const std::string block(4096, 'x');
    while (out.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  // Damages the link to the first block of the segment directory, so that a repair searches the region for segment headers.
  void DamageDirectory() {
    const std::string path = directory_.File("db");
    const uint64_t block = AlignToLine(LoadMedia(path)->root(0)->directory.offset);
    const int fd = open((path + "/region-0/" + PartName(0)).c_str(), O_WRONLY);
    ASSERT_GE(fd, 0);
    const uint64_t tag = 0x1234;
    EXPECT_EQ(pwrite(fd, &tag, sizeof(tag), static_cast<off_t>(block + offsetof(DirectoryBlock, tag))),
              static_cast<ssize_t>(sizeof(tag)));
    close(fd);
  }

  bool is_mounted_ = false;
};

INSTANTIATE_TEST_SUITE_P(Regions, DbFullFileSystemTest, testing::Values(1, 2),
                         [](const auto& test) { return std::to_string(test.param); });

// Another file takes the blocks that the database gave back. A store to a page without a block would end the test by SIGBUS.
TEST_P(DbFullFileSystemTest, WritesAreRefusedAndNothingIsLost) {
  HurryUp();
  Put(0, 40'000);
  DeleteMost(0, 40'000);
  ASSERT_TRUE(BlocksFall(4 * kMiB)) << Blocks() << " have blocks, " << Punched() << " punched";
  FillFileSystem();
  // The database may give more blocks back meanwhile; the file takes those, too.
  std::atomic<bool> stop{false};
  std::thread filler([&] {
    for (; !stop; std::this_thread::sleep_for(std::chrono::milliseconds(1))) FillFileSystem(std::ios::app);
  });
  Status status;
  int put = 0;
  for (; put < 40'000 && status.ok(); ++put) {
    status = db_->Put({}, NumberedKey(put), PatternedValue(put, 400));
    if (status.ok()) expected_[NumberedKey(put)] = PatternedValue(put, 400);
  }
  stop = true;
  filler.join();
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
  if (TestedL1() == L1Kind::kBraidedSkipList) {  // other last levels need free space for a merge
    ASSERT_OK(db_->Delete({}, NumberedKey(0)));
    expected_.erase(NumberedKey(0));
  }
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
  fs::remove(Filler());
  Put(0, 40'000);
  EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
  ExpectSound();
}

// A repair that searches the regions for segments reads free segments too. A read of a hole through a mapping of the file would
// take a block, and end the process by SIGBUS if there is none.
TEST_P(DbFullFileSystemTest, ARepairSkipsHolesAndReportsNoLoss) {
  HurryUp();
  Put(0, 40'000);
  DeleteMost(0, 40'000);
  ASSERT_TRUE(BlocksFall(4 * kMiB)) << Blocks() << " have blocks, " << Punched() << " punched";
  ASSERT_OK(db_->Close());
  db_.reset();
  DamageDirectory();
  // Released copies of sorted runs have no mark, so deleted keys may come back without a directory.
  const bool keeps_marks = TestedL1() != L1Kind::kSortedRuns;
  for (const bool is_full : {false, true}) {
    if (is_full) FillFileSystem();
    const uint64_t blocks = Blocks();
    const std::string fresh = directory_.File(is_full ? "fresh-full" : "fresh");
    RepairOptions options;
    options.target = options_;
    EXPECT_EQ(RunInChild([&] {
                RepairReport report;
                const Status status = RepairDatabase(options, directory_.File("db"), fresh, &report);
                EXPECT_OK(status);
                EXPECT_FALSE(report.damage.empty());
                EXPECT_EQ(report.damaged_stretches, 0u);
                EXPECT_EQ(report.broken_batches, 0u);
                if (keeps_marks) {
                  for (const std::string& lost : report.lost) ADD_FAILURE() << "lost: " << lost;
                }
                return HasFailure() ? 1 : 0;
              }),
              0);
    EXPECT_EQ(Blocks(), blocks);
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::Open(options_, fresh, &db));
    if (keeps_marks) {
      EXPECT_TRUE(HoldsExactly(db.get(), expected_));
      continue;
    }
    for (const auto& [key, value] : expected_) {
      std::string found;
      ASSERT_OK(db->Get({}, key, &found));
      EXPECT_EQ(found, value);
    }
  }
}

}  // namespace
}  // namespace braiddb::test
