// Databases, their regions and their copies in directories of any name, and whose files can be read.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/backup.h"
#include "braiddb/check.h"
#include "braiddb/db.h"
#include "braiddb/options_file.h"
#include "tests/support/db_test_util.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;

class DbPathsTest : public testing::Test {
 protected:
  // All bytes that a name can have.
  static std::string AllBytes() {
    std::string name;
    for (int byte = 1; byte < 256; ++byte) {
      if (byte != '/') name += static_cast<char>(byte);
    }
    return name;
  }
  void WorksIn(const std::string& path, const std::vector<std::string>& region_paths = {}) {
    Options options = TinyOptions(2);
    options.region_paths = region_paths;
    options.initial_region_size = 24 << 20;  // a second part
    {
      auto db = OpenOrFail(options, path);
      ASSERT_NE(db, nullptr);
      ASSERT_OK(db->Put({}, "k", "v"));
    }
    EXPECT_TRUE(ChecksAsSound(path));
    auto db = OpenOrFail(options, path);
    ASSERT_NE(db, nullptr);
    EXPECT_TRUE(HoldsExactly(db.get(), {{"k", "v"}}));
    ASSERT_OK(CreateCheckpoint(db.get(), path + ".copy#"));
    std::unique_ptr<BackupEngine> engine;
    ASSERT_OK(BackupEngine::Open(path + ".backups #", &engine));
    ASSERT_OK(engine->CreateBackup(db.get()));
    db.reset();
    ASSERT_OK(engine->RestoreBackup(1, TinyOptions(1), path + ".restored #"));
    RepairReport report;
    ASSERT_OK(RepairDatabase({}, path, path + ".repaired #", &report));
    for (const char* copy : {".copy#", ".restored #", ".repaired #"}) {
      EXPECT_TRUE(HoldsExactly(OpenOrFail(TinyOptions(0), path + copy).get(), {{"k", "v"}})) << copy;
      ASSERT_OK(DB::Destroy({}, path + copy));
    }
    ASSERT_OK(DB::OpenForReadOnly(options, path, &db));
    EXPECT_TRUE(HoldsExactly(db.get(), {{"k", "v"}}));
    db.reset();
    ASSERT_OK(DB::Destroy({}, path));
    EXPECT_FALSE(fs::exists(path));
  }

  TestDirectory directory_;
};

TEST_F(DbPathsTest, AnyNameWorks) {
  const std::string all = AllBytes();
  const std::vector<std::string> names = {"a#b", "a b", "a\nb", "#", "%41", all.substr(0, 120), all.substr(120)};
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    WorksIn(directory_.File(name));
    WorksIn(directory_.File("plain"), {directory_.File(name + "0"), directory_.File(name + "1")});
    if (HasFailure()) return;
  }
}

TEST_F(DbPathsTest, LongRelativeLinkedAndWithDots) {
  std::string deep = directory_.path();
  while (deep.size() < 3800) deep += "/" + std::string(200, 'd');
  fs::create_directories(deep);
  WorksIn(deep + "/db");
  fs::create_directory(directory_.File("target #"));
  fs::create_directory_symlink("target #", directory_.File("link"));
  WorksIn(directory_.File("link") + "/db");
  WorksIn(directory_.File("link/../x #/../db"));
  const fs::path before = fs::current_path();
  fs::current_path(directory_.path());
  WorksIn("relative #");
  WorksIn("./link/../relative");
  fs::current_path(before);
}

// As a program does that opens its database and then becomes a daemon.
TEST_F(DbPathsTest, ANewWorkingDirectoryChangesNothing) {
  const fs::path before = fs::current_path();
  SyncPoints::Instance().SetCallback("DBImpl::StoreIndexes:Least", [](void* least) { *static_cast<uint64_t*>(least) = 0; });
  SyncPoints::Instance().Enable();
  for (const char* name : {"a", "b/db"}) fs::create_directories(directory_.File(name));
  WriteFileOrDie(directory_.File("b/db/INDEX"), "mine");
  WriteFileOrDie(directory_.File("b/db/OPTIONS"), "mine");
  fs::current_path(directory_.File("a"));
  Options options = TinyOptions(1);
  options.l1 = L1Kind::kBraidedSkipList;  // others store no index
  auto db = OpenOrFail(options, "db");
  ASSERT_NE(db, nullptr);
  std::unique_ptr<BackupEngine> engine;
  ASSERT_OK(BackupEngine::Open("backups", &engine));
  std::map<std::string, std::string> expected;
  for (uint64_t i = 0; i < 2000; ++i) {
    ASSERT_OK(db->Put({}, NumberedKey(i), "value"));
    expected[NumberedKey(i)] = "value";
  }
  fs::current_path(directory_.File("b"));
  std::unique_ptr<ColumnFamilyHandle> family;
  ASSERT_OK(db->CreateColumnFamily({}, "family", &family));
  ASSERT_OK(db->DropColumnFamily(family.get()));
  ChangedOptions changed;
  changed.l0_compaction_trigger = 3;
  ASSERT_OK(db->SetOptions(db->DefaultColumnFamily(), changed));
  ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
  ASSERT_OK(engine->CreateBackup(db.get()));
  ASSERT_OK(CreateCheckpoint(db.get(), "copy"));
  EXPECT_EQ(db->GetName(), "db");
  family.reset();
  ASSERT_OK(db->Close());
  db.reset();
  EXPECT_EQ(ReadFileOrDie("db/INDEX"), "mine");
  EXPECT_EQ(ReadFileOrDie("db/OPTIONS"), "mine");
  EXPECT_EQ(std::distance(fs::directory_iterator("db"), {}), 2);
  LoadedOptions loaded;
  for (const char* written : {"a/db", "b/copy"}) {
    ASSERT_OK(LoadLatestOptions(directory_.File(written), &loaded));
    EXPECT_EQ(loaded.options.l0_compaction_trigger, 3u) << written;
  }
  ASSERT_OK(engine->RestoreBackup(1, options, directory_.File("restored")));
  for (const char* there : {"a/db", "b/copy", "restored"}) {
    db = OpenOrFail(options, directory_.File(there));
    EXPECT_TRUE(HoldsExactly(db.get(), expected)) << there;
    db.reset();
  }
  EXPECT_TRUE(fs::exists(directory_.File("a/db/INDEX")));
  fs::current_path(before);
  SyncPoints::Instance().Clear();
}

TEST_F(DbPathsTest, AHalfMadeDirectoryDoesNotStay) {
  Options options = TinyOptions(1);
  options.region_paths = {directory_.File("taken")};
  fs::create_directory(directory_.File("taken"));
  WriteFileOrDie(directory_.File("taken/region.set"), "mine");
  std::unique_ptr<DB> db;
  EXPECT_CODE(DB::Open(options, directory_.File("new/a/b"), &db), kInvalidArgument);
  EXPECT_FALSE(fs::exists(directory_.File("new")));
  EXPECT_EQ(ReadFileOrDie(directory_.File("taken/region.set")), "mine");
}

// ---- Copies

TEST_F(DbPathsTest, ACopyBesideItsOriginalIsRefusedWithAWayOn) {
  const std::string copy = directory_.File("copy");
  auto db = OpenOrFail(TinyOptions(1), directory_.File("db"));
  ASSERT_NE(db, nullptr);
  ASSERT_OK(db->Put({}, "key", "value"));
  db.reset();
  fs::copy(directory_.File("db"), copy, fs::copy_options::recursive);
  db = OpenOrFail(TinyOptions(1), directory_.File("db"));
  std::unique_ptr<DB> second;
  const Status refused = DB::Open(TinyOptions(1), copy, &second);
  EXPECT_TRUE(refused.IsIOError()) << refused.ToString();
  EXPECT_NE(refused.ToString().find("has the database open of which it is a copy; close that first"), std::string::npos)
      << refused.ToString();
  ASSERT_OK(DB::OpenForReadOnly(TinyOptions(1), copy, &second));  // does not use PMDK
  EXPECT_EQ(GetOrText(second.get(), "key"), "value");
  second.reset();
  db.reset();
  db = OpenOrFail(TinyOptions(1), copy);
  EXPECT_EQ(GetOrText(db.get(), "key"), "value");
}

// ---- Permissions

TEST_F(DbPathsTest, OnlyTheOwnerMayReadWhateverTheUmask) {
  for (const mode_t mask : {0u, 022u, 0277u}) {
    SCOPED_TRACE(mask);
    const mode_t before = umask(mask);
    const std::string path = directory_.File("db" + std::to_string(mask));
    {
      Options options = TinyOptions(1);
      options.initial_region_size = 24 << 20;
      auto db = OpenOrFail(options, path);
      ASSERT_NE(db, nullptr);
      std::unique_ptr<BackupEngine> engine;
      EXPECT_OK(BackupEngine::Open(path + "-backups", &engine));
      EXPECT_OK(engine->CreateBackup(db.get()));
      EXPECT_OK(CreateCheckpoint(db.get(), path + "-copy"));
    }
    umask(before);
    for (const std::string& made : {path, path + "-backups", path + "-copy"}) {
      EXPECT_EQ(fs::status(made).permissions(), fs::perms::owner_all) << made;
      for (const auto& entry : fs::recursive_directory_iterator(made)) {
        const auto wanted = entry.is_directory() ? fs::perms::owner_all : fs::perms::owner_read | fs::perms::owner_write;
        EXPECT_EQ(entry.status().permissions(), wanted) << entry.path();
      }
    }
  }
}

// ---- Links in place of our files

TEST_F(DbPathsTest, NothingIsWrittenThroughALink) {
  const std::string victim = directory_.File("victim");
  const std::string path = directory_.File("db");
  for (const char* name : {"LOCK", "CREATING.tmp", "DATABASE.tmp", "OPTIONS.tmp"}) {
    SCOPED_TRACE(name);
    WriteFileOrDie(victim, "precious");
    fs::create_directories(path);
    fs::create_symlink(victim, path + "/" + name);
    std::unique_ptr<DB> db;
    const Status opened = DB::Open(TinyOptions(1), path, &db);
    db.reset();
    const Status destroyed = DB::Destroy({}, path);
    EXPECT_EQ(ReadFileOrDie(victim), "precious") << opened.ToString() << destroyed.ToString();
    fs::remove_all(path);
    OpenOrFail(TinyOptions(1), path).reset();
    fs::remove(path + "/" + name);
    fs::create_symlink(victim, path + "/" + name);
    (void)DB::Open(TinyOptions(1), path, &db);
    db.reset();
    (void)DB::Destroy({}, path);
    EXPECT_EQ(ReadFileOrDie(victim), "precious");
    fs::remove_all(path);
  }
}

}  // namespace
}  // namespace braiddb::test
