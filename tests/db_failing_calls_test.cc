// A whole database when persistent memory is full, a sync fails or the system refuses a call, at every place where that can
// happen: a clear error, no acknowledged write lost, and it works again when the cause is gone.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/backup.h"
#include "braiddb/db.h"
#include "braiddb/event_listener.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/failing_calls.h"
#include "tests/support/leave_child.h"
#include "tests/support/wait_until.h"

namespace braiddb::test {
namespace {

class DbFailingCallsTest : public DbOpenTest {
 protected:
  // What is in the database: acknowledged writes, and for a key whose last write failed what it may be instead.
  using Model = std::map<std::string, std::string>;
  struct Expected {
    Model sure;
    Model maybe;  // writes that failed, which may be there in part or not
  };

  // Puts, a batch, a large value, deletes, flushes and merges, some of which may fail with `allowed`.
  template <class Allowed>
  void Work(DB* db, int round, const Allowed& allowed, Expected* expected) {
    const auto note = [&](const Status& status, const std::string& key, const std::string& value) {
      EXPECT_TRUE(status.ok() || allowed(status)) << status.ToString();
      if (status.ok()) {
        expected->sure[key] = value;
        expected->maybe.erase(key);
      } else {
        expected->maybe[key] = value;
      }
    };
    const auto check = [&](const Status& status) { EXPECT_TRUE(status.ok() || allowed(status)) << status.ToString(); };
    for (int i = 0; i < 150; ++i) {
      const std::string value = PatternedValue(round * 1000 + i, 4000 + i);
      note(db->Put({}, NumberedKey(i), value), NumberedKey(i), value);
    }
    check(db->Flush());
    WriteBatch batch;
    for (int i = 30; i < 60; ++i) batch.Put(NumberedKey(i), PatternedValue(round * 1000 + i, 900));
    const Status written = db->Write({}, batch);
    for (int i = 30; i < 60; ++i) note(written, NumberedKey(i), PatternedValue(round * 1000 + i, 900));
    const std::string large = PatternedValue(round, 700'000);
    note(db->Put({}, "large", large), "large", large);
    check(db->CompactRange({}, nullptr, nullptr));
    note(db->Put({}, "after", std::to_string(round)), "after", std::to_string(round));
  }

  void ExpectHolds(DB* db, const Expected& expected) {
    Model found;
    const auto iterator = db->NewIterator({});
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      found.emplace(iterator->key(), iterator->value());
    }
    EXPECT_OK(iterator->status());
    for (const auto& [key, value] : expected.sure) {
      const auto maybe = expected.maybe.find(key);
      const bool right = found[key] == value || (maybe != expected.maybe.end() && found[key] == maybe->second);
      EXPECT_TRUE(right) << key << ": " << Printable(found[key]);
    }
    for (const auto& [key, value] : found) {
      EXPECT_TRUE(expected.sure.contains(key) || expected.maybe.contains(key)) << "nobody wrote " << key;
      EXPECT_EQ(GetOrText(db, key), value);
    }
  }
};

Options SmallOptions(uint32_t regions) {
  Options options = TinyOptions(regions);
  options.segment_size = 256 << 10;
  return options;
}

class DbFullTest : public DbFailingCallsTest, public testing::WithParamInterface<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Regions, DbFullTest, testing::Values(1, 2), [](const auto& test) { return std::to_string(test.param); });

// From allocation number `first` on, of PMDK and of the file system, there is no space.
TEST_P(DbFullTest, SpaceEndsAtEveryAllocation) {
  const Options options = SmallOptions(GetParam());
  const auto no_space = [](const Status& status) { return status.IsNoSpace(); };
  const int64_t step = kSlowdown > 1 ? 5 : 2;
  for (int64_t first = GetParam() - 1;; first += first < 6 ? 1 : step) {
    SCOPED_TRACE("no space from allocation " + std::to_string(first) + " on");
    Expected expected;
    std::unique_ptr<DB> db;
    FailingCalls::Arm(first, ENOSPC, FailingCalls::kForEver, "pmemobj_xalloc fallocate posix_fallocate");
    Status status = Open(options, &db);
    EXPECT_TRUE(status.ok() || status.IsNoSpace()) << status.ToString();
    if (status.ok()) Work(db.get(), 1, no_space, &expected);
    const bool enough = FailingCalls::failed() == 0;
    if (db != nullptr) {
      EXPECT_FALSE(enough && !expected.maybe.empty());
      // A write that was refused is not there.
      for (auto& refused : expected.maybe)
        EXPECT_EQ(expected.sure.contains(refused.first), GetOrText(db.get(), refused.first) != "<not found>");
      expected.maybe.clear();
      ExpectHolds(db.get(), expected);
      if (first % 3 == 0) db.reset();  // closed, and opened again, without space
      if (db == nullptr) {
        ASSERT_OK(Open(options, &db));
        ExpectHolds(db.get(), expected);
      }
    }
    FailingCalls::Stop();
    ASSERT_OK(db == nullptr ? Open(options, &db) : Status::OK());
    Work(
        db.get(), 2, [](const Status&) { return false; }, &expected);
    ExpectHolds(db.get(), expected);
    ASSERT_OK(db->Close());
    db.reset();
    EXPECT_TRUE(ChecksAsSound(path_));
    ASSERT_OK(Open(options, &db));
    ExpectHolds(db.get(), expected);
    db.reset();
    ASSERT_OK(DB::Destroy(options, path_));
    if (enough) {
      EXPECT_GT(first, 6);  // how many there are depends on how soon segments are free again
      break;
    }
  }
}

TEST_F(DbFailingCallsTest, AFullFileSystemIsNoSpaceUntilSomethingIsFreed) {
  const std::string small = directory_.File("small");
  ASSERT_EQ(mkdir(small.c_str(), 0755), 0);
  if (mount("tmpfs", small.c_str(), "tmpfs", 0, "size=24m") != 0) GTEST_SKIP() << "cannot mount";
  const std::unique_ptr<const std::string, void (*)(const std::string*)> mounted(
      &small, [](const std::string* path) { umount2(path->c_str(), MNT_DETACH); });
  {
    Model expected;
    auto db = OpenOrFail(SmallOptions(1), small + "/db");
    ASSERT_NE(db, nullptr);
    Status status;
    for (int i = 0; status.ok() && i < 100'000; ++i) {
      status = db->Put({}, NumberedKey(i), PatternedValue(i, 4000));
      if (status.ok()) expected[NumberedKey(i)] = PatternedValue(i, 4000);
    }
    EXPECT_CODE(status, kNoSpace);
    EXPECT_NE(status.message().find(small), std::string_view::npos) << status.ToString();
    EXPECT_TRUE(HoldsExactly(db.get(), expected));
    db.reset();
    db = OpenOrFail(SmallOptions(1), small + "/db");
    ASSERT_NE(db, nullptr);
    EXPECT_TRUE(HoldsExactly(db.get(), expected));
    ASSERT_EQ(mount("tmpfs", small.c_str(), "tmpfs", MS_REMOUNT, "size=60m"), 0);
    ASSERT_OK(db->Put({}, "there is space", "again"));
    expected["there is space"] = "again";
    EXPECT_TRUE(HoldsExactly(db.get(), expected));
  }
}

// `cp --sparse` and the like leave out pages of zeros.
TEST_F(DbFailingCallsTest, ASparseCopyOnAFullFileSystemIsNoSpace) {
  const std::string small = directory_.File("small");
  ASSERT_EQ(mkdir(small.c_str(), 0755), 0);
  if (mount("tmpfs", small.c_str(), "tmpfs", 0, "size=64m") != 0) GTEST_SKIP() << "cannot mount";
  const std::unique_ptr<const std::string, void (*)(const std::string*)> mounted(
      &small, [](const std::string* path) { umount2(path->c_str(), MNT_DETACH); });
  const Options options = SmallOptions(1);
  std::unique_ptr<DB> db;
  ASSERT_OK(Open(options, &db));
  ASSERT_OK(db->Put({}, "key", "value"));
  db.reset();
  const std::string copy = small + "/db";
  ASSERT_EQ(std::system(("cp -r --sparse=always " + path_ + " " + copy).c_str()), 0);
  const std::string filler = small + "/filler";
  ASSERT_NE(std::system(("head -c 64M /dev/zero > " + filler + " 2>/dev/null").c_str()), 0);
  EXPECT_EQ(RunInChild([&] {
              std::unique_ptr<DB> full;
              return DB::Open(options, copy, &full).IsNoSpace() ? 0 : 1;
            }),
            0);
  ASSERT_EQ(unlink(filler.c_str()), 0);
  ASSERT_OK(DB::Open(options, copy, &db));
  EXPECT_EQ(GetOrText(db.get(), "key"), "value");
  ASSERT_NE(std::system(("head -c 64M /dev/zero > " + filler + " 2>/dev/null").c_str()), 0);
  Status status;
  for (int i = 0; status.ok() && i < 20'000; ++i) status = db->Put({}, NumberedKey(i), PatternedValue(i, 4000));
  EXPECT_CODE(status, kNoSpace);
}

// After a sync that failed nothing is believed any more: the database says so, reads, and takes no write until the next open.
TEST_F(DbFailingCallsTest, ASyncThatFailsMakesTheDatabaseReadOnly) {
  Options options = SmallOptions(1);
  options.persist_mode = PersistMode::kPage;
  const auto refused = [](const Status& status) { return status.IsIOError() || status.IsReadOnly(); };
  const int64_t step = kSlowdown > 1 ? 23 : 7;
  for (int64_t sync = 0;; sync += sync < 12 ? 1 : step) {
    SCOPED_TRACE("sync " + std::to_string(sync) + " fails");
    Expected expected;
    std::unique_ptr<DB> db;
    FailingCalls::Arm(sync, EIO, 1, "msync");
    Status status = Open(options, &db);
    if (status.ok()) Work(db.get(), 1, refused, &expected);
    if (status.ok() && FailingCalls::failed() != 0) {
      // A background thread that has met the error may come to say so only now.
      EXPECT_TRUE(WaitUntil([&] { return IntProperty(db.get(), "braiddb.background-errors") == 1; }));
      const Status write = db->Put({}, "later", "?");
      EXPECT_TRUE(refused(write)) << write.ToString();
      EXPECT_EQ(IntProperty(db.get(), "braiddb.background-errors"), 1u);
      ExpectHolds(db.get(), expected);
      const Status flush = db->Flush();
      EXPECT_TRUE(refused(flush)) << flush.ToString();
      EXPECT_TRUE(refused(db->WaitForCompaction()));
      const Status closed = db->Close();
      EXPECT_TRUE(refused(closed)) << "the close must not claim that all is well: " << closed.ToString();
    }
    FailingCalls::Stop();
    const bool enough = FailingCalls::failed() == 0;
    EXPECT_TRUE(status.ok() || (status.IsIOError() && !enough)) << status.ToString();
    db.reset();
    if (status.ok()) {
      EXPECT_TRUE(ChecksAsSound(path_));
    }
    ASSERT_OK(Open(options, &db));
    ExpectHolds(db.get(), expected);
    Work(
        db.get(), 2, [](const Status&) { return false; }, &expected);
    ExpectHolds(db.get(), expected);
    db.reset();
    ASSERT_OK(DB::Destroy(options, path_));
    if (enough) {
      EXPECT_GT(sync, 20);
      break;
    }
  }
}

// The write that meets the error tells of it, and so does a background job.
TEST_F(DbFailingCallsTest, ListenersAreToldOfErrors) {
  class Errors : public EventListener {
   public:
    void OnBackgroundError(DB* db, const BackgroundErrorInfo& info) override {
      EXPECT_EQ(db->GetName(), info.db_name);
      std::string value;
      EXPECT_OK(db->Get({}, "before", &value));
      statuses.push_back(info.status);
    }
    std::vector<Status> statuses;
  };
  for (const bool in_background : {false, true}) {
    const auto errors = std::make_shared<Errors>();
    Options options = SmallOptions(1);
    options.persist_mode = PersistMode::kPage;
    options.listeners.push_back(errors);
    auto db = OpenOrFail(options, path_);
    ASSERT_NE(db, nullptr);
    ASSERT_OK(db->Put({}, "before", "value"));
    WriteOptions unsynced;
    unsynced.sync = false;
    if (in_background) {
      ASSERT_OK(db->Put(unsynced, "key", "value"));
    }
    FailingCalls::Arm(0, EIO, FailingCalls::kForEver, "msync");
    const Status status = in_background ? db->Flush() : db->Put({}, "key", "value");
    FailingCalls::Stop();
    EXPECT_TRUE(status.IsIOError()) << status.ToString();
    EXPECT_FALSE(db->Put({}, "more", "value").ok());
    (void)db->Close();
    db.reset();
    ASSERT_EQ(errors->statuses.size(), 1u) << "told once";
    EXPECT_TRUE(errors->statuses[0].IsIOError()) << errors->statuses[0].ToString();
    ASSERT_OK(DB::Destroy(options, path_));
  }
}

// A sync that fails in an open that has a log to replay and a merge to redo: it fails, and the next one does it all.
TEST_F(DbFailingCallsTest, ASyncThatFailsInARecovery) {
  Options options = SmallOptions(2);
  options.persist_mode = PersistMode::kPage;
  Model expected;
  for (int i = 0; i < 300; ++i) expected[NumberedKey(i)] = PatternedValue(i, 300);
  ASSERT_EQ(RunInChild([&] {
              std::unique_ptr<DB> db;
              if (!Open(options, &db).ok()) return 1;
              for (const auto& [key, value] : expected) {
                if (!db->Put({}, key, value).ok()) return 2;
              }
              LeaveChild(0);  // without a close
            }),
            0);
  int64_t sync = 0;
  for (bool failed = true; failed; ++sync) {
    SCOPED_TRACE("sync " + std::to_string(sync) + " fails");
    std::unique_ptr<DB> db;
    FailingCalls::Arm(sync, EIO, 1, "msync");
    const Status status = Open(options, &db);
    FailingCalls::Stop();
    failed = FailingCalls::failed() != 0;
    EXPECT_EQ(status.ok(), db != nullptr);
    if (!status.ok()) {
      EXPECT_TRUE(failed && status.IsIOError()) << status.ToString();
    }
    if (db == nullptr) continue;
    EXPECT_TRUE(HoldsExactly(db.get(), expected));
    break;
  }
  EXPECT_GT(sync, 2);
}

// After an error a copy is not there, so that it can be made again, and a backup is not counted.
TEST_F(DbFailingCallsTest, CopiesWhoseSyncFailsAreNotThere) {
  Options options = SmallOptions(1);
  for (const bool is_backup : {false, true}) {
    int refused = 0;
    for (int64_t call = 0;; ++call) {
      SCOPED_TRACE(std::string(is_backup ? "backup" : "checkpoint") + ", call " + std::to_string(call));
      std::unique_ptr<DB> db;
      ASSERT_OK(Open(options, &db));
      ASSERT_OK(db->Put({}, "key", "value"));
      const std::string copy = directory_.File("copy");
      std::unique_ptr<BackupEngine> engine;
      if (is_backup) {
        ASSERT_OK(BackupEngine::Open(copy, &engine));
      }
      const auto make = [&] { return is_backup ? engine->CreateBackup(db.get()) : CreateCheckpoint(db.get(), copy); };
      FailingCalls::Arm(call, EIO, 1, "fsync");
      const Status status = make();
      FailingCalls::Stop();
      const bool failed = FailingCalls::failed() > 0;
      refused += !status.ok();
      if (!status.ok() && db->Put({}, "key", "value").ok()) {
        EXPECT_OK(make()) << status.ToString();
      }
      if (is_backup) {
        const size_t backups = engine->GetBackupInfo().size();
        engine.reset();
        ASSERT_OK(BackupEngine::Open(copy, &engine));
        EXPECT_EQ(engine->GetBackupInfo().size(), backups);
      }
      db.reset();
      engine.reset();
      std::filesystem::remove_all(copy);
      ASSERT_OK(DB::Destroy(options, path_));
      if (!failed) break;
    }
    EXPECT_GE(refused, is_backup ? 2 : 4);
  }
}

// Calls of the system that an open makes itself: each refusal names its path, and is over with its cause.
TEST_F(DbFailingCallsTest, EveryCallOfAnOpenFails) {
  Options options = SmallOptions(1);
  options.info_log = nullptr;  // so that there is a file LOG
  Model expected;
  for (const bool create : {true, false}) {
    int refused = 0;
    for (int64_t call = 0;; ++call) {
      std::unique_ptr<DB> db;
      FailingCalls::Arm(call, call % 2 == 0 ? EIO : EACCES, 1,
                        "open read write fsync rename unlink mkdir flock stat fstat opendir realpath");
      const Status status = Open(options, &db);
      FailingCalls::Stop();
      SCOPED_TRACE(std::string(create ? "create" : "open") + ", call " + std::to_string(call) + ", " +
                   FailingCalls::failed_name());
      if (!status.ok()) {
        ++refused;
        EXPECT_NE(status.message().find(directory_.path()), std::string_view::npos) << status.ToString();
        // A directory that could not be looked into for a moment, and then has no database.
        const bool not_found = create && FailingCalls::failed_name() == "opendir" && status.IsNotFound();
        EXPECT_TRUE(status.IsIOError() || not_found) << status.ToString();
      }
      db.reset();
      db = OpenOrFail(options, path_);
      ASSERT_NE(db, nullptr);
      EXPECT_TRUE(HoldsExactly(db.get(), expected));
      if (FailingCalls::failed() == 0) break;
      if (create) {
        db.reset();
        ASSERT_OK(DB::Destroy(options, path_));
      } else if (call == 0) {
        ASSERT_OK(db->Put({}, "key", "value"));
        expected["key"] = "value";
      }
    }
    EXPECT_GT(refused, 5);
  }
}

}  // namespace
}  // namespace braiddb::test
