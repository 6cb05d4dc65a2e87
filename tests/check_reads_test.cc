// ReadOptions::verify_checksums, Options::verify_at_open, damage in the log behind the boundary, and files that shrink.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "braiddb/check.h"
#include "braiddb/db.h"
#include "db/test_hooks.h"
#include "log/log_entry.h"
#include "pmem/persist_mode.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/keep_lists.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;

// Where the value of `key` lies in the mapped pool of an open database.
char* PlaceOf(DB* db, Slice key) {
  PinnableSlice value;
  EXPECT_OK(db->Get({}, key, &value));
  return const_cast<char*>(value.data());
}

ReadOptions Verified() {
  ReadOptions options;
  options.verify_checksums = true;
  return options;
}

class CheckReadsTest : public DbOpenTest {};

TEST_F(CheckReadsTest, VerifiedReadsFindADamagedValueInEveryLevel) {
  auto db = OpenOrFail(TinyOptions(2), path_);
  for (const char* level : {"memtable", "L0", "L1"}) {
    SCOPED_TRACE(level);
    for (int i = 0; i < 50; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), PatternedValue(i, 40)));
    if (level[0] == 'L') {
      ASSERT_OK(level[1] == '0' ? db->Flush() : db->CompactRange({}, nullptr, nullptr));
    }
    const std::string key = NumberedKey(20);
    EXPECT_EQ(GetOrText(db.get(), key, Verified()), PatternedValue(20, 40));
    PlaceOf(db.get(), key)[7] ^= 0x10;
    std::string value;
    PinnableSlice pinned;
    EXPECT_OK(db->Get({}, key, &value));  // which is what plain reads promise: nothing
    EXPECT_CODE(db->Get(Verified(), key, &value), kCorruption);
    EXPECT_CODE(db->Get(Verified(), key, &pinned), kCorruption);
    std::vector<std::string> values;
    const std::vector<Status> statuses = db->MultiGet(Verified(), {NumberedKey(19), key, NumberedKey(21)}, &values);
    EXPECT_OK(statuses[0]);
    EXPECT_CODE(statuses[1], kCorruption);
    EXPECT_OK(statuses[2]);
    const Snapshot* snapshot = db->GetSnapshot();
    ReadOptions at_snapshot = Verified();
    at_snapshot.snapshot = snapshot;
    EXPECT_CODE(db->Get(at_snapshot, key, &value), kCorruption);
    db->ReleaseSnapshot(snapshot);
    EXPECT_OK(db->Get(Verified(), NumberedKey(21), &value));
    PlaceOf(db.get(), key)[7] ^= 0x10;
    EXPECT_EQ(GetOrText(db.get(), key, Verified()), PatternedValue(20, 40));
  }
}

TEST_F(CheckReadsTest, AVerifiedIteratorStopsAtDamageAndSaysSo) {
  auto db = OpenOrFail(TinyOptions(2), path_);
  for (int i = 0; i < 100; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), PatternedValue(i, 40)));
  ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
  char* const value = PlaceOf(db.get(), NumberedKey(60));
  *value ^= 1;
  for (const bool forward : {true, false}) {
    SCOPED_TRACE(forward ? "forward" : "backward");
    const auto it = db->NewIterator(Verified());
    int seen = 0;
    for (forward ? it->SeekToFirst() : it->SeekToLast(); it->Valid(); forward ? it->Next() : it->Prev()) ++seen;
    EXPECT_EQ(seen, forward ? 60 : 38);  // backward, the entry before is read to see whether it is a version of the same key
    EXPECT_CODE(it->status(), kCorruption);
  }
  const auto it = db->NewIterator(Verified());
  it->Seek(NumberedKey(60));
  EXPECT_FALSE(it->Valid());
  EXPECT_CODE(it->status(), kCorruption);
  *value ^= 1;
  EXPECT_EQ(ScanForward(db.get(), Verified()).size(), 100u);
}

TEST_F(CheckReadsTest, ADamagedDeletionIsNoAbsence) {
  for (const uint32_t regions : {1, 2}) {
    auto db = OpenOrFail(TinyOptions(regions), path_ + std::to_string(regions));
    ASSERT_OK(db->Put({}, "key", "value"));
    // The type is in the header of the entry, before its pointers.
    char* const value = PlaceOf(db.get(), "key");
    LogEntry* entry = nullptr;
    for (uint32_t height = 1; height <= kMaxHeight && entry == nullptr; ++height) {
      auto* candidate = reinterpret_cast<LogEntry*>(value - 3 - 8 * height - sizeof(LogEntry));
      if (candidate->height() == height && candidate->key() == "key" && candidate->type() == EntryType::kPut) entry = candidate;
    }
    ASSERT_NE(entry, nullptr);
    entry->tag ^= 1;
    std::string read;
    EXPECT_CODE(db->Get({}, "key", &read), kNotFound);
    EXPECT_CODE(db->Get(Verified(), "key", &read), kCorruption);
    entry->tag ^= 1;
  }
}

TEST_F(CheckReadsTest, VerifiedReadsAreRightWhileTablesAreMerged) {
  auto db = OpenOrFail(TinyOptions(2), path_);
  for (int i = 0; i < 400; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), PatternedValue(i, 20)));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int round = 0; !stop; ++round) {
      for (int i = 0; i < 400; ++i) EXPECT_OK(db->Put({}, NumberedKey(i), PatternedValue(i, 20 + round % 50)));
    }
  });
  for (int round = 0; round < 40 && !HasFailure(); ++round) {
    const auto it = db->NewIterator(Verified());
    for (round % 2 == 0 ? it->SeekToFirst() : it->SeekToLast(); it->Valid(); round % 2 == 0 ? it->Next() : it->Prev()) {
    }
    EXPECT_OK(it->status());
    std::string value;
    for (int i = 0; i < 400; ++i) EXPECT_OK(db->Get(Verified(), NumberedKey(i), &value));
  }
  stop = true;
  writer.join();
}

// ---- Pointers

// The entry that the value of `key` is in.
LogEntry* EntryOf(DB* db, Slice key) {
  char* const value = PlaceOf(db, key);
  for (uint32_t height = 1; height <= kMaxHeight; ++height) {
    auto* entry = reinterpret_cast<LogEntry*>(value - key.size() - 8 * height - sizeof(LogEntry));
    if (entry->height() == height && entry->key() == key && entry->type() == EntryType::kPut) return entry;
  }
  ADD_FAILURE() << "no entry";
  return nullptr;
}

// The pointers of `key`'s entry lead outside the database.
void LoseNext(DB* db, Slice key) {
  LogEntry* const entry = EntryOf(db, key);
  for (uint32_t layer = 0; layer < entry->height(); ++layer) entry->next[layer] = 0x7fff'0000'0000'1000 + 8 * layer;
}

class DamagedPointerTest : public CheckReadsTest {
 protected:
  void TearDown() override {
    SyncPoints::Instance().Clear();
    CheckReadsTest::TearDown();
  }
  // Keys in the last level, and behind the one whose pointers are lost, others in a table of L0.
  // `is_list`: as of a table from before the open, its order is not known.
  std::unique_ptr<DB> MakeDamaged(bool has_index = true, bool is_list = false) {
    if (is_list) KeepListsOfRestoredTables();
    Options options = TinyOptions(1);
    options.disable_auto_compaction = true;
    if (!has_index) options.l1_index_size = 0;
    auto db = OpenOrFail(options, path_);
    for (int i = 0; i < 400; ++i) EXPECT_OK(db->Put({}, NumberedKey(i), PatternedValue(i, 40)));
    EXPECT_OK(db->CompactRange({}, nullptr, nullptr));
    for (int i = 0; i < 400; i += 3) EXPECT_OK(db->Put({}, NumberedKey(i), PatternedValue(i + 1000, 40)));
    EXPECT_OK(db->Flush());
    if (is_list) {
      db.reset();
      db = OpenOrFail(options, path_);
    }
    return db;
  }
};

TEST_F(DamagedPointerTest, APointerThatLeadsOutsideIsAnErrorOfPlainReads) {
  auto db = MakeDamaged(false);
  LoseNext(db.get(), NumberedKey(200));
  const auto it = db->NewIterator({});
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
  }
  EXPECT_CODE(it->status(), kCorruption);
  std::string value;
  EXPECT_CODE(db->Get({}, NumberedKey(202), &value), kCorruption);
  std::vector<std::string> values;
  EXPECT_CODE(db->MultiGet({}, {NumberedKey(202)}, &values)[0], kCorruption);
}

// Iterators go along the index.
TEST_F(DamagedPointerTest, WhereTheIndexHasEveryNodeAScanMeetsNoPointer) {
  auto db = MakeDamaged();
  LoseNext(db.get(), NumberedKey(200));
  const auto it = db->NewIterator({});
  int seen = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next(), ++seen) {
    EXPECT_EQ(it->key(), NumberedKey(seen));
    EXPECT_EQ(it->value(), PatternedValue(seen % 3 == 0 ? seen + 1000 : seen, 40));
  }
  EXPECT_OK(it->status());
  EXPECT_EQ(seen, 400);
}

TEST_F(DamagedPointerTest, AMergeOfADamagedListEndsWithAnErrorAndTheDatabaseIsReadOnly) {
  // In the last level, and in the table.
  for (const int damaged : {200, 201}) {
    SCOPED_TRACE(damaged);
    auto db = MakeDamaged(true, true);
    LoseNext(db.get(), NumberedKey(damaged));
    EXPECT_CODE(db->CompactRange({}, nullptr, nullptr), kCorruption);
    EXPECT_CODE(db->Put({}, "key", "value"), kReadOnly);
    db.reset();
    ASSERT_OK(DB::Destroy(TinyOptions(1), path_));
  }
}

TEST_F(DamagedPointerTest, AMergeThatKnowsATablesOrderMeetsNoPointerOfIt) {
  auto db = MakeDamaged();
  LoseNext(db.get(), NumberedKey(200));
  EXPECT_CODE(db->CompactRange({}, nullptr, nullptr), kCorruption) << "one of the last level";
  db.reset();
  ASSERT_OK(DB::Destroy(TinyOptions(1), path_));
  db = MakeDamaged();
  LoseNext(db.get(), NumberedKey(201));
  EXPECT_OK(db->CompactRange({}, nullptr, nullptr));
  for (int opens = 0; opens < 2; ++opens) {
    const Pairs found = ScanForward(db.get());
    ASSERT_EQ(found.size(), 400u);
    for (int i = 0; i < 400; ++i) {
      EXPECT_EQ(found[i].first, NumberedKey(i));
      EXPECT_EQ(found[i].second, PatternedValue(i % 3 == 0 ? i + 1000 : i, 40));
    }
    db.reset();
    db = OpenOrFail(TinyOptions(1), path_);
  }
}

TEST_F(DamagedPointerTest, AMergeOfAListInACircleEnds) {
  for (const auto& [from, to] : {std::pair(200, 100), std::pair(201, 100), std::pair(201, 99), std::pair(200, 98)}) {
    SCOPED_TRACE(from);
    const int code = RunInChild(
        [&, from = from, to = to] {
          auto db = MakeDamaged(true, true);
          LogEntry* const entry = EntryOf(db.get(), NumberedKey(from));
          entry->next[0] = RegionsOf(db.get())->ToPmPtr(0, EntryOf(db.get(), NumberedKey(to))).raw();
          const Status status = db->CompactRange({}, nullptr, nullptr);
          _exit(static_cast<int>(status.code()));
          return 0;
        },
        60'000);
    EXPECT_EQ(code, static_cast<int>(Status::Code::kCorruption)) << "256 and more: a signal";
    ASSERT_OK(DB::Destroy(TinyOptions(1), path_));
  }
}

// ---- Opening

TEST_F(CheckReadsTest, VerifyAtOpenRefusesWhatAPlainOpenDoesNotSee) {
  Fill(TinyOptions(2), 300);
  {
    auto db = OpenOrFail(TinyOptions(2), path_);
    *PlaceOf(db.get(), NumberedKey(10)) ^= 4;
  }
  Options strict = TinyOptions(2);
  strict.verify_at_open = true;
  std::unique_ptr<DB> db;
  EXPECT_CODE(Open(strict, &db), kCorruption);
  EXPECT_EQ(db, nullptr);
  db = OpenOrFail(TinyOptions(2), path_);
  *PlaceOf(db.get(), NumberedKey(10)) ^= 4;
  db.reset();
  ExpectFilled(strict, 300);
}

// A child writes 100 keys, damages the value of one and is killed.
int WriteAndDamage(const std::string& path, int damaged) {
  std::unique_ptr<DB> db;
  if (!DB::Open(TinyOptions(1), path, &db).ok()) return 1;
  for (int i = 0; i < 100; ++i) {
    if (!db->Put({}, NumberedKey(i), PatternedValue(i, 40)).ok()) return 2;
  }
  *PlaceOf(db.get(), NumberedKey(damaged)) ^= 1;
  _exit(0);
}

TEST_F(CheckReadsTest, DamageInTheLogIsToldFromAWriteThatWasCutOff) {
  ASSERT_EQ(RunInChild([this] { return WriteAndDamage(path_, 50); }), 0);
  std::unique_ptr<DB> db;
  EXPECT_CODE(Open(TinyOptions(1), &db), kCorruption);
  EXPECT_FALSE(ChecksAsSound(path_));
  ASSERT_OK(DB::Destroy(TinyOptions(1), path_));

  // The last write looks as if it had not been finished.
  ASSERT_EQ(RunInChild([this] { return WriteAndDamage(path_, 99); }), 0);
  EXPECT_TRUE(ChecksAsSound(path_));
  ASSERT_OK(Open(TinyOptions(1), &db));
  EXPECT_EQ(ScanForward(db.get()).size(), 99u);
}

TEST(CheckReadsOnDiskTest, WhereWritesMayBeLostDamageInTheLogIsTakenForThat) {
  TestDirectory directory(TestDirectory::Medium::kDisk);
  const std::string path = directory.File("db");
  ASSERT_EQ(RunInChild([&] { return WriteAndDamage(path, 50); }), 0);
  PersistMode mode = PersistMode::kAuto;
  ASSERT_OK(ResolvePersistMode(path + "/region-0/000000.pmem", PersistMode::kAuto, &mode));
  if (mode != PersistMode::kPage) GTEST_SKIP() << "no disk";
  std::string log;
  Options options = TinyOptions(1);
  options.info_log = [&log](std::string_view line) { log.append(line) += '\n'; };
  EXPECT_TRUE(ChecksAsSound(path));
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::Open(options, path, &db));
  EXPECT_EQ(ScanForward(db.get()).size(), 50u);
  db.reset();
  EXPECT_NE(log.find("are not replayed"), std::string::npos) << log;
}

TEST_F(CheckReadsTest, APartThatShrinksWhileItIsOpenedIsAnErrorAndNotTheEnd) {
  Fill(TinyOptions(1), 300);
  const std::string part = path_ + "/region-0/000000.pmem";
  const std::string pristine = directory_.File("pristine");
  fs::copy(path_, pristine, fs::copy_options::recursive);
  for (const uint64_t left : {uint64_t{100}, uint64_t{4096}, uint64_t{1} << 20, uint64_t{3} << 19, (uint64_t{2} << 20) - 4096}) {
    SCOPED_TRACE(left);
    fs::remove_all(path_);
    fs::copy(pristine, path_, fs::copy_options::recursive);
    const int code = RunInChild([&] {
      SyncPoints::Instance().SetCallback("Region::Open:Checked", [&](void*) { fs::resize_file(part, left); });
      SyncPoints::Instance().Enable();
      std::unique_ptr<DB> db;
      return static_cast<int>(Open(TinyOptions(1), &db).code());
    });
    EXPECT_EQ(code, static_cast<int>(Status::Code::kCorruption)) << "256 and more: a signal";
  }
}

}  // namespace
}  // namespace braiddb::test
