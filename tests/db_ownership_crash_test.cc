// Each call that makes, replaces or removes files × what stands where it works × killed at each step: what is another's stays,
// and the call can be made again. [CC-60]
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/backup.h"
#include "braiddb/check.h"
#include "braiddb/db.h"
#include "db/temporary_place.h"
#include "tests/support/db_test_util.h"

namespace {

// Operations on files until the process is killed; negative: never.
int64_t left = -1;
constexpr int kKilled = 42;

void Step() {
  if (left >= 0 && left-- == 0) _exit(kKilled);
}

}  // namespace

// In place of the C library's, also for libpmemobj.
extern "C" {

int mkdir(const char* path, mode_t mode) noexcept {
  Step();
  return static_cast<int>(syscall(SYS_mkdir, path, mode));
}
int unlink(const char* path) noexcept {
  Step();
  return static_cast<int>(syscall(SYS_unlink, path));
}
int rmdir(const char* path) noexcept {
  Step();
  return static_cast<int>(syscall(SYS_rmdir, path));
}
int rename(const char* from, const char* to) noexcept {
  Step();
  return static_cast<int>(syscall(SYS_rename, from, to));
}
int fsync(int fd) {
  Step();
  return static_cast<int>(syscall(SYS_fsync, fd));
}
int posix_fallocate(int fd, off_t offset, off_t bytes) {
  Step();
  return syscall(SYS_fallocate, fd, 0, offset, bytes) == 0 ? 0 : errno;
}
int ftruncate(int fd, off_t bytes) noexcept {
  Step();
  return static_cast<int>(syscall(SYS_ftruncate, fd, bytes));
}
int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if ((flags & (O_CREAT | O_TRUNC)) != 0) Step();
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

}  // extern "C"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;

class DbOwnershipCrashTest : public testing::Test {
 protected:
  using Tree = std::map<std::string, std::string>;  // what each name stands for

  // A call that works at b_, with a region in the directory `region`.
  struct Call {
    const char* name;
    std::function<Status()> run;
  };
  // What stands at b_ or in region_ before the call.
  struct Standing {
    const char* name;
    std::function<void()> make;
    std::function<std::vector<std::string>()> foreign;  // paths that must stay as they are
    // What the repetition of each call says, in the order of Calls(): o OK, d OK, or InvalidArgument where the killed call had
    // done its work, i InvalidArgument, r the same, for a region that is another's, e IOError, c Corruption, - it depends.
    const char* answers;
  };
  static char LetterOf(const Status& status) {
    return status.ok() ? 'o' : status.IsInvalidArgument() ? 'i' : status.IsIOError() ? 'e' : status.IsCorruption() ? 'c' : '?';
  }

  void SetUp() override {
    // Another database, one of whose regions is in a directory of its own.
    Options options = TinyOptions(1);
    options.region_paths = {directory_.File("a-region")};
    auto db = OpenOrFail(options, a_);
    ASSERT_NE(db, nullptr);
    ASSERT_OK(db->Put({}, "of", "a"));
    ASSERT_OK(db->Close());
    db = OpenOrFail(TinyOptions(1), source_);
    ASSERT_OK(db->Put({}, "of", "source"));
    ASSERT_OK(BackupEngine::Open(directory_.File("backups"), &engine_));
    ASSERT_OK(engine_->CreateBackup(db.get()));
    ASSERT_OK(db->Close());
    // A creation that was killed.
    EXPECT_EQ(RunInChild([&] {
                left = 25;
                Options half = TinyOptions(1);
                half.region_paths = {directory_.File("half-region")};
                std::unique_ptr<DB> ignored;
                return DB::Open(half, half_, &ignored).ok() ? 0 : 1;
              }),
              kKilled);
    ASSERT_TRUE(fs::exists(directory_.File("half-region")));
  }

  Tree Read(const std::vector<std::string>& paths) const {
    Tree tree;
    const auto note = [&tree](const fs::path& path) {
      if (path.filename() == "LOCK" || path.filename() == "LOG") return;  // of an attempt to open it
      std::string& what = tree[path.string()];
      if (fs::is_symlink(path)) {
        what = "link " + fs::read_symlink(path).string();
      } else if (fs::is_regular_file(path)) {
        const std::string bytes = ReadFileOrDie(path.string());
        what = "file " + std::to_string(bytes.size()) + " " + std::to_string(std::hash<std::string>()(bytes));
      } else {
        what = "directory";
      }
    };
    for (const std::string& path : paths) {
      if (!fs::exists(fs::symlink_status(path))) continue;
      note(path);
      if (!fs::is_directory(path) || fs::is_symlink(path)) continue;
      for (const auto& entry : fs::recursive_directory_iterator(path)) note(entry.path());
    }
    return tree;
  }

  void ExpectOthersWhole() {
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::OpenForReadOnly(TinyOptions(0), a_, &db));
    EXPECT_EQ(GetOrText(db.get(), "of"), "a");
  }

  Options OptionsOfB() const {
    Options options = TinyOptions(1);
    options.region_paths = {region_};
    return options;
  }

  std::vector<Call> Calls() {
    return {{"open",
             [this] {
               std::unique_ptr<DB> db;
               return DB::Open(OptionsOfB(), b_, &db);
             }},
            {"open inside",
             [this] {
               std::unique_ptr<DB> db;
               return DB::Open(TinyOptions(1), b_, &db);
             }},
            {"destroy", [this] { return DB::Destroy(OptionsOfB(), b_); }},
            {"destroy without region_paths", [this] { return DB::Destroy({}, b_); }},
            {"repair",
             [this] {
               RepairOptions options;
               options.target = OptionsOfB();
               RepairReport report;
               return RepairDatabase(options, source_, b_, &report);
             }},
            {"restore", [this] { return engine_->RestoreBackup(1, TinyOptions(1), b_); }},
            {"create and drop a family", [this] { return CreateAndDropFamily(); }},
            {"make and delete backups", [this] { return MakeAndDeleteBackups(); }},
            {"write a sorted file",
             [this] {
               std::unique_ptr<SortedFileWriter> writer;
               Status status = SortedFileWriter::Create(b_, BytewiseComparator(), &writer);
               if (status.ok()) status = writer->Put("key", "value");
               return status.ok() ? writer->Finish() : status;
             }},
            {"checkpoint", [this] {
               std::unique_ptr<DB> db;
               Status status = DB::OpenForReadOnly(TinyOptions(0), source_, &db);
               return status.ok() ? CreateCheckpoint(db.get(), b_) : status;
             }}};
  }

  Status CreateAndDropFamily() const {
    std::vector<std::string> names;
    if (!DB::ListColumnFamilies({}, b_, &names).ok()) names = {kDefaultColumnFamilyName};
    std::vector<ColumnFamilyDescriptor> families;
    for (const std::string& name : names) {
      const bool is_default = name == kDefaultColumnFamilyName;
      families.push_back({name, is_default ? ColumnFamilyOptions(OptionsOfB()) : ColumnFamilyOptions()});
    }
    std::unique_ptr<DB> db;
    std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
    Status status = DB::Open(OptionsOfB(), b_, families, &handles, &db);
    if (status.ok() && names.size() == 1) {
      handles.emplace_back();
      status = db->CreateColumnFamily({}, "family", &handles.back());
    }
    if (status.ok()) status = db->DropColumnFamily(handles.back().get());
    handles.clear();
    return status.ok() ? db->Close() : status;
  }

  // One is deleted by its number, and one as too old.
  Status MakeAndDeleteBackups() const {
    std::unique_ptr<DB> source;
    std::unique_ptr<BackupEngine> engine;
    Status status = DB::OpenForReadOnly(TinyOptions(0), source_, &source);
    if (status.ok()) status = BackupEngine::Open(b_, &engine);
    uint32_t id = 0;
    for (int i = 0; i < 3 && status.ok(); ++i) status = engine->CreateBackup(source.get(), {}, &id);
    if (status.ok()) status = engine->DeleteBackup(id);
    return status.ok() ? engine->PurgeOldBackups(1) : status;
  }

  std::vector<Standing> Standings() {
    const auto nothing = [] { return std::vector<std::string>{}; };
    return {{"nothing", [] {}, nothing, "oooodooood"},
            {"another's region", [this] { region_ = directory_.File("a-region"); }, nothing, "roooroiood"},
            {"a link to another's region", [this] { fs::create_directory_symlink(directory_.File("a-region"), region_); },
             [this] { return std::vector{region_}; }, "roooroiood"},
            {"half a creation", [this] { region_ = directory_.File("half-region"); }, nothing, "roooroiood"},
            {"files named as a region's",
             [this] {
               fs::create_directories(region_);
               fs::create_directories(b_ + "/region-0");
               for (const std::string& in : {region_, b_ + "/region-0"}) {
                 WriteFileOrDie(in + "/000000.pmem", "mine");
                 WriteFileOrDie(in + "/region.set", "mine");
                 WriteFileOrDie(in + "/CREATING.tmp", "mine");
               }
             },
             [this] {
               std::vector<std::string> files;
               for (const char* name : {"/000000.pmem", "/region.set", "/CREATING.tmp"}) {
                 files.push_back(region_ + name);
                 if (fs::exists(b_ + "/region-0")) files.push_back(b_ + "/region-0" + name);
               }
               return files;
             },
             "iciiiiioei"},
            {"files beside",
             [this] {
               fs::create_directories(b_);
               WriteFileOrDie(b_ + "/notes", "mine");
               for (const char* suffix : {".tmp", ".old"}) {
                 fs::create_directories(b_ + suffix);
                 WriteFileOrDie(b_ + suffix + "/notes", "mine");
               }
             },
             [this] {
               return std::vector{b_ + "/notes", b_ + ".tmp", b_ + ".old"};
             },
             "ooooiiooii"},
            {"databases beside",
             [this] {
               for (const char* suffix : {".tmp", ".old"}) OpenOrFail(TinyOptions(1), b_ + suffix).reset();
             },
             [this] {
               return std::vector{b_ + ".tmp", b_ + ".old"};
             },
             "ooooiiooii"},
            {"a file", [this] { WriteFileOrDie(b_, "mine"); }, [this] { return std::vector{b_}; }, "eeeeiieeoi"},
            {"a link",
             [this] {
               fs::create_directory(b_ + "-target");
               fs::create_directory_symlink(b_ + "-target", b_);
             },
             [this] { return std::vector{b_}; }, "oooodooooi"},
            {"a link to another database", [this] { fs::create_directory_symlink(half_, b_); },
             [this] { return std::vector{b_}; }, "----------"}};
  }

  void Clean() {
    region_ = directory_.File("b-region");
    for (const auto& entry : fs::directory_iterator(directory_.path())) {
      if (entry.path().filename().string().starts_with("b-") || entry.path().filename().string() == "b" ||
          entry.path().filename().string().starts_with("b.")) {
        fs::remove_all(entry.path());
      }
    }
  }

  // Whether a database that can be opened is there.
  static bool IsWhole(const std::string& path) {
    std::unique_ptr<DB> db;
    return DB::OpenForReadOnly(TinyOptions(0), path, &db).ok();
  }

  TestDirectory directory_;
  const std::string a_ = directory_.File("a");
  const std::string source_ = directory_.File("source");
  const std::string half_ = directory_.File("half");
  const std::string b_ = directory_.File("b");
  std::string region_ = directory_.File("b-region");
  std::unique_ptr<BackupEngine> engine_;
};

TEST_F(DbOwnershipCrashTest, NothingOfOthersIsRemoved) {
  const auto stride = static_cast<int64_t>(EnvNumber("BRAIDDB_OWNERSHIP_STRIDE", 11 * kSlowdown));
  const std::vector<std::string> others = {a_, directory_.File("a-region"), half_, directory_.File("half-region"), source_};
  int cut = 0;
  for (const Standing& standing : Standings()) {
    const std::vector<Call> calls = Calls();
    ASSERT_EQ(calls.size(), std::strlen(standing.answers)) << standing.name;
    for (size_t i = 0; i < calls.size(); ++i) {
      const Call& call = calls[i];
      SCOPED_TRACE(std::string(standing.name) + ", " + call.name);
      const bool names_half = std::string(standing.name) == "a link to another database";
      for (int64_t at = cut % stride;; at += stride) {
        SCOPED_TRACE("killed before step " + std::to_string(at));
        Clean();
        standing.make();
        std::vector<std::string> foreign = standing.foreign();
        // A file is written in place of the one that the caller names.
        if (std::string(call.name) == "write a sorted file") std::erase(foreign, b_);
        // By the link, the half creation is the one that the call names.
        if (!names_half) foreign.insert(foreign.end(), others.begin(), others.end());
        const Tree before = Read(foreign);
        const int exit_code = RunInChild([&] {
          left = at;
          return call.run().ok() ? 0 : 1;
        });
        EXPECT_TRUE(Read(foreign) == before) << "the killed call changed what is another's";
        const Status again = call.run();
        EXPECT_TRUE(Read(foreign) == before) << "the repetition changed what is another's: " << again.ToString();
        const char answer = standing.answers[i];
        if (answer == 'd') {
          EXPECT_TRUE(again.ok() || (again.IsInvalidArgument() && IsWhole(b_))) << again.ToString();
        } else if (answer != '-') {
          EXPECT_EQ(LetterOf(again), answer == 'r' ? 'i' : answer) << again.ToString();
        }
        // Nothing that the refused call left is in the way of the right one.
        if (answer == 'r') {
          region_ = directory_.File("b-region");
          fs::remove(region_);
          EXPECT_OK(call.run());
        }
        ExpectOthersWhole();
        if (HasFailure()) return;
        ++cut;
        if (exit_code != kKilled || names_half) break;
      }
    }
  }
  std::printf("%d calls were cut\n", cut);
}

// Killed between its two renames a restore leaves nothing where the link leads, but both databases beside that.
TEST_F(DbOwnershipCrashTest, ARestoreThroughALinkCanBeMadeAgainAfterEachStep) {
  bool led_nowhere = false;
  for (int64_t at = 20;; ++at) {
    SCOPED_TRACE("killed before step " + std::to_string(at));
    Clean();
    OpenOrFail(TinyOptions(1), b_ + "-target").reset();
    fs::create_directory_symlink("b-target", b_);
    const auto restore = [this] { return engine_->RestoreBackup(1, TinyOptions(1), b_); };
    const int exit_code = RunInChild([&] {
      left = at;
      return restore().ok() ? 0 : 1;
    });
    led_nowhere = led_nowhere || !fs::exists(b_);
    EXPECT_OK(restore());
    EXPECT_FALSE(fs::exists(b_ + "-target.old"));
    EXPECT_FALSE(fs::exists(b_ + "-target/COPYING"));
    EXPECT_TRUE(fs::is_symlink(b_));
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::Open(TinyOptions(1), b_, &db));
    EXPECT_EQ(GetOrText(db.get(), "of"), "source");
    if (exit_code != kKilled) break;
  }
  EXPECT_TRUE(led_nowhere);
}

// What the tool does after a SIGINT.
TEST_F(DbOwnershipCrashTest, NothingIsLeftOfAnUnfinishedCopy) {
  const std::function<Status()> copies[] = {[&] { return engine_->RestoreBackup(1, TinyOptions(1), b_); },
                                            [&] {
                                              std::unique_ptr<DB> db;
                                              Status status = DB::OpenForReadOnly(TinyOptions(0), source_, &db);
                                              return status.ok() ? CreateCheckpoint(db.get(), b_) : status;
                                            }};
  const auto destroy = [](const std::string& directory) { return DB::Destroy({}, directory); };
  for (const bool replaces : {true, false}) {
    int completed = 0;
    for (int64_t at = 0;; ++at) {
      SCOPED_TRACE(std::string(replaces ? "a restore" : "a checkpoint") + ", killed before step " + std::to_string(at));
      Clean();
      if (replaces) OpenOrFail(TinyOptions(1), b_).reset();
      const int exit_code = RunInChild([&] {
        left = at;
        return copies[replaces ? 0 : 1]().ok() ? 0 : 1;
      });
      // The removal may be killed, too.
      (void)RunInChild([&] {
        left = at % 23;
        return TemporaryPlace::RemoveUnfinished(b_, destroy).ok() ? 0 : 1;
      });
      ASSERT_OK(TemporaryPlace::RemoveUnfinished(b_, destroy));
      for (const char* name : {".tmp", ".old", "/COPYING", "/COPYING.tmp"}) {
        ASSERT_FALSE(fs::exists(b_ + name)) << b_ << name;
      }
      if (replaces || fs::exists(b_)) {
        auto db = OpenOrFail(TinyOptions(1), b_);
        ASSERT_NE(db, nullptr);
        completed += GetOrText(db.get(), "of") == "source" ? 1 : 0;
        db.reset();
        ASSERT_OK(DB::Destroy({}, b_));
      }
      ASSERT_FALSE(fs::exists(b_));
      if (exit_code != kKilled) break;
    }
    EXPECT_GT(completed, 1);
  }
}

// GPL's text is in a file of this name.
TEST_F(DbOwnershipCrashTest, AFileNamedAsTheMarkStays) {
  fs::create_directories(b_);
  WriteFileOrDie(b_ + "/COPYING", "GNU GENERAL PUBLIC LICENSE\n");
  WriteFileOrDie(b_ + "/COPYING.tmp", "mine");
  ASSERT_OK(TemporaryPlace::RemoveUnfinished(b_, [](const std::string& directory) { return DB::Destroy({}, directory); }));
  EXPECT_TRUE(engine_->RestoreBackup(1, TinyOptions(1), b_).IsInvalidArgument());
  EXPECT_FALSE(fs::exists(b_ + ".tmp"));
  OpenOrFail(TinyOptions(1), b_).reset();
  ASSERT_OK(DB::Destroy({}, b_));
  EXPECT_EQ(ReadFileOrDie(b_ + "/COPYING"), "GNU GENERAL PUBLIC LICENSE\n");
  EXPECT_EQ(ReadFileOrDie(b_ + "/COPYING.tmp"), "mine");
}

// Files of others wait in the old directory while the old database is removed, and go to the new one.
TEST_F(DbOwnershipCrashTest, ARestoreKeepsFilesOfOthersAfterEachStep) {
  const auto restore = [this] { return engine_->RestoreBackup(1, TinyOptions(1), b_); };
  bool waited = false;
  for (int64_t at = 20;; ++at) {
    SCOPED_TRACE("killed before step " + std::to_string(at));
    Clean();
    OpenOrFail(TinyOptions(1), b_).reset();
    fs::create_directories(b_ + "/notes/of");
    for (const char* name : {"/notes.txt", "/notes/of/others"}) std::ofstream(b_ + name) << name;
    const int exit_code = RunInChild([&] {
      left = at;
      return restore().ok() ? 0 : 1;
    });
    waited = waited || (fs::exists(b_ + "/DATABASE") && fs::exists(b_ + ".old/notes.txt"));
    EXPECT_OK(restore());
    EXPECT_FALSE(fs::exists(b_ + ".old"));
    EXPECT_FALSE(fs::exists(b_ + "/COPYING"));
    for (const char* name : {"/notes.txt", "/notes/of/others"}) EXPECT_EQ(ReadFileOrDie(b_ + name), name);
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::Open(TinyOptions(1), b_, &db));
    EXPECT_EQ(GetOrText(db.get(), "of"), "source");
    if (HasFailure() || exit_code != kKilled) break;
  }
  EXPECT_TRUE(waited);
}

// A restore that is killed when the old database has its other name.
class CutRestoreTest : public DbOwnershipCrashTest {
 protected:
  Status Restore() { return engine_->RestoreBackup(1, TinyOptions(1), b_); }
  // Kills restores, each one call later, until `is_there` holds behind one.
  void KillRestores(const std::function<bool()>& is_there) {
    for (int64_t at = 20; !is_there(); ++at) {
      ASSERT_EQ(RunInChild([&] {
                  left = at;
                  return Restore().ok() ? 0 : 1;
                }),
                kKilled);
    }
  }
  void WriteSince(const std::string& path, const std::string& spelled) {
    auto db = OpenOrFail(TinyOptions(1), spelled);
    ASSERT_NE(db, nullptr) << path;
    ASSERT_OK(db->Put({}, "written", "since"));
    ASSERT_OK(db->Close());
  }
  void ExpectSince(const std::string& path) {
    const auto db = OpenOrFail(TinyOptions(1), path);
    ASSERT_NE(db, nullptr) << path;
    EXPECT_EQ(GetOrText(db.get(), "written"), "since");
  }
};

// A program that opens the database which a restore has moved owns it, however it spells the path.
TEST_F(CutRestoreTest, AnOpenedOldDatabaseStays) {
  for (const char* spelling : {"plain", "slash", "link"}) {
    SCOPED_TRACE(spelling);
    Clean();
    OpenOrFail(TinyOptions(1), b_).reset();
    KillRestores([&] { return !fs::exists(b_); });
    std::string spelled = b_ + ".old";
    if (spelling == std::string_view("slash")) spelled += "/";
    if (spelling == std::string_view("link")) {
      spelled = b_ + ".link";
      fs::create_directory_symlink(b_ + ".old", spelled);
    }
    WriteSince(b_ + ".old", spelled);
    EXPECT_OK(Restore());
    ExpectSince(b_ + ".old");
    fs::remove(b_ + ".link");
    ASSERT_OK(DB::Destroy({}, b_ + ".old"));
    fs::remove(b_ + ".old");
  }
}

// A program makes another database in the place of the old one before the restore is repeated.
TEST_F(CutRestoreTest, AnotherDatabaseInItsPlaceRemovesNothing) {
  Clean();
  WriteSince(b_, b_);
  KillRestores([&] { return !fs::exists(b_); });
  OpenOrFail(TinyOptions(1), b_).reset();
  for (int i = 0; i < 2; ++i) {
    const Status status = Restore();
    EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
    ExpectSince(b_ + ".old");
  }
}

// A mark that a killed restore has left means nothing once a program has opened the database.
TEST_F(CutRestoreTest, AMarkOfBeforeIsForgotten) {
  Clean();
  OpenOrFail(TinyOptions(1), b_).reset();
  KillRestores([&] { return fs::exists(b_ + "/COPYING"); });
  WriteSince(b_, b_);
  fs::rename(b_, b_ + ".old");
  EXPECT_OK(Restore());
  ExpectSince(b_ + ".old");
}

}  // namespace
}  // namespace braiddb::test
