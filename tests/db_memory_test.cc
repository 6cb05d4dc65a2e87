// DRAM cannot be allocated, once, at any place: an error, no acknowledged write lost, no wait without end, and sound files.
//
// This program has an operator new of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "braiddb/check.h"
#include "braiddb/db.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/failing_new.h"
#include "tests/support/leave_child.h"

namespace braiddb::test {
namespace {

class DbMemoryTest : public DbOpenTest {
 protected:
  using Model = std::map<std::string, std::string>;
  static constexpr int kKeys = 120;

  void SetUp() override {
    this_thread = true;
    for (int i = 0; i < kKeys; ++i) values_.push_back(PatternedValue(i, 500));
    for (int i = 0; i < kKeys; ++i) keys_.push_back(NumberedKey(i));
    for (int i = 20; i < 50; ++i) batch_.Put(keys_[i], values_[i + 20]);
    large_ = PatternedValue(7, 600'000);
  }
  void TearDown() override { this_thread = false; }

  // Makes the sweep quick where everything is slow: every allocation at first, then samples.
  static int64_t Next(int64_t at) { return at + (at < 20 / kSlowdown ? 1 : 13 * kSlowdown + at / 4); }

  // One of each call. Every status is OK, MemoryLimit, ReadOnly, or that of a key that is not there; calls without one may
  // throw std::bad_alloc.
  void Work(DB* db) {
    const auto note = [this](const Status& status) {
      good_ = good_ && (status.ok() || status.IsMemoryLimit() || status.IsReadOnly() || status.IsNotFound());
      return status.ok();
    };
    for (int i = 0; i < kKeys; ++i) wrote_[i] = note(db->Put({}, keys_[i], values_[i]));
    wrote_batch_ = note(db->Write({}, batch_));
    wrote_large_ = note(db->Put({}, "large", large_));
    deleted_ = note(db->Delete({}, keys_[3]));
    PinnableSlice pinned;
    std::string value;
    note(db->Get({}, keys_[5], &pinned));
    note(db->Get({}, "large", &value));
    pinned.Reset();
    note(db->Flush());
    (void)UseCallsThatThrow(db);
    note(db->CompactRange({}, nullptr, nullptr));
    note(db->Put({}, keys_[0], values_[0]));
    note(db->WaitForCompaction());
  }

  // Whether the calls that return no status had the memory that they needed.
  bool UseCallsThatThrow(DB* db) try {
    const auto release = [db](const Snapshot* snapshot) { db->ReleaseSnapshot(snapshot); };
    const std::unique_ptr<const Snapshot, decltype(release)> snapshot(db->GetSnapshot(), release);
    auto iterator = db->NewIterator({});
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    }
    for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) {
    }
    iterator.reset();
    std::vector<std::string> values;
    for (const Status& status : db->MultiGet({}, {keys_[5], keys_[6]}, &values))
      good_ = good_ && (status.ok() || status.IsNotFound());
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

  // What was acknowledged is there; a write that was not is there or not, a batch as one.
  void ExpectRight(DB* db) {
    EXPECT_TRUE(good_) << "a status that is no word for this";
    const bool batch_there = GetOrText(db, keys_[49]) == values_[69];
    EXPECT_TRUE(!wrote_batch_ || batch_there);
    for (int i = 0; i < kKeys; ++i) {
      const std::string found = GetOrText(db, keys_[i]);
      const bool in_batch = i >= 20 && i < 50;
      if (i == 3 && deleted_) {
        EXPECT_EQ(found, "<not found>");
      } else if (in_batch && batch_there) {
        EXPECT_EQ(found, values_[i + 20]) << i;
      } else if (wrote_[i]) {
        EXPECT_TRUE(found == values_[i] || (i == 3 && found == "<not found>")) << i << ": " << Printable(found);
      } else {
        EXPECT_TRUE(found == values_[i] || found == "<not found>") << i << ": " << Printable(found);
      }
    }
    if (wrote_large_) {
      EXPECT_TRUE(GetOrText(db, "large") == large_);
    }
    const Pairs forward = ScanForward(db);
    Pairs backward = ScanBackward(db);
    std::reverse(backward.begin(), backward.end());
    EXPECT_TRUE(forward == backward);
  }

  void Sweep(Who who, const Options& options, int64_t times) {
    int64_t at = 0;
    int read_only = 0;
    for (;; at = Next(at)) {
      SCOPED_TRACE("allocation " + std::to_string(at));
      good_ = true;
      std::fill(std::begin(wrote_), std::end(wrote_), false);
      wrote_batch_ = wrote_large_ = deleted_ = false;
      std::unique_ptr<DB> db;
      ASSERT_OK(Open(options, &db));
      {
        const Failing failing(who, at, times);
        Work(db.get());
      }
      const bool enough = failed == 0;
      ExpectRight(db.get());
      EXPECT_EQ(IntProperty(db.get(), "braiddb.num-snapshots"), 0u) << "a registration was left behind";
      // A thread whose allocation failed may come to say so only now.
      const Status put = db->Put({}, "later", "works");
      const Status compacted = db->CompactRange({}, nullptr, nullptr);
      (void)db->WaitForCompaction();
      if (IntProperty(db.get(), "braiddb.background-errors") == 0) {
        EXPECT_OK(put);
        EXPECT_OK(compacted);
        EXPECT_OK(db->Close());
      } else {
        ++read_only;
        EXPECT_TRUE(put.ok() || put.IsReadOnly()) << put.ToString();
        EXPECT_TRUE(compacted.ok() || compacted.IsReadOnly()) << compacted.ToString();
        EXPECT_CODE(db->Put({}, "later", "does not"), kReadOnly);
        EXPECT_CODE(db->Close(), kReadOnly);
      }
      db.reset();
      EXPECT_TRUE(ChecksAsSound(path_));
      ASSERT_OK(Open(options, &db));
      ExpectRight(db.get());
      EXPECT_OK(db->CompactRange({}, nullptr, nullptr));
      ExpectRight(db.get());
      db.reset();
      ASSERT_OK(DB::Destroy(options, path_));
      if (enough || HasFailure()) break;
    }
    RecordProperty("allocations", static_cast<int>(at));
    EXPECT_TRUE(read_only > 0 || who == Who::kThisThread);
    EXPECT_GT(at, 40);
  }

  static Options SmallOptions() {
    Options options = TinyOptions(2);
    options.segment_size = 256 << 10;
    options.compaction_threads = 2;
    options.memtable = MemtableKind::kHash;
    return options;
  }

  std::vector<std::string> keys_;
  std::vector<std::string> values_;
  WriteBatch batch_;
  std::string large_;
  bool wrote_[kKeys] = {};
  bool wrote_batch_ = false;
  bool wrote_large_ = false;
  bool deleted_ = false;
  bool good_ = true;
};

TEST_F(DbMemoryTest, OneAllocationOfTheCallerFails) { Sweep(Who::kThisThread, SmallOptions(), 1); }

TEST_F(DbMemoryTest, OneAllocationOfTheCallerFailsWithSkipLists) {
  Options options = SmallOptions();
  options.memtable = MemtableKind::kSkipList;
  Sweep(Who::kThisThread, options, 1);
}

TEST_F(DbMemoryTest, CallsWithoutAStatusThrowAndLeaveNothingBehind) {
  std::unique_ptr<DB> db;
  ASSERT_OK(Open(SmallOptions(), &db));
  for (int i = 0; i < kKeys; ++i) ASSERT_OK(db->Put({}, keys_[i], values_[i]));
  ASSERT_OK(db->Flush());
  int thrown = 0;
  for (int64_t at = 0;; ++at) {
    SCOPED_TRACE("allocation " + std::to_string(at));
    bool done = false;
    {
      const Failing failing(Who::kThisThread, at);
      done = UseCallsThatThrow(db.get());
    }
    ASSERT_EQ(done, failed == 0);
    ASSERT_EQ(IntProperty(db.get(), "braiddb.num-snapshots"), 0u);
    if (done) break;
    ++thrown;
  }
  EXPECT_GT(thrown, 5);
  EXPECT_TRUE(good_);
  EXPECT_EQ(ScanForward(db.get()).size(), static_cast<size_t>(kKeys));
  EXPECT_OK(db->Close());
}

TEST_F(DbMemoryTest, AllocationsOfTheCallerFailForAWhile) { Sweep(Who::kThisThread, SmallOptions(), 20); }

TEST_F(DbMemoryTest, OneAllocationOfABackgroundThreadFails) { Sweep(Who::kOthers, SmallOptions(), 1); }

TEST_F(DbMemoryTest, AllocationsOfBackgroundThreadsFailForAWhile) { Sweep(Who::kOthers, SmallOptions(), 20); }

// An open, of a new database or of one that has a log to replay, fails; the next one finds everything.
void SweepOpen(const Options& options, const std::string& path, const std::map<std::string, std::string>& expected) {
  for (const Who who : {Who::kThisThread, Who::kOthers}) {
    int refused = 0;
    for (int64_t at = 0;; at += at < 20 / kSlowdown ? 1 : 13 * kSlowdown + at / 8) {
      SCOPED_TRACE("allocation " + std::to_string(at));
      std::unique_ptr<DB> db;
      Status status;
      {
        const Failing failing(who, at);
        status = DB::Open(options, path, &db);
        if (who == Who::kOthers && status.ok()) status = db->WaitForCompaction();
      }
      const bool enough = failed == 0;
      EXPECT_TRUE(status.ok() || status.IsMemoryLimit() || status.IsReadOnly()) << status.ToString();
      refused += !status.ok();
      EXPECT_TRUE(db == nullptr || HoldsExactly(db.get(), expected));
      db.reset();
      ASSERT_OK(DB::Open(options, path, &db));
      EXPECT_TRUE(HoldsExactly(db.get(), expected));
      db.reset();
      if (expected.empty()) {
        ASSERT_OK(DB::Destroy(options, path));
      }
      if (enough || testing::Test::HasFailure()) break;
    }
    EXPECT_TRUE(refused > 10 || who == Who::kOthers) << refused;
  }
}

// With a log to replay by several threads: the log stays as it is for the next open.
TEST_F(DbMemoryTest, AnAllocationOfARecoveryFails) {
  Options options = SmallOptions();
  options.regions = 1;
  options.memtable_size = 1 << 20;  // nothing is flushed: all of it is replayed
  options.memtable_max_entries = 1 << 16;
  options.recovery_threads = 3;
  Model expected;
  for (int i = 0; i < kKeys; ++i) expected[keys_[i]] = values_[i];
  const std::string pristine = directory_.File("pristine");
  ASSERT_EQ(RunInChild([&] {
              std::unique_ptr<DB> db;
              if (!DB::Open(options, pristine, &db).ok()) return 1;
              for (const auto& [key, value] : expected) {
                if (!db->Put({}, key, value).ok()) return 2;
              }
              LeaveChild(0);  // without a close
            }),
            0);
  for (const Who who : {Who::kThisThread, Who::kOthers}) {
    int refused = 0;
    for (int64_t at = 0;; at += kSlowdown == 1 ? 2 : 11) {
      SCOPED_TRACE("allocation " + std::to_string(at));
      std::filesystem::remove_all(path_);
      CopyDatabase(pristine, path_);
      std::unique_ptr<DB> db;
      Status status;
      {
        const Failing failing(who, at);
        status = Open(options, &db);
      }
      EXPECT_TRUE(status.ok() || status.IsMemoryLimit()) << status.ToString();
      refused += !status.ok();
      const bool enough = failed == 0;
      db.reset();
      ASSERT_OK(Open(options, &db));
      EXPECT_TRUE(HoldsExactly(db.get(), expected));
      if (enough || HasFailure()) break;
    }
    EXPECT_TRUE(refused > 10 || who == Who::kOthers) << refused;
  }
}

TEST_F(DbMemoryTest, AnAllocationOfACreationFails) { SweepOpen(SmallOptions(), path_, {}); }

TEST_F(DbMemoryTest, AnAllocationOfACloseFails) {
  int refused = 0;
  for (int64_t at = 0;; at = Next(at)) {
    SCOPED_TRACE("allocation " + std::to_string(at));
    std::unique_ptr<DB> db;
    ASSERT_OK(Open(SmallOptions(), &db));
    ASSERT_OK(db->Put({}, keys_[0], values_[0]));
    Status status;
    {
      const Failing failing(Who::kThisThread, at);
      status = db->Close();
    }
    EXPECT_TRUE(status.ok() || status.IsMemoryLimit()) << status.ToString();
    refused += !status.ok();
    const bool enough = failed == 0;
    db.reset();
    ASSERT_OK(Open(SmallOptions(), &db));
    EXPECT_EQ(GetOrText(db.get(), keys_[0]), values_[0]);
    if (enough || HasFailure()) break;
  }
  EXPECT_GT(refused, 0);
}

// A drop either happens, or leaves the family as it was.
TEST_F(DbMemoryTest, AnAllocationOfADropFails) {
  std::unique_ptr<DB> db;
  ASSERT_OK(Open(SmallOptions(), &db));
  int refused = 0;
  for (int64_t at = 0;; at = Next(at)) {
    SCOPED_TRACE("allocation " + std::to_string(at));
    std::unique_ptr<ColumnFamilyHandle> family;
    ASSERT_OK(db->CreateColumnFamily({}, "family", &family));
    ASSERT_OK(db->Put({}, family.get(), keys_[0], values_[0]));
    Status status;
    {
      const Failing failing(Who::kThisThread, at);
      status = db->DropColumnFamily(family.get());
    }
    const bool enough = failed == 0;
    if (!status.ok()) {
      ++refused;
      EXPECT_TRUE(status.IsMemoryLimit()) << status.ToString();
      const Status put = db->Put({}, family.get(), keys_[1], values_[1]);
      if (put.ok()) {
        ASSERT_OK(db->DropColumnFamily(family.get()));
      } else {  // the drop was committed before the failure
        std::vector<std::string> names;
        family.reset();
        ASSERT_OK(db->Close());
        ASSERT_OK(DB::ListColumnFamilies(SmallOptions(), path_, &names));
        EXPECT_EQ(names.size(), 1u);
        ASSERT_OK(Open(SmallOptions(), &db));
      }
    }
    if (enough || HasFailure()) break;
  }
  EXPECT_GT(refused, 0);
}

TEST_F(DbMemoryTest, AnAllocationOfARemovalFails) {
  int refused = 0;
  for (int64_t at = 0;; at = Next(at)) {
    SCOPED_TRACE("allocation " + std::to_string(at));
    std::unique_ptr<DB> db;
    ASSERT_OK(Open(SmallOptions(), &db));
    ASSERT_OK(db->Put({}, keys_[0], values_[0]));
    db.reset();
    Status status;
    {
      const Failing failing(Who::kThisThread, at);
      status = DB::Destroy(SmallOptions(), path_);
    }
    EXPECT_TRUE(status.ok() || status.IsMemoryLimit()) << status.ToString();
    refused += !status.ok();
    const bool enough = failed == 0;
    ASSERT_OK(DB::Destroy(SmallOptions(), path_));
    EXPECT_FALSE(std::filesystem::exists(path_));
    if (enough || HasFailure()) break;
  }
  EXPECT_GT(refused, 0);
}

TEST_F(DbMemoryTest, AnAllocationOfARepairFails) {
  std::unique_ptr<DB> db;
  ASSERT_OK(Open(SmallOptions(), &db));
  ASSERT_OK(db->Put({}, keys_[0], values_[0]));
  db.reset();
  const std::string repaired = directory_.File("repaired");
  int refused = 0;
  for (int64_t at = 0;; at = Next(at)) {
    SCOPED_TRACE("allocation " + std::to_string(at));
    RepairReport report;
    Status status;
    {
      const Failing failing(Who::kThisThread, at);
      status = RepairDatabase({}, path_, repaired, &report);
    }
    EXPECT_TRUE(status.ok() || status.IsMemoryLimit()) << status.ToString();
    refused += !status.ok();
    const bool enough = failed == 0;
    if (status.ok()) {
      ASSERT_OK(DB::Open(SmallOptions(), repaired, &db));
      EXPECT_EQ(GetOrText(db.get(), keys_[0]), values_[0]);
      db.reset();
      ASSERT_OK(DB::Destroy(SmallOptions(), repaired));
    }
    if (enough || HasFailure()) break;
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace braiddb::test
