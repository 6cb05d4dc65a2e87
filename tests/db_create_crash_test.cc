// A crash while a database is created leaves no database, or a whole one. [CC-1]
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/db.h"
#include "db/test_hooks.h"
#include "pmem/database_file.h"
#include "tests/support/db_test_util.h"
#include "tests/support/file_cut.h"

namespace {

braiddb::test::FileCut file_cut;
std::string path_of_mappings;  // in what file_cut looks at; "" if their syncs do not count

}  // namespace

// In place of the C library's, also for libpmemobj.
extern "C" {

int mkdir(const char* path, mode_t mode) noexcept {
  file_cut.Before(path);
  const auto result = static_cast<int>(syscall(SYS_mkdir, path, mode));
  if (result == 0) file_cut.Made(path);
  return result;
}
int unlink(const char* path) noexcept {
  file_cut.Before(path);
  const std::string kept = file_cut.Keep(path);
  const auto result = static_cast<int>(syscall(SYS_unlink, path));
  if (result == 0) file_cut.Removed(path, kept);
  return result;
}
int rename(const char* from, const char* to) noexcept {
  file_cut.Before(to);
  const std::string kept = file_cut.Keep(to);
  const auto result = static_cast<int>(syscall(SYS_rename, from, to));
  if (result == 0) file_cut.Renamed(from, to, kept);
  return result;
}
int fsync(int fd) {
  file_cut.Before(braiddb::test::FileCut::PathOf(fd));
  const auto result = static_cast<int>(syscall(SYS_fsync, fd));
  if (result == 0) file_cut.Synced(fd);
  return result;
}
int msync(void* address, size_t bytes, int flags) {
  file_cut.Before(path_of_mappings);
  const auto result = static_cast<int>(syscall(SYS_msync, address, bytes, flags));
  if (result == 0) file_cut.SyncedMapping(address);
  return result;
}
int posix_fallocate(int fd, off_t offset, off_t bytes) {
  file_cut.Before(braiddb::test::FileCut::PathOf(fd));
  return syscall(SYS_fallocate, fd, 0, offset, bytes) == 0 ? 0 : errno;
}

}  // extern "C"

namespace braiddb::test {
namespace {

struct Place {
  uint32_t regions;
  PersistMode mode;
};

class DbCreateCrashTest : public testing::TestWithParam<Place> {
 protected:
  static uint32_t regions() { return GetParam().regions; }
  Options MakeOptions(bool create_if_missing) const {
    Options options = TinyOptions(regions());
    options.persist_mode = GetParam().mode;
    options.max_region_size = 64ull << 20;
    options.initial_region_size = initial_region_size_;
    options.create_if_missing = create_if_missing;
    options.region_paths = region_paths_;
    return options;
  }

  // What is at path_ is no database, which can then be made, or a whole one. Returns which.
  enum class Found { kNone, kWhole };
  Found Judge(const std::map<std::string, std::string>& expected_if_whole) {
    std::unique_ptr<DB> db;
    Status status = DB::Open(MakeOptions(false), path_, &db);
    const Found found = status.ok() ? Found::kWhole : Found::kNone;
    if (!status.ok()) {
      EXPECT_CODE(status, kNotFound);
      EXPECT_OK(DB::Open(MakeOptions(true), path_, &db));
      if (db == nullptr) return found;
      EXPECT_TRUE(HoldsExactly(db.get(), Pairs{}));
      EXPECT_OK(db->Put({}, "key", "value"));
      return found;
    }
    EXPECT_TRUE(HoldsExactly(db.get(), expected_if_whole));
    // It works: in all its regions, in each level, and after an open.
    std::map<std::string, std::string> expected = expected_if_whole;
    for (uint32_t i = 0; i < 2; ++i) {
      expected[NumberedKey(i)] = "value";
      std::thread([&] { EXPECT_OK(db->Put({}, NumberedKey(i), "value")); }).join();
    }
    EXPECT_OK(db->CompactRange({}, nullptr, nullptr));
    EXPECT_OK(db->Close());
    db.reset();
    EXPECT_OK(DB::Open(MakeOptions(false), path_, &db));
    if (db != nullptr) {
      EXPECT_TRUE(HoldsExactly(db.get(), expected));
      EXPECT_EQ(RegionsOf(db.get())->count(), regions());
    }
    return found;
  }

  // Creates a database and writes a key, in a child, until operation number `at`. Returns the child's exit code.
  int CreateUntil(int64_t at, uint32_t percent_lost) {
    std::filesystem::remove_all(path_);
    for (const std::string& region : region_paths_) std::filesystem::remove_all(region);
    return RunInChild([&] {
      path_of_mappings = GetParam().mode == PersistMode::kPage ? path_ : std::string();
      file_cut.Begin(path_, directory_.File("scratch"), at, percent_lost, static_cast<uint64_t>(at) + 1);
      std::unique_ptr<DB> db;
      if (!DB::Open(MakeOptions(true), path_, &db).ok()) return 1;
      if (at != FileCut::kNever) _exit(0);  // without a close
      if (!db->Put({}, "acknowledged", "1").ok()) return 1;
      file_cut.FailNow();
    });
  }

  // The same of what is there, until the key is acknowledged; what is there counts as not synced.
  int CreateAgain() {
    return RunInChild([&] {
      path_of_mappings = GetParam().mode == PersistMode::kPage ? path_ : std::string();
      file_cut.Begin(path_, directory_.File("scratch"), FileCut::kNever, 100, 1);
      if (std::filesystem::exists(path_ + "/DATABASE")) {  // the first creation has synced all but this name
        file_cut.RememberContents();
        file_cut.Renamed(path_ + "/CREATING", path_ + "/DATABASE", "");
      } else {
        file_cut.ForgetSyncs();
      }
      std::unique_ptr<DB> db;
      if (!DB::Open(MakeOptions(true), path_, &db).ok() || !db->Put({}, "acknowledged", "1").ok()) return 1;
      file_cut.FailNow();
    });
  }

  void NameRegionsElsewhere() {
    for (uint32_t region = 0; region < regions(); ++region) {
      region_paths_.push_back(directory_.File("db-elsewhere/" + std::to_string(region)));
    }
  }

  // Crashes at each of the file operations in turn. Returns how many there are.
  int64_t CutEverywhere() {
    int64_t at = 0;
    for (int exit_code = FileCut::kExitCode; exit_code == FileCut::kExitCode; ++at) {
      for (const uint32_t percent_lost : {100, 50}) {
        if (percent_lost == 50 && at % (2 * kSlowdown) != 0) continue;
        SCOPED_TRACE("operation " + std::to_string(at) + ", " + std::to_string(percent_lost) + " % lost");
        exit_code = CreateUntil(at, percent_lost);
        EXPECT_TRUE(exit_code == FileCut::kExitCode || exit_code == 0) << exit_code;
        if (exit_code == 0) break;
        Judge({});
        if (HasFailure()) return 0;
      }
    }
    std::printf("%lld operations\n", static_cast<long long>(at - 1));
    return at - 1;
  }

  uint64_t initial_region_size_ = 0;
  TestDirectory directory_;
  const std::string path_ = directory_.File("db");
  std::vector<std::string> region_paths_;
};

INSTANTIATE_TEST_SUITE_P(Places, DbCreateCrashTest,
                         testing::Values(Place{1, PersistMode::kEmulated}, Place{2, PersistMode::kEmulated},
                                         Place{1, PersistMode::kPage}),
                         [](const auto& test) {
                           const bool is_page = test.param.mode == PersistMode::kPage;
                           return std::to_string(test.param.regions) + (is_page ? "OnADisk" : "");
                         });

TEST_P(DbCreateCrashTest, AtEveryFileOperation) {
  const int64_t operations = CutEverywhere();
  if (HasFailure()) return;
  EXPECT_GT(operations, 10 + 8 * regions());
  // The last operation makes the end of the creation durable; with some luck, it is without it.
  const int64_t last = operations - 1;
  ASSERT_EQ(CreateUntil(last, 0), FileCut::kExitCode);
  EXPECT_EQ(Judge({}), Found::kWhole);
  ASSERT_EQ(CreateUntil(last, 100), FileCut::kExitCode);
  EXPECT_EQ(Judge({}), Found::kNone);
  ASSERT_EQ(CreateUntil(FileCut::kNever, 100), FileCut::kExitCode);
  EXPECT_EQ(Judge({{"acknowledged", "1"}}), Found::kWhole);
}

// What regions elsewhere have on media outlives the database's directory, and is known for what it is.
TEST_P(DbCreateCrashTest, AtEveryFileOperationOfRegionsElsewhere) {
  NameRegionsElsewhere();
  EXPECT_GT(CutEverywhere(), 10 + 8 * regions());
}

// A creation is killed at any operation, and another one, or an open, comes to its end. Then the power fails, and what the first
// one has made and nobody has synced is lost.
TEST_P(DbCreateCrashTest, AfterAKilledCreation) {
  for (const bool regions_elsewhere : {false, true}) {
    if (regions_elsewhere) NameRegionsElsewhere();
    for (int64_t at = 0; CreateUntil(at, 0) == FileCut::kExitCode; at += regions() == 1 ? kSlowdown : 5 * kSlowdown) {
      SCOPED_TRACE(at);
      ASSERT_EQ(CreateAgain(), FileCut::kExitCode);
      ASSERT_EQ(Judge({{"acknowledged", "1"}}), Found::kWhole);
      if (HasFailure()) return;
    }
  }
}

// CREATING has its name before it is durable. What a crash may leave of it tells of a creation that made nothing else. Other
// bytes are damage, or somebody's.
TEST_P(DbCreateCrashTest, ATornMarkIsOfNothing) {
  const DatabaseFile whole{1, path_, {path_ + "/region-0"}};
  const std::string text = whole.ToText();
  const std::string half = text.substr(0, text.size() / 2);
  for (const std::string& torn :
       {std::string(), text.substr(0, 5), half, half + std::string(100, '\0'), std::string(100, '\0')}) {
    SCOPED_TRACE(torn);
    for (const bool destroys : {true, false}) {
      std::filesystem::create_directories(path_);
      WriteFileOrDie(path_ + "/CREATING", torn);
      if (destroys) {
        EXPECT_OK(DB::Destroy(MakeOptions(false), path_));
        EXPECT_FALSE(std::filesystem::exists(path_));
      } else {
        EXPECT_EQ(Judge({}), Found::kNone);
        std::filesystem::remove_all(path_);
      }
    }
  }
  std::string damaged = text;
  damaged[text.size() / 2] ^= 1;
  for (const std::string& foreign : {std::string("mine"), damaged}) {
    std::filesystem::create_directories(path_);
    WriteFileOrDie(path_ + "/CREATING", foreign);
    std::unique_ptr<DB> db;
    EXPECT_CODE(DB::Open(MakeOptions(true), path_, &db), kCorruption);
    EXPECT_EQ(ReadFileOrDie(path_ + "/CREATING"), foreign);
  }
}

// Regions that get their initial size are those of a database that is whole.
TEST_P(DbCreateCrashTest, AtEveryFileOperationOfAnInitialSize) {
  if (GetParam().mode == PersistMode::kPage) GTEST_SKIP() << "growth is the same";
  initial_region_size_ = 20ull << 20;
  EXPECT_GT(CutEverywhere(), 10 + 8 * regions());
}

// Open has returned: whatever directories forget, the database is there, and with it what was written.
TEST_P(DbCreateCrashTest, AfterItNothingCanBeForgotten) {
  for (const bool regions_elsewhere : {false, true}) {
    if (regions_elsewhere) NameRegionsElsewhere();
    for (const uint32_t percent_lost : {0, 100}) {
      ASSERT_EQ(CreateUntil(FileCut::kNever, percent_lost), FileCut::kExitCode);
      EXPECT_EQ(Judge({{"acknowledged", "1"}}), Found::kWhole);
    }
  }
}

}  // namespace
}  // namespace braiddb::test
