// Comparators with long names: a database, a sorted file and a check know them by the whole name.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "braiddb/backup.h"
#include "braiddb/check.h"
#include "braiddb/db.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

class NamedComparator final : public Comparator {
 public:
  explicit NamedComparator(std::string name) : name_(std::move(name)) {}
  int Compare(Slice a, Slice b) const override { return b.compare(a); }
  const char* Name() const override { return name_.c_str(); }

 private:
  const std::string name_;
};

// Two names of the same size that differ in the last byte.
struct Names {
  explicit Names(size_t size) : first(std::string(size - 1, 'n') + "1"), second(std::string(size - 1, 'n') + "2") {}
  NamedComparator first;
  NamedComparator second;
};

// The parameter is the size of the names in bytes.
class DbComparatorNameTest : public testing::TestWithParam<size_t> {
 protected:
  void Reopen() {
    db_.reset();
    db_ = OpenOrFail(options_, directory_.File("db"));
    ASSERT_NE(db_, nullptr);
  }

  TestDirectory directory_;
  Options options_ = TinyOptions(1);
  std::unique_ptr<DB> db_;
};

TEST_P(DbComparatorNameTest, OnlyTheComparatorOfThatNameOpensTheDatabase) {
  const Names names(GetParam());
  options_.comparator = &names.first;
  Reopen();
  ASSERT_OK(db_->Put({}, "a", "1"));
  ASSERT_OK(db_->Put({}, "b", "2"));
  Reopen();
  auto iterator = db_->NewIterator({});
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), "b");
  iterator.reset();
  ASSERT_OK(db_->Close());
  db_.reset();
  Options other = options_;
  other.comparator = &names.second;
  std::unique_ptr<DB> db;
  EXPECT_CODE(DB::Open(other, directory_.File("db"), &db), kInvalidArgument);
  CheckOptions check;
  CheckReport report;
  check.comparator = &names.second;
  EXPECT_CODE(CheckDatabase(check, directory_.File("db"), &report), kNotSupported);
  check.comparator = &names.first;
  ASSERT_OK(CheckDatabase(check, directory_.File("db"), &report));
  EXPECT_TRUE(report.sound());
}

TEST_P(DbComparatorNameTest, FamiliesAndSortedFilesKnowTheirComparator) {
  const Names names(GetParam());
  Reopen();
  ColumnFamilyOptions family_options(options_);
  family_options.comparator = &names.first;
  std::unique_ptr<ColumnFamilyHandle> family;
  ASSERT_OK(db_->CreateColumnFamily(family_options, "family", &family));
  std::unique_ptr<SortedFileWriter> writer;
  const std::string file = directory_.File("sorted");
  ASSERT_OK(SortedFileWriter::Create(file, &names.second, &writer));
  ASSERT_OK(writer->Put("a", "1"));
  ASSERT_OK(writer->Finish());
  IngestOptions options;
  options.family = family.get();
  EXPECT_CODE(IngestExternalFiles(db_.get(), {file}, options), kInvalidArgument);
  ASSERT_OK(SortedFileWriter::Create(file, &names.first, &writer));
  ASSERT_OK(writer->Put("a", "1"));
  ASSERT_OK(writer->Finish());
  EXPECT_OK(IngestExternalFiles(db_.get(), {file}, options));
}

INSTANTIATE_TEST_SUITE_P(Sizes, DbComparatorNameTest, testing::Values(63, 64, 200, 1023, 5000));

}  // namespace
}  // namespace braiddb::test
