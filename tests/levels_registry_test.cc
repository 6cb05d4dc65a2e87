// The registry of kinds of last level, and a database with a kind that the library does not have (tests/support/map_level.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "braiddb/options_file.h"
#include "check/level_media.h"
#include "index/level_kind.h"
#include "tests/support/db_test_util.h"
#include "tests/support/map_level.h"

namespace braiddb::test {
namespace {

constexpr auto kUnknownKind = static_cast<L1Kind>(77);

TEST(LevelRegistryTest, FindsEachKindByIdAndName) {
  RegisterMapLevel();
  std::set<std::string_view> names;
  uint8_t flags = 0;
  for (const LevelKind* const kind : LevelKinds()) {
    SCOPED_TRACE(kind->name);
    EXPECT_EQ(FindLevelKind(kind->id), kind);
    EXPECT_EQ(FindLevelKind(kind->name), kind);
    EXPECT_EQ(NameOfL1(static_cast<uint8_t>(kind->id)), kind->constant);
    EXPECT_TRUE(names.insert(kind->name).second);
    EXPECT_TRUE(kind->create != nullptr && kind->open != nullptr && kind->new_media != nullptr && kind->new_media() != nullptr);
    EXPECT_EQ(kind->manifest_flag & ~(64 | 128), 0) << "the MANIFEST has the other bits";
    EXPECT_EQ(kind->manifest_flag & flags, 0) << "another kind has the bit";
    flags |= kind->manifest_flag;
  }
  EXPECT_EQ(BuiltInLevelKinds().size() + 1, LevelKinds().size());
  EXPECT_EQ(LevelKindNames(" nor ", "x:"),
            "x:braided_skiplist nor x:nv_tree nor x:sorted_runs nor x:hybrid nor x:lb_tree nor x:map_of_tests");
  const std::vector<L1KindName> publics = L1KindNames();
  ASSERT_EQ(publics.size(), LevelKinds().size());
  EXPECT_EQ(publics.back().kind, kMapLevel);
  EXPECT_EQ(publics.back().name, "map_of_tests");
}

// What is on media and in files of users depends on these.
TEST(LevelRegistryTest, NumbersNamesAndFlagsStay) {
  const auto expect = [](L1Kind kind, uint8_t number, std::string_view name, uint8_t flag) {
    ASSERT_NE(FindLevelKind(kind), nullptr);
    EXPECT_EQ(static_cast<uint8_t>(kind), number);
    EXPECT_EQ(FindLevelKind(kind)->name, name);
    EXPECT_EQ(FindLevelKind(kind)->manifest_flag, flag);
  };
  expect(L1Kind::kBraidedSkipList, 0, "braided_skiplist", 0);
  expect(L1Kind::kNvTree, 1, "nv_tree", 0);
  expect(L1Kind::kSortedRuns, 2, "sorted_runs", 64);
  expect(L1Kind::kHybrid, 3, "hybrid", 0);
  expect(L1Kind::kLbTree, 4, "lb_tree", 0);
}

TEST(LevelRegistryTest, ADatabaseOfAnUnknownKindIsRefused) {
  EXPECT_EQ(FindLevelKind(kUnknownKind), nullptr);
  EXPECT_EQ(FindLevelKind("of_nobody"), nullptr);
  EXPECT_EQ(NameOfL1(77), "number 77, which this version does not have");
  TestDirectory directory;
  Options options = TinyOptions();
  options.l1 = kUnknownKind;
  options.bound_space = true;
  std::unique_ptr<DB> db;
  EXPECT_CODE(DB::Open(options, directory.File("db"), &db), kNotSupported);
  db = OpenOrFail(TinyOptions(), directory.File("db"));
  ASSERT_NE(db, nullptr);
  ColumnFamilyOptions of_family;
  of_family.l1 = kUnknownKind;
  std::unique_ptr<ColumnFamilyHandle> family;
  EXPECT_CODE(db->CreateColumnFamily(of_family, "other", &family), kNotSupported);
}

// ---- A database with the added kind

class AddedKindTest : public testing::TestWithParam<uint32_t> {
 protected:
  using Content = std::map<std::string, std::string>;

  AddedKindTest() {
    options_ = TinyOptions(GetParam());
    options_.l1 = RegisterMapLevel();
    options_.max_space_amplification = 0;
  }
  void SetUp() override { Open(); }
  void Open() {
    db_ = OpenOrFail(options_, path_);
    ASSERT_NE(db_, nullptr);
  }
  void Close() {
    ASSERT_OK(db_->Close());
    db_.reset();
  }
  void Put(const std::string& key, uint64_t tag) {
    content_[key] = PatternedValue(tag, 20 + tag % 100);
    ASSERT_OK(db_->Put({}, key, content_[key]));
  }
  void Delete(const std::string& key) {
    content_.erase(key);
    ASSERT_OK(db_->Delete({}, key));
  }
  Status Compact() { return db_->CompactRange({}, nullptr, nullptr); }

  TestDirectory directory_;
  const std::string path_ = directory_.File("db");
  Options options_;
  std::unique_ptr<DB> db_;
  Content content_;
};

INSTANTIATE_TEST_SUITE_P(Regions, AddedKindTest, testing::Values(1, 2), testing::PrintToStringParamName());

TEST_P(AddedKindTest, PutsMergesReadsScansAndReopens) {
  Random random(41);
  for (int round = 0; round < 5; ++round) {
    SCOPED_TRACE(round);
    for (uint64_t i = 0; i < 1500u / kSlowdown; ++i) {
      const std::string key = NumberedKey(random.Uniform(400));
      if (random.OneIn(4)) {
        ASSERT_NO_FATAL_FAILURE(Delete(key));
      } else {
        ASSERT_NO_FATAL_FAILURE(Put(key, random.Uniform(1 << 20)));
      }
    }
    EXPECT_TRUE(HoldsExactly(db_.get(), content_));
    ASSERT_OK(db_->Flush());
    EXPECT_TRUE(HoldsExactly(db_.get(), content_));
    if (round % 2 == 0) {
      ASSERT_OK(Compact());
      EXPECT_EQ(IntProperty(db_.get(), "braiddb.num-entries-l1"), content_.size());
    }
    EXPECT_TRUE(HoldsExactly(db_.get(), content_));
    ASSERT_NO_FATAL_FAILURE(Close());
    EXPECT_TRUE(ChecksAsSound(path_));
    ASSERT_NO_FATAL_FAILURE(Open());
    EXPECT_TRUE(HoldsExactly(db_.get(), content_));
  }
}

TEST_P(AddedKindTest, SnapshotsKeepTheirVersions) {
  for (uint64_t i = 0; i < 100; ++i) ASSERT_NO_FATAL_FAILURE(Put(NumberedKey(i), i));
  ASSERT_OK(Compact());
  const Content before = content_;
  const Snapshot* const snapshot = db_->GetSnapshot();
  for (uint64_t i = 0; i < 100; i += 2) ASSERT_NO_FATAL_FAILURE(Delete(NumberedKey(i)));
  for (uint64_t i = 1; i < 100; i += 2) ASSERT_NO_FATAL_FAILURE(Put(NumberedKey(i), 1000 + i));
  ASSERT_OK(db_->DeleteRange({}, NumberedKey(20), NumberedKey(30)));
  content_.erase(content_.lower_bound(NumberedKey(20)), content_.lower_bound(NumberedKey(30)));
  ASSERT_OK(Compact());
  ReadOptions at_snapshot;
  at_snapshot.snapshot = snapshot;
  EXPECT_TRUE(HoldsExactly(db_.get(), before, at_snapshot));
  EXPECT_TRUE(HoldsExactly(db_.get(), content_));
  db_->ReleaseSnapshot(snapshot);
  ASSERT_OK(Compact());
  EXPECT_TRUE(HoldsExactly(db_.get(), content_));
  ASSERT_NO_FATAL_FAILURE(Close());
  EXPECT_TRUE(ChecksAsSound(path_));
}

// The options file has the kind's name, an open with another kind is refused, and a family has a kind of its own.
TEST_P(AddedKindTest, TheKindIsStoredByNumberAndName) {
  ASSERT_NO_FATAL_FAILURE(Put("key", 1));
  ColumnFamilyOptions of_family;
  of_family.l1 = L1Kind::kNvTree;
  std::unique_ptr<ColumnFamilyHandle> family;
  ASSERT_OK(db_->CreateColumnFamily(of_family, "tree", &family));
  ASSERT_OK(db_->Put({}, family.get(), "key", "of the family"));
  ASSERT_OK(Compact());
  ASSERT_OK(db_->CompactRange({}, family.get(), nullptr, nullptr));
  family.reset();
  ASSERT_NO_FATAL_FAILURE(Close());
  EXPECT_TRUE(ChecksAsSound(path_));

  LoadedOptions stored;
  ASSERT_OK(LoadLatestOptions(path_, &stored));
  EXPECT_EQ(stored.options.l1, kMapLevel);
  Options other = options_;
  other.l1 = L1Kind::kBraidedSkipList;
  std::unique_ptr<DB> db;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
  const Status refused =
      DB::Open(other, path_, {{kDefaultColumnFamilyName, ColumnFamilyOptions(other)}, {"tree", of_family}}, &handles, &db);
  EXPECT_CODE(refused, kInvalidArgument);
  EXPECT_NE(std::string(refused.message()).find("kMapOfTests"), std::string::npos) << refused.ToString();

  ASSERT_OK(
      DB::Open(options_, path_, {{kDefaultColumnFamilyName, ColumnFamilyOptions(options_)}, {"tree", of_family}}, &handles, &db));
  std::string value;
  EXPECT_OK(db->Get({}, handles[1].get(), "key", &value));
  EXPECT_EQ(value, "of the family");
  EXPECT_OK(db->Get({}, "key", &value));
  EXPECT_EQ(value, content_["key"]);
}

// A family of the kind is dropped beside a default family of another kind; its space is free again.
TEST_P(AddedKindTest, AFamilyOfTheKindIsDropped) {
  ASSERT_NO_FATAL_FAILURE(Close());
  options_.l1 = L1Kind::kBraidedSkipList;
  const std::string path = directory_.File("braided");
  db_ = OpenOrFail(options_, path);
  ASSERT_NE(db_, nullptr);
  ColumnFamilyOptions of_family;
  of_family.l1 = kMapLevel;
  std::unique_ptr<ColumnFamilyHandle> family;
  ASSERT_OK(db_->CreateColumnFamily(of_family, "map", &family));
  for (uint64_t i = 0; i < 300; ++i) ASSERT_OK(db_->Put({}, family.get(), NumberedKey(i), PatternedValue(i, 50)));
  ASSERT_NO_FATAL_FAILURE(Put("key", 1));
  ASSERT_OK(db_->CompactRange({}, family.get(), nullptr, nullptr));
  std::string value;
  EXPECT_OK(db_->Get({}, family.get(), NumberedKey(7), &value));
  EXPECT_EQ(value, PatternedValue(7, 50));
  ASSERT_OK(db_->DropColumnFamily(family.get()));
  family.reset();
  ASSERT_OK(Compact());
  EXPECT_TRUE(HoldsExactly(db_.get(), content_));
  ASSERT_NO_FATAL_FAILURE(Close());
  EXPECT_TRUE(ChecksAsSound(path));
}

}  // namespace
}  // namespace braiddb::test
