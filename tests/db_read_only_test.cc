// Opening for reading only: nothing changes on media, whatever recovery has to do, and nobody can write.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/check.h"
#include "braiddb/db.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/leave_child.h"
#include "tests/support/merge_operators.h"
#include "tests/support/wait_until.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;

// Everything below a directory, itself included: contents, sizes, permissions, and times of writing and of changing.
std::map<std::string, std::string> StateOf(const std::string& directory) {
  std::map<std::string, std::string> state;
  const auto note = [&state](const std::string& path) {
    struct stat st;
    if (stat(path.c_str(), &st) != 0) return;
    const auto time = [](const timespec& t) { return std::to_string(t.tv_sec) + "." + std::to_string(t.tv_nsec); };
    state[path] = std::to_string(st.st_ino) + " " + std::to_string(st.st_mode) + " " + std::to_string(st.st_size) + " " +
                  time(st.st_mtim) + " " + time(st.st_ctim);
    if (S_ISREG(st.st_mode)) state[path] += " " + std::to_string(std::hash<std::string>()(ReadFileOrDie(path)));
  };
  note(directory);
  for (const auto& entry : fs::recursive_directory_iterator(directory)) note(entry.path().string());
  return state;
}

class ReadOnlyTest : public DbOpenTest {
 protected:
  Status OpenToRead(const Options& options, std::unique_ptr<DB>* db, bool error_if_wal_file_exists = false) {
    return DB::OpenForReadOnly(options, path_, db, error_if_wal_file_exists);
  }

  // Writes in a child that ends without a close after about `ms`, while all background work is under way.
  void WriteUntilKilled(uint64_t seed, uint64_t ms) {
    const auto work = [this, seed, ms]() -> int {
      std::unique_ptr<DB> db;
      if (!Open(options_, &db).ok()) LeaveChild(1);
      std::atomic<bool> written{false};
      std::vector<std::thread> writers;
      for (uint64_t thread = 0; thread < 2; ++thread) {
        writers.emplace_back([&db, &written, seed, thread] {
          Random random(seed * 2 + thread);
          for (;;) {
            WriteBatch batch;
            for (uint64_t i = random.Uniform(4); i-- > 0;) batch.Put(NumberedKey(random.Uniform(3000)), PatternedValue(i, 60));
            batch.Delete(NumberedKey(random.Uniform(3000)));
            if (random.OneIn(4)) batch.Merge(NumberedKey(random.Uniform(3000)), "+" + std::to_string(random.Uniform(100)));
            if (!db->Write({}, batch).ok()) LeaveChild(2);
            written = true;
          }
        });
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(ms));
      LeaveChild(WaitUntil([&] { return written.load(); }) ? 0 : 3);
    };
    ASSERT_EQ(RunInChild(work), 0);
  }

  AppendOperator append_;
  Options options_ = [this] {
    Options options = TinyOptions();
    options.merge_operator = std::shared_ptr<const MergeOperator>(std::shared_ptr<void>(), &append_);
    return options;
  }();
};

TEST_F(ReadOnlyTest, AllIsThereAndNothingChanges) {
  Fill(options_, 5000);
  const auto before = StateOf(path_);
  std::map<std::string, std::string> expected;
  for (int i = 0; i < 5000; ++i) expected[NumberedKey(i)] = PatternedValue(i, 100);
  for (const bool error_if_wal_file_exists : {false, true}) {
    std::unique_ptr<DB> db;
    ASSERT_OK(OpenToRead(options_, &db, error_if_wal_file_exists));
    EXPECT_TRUE(HoldsExactly(db.get(), expected));
    const Snapshot* snapshot = db->GetSnapshot();
    ReadOptions at_snapshot;
    at_snapshot.snapshot = snapshot;
    EXPECT_TRUE(HoldsExactly(db.get(), expected, at_snapshot));
    db->ReleaseSnapshot(snapshot);
    ASSERT_OK(db->WaitForCompaction());
    EXPECT_EQ(IntProperty(db.get(), "braiddb.is-write-stopped"), 0u);
    ASSERT_OK(db->Close());
    db.reset();
    EXPECT_EQ(StateOf(path_), before);
  }
  EXPECT_TRUE(ChecksAsSound(path_));
  ExpectFilled(options_, 5000);
}

TEST_F(ReadOnlyTest, WritesAreRefused) {
  Fill(options_, 1000);
  const auto before = StateOf(path_);
  std::unique_ptr<DB> db;
  ASSERT_OK(OpenToRead(options_, &db));
  const std::string words = "Not supported operation in read only mode";
  const auto refused = [&words](const Status& status) {
    EXPECT_TRUE(status.IsNotSupported() && status.ToString().find(words) != std::string::npos) << status.ToString();
  };
  refused(db->Put({}, "a", "b"));
  refused(db->Delete({}, NumberedKey(1)));
  refused(db->Merge({}, "a", "b"));
  WriteBatch batch;
  batch.Put("a", "b");
  refused(db->Write({}, batch));
  batch.Put("c", "d");
  refused(db->Write({}, batch));
  refused(db->Put({}, db->DefaultColumnFamily(), "a", "b"));
  refused(db->Flush());
  refused(db->CompactRange({}, nullptr, nullptr));
  std::unique_ptr<ColumnFamilyHandle> family;
  refused(db->CreateColumnFamily({}, "new", &family));
  EXPECT_EQ(GetOrText(db.get(), "a"), "<not found>");
  EXPECT_EQ(GetOrText(db.get(), NumberedKey(1)), PatternedValue(1, 100));
  ASSERT_OK(db->Close());
  db.reset();
  EXPECT_EQ(StateOf(path_), before);
}

// Whatever the death of a process left: what is read is what the next open to write finds.
TEST_F(ReadOnlyTest, AfterACrashItReadsWhatRecoveryWouldMake) {
  const int crashes = 24 / kSlowdown;
  bool replayed = false;
  for (int crash = 0; crash < crashes; ++crash) {
    SCOPED_TRACE(crash);
    WriteUntilKilled(static_cast<uint64_t>(crash), 20 + static_cast<uint64_t>(crash) * 13 % 90);
    const auto before = StateOf(path_);
    Pairs found;
    uint64_t sequence = 0;
    for (int round = 0; round < 2; ++round) {
      std::unique_ptr<DB> db;
      ASSERT_OK(OpenToRead(options_, &db));
      sequence = db->GetLatestSequenceNumber();
      if (round == 0) found = ScanForward(db.get());
      EXPECT_TRUE(HoldsExactly(db.get(), found));
      const bool replays = db->GetStatistics().replayed_entries > 0;
      replayed |= replays;
      db.reset();
      const Status merely = OpenToRead(options_, &db, true);
      EXPECT_EQ(merely.IsCorruption(), replays) << merely.ToString();
      db.reset();
      ASSERT_EQ(StateOf(path_), before);
    }
    EXPECT_TRUE(ChecksAsSound(path_));
    auto db = OpenOrFail(options_, path_);
    ASSERT_NE(db, nullptr);
    EXPECT_EQ(db->GetLatestSequenceNumber(), sequence);
    EXPECT_TRUE(HoldsExactly(db.get(), found));
    if (crash % 2 == 0) {
      ASSERT_OK(db->Close());
    }
  }
  EXPECT_TRUE(replayed);
}

TEST_F(ReadOnlyTest, ManyReadAndNobodyWrites) {
  Fill(options_, 500);
  auto writer = OpenOrFail(options_, path_);
  std::unique_ptr<DB> first, second, other;
  // Beside a writer the database can be read if its last level is a braided skiplist.
  const bool may_read = options_.l1 == L1Kind::kBraidedSkipList;
  const auto beside = may_read ? Status::Code::kOk : Status::Code::kNotSupported;
  EXPECT_EQ(OpenToRead(options_, &first).code(), beside);
  if (may_read) {
    EXPECT_EQ(GetOrText(first.get(), NumberedKey(7)), PatternedValue(7, 100));
  }
  first.reset();
  const auto read_elsewhere = [this] {
    std::unique_ptr<DB> db;
    const Status status = OpenToRead(options_, &db);
    if (status.ok() && GetOrText(db.get(), NumberedKey(7)) != PatternedValue(7, 100)) return 100;
    return static_cast<int>(status.code());
  };
  EXPECT_EQ(RunInChild(read_elsewhere), static_cast<int>(beside));
  writer.reset();
  ASSERT_OK(OpenToRead(options_, &first));
  ASSERT_OK(OpenToRead(options_, &second));
  EXPECT_EQ(RunInChild(read_elsewhere), static_cast<int>(Status::Code::kOk));
  EXPECT_CODE(Open(options_, &other), kBusy);
  EXPECT_CODE(DB::Destroy(options_, path_), kBusy);
  EXPECT_TRUE(ChecksAsSound(path_)) << "a check reads, too";
  EXPECT_EQ(GetOrText(second.get(), NumberedKey(3)), PatternedValue(3, 100));
  first.reset();
  EXPECT_CODE(Open(options_, &other), kBusy);
  second.reset();
  ASSERT_OK(Open(options_, &other));
}

TEST_F(ReadOnlyTest, NothingIsMadeWhereNothingIs) {
  std::unique_ptr<DB> db;
  EXPECT_CODE(OpenToRead(options_, &db), kNotFound);
  EXPECT_FALSE(fs::exists(path_));
  fs::create_directories(path_);
  EXPECT_CODE(OpenToRead(options_, &db), kNotFound);
  EXPECT_TRUE(fs::is_empty(path_));
}

TEST_F(ReadOnlyTest, SomeOfTheColumnFamilies) {
  {
    auto db = OpenOrFail(options_, path_);
    std::unique_ptr<ColumnFamilyHandle> one, two;
    ASSERT_OK(db->CreateColumnFamily(ColumnFamilyOptions(options_), "one", &one));
    ASSERT_OK(db->CreateColumnFamily(ColumnFamilyOptions(options_), "two", &two));
    for (int i = 0; i < 3000; ++i) {
      WriteBatch batch;
      batch.Put(NumberedKey(i), "default");
      batch.Put(one.get(), NumberedKey(i), "one");
      batch.Put(two.get(), NumberedKey(i), "two");
      ASSERT_OK(db->Write({}, batch));
    }
    one.reset();
    two.reset();
  }
  const auto before = StateOf(path_);
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::OpenForReadOnly(options_, path_, {{"two", ColumnFamilyOptions(options_)}}, &handles, &db));
  std::string value;
  ASSERT_OK(db->Get({}, handles[0].get(), NumberedKey(17), &value));
  EXPECT_EQ(value, "two");
  EXPECT_EQ(GetOrText(db.get(), NumberedKey(17)), "default");
  EXPECT_CODE(db->Put({}, handles[0].get(), "a", "b"), kNotSupported);
  EXPECT_CODE(db->DropColumnFamily(handles[0].get()), kNotSupported);
  handles.clear();
  db.reset();
  ASSERT_OK(OpenToRead(options_, &db));
  EXPECT_EQ(GetOrText(db.get(), NumberedKey(2999)), "default");
  db.reset();
  options_.create_missing_column_families = true;
  const std::vector<ColumnFamilyDescriptor> unknown{{"three", ColumnFamilyOptions(options_)}};
  EXPECT_CODE(DB::OpenForReadOnly(options_, path_, unknown, &handles, &db), kInvalidArgument);
  EXPECT_EQ(StateOf(path_), before);
}

// A table of a family that the open is not given is listed, and a log is to be replayed.
TEST_F(ReadOnlyTest, SomeFamiliesAreEnoughBehindAKill) {
  const auto work = [this]() -> int {
    std::unique_ptr<DB> db;
    std::unique_ptr<ColumnFamilyHandle> other;
    if (!Open(options_, &db).ok() || !db->CreateColumnFamily(ColumnFamilyOptions(options_), "other", &other).ok()) LeaveChild(1);
    if (!db->Put({}, other.get(), "k", "v").ok() || !db->Flush().ok() || !db->Put({}, "replayed", "v").ok()) LeaveChild(2);
    LeaveChild(0);
  };
  ASSERT_EQ(RunInChild(work), 0);
  std::unique_ptr<DB> db;
  ASSERT_OK(OpenToRead(options_, &db));
  EXPECT_EQ(GetOrText(db.get(), "replayed"), "v");
}

// Of others, in a directory that cannot be written: permission to read is enough.
TEST_F(ReadOnlyTest, PermissionToReadIsEnough) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, who becomes somebody else";
  Fill(options_, 2000);
  WriteUntilKilled(7, 50);
  fs::permissions(directory_.path(), fs::perms(0555));
  for (const auto& entry : fs::recursive_directory_iterator(path_))
    fs::permissions(entry.path(), entry.is_directory() ? fs::perms(0555) : fs::perms(0444));
  fs::permissions(path_, fs::perms(0555));
  const auto before = StateOf(path_);
  const auto read_as_nobody = [this] {
    if (setgid(65534) != 0 || setuid(65534) != 0) return 100;
    std::unique_ptr<DB> db;
    if (Open(options_, &db).ok()) return 101;
    Status status = OpenToRead(options_, &db);
    if (!status.ok()) return static_cast<int>(status.code());
    return ScanForward(db.get()).empty() ? 102 : 0;
  };
  EXPECT_EQ(RunInChild(read_as_nobody), 0);
  EXPECT_EQ(StateOf(path_), before);
}

TEST_F(ReadOnlyTest, DamageIsAnError) {
  Fill(options_, 1000);
  const std::string part = path_ + "/region-1/000000.pmem";
  std::unique_ptr<DB> db;
  options_.regions = 3;
  EXPECT_CODE(OpenToRead(options_, &db), kInvalidArgument);
  options_.regions = 0;
  const auto size = fs::file_size(part);
  fs::resize_file(part, size - 4096);
  EXPECT_CODE(OpenToRead(options_, &db), kCorruption);
  fs::resize_file(part, size);
  fs::rename(path_ + "/region-1", path_ + "/elsewhere");
  EXPECT_CODE(OpenToRead(options_, &db), kCorruption);
  fs::rename(path_ + "/elsewhere", path_ + "/region-1");
  std::string bytes = ReadFileOrDie(part);
  bytes[4096 + 100] ^= 1;  // PMDK's descriptor
  WriteFileOrDie(part, bytes);
  EXPECT_CODE(OpenToRead(options_, &db), kCorruption);
}

}  // namespace
}  // namespace braiddb::test
