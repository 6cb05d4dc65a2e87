// The file INDEX: an open takes the indexes that a close has stored, and only those that describe the database as it is.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/leave_child.h"
#include "tests/support/wait_until.h"
#include "util/random.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;

// The parameter is the number of regions.
class DbIndexFileTest : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    options_.l1 = L1Kind::kBraidedSkipList;
    options_.l1_index_size = 1 << 20;
    SyncPoints& points = SyncPoints::Instance();
    points.SetCallback("DBImpl::StoreIndexes:Least", [](void* least) { *static_cast<uint64_t*>(least) = 0; });
    points.SetCallback("DBImpl::LoadIndexes", [this](void* loaded) {
      loaded_ = static_cast<int>(static_cast<std::set<uint32_t>*>(loaded)->size());
      has_looked_ = true;
    });
    points.Enable();
  }
  void TearDown() override {
    db_.reset();
    SyncPoints::Instance().Clear();
  }
  void Open() {
    db_.reset();
    has_looked_ = false;
    loaded_ = 0;
    db_ = OpenOrFail(options_, path_);
    ASSERT_NE(db_, nullptr);
  }
  // Opens, and expects that the open takes this number of indexes.
  void OpenTaking(int indexes) {
    ASSERT_NO_FATAL_FAILURE(Open());
    ASSERT_TRUE(WaitUntil([this] { return has_looked_.load(); }));
    ASSERT_EQ(loaded_, indexes);
  }
  // Numbered keys, and keys that begin alike.
  static std::string Key(int i) {
    return i % 2 == 0 ? NumberedKey(i) : "tenant-0001/object/" + std::string(i % 5, 'x') + NumberedKey(i);
  }
  void Write(int begin, int end, int generation) {
    for (int i = begin; i < end; ++i) {
      const std::string value = PatternedValue(static_cast<uint64_t>(i * 7 + generation), 30);
      ASSERT_OK(db_->Put({}, Key(i), value));
      expected_[Key(i)] = value;
    }
  }
  void Compact() { ASSERT_OK(db_->CompactRange({}, nullptr, nullptr)); }
  void Close() {
    ASSERT_OK(db_->Close());
    db_.reset();
  }
  void ExpectAll() {
    EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
    std::string value;
    EXPECT_TRUE(db_->Get({}, "absent", &value).IsNotFound());
    auto iterator = db_->NewIterator({});
    auto at = expected_.rbegin();
    for (iterator->SeekToLast(); iterator->Valid() && at != expected_.rend(); iterator->Prev(), ++at)
      ASSERT_EQ(iterator->key(), at->first);
    EXPECT_TRUE(at == expected_.rend() && !iterator->Valid());
  }
  std::string Contents() const {
    std::ifstream file(index_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void SetContents(const std::string& contents) const {
    std::ofstream(index_, std::ios::binary | std::ios::trunc)
        .write(contents.data(), static_cast<std::streamsize>(contents.size()));
  }

  TestDirectory directory_;
  const std::string path_ = directory_.File("db");
  const std::string index_ = path_ + "/INDEX";
  Options options_ = TinyOptions(GetParam());
  std::map<std::string, std::string> expected_;
  std::atomic<int> loaded_{0};
  std::atomic<bool> has_looked_{false};
  std::atomic<bool> has_merged_{false};
  std::atomic<int> rounds_{0};  // of the compaction thread
  std::unique_ptr<DB> db_;
};

INSTANTIATE_TEST_SUITE_P(Regions, DbIndexFileTest, testing::Values(1, 2, 3));

TEST_P(DbIndexFileTest, AnOpenTakesWhatACloseHasStored) {
  ASSERT_NO_FATAL_FAILURE(OpenTaking(0));
  ASSERT_NO_FATAL_FAILURE(Write(0, 10'000, 0));
  Compact();
  Close();
  ASSERT_TRUE(fs::exists(index_));
  for (int round = 1; round < 4; ++round) {
    SCOPED_TRACE(round);
    ASSERT_NO_FATAL_FAILURE(OpenTaking(1));
    ExpectAll();
    // Merges go on with the index, and the file of before is gone.
    ASSERT_NO_FATAL_FAILURE(Write(round * 1000, round * 1000 + 5000, round));
    for (int i = round; i < 10'000; i += 37) {
      ASSERT_OK(db_->Delete({}, Key(i)));
      expected_.erase(Key(i));
    }
    Compact();
    EXPECT_FALSE(fs::exists(index_));
    ExpectAll();
    Close();
  }
  std::unique_ptr<DB> reader;
  has_looked_ = false;
  ASSERT_OK(DB::OpenForReadOnly(options_, path_, &reader));
  ASSERT_TRUE(WaitUntil([this] { return has_looked_.load(); }));
  EXPECT_EQ(loaded_, 1);
  EXPECT_TRUE(HoldsExactly(reader.get(), expected_));
  reader.reset();
  EXPECT_TRUE(fs::exists(index_));
}

// Without a change of a last level the file stays. If tables were flushed meanwhile, it gets another stamp.
TEST_P(DbIndexFileTest, TheFileStaysWithoutAChange) {
  options_.disable_auto_compaction = true;
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Write(0, 5000, 0));
  Compact();
  Close();
  const std::string before = Contents();
  ASSERT_NO_FATAL_FAILURE(OpenTaking(1));
  Close();
  EXPECT_EQ(Contents(), before);
  ASSERT_NO_FATAL_FAILURE(OpenTaking(1));
  ASSERT_NO_FATAL_FAILURE(Write(4000, 5500, 1));
  Close();
  const std::string stamped = Contents();
  EXPECT_NE(stamped, before);
  EXPECT_EQ(stamped.substr(100), before.substr(100));
  ASSERT_NO_FATAL_FAILURE(OpenTaking(1));
  ExpectAll();
  Close();
  // The file of an older state.
  SetContents(before);
  ASSERT_NO_FATAL_FAILURE(OpenTaking(0));
  ExpectAll();
}

TEST_P(DbIndexFileTest, AKilledProcessLeavesNoWrongFile) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Write(0, 5000, 0));
  Compact();
  Close();
  const std::string before = Contents();
  for (const bool merges : {false, true}) {
    SCOPED_TRACE(merges);
    for (int i = 0; i < 2000; ++i) expected_[Key(i)] = "child" + std::to_string(merges);
    const int outcome = RunInChild([&] {
      std::unique_ptr<DB> db;
      if (!DB::Open(options_, path_, &db).ok()) return 1;
      for (int i = 0; i < 2000; ++i) {
        if (!db->Put({}, Key(i), "child" + std::to_string(merges)).ok()) return 2;
      }
      if (merges && !db->CompactRange({}, nullptr, nullptr).ok()) return 3;
      LeaveChild(0);
    });
    ASSERT_EQ(outcome, 0);
    SetContents(before);
    ASSERT_NO_FATAL_FAILURE(Open());
    ExpectAll();
    db_.reset();
  }
}

TEST_P(DbIndexFileTest, DamageAndForeignFilesAreNotUsed) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Write(0, 3000, 0));
  Compact();
  Close();
  const std::string sound = Contents();
  ASSERT_GT(sound.size(), 10'000u);
  Random random(GetParam());
  options_.disable_auto_compaction = true;
  for (int i = 0; i < 60; ++i) {
    std::string damaged = sound;
    const size_t at = i < 30 ? random.Uniform(300) : random.Uniform(sound.size());
    if (i % 3 == 0) {
      damaged.resize(at);
    } else {
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.Uniform(8)));
    }
    SCOPED_TRACE(std::to_string(i) + ": " + std::to_string(at));
    SetContents(damaged);
    ASSERT_NO_FATAL_FAILURE(Open());
    ASSERT_TRUE(WaitUntil([this] { return has_looked_.load() || !fs::exists(index_); }));
    ExpectAll();
    Close();
  }
  // A directory, and no file at all.
  fs::remove(index_);
  fs::create_directory(index_);
  ASSERT_NO_FATAL_FAILURE(Open());
  ExpectAll();
  Close();
  fs::remove(index_);
  SetContents(sound);
  // Another database's file: the identity differs.
  const std::string other = directory_.File("other");
  {
    auto db = OpenOrFail(options_, other);
    ASSERT_NE(db, nullptr);
    for (const auto& [key, value] : expected_) ASSERT_OK(db->Put({}, key, value));
    ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
    ASSERT_OK(db->Close());
  }
  ASSERT_TRUE(fs::exists(other + "/INDEX"));
  fs::copy_file(other + "/INDEX", index_, fs::copy_options::overwrite_existing);
  ASSERT_NO_FATAL_FAILURE(OpenTaking(0));
  ExpectAll();
  Close();
  ASSERT_OK(DB::Destroy(options_, other));
  EXPECT_FALSE(fs::exists(other));
}

// A merge before the compaction thread has looked at the file.
TEST_P(DbIndexFileTest, ACompactionRightAfterTheOpen) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Write(0, 5000, 0));
  Compact();
  Close();
  SyncPoints::Instance().SetCallback("DBImpl::CompactUntilStopped:Next", [this](void*) { ++rounds_; });
  SyncPoints::Instance().SetCallback("DBImpl::CompactionLoop",
                                     [this](void*) { (void)WaitUntil([this] { return has_merged_.load(); }); });
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Write(4800, 5600, 1));
  Compact();
  has_merged_ = true;
  ASSERT_TRUE(WaitUntil([this] { return rounds_ > 0; }));
  ExpectAll();
  Close();
  ASSERT_NO_FATAL_FAILURE(OpenTaking(1));
  ExpectAll();
}

// A session without a filter stores the indexes alone; a later one adds its filter.
TEST_P(DbIndexFileTest, AFilterIsAddedLater) {
  options_.filter_bits_per_key = 0;
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Write(0, 5000, 0));
  Compact();
  Close();
  const uint64_t without = fs::file_size(index_);
  options_.filter_bits_per_key = 10;
  ASSERT_NO_FATAL_FAILURE(OpenTaking(1));
  ASSERT_TRUE(WaitUntil([this] { return IntProperty(db_.get(), "braiddb.filter-bytes") > 0; }));
  Close();
  EXPECT_GT(fs::file_size(index_), without);
  ASSERT_NO_FATAL_FAILURE(OpenTaking(1));
  ExpectAll();
}

// The merge is resumed, and then the levels that it does not change get their indexes.
TEST_P(DbIndexFileTest, AfterAKilledMergeOtherFamiliesAreIndexed) {
  const int exit_status = RunInChild([&]() -> int {
    const auto db = OpenOrFail(options_, path_);
    std::unique_ptr<ColumnFamilyHandle> other;
    EXPECT_OK(db->CreateColumnFamily(ColumnFamilyOptions(options_), "other", &other));
    for (int i = 0; i < 5000; ++i) EXPECT_OK(db->Put({}, other.get(), Key(i), "value"));
    EXPECT_OK(db->CompactRange({}, other.get(), nullptr, nullptr));
    for (int i = 0; i < 5000; ++i) EXPECT_OK(db->Put({}, Key(i), "value"));
    SyncPoints::Instance().SetCallback("MergeJournal::Apply:Done", [](void*) { _exit(7); });
    (void)db->CompactRange({}, nullptr, nullptr);
    return 1;
  });
  ASSERT_EQ(exit_status, 7);
  std::vector<ColumnFamilyDescriptor> families = {{kDefaultColumnFamilyName, ColumnFamilyOptions(options_)},
                                                  {"other", ColumnFamilyOptions(options_)}};
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
  ASSERT_OK(DB::Open(options_, path_, families, &handles, &db_));
  uint64_t bytes = 0;
  EXPECT_TRUE(WaitUntil([&] { return db_->GetIntProperty(handles[1].get(), "braiddb.l1-dram-bytes", &bytes) && bytes > 0; }));
  handles.clear();
}

// Copies of a database that are changed in the same way have equal records, but for what is random. A file of one is of no use to
// another.
TEST_P(DbIndexFileTest, TheFileOfACopyIsNotUsed) {
  ASSERT_NO_FATAL_FAILURE(Open());
  Close();
  const std::string other = directory_.File("other");
  fs::copy(path_, other, fs::copy_options::recursive);
  const auto write = [this](const std::string& path, const char* prefix) {
    const auto db = OpenOrFail(options_, path);
    for (int i = 0; i < 5000; ++i) ASSERT_OK(db->Put({}, prefix + NumberedKey(i), "value"));
    ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
    ASSERT_OK(db->Close());
  };
  write(path_, "a-");
  write(other, "b-");
  const std::string before = Contents();
  ASSERT_FALSE(before.empty());
  fs::remove_all(path_);
  fs::copy(other, path_, fs::copy_options::recursive);
  SetContents(before);
  for (int i = 0; i < 5000; ++i) expected_["b-" + NumberedKey(i)] = "value";
  ASSERT_NO_FATAL_FAILURE(OpenTaking(0));
  ExpectAll();
}

TEST_P(DbIndexFileTest, OtherOptionsAndFamilies) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Write(0, 4000, 0));
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles(2);
  ASSERT_OK(db_->CreateColumnFamily(ColumnFamilyOptions(options_), "one", &handles[0]));
  ASSERT_OK(db_->CreateColumnFamily(ColumnFamilyOptions(options_), "two", &handles[1]));
  std::map<std::string, std::string> of_two;
  for (int i = 0; i < 2000; ++i) {
    ASSERT_OK(db_->Put({}, handles[0].get(), NumberedKey(i), "1"));
    ASSERT_OK(db_->Put({}, handles[1].get(), NumberedKey(i), "2"));
    of_two[NumberedKey(i)] = "2";
  }
  for (const auto& handle : handles) ASSERT_OK(db_->CompactRange({}, handle.get(), nullptr, nullptr));
  Compact();
  handles.clear();
  Close();
  const auto open_all = [&](int indexes, size_t families) {
    const char* const kNames[] = {"default", "two", "one"};
    std::vector<ColumnFamilyDescriptor> all;
    for (size_t i = 0; i < families; ++i) all.push_back({kNames[i], ColumnFamilyOptions(options_)});
    has_looked_ = false;
    ASSERT_OK(DB::Open(options_, path_, all, &handles, &db_));
    ASSERT_TRUE(WaitUntil([this] { return has_looked_.load(); }));
    EXPECT_EQ(loaded_, indexes);
    EXPECT_TRUE(HoldsExactly(db_.get(), expected_));
    std::map<std::string, std::string> found;
    const auto iterator = db_->NewIterator({}, handles[1].get());
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
      found[std::string(iterator->key())] = std::string(iterator->value());
    EXPECT_EQ(found, of_two);
  };
  ASSERT_NO_FATAL_FAILURE(open_all(3, 3));
  ASSERT_OK(db_->DropColumnFamily(handles[2].get()));
  handles.clear();
  Close();
  ASSERT_NO_FATAL_FAILURE(open_all(2, 2));
  handles.clear();
  Close();
  // Indexes with another bound are built anew.
  options_.l1_index_size = 2 << 20;
  options_.filter_bits_per_key = 12;
  ASSERT_NO_FATAL_FAILURE(open_all(0, 2));
  handles.clear();
  Compact();
  Close();
  ASSERT_NO_FATAL_FAILURE(open_all(2, 2));  // the close has replaced the file
  handles.clear();
  Close();
}

// Without memory for the stored index, the open builds it.
TEST_P(DbIndexFileTest, AnOpenWithoutMemoryGoesOn) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Write(0, 3000, 0));
  Compact();
  Close();
  SyncPoints::Instance().SetCallback("DBImpl::LoadIndexes:Begin", [](void* fails) { *static_cast<bool*>(fails) = true; });
  ASSERT_NO_FATAL_FAILURE(OpenTaking(0));
  ASSERT_NO_FATAL_FAILURE(Write(2000, 4000, 1));
  Compact();
  ExpectAll();
  Close();
  SyncPoints::Instance().SetCallback("DBImpl::LoadIndexes:Begin", [](void*) {});
  ASSERT_NO_FATAL_FAILURE(OpenTaking(1));
  ExpectAll();
}

// A larger file would end the process.
TEST_P(DbIndexFileTest, TheLimitForTheSizeOfAFileHolds) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Write(0, 10'000, 0));
  Compact();
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit limit = {64 << 10, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const Status status = db_->Close();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_OK(status);
  EXPECT_FALSE(fs::exists(index_));
  ASSERT_NO_FATAL_FAILURE(OpenTaking(0));
  ExpectAll();
}

// A level without an index, and a database with little in it, leave no file.
TEST(DbIndexFileSizeTest, SmallDatabasesHaveNoFile) {
  TestDirectory directory;
  for (const L1Kind kind : {L1Kind::kBraidedSkipList, L1Kind::kNvTree, L1Kind::kSortedRuns}) {
    Options options = TinyOptions(1);
    options.l1 = kind;
    const std::string path = directory.File("db" + std::to_string(static_cast<int>(kind)));
    auto db = OpenOrFail(options, path);
    ASSERT_NE(db, nullptr);
    for (int i = 0; i < 2000; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), "v"));
    ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
    ASSERT_OK(db->Close());
    EXPECT_FALSE(fs::exists(path + "/INDEX"));
  }
}

}  // namespace
}  // namespace braiddb::test
