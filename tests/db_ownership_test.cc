// Creating, opening and destroying touch only what is of the very database that is named. [CC-60]
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/backup.h"
#include "braiddb/check.h"
#include "braiddb/db.h"
#include "braiddb/options_file.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;

class DbOwnershipTest : public testing::Test {
 protected:
  static constexpr int kKeys = 300;

  // Two regions beside the database.
  Options Elsewhere(const std::string& name) const {
    Options options = TinyOptions(2);
    options.region_paths = {directory_.File(name + "-region0"), directory_.File(name + "-region1")};
    return options;
  }
  void Fill(const Options& options, const std::string& path) {
    auto db = OpenOrFail(options, path);
    ASSERT_NE(db, nullptr);
    for (int i = 0; i < kKeys; ++i) ASSERT_OK(db->Put({}, NumberedKey(i), "value"));
    ASSERT_OK(db->Close());
  }
  void ExpectWhole(const Options& options, const std::string& path) {
    Options existing = options;
    existing.create_if_missing = false;
    std::unique_ptr<DB> db;
    ASSERT_OK(DB::Open(existing, path, &db));
    std::map<std::string, std::string> expected;
    for (int i = 0; i < kKeys; ++i) expected[NumberedKey(i)] = "value";
    EXPECT_TRUE(HoldsExactly(db.get(), expected));
  }

  TestDirectory directory_;
  const std::string a_ = directory_.File("a");
  const std::string b_ = directory_.File("b");
  std::unique_ptr<DB> db_;
};

TEST_F(DbOwnershipTest, AnOpenWithoutRegionPathsFindsTheRegions) {
  const Options options = Elsewhere("a");
  Fill(options, a_);
  Options without = TinyOptions(0);
  without.dram_budget = 1;  // refused
  EXPECT_CODE(DB::Open(without, a_, &db_), kInvalidArgument);
  ExpectWhole(options, a_);
  ExpectWhole(TinyOptions(0), a_);
}

TEST_F(DbOwnershipTest, AKilledCreationThatNamesRegionsOfAnotherTakesNone) {
  Fill(Elsewhere("a"), a_);
  Options of_b = Elsewhere("b");
  EXPECT_EQ(RunInChild([&] {
              of_b.info_log = [](std::string_view line) {
                if (line.find("grew") != std::string_view::npos) _exit(7);
              };
              of_b.initial_region_size = 24 << 20;
              std::unique_ptr<DB> db;
              return DB::Open(of_b, b_, &db).ok() ? 0 : 1;
            }),
            7);
  of_b.info_log = nullptr;
  of_b.region_paths[1] = Elsewhere("a").region_paths[1];
  EXPECT_FALSE(DB::Open(of_b, b_, &db_).ok());
  ExpectWhole(Elsewhere("a"), a_);
}

TEST_F(DbOwnershipTest, ADestroyWithoutRegionPathsLeavesNoData) {
  const Options options = Elsewhere("a");
  Fill(options, a_);
  ASSERT_OK(DB::Destroy({}, a_));
  EXPECT_FALSE(fs::exists(a_));
  for (const std::string& region : options.region_paths) EXPECT_FALSE(fs::exists(region)) << region;
}

TEST_F(DbOwnershipTest, LoadedOptionsNameNoRegions) {
  Fill(Elsewhere("a"), a_);
  LoadedOptions loaded;
  ASSERT_OK(LoadLatestOptions(a_, &loaded));
  EXPECT_TRUE(loaded.options.region_paths.empty());
  loaded.options.create_if_missing = true;
  ASSERT_OK(DB::Open(loaded.options, b_, &db_));
  EXPECT_TRUE(HoldsExactly(db_.get(), Pairs{}));
  db_.reset();
  ASSERT_OK(DB::Destroy(loaded.options, b_));
  ExpectWhole(Elsewhere("a"), a_);
}

// Whoever names the regions of another database gets an error, whatever is in his own directory.
TEST_F(DbOwnershipTest, RegionsOfAnotherAreRefused) {
  const Options of_a = Elsewhere("a");
  Fill(of_a, a_);
  EXPECT_CODE(DB::Open(of_a, b_, &db_), kInvalidArgument);
  EXPECT_FALSE(fs::exists(b_)) << "a failed creation left files";
  EXPECT_OK(DB::Destroy(of_a, b_));
  fs::create_directory(b_);
  EXPECT_CODE(DB::Open(of_a, b_, &db_), kInvalidArgument);
  EXPECT_TRUE(fs::is_empty(b_));
  EXPECT_CODE(DB::Destroy(of_a, b_), kInvalidArgument);
  EXPECT_CODE(DB::OpenForReadOnly(of_a, b_, &db_), kInvalidArgument);
  ExpectWhole(of_a, a_);
  for (const bool elsewhere : {false, true}) {
    Fill(elsewhere ? Elsewhere("b") : TinyOptions(2), b_);
    EXPECT_CODE(DB::Open(of_a, b_, &db_), kInvalidArgument);
    EXPECT_CODE(DB::OpenForReadOnly(of_a, b_, &db_), kInvalidArgument);
    EXPECT_CODE(DB::Destroy(of_a, b_), kInvalidArgument);
    ExpectWhole(of_a, a_);
    ExpectWhole(TinyOptions(0), b_);
    ASSERT_OK(DB::Destroy({}, b_));
  }
}

TEST_F(DbOwnershipTest, ACopyOfTheDirectoryAloneIsNoDatabase) {
  Fill(Elsewhere("a"), a_);
  fs::copy(a_, b_, fs::copy_options::recursive);
  EXPECT_CODE(DB::Open(TinyOptions(0), b_, &db_), kInvalidArgument);
  EXPECT_CODE(DB::Destroy({}, b_), kInvalidArgument);
  ExpectWhole(TinyOptions(0), a_);
  fs::remove_all(b_);
  fs::rename(a_, b_);
  ExpectWhole(TinyOptions(0), b_);
  ExpectWhole(Elsewhere("a"), b_);
}

TEST_F(DbOwnershipTest, ADestroyThroughALinkKeepsTheLink) {
  fs::create_directory(b_ + "-target");
  fs::create_directory_symlink(b_ + "-target", b_);
  Fill(TinyOptions(1), b_);
  ASSERT_OK(DB::Destroy({}, b_));
  EXPECT_TRUE(fs::is_symlink(b_));
  EXPECT_TRUE(fs::is_empty(b_ + "-target"));
  Fill(TinyOptions(1), b_ + "/");
  ASSERT_OK(DB::Destroy({}, b_ + "/"));
  EXPECT_TRUE(fs::is_empty(b_ + "-target"));
}

// A removal that was cut short says what it is, and another one finishes it.
TEST_F(DbOwnershipTest, ADestroyThatWasCutShort) {
  Fill(Elsewhere("a"), a_);
  fs::rename(a_ + "/DATABASE", a_ + "/DESTROYING");
  fs::remove_all(Elsewhere("a").region_paths[1]);
  for (const Options& options : {Elsewhere("a"), TinyOptions(0)}) {
    const Status status = DB::Open(options, a_, &db_);
    EXPECT_CODE(status, kInvalidArgument);
    EXPECT_NE(status.message().find("DB::Destroy"), std::string_view::npos);
  }
  EXPECT_FALSE(DB::OpenForReadOnly(TinyOptions(0), a_, &db_).ok());
  ASSERT_OK(DB::Destroy({}, a_));
  EXPECT_FALSE(fs::exists(a_));
  EXPECT_FALSE(fs::exists(Elsewhere("a").region_paths[0]));
  Fill(TinyOptions(1), a_);
}

// With copies of its regions, which the options name, it is a database of its own.
TEST_F(DbOwnershipTest, ACopyWithItsRegionsIsADatabase) {
  Fill(Elsewhere("a"), a_);
  fs::copy(a_, b_, fs::copy_options::recursive);
  for (int i : {0, 1}) {
    fs::copy(Elsewhere("a").region_paths[i], Elsewhere("b").region_paths[i], fs::copy_options::recursive);
  }
  ExpectWhole(Elsewhere("b"), b_);
  ASSERT_OK(DB::Destroy({}, b_));
  EXPECT_FALSE(fs::exists(Elsewhere("b").region_paths[0]));
  ExpectWhole(TinyOptions(0), a_);
}

TEST_F(DbOwnershipTest, RegionsCanBeMoved) {
  Fill(Elsewhere("a"), a_);
  for (int i : {0, 1}) fs::rename(Elsewhere("a").region_paths[i], Elsewhere("moved").region_paths[i]);
  const Status missing = DB::Open(TinyOptions(0), a_, &db_);
  EXPECT_CODE(missing, kCorruption);
  EXPECT_NE(missing.message().find("region_paths"), std::string_view::npos);
  ExpectWhole(Elsewhere("moved"), a_);
  ExpectWhole(TinyOptions(0), a_);
}

}  // namespace
}  // namespace braiddb::test
