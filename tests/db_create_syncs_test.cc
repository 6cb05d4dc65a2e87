// Syncs of a database on an ordinary disk, from its creation to its second close: how many there are, and what becomes of one
// that fails. Each is a flush of the disk's cache and may be a commit of the file system's journal, so their number is the time.
// [CC-1]
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "tests/support/db_test_util.h"

namespace {

std::atomic<int64_t> syncs{0};
std::atomic<int64_t> failing{-1};  // the sync with this number fails, and no other

bool FailsNow() {
  if (syncs++ != failing) return false;
  errno = EIO;
  return true;
}

template <class Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// In place of the C library's, also for PMDK.
extern "C" {

int fsync(int fd) {
  static auto* const real = Real<int(int)>("fsync");
  return FailsNow() ? -1 : real(fd);
}
int fdatasync(int fd) {
  static auto* const real = Real<int(int)>("fdatasync");
  return FailsNow() ? -1 : real(fd);
}
int msync(void* address, size_t bytes, int flags) {
  static auto* const real = Real<int(void*, size_t, int)>("msync");
  return FailsNow() ? -1 : real(address, bytes, flags);
}

}  // extern "C"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;

class DbCreateSyncsTest : public testing::Test {
 protected:
  DbCreateSyncsTest() {
    options_.persist_mode = PersistMode::kPage;
    options_.create_if_missing = true;
    options_.regions = 1;
    options_.max_region_size = 64ull << 20;
    options_.disable_auto_compaction = true;  // no merge syncs meanwhile
  }
  ~DbCreateSyncsTest() override { failing = -1; }

  // How many syncs `call` makes.
  template <class Call>
  static int64_t SyncsOf(const Call& call) {
    const int64_t before = syncs;
    call();
    return syncs - before;
  }
  Status Open() { return DB::Open(options_, path_, &db_); }
  void PutSome(int keys) {
    WriteOptions unsynced;
    unsynced.sync = false;
    for (int i = 0; i < keys; ++i) ASSERT_OK(db_->Put(unsynced, NumberedKey(i), PatternedValue(i, 100)));
  }
  void Close() {
    EXPECT_OK(db_->Close());
    db_.reset();
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& found : fs::recursive_directory_iterator(directory_.path())) names.push_back(found.path());
    return names;
  }

  Options options_;
  TestDirectory directory_;
  const std::string path_ = directory_.File("db");
  std::unique_ptr<DB> db_;
};

// The bounds are what there is. CREATING and its directory; the pool; region.set, PARTS, OPTIONS; the region's directory, the
// database's, its parent; DATABASE's directory.
TEST_F(DbCreateSyncsTest, AFirstLifeAndASecondAreFewSyncs) {
  EXPECT_LE(SyncsOf([&] { ASSERT_OK(Open()); }), 10);
  EXPECT_LE(SyncsOf([&] { PutSome(100); }), 2) << "the state of the first segment";
  EXPECT_LE(SyncsOf([&] { Close(); }), 2) << "the log with the pointers in it, and the MANIFEST";
  EXPECT_LE(SyncsOf([&] { ASSERT_OK(Open()); }), 2) << "what was found, and the MANIFEST's selector";
  EXPECT_EQ(GetOrText(db_.get(), NumberedKey(99)), PatternedValue(99, 100));
  EXPECT_EQ(SyncsOf([&] { Close(); }), 0) << "nothing has changed";
}

TEST_F(DbCreateSyncsTest, RegionsAddTheirPoolsAndFiles) {
  options_.regions = 4;
  EXPECT_LE(SyncsOf([&] { ASSERT_OK(Open()); }), 10 + 3 * 4);
}

// Files of regions that lie elsewhere are synced in their order.
TEST_F(DbCreateSyncsTest, RegionsElsewhereSyncAsTheyGo) {
  options_.region_paths = {directory_.File("elsewhere")};
  EXPECT_GT(SyncsOf([&] { ASSERT_OK(Open()); }), 15);
}

// Any sync fails: the open is an error and leaves nothing, or the database was whole and is there.
TEST_F(DbCreateSyncsTest, ASyncThatFails) {
  for (const bool elsewhere : {false, true}) {
    if (elsewhere) options_.region_paths = {directory_.File("elsewhere")};
    bool failed = true;
    for (int64_t number = 0; failed; ++number) {
      SCOPED_TRACE(number);
      syncs = 0;
      failing = number;
      const Status status = Open();
      failed = syncs > number;
      failing = -1;
      if (status.ok()) {
        ASSERT_NE(db_, nullptr);
        Close();
      } else {
        EXPECT_TRUE(failed);
        EXPECT_TRUE(status.IsIOError()) << status.ToString();
        if (!fs::exists(path_ + "/DATABASE")) {
          EXPECT_EQ(Names(), std::vector<std::string>());
        }
      }
      ASSERT_OK(Open());
      PutSome(1);
      Close();
      ASSERT_OK(Open());
      EXPECT_EQ(GetOrText(db_.get(), NumberedKey(0)), PatternedValue(0, 100));
      Close();
      ASSERT_OK(DB::Destroy(options_, path_));
      EXPECT_EQ(Names(), std::vector<std::string>());
    }
  }
}

}  // namespace
}  // namespace braiddb::test
