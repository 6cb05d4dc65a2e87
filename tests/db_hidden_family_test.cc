// The families that the database keeps for itself: no batch from outside writes to them, and they take no ids from users'
// families.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "braiddb/transaction.h"
#include "log/log_entry.h"
#include "tests/support/db_fixture.h"

namespace braiddb::test {
namespace {

class DbHiddenFamilyTest : public DbTest {};

INSTANTIATE_TEST_SUITE_P(Regions, DbHiddenFamilyTest, testing::Values(1));

TEST_P(DbHiddenFamilyTest, NoBatchOfAUserReachesOne) {
  ASSERT_OK(db_->Put({}, "a", "1"));
  ASSERT_OK(db_->DeleteRange({}, db_->DefaultColumnFamily(), "x", "y"));  // makes the hidden family of ranges
  for (uint32_t family = 1; family < kMaxFamilies; ++family) {
    WriteBatch put;
    put.Put("b", "2");
    put.PutCF(family, "key", "value");
    EXPECT_CODE(db_->Write({}, put), kInvalidArgument) << family;
    WriteBatch removed;
    removed.DeleteCF(family, "key");
    EXPECT_CODE(db_->Write({}, removed), kInvalidArgument) << family;
    WriteBatch operand;
    operand.MergeCF(family, "key", "operand");
    EXPECT_CODE(db_->Write({}, operand), kInvalidArgument) << family;
    WriteBatch range;
    range.DeleteRangeCF(family, "a", "z");
    EXPECT_CODE(db_->Write({}, range), kInvalidArgument) << family;
  }
  Reopen();
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"a", "1"}}));
}

TEST_P(DbHiddenFamilyTest, AUserFamilyHasTheSameIdWithAndWithoutHiddenOnes) {
  ASSERT_OK(db_->DeleteRange({}, db_->DefaultColumnFamily(), "x", "y"));
  std::unique_ptr<ColumnFamilyHandle> first;
  ASSERT_OK(db_->CreateColumnFamily(ColumnFamilyOptions(options_), "first", &first));
  EXPECT_EQ(first->GetID(), 1u);
}

TEST_P(DbHiddenFamilyTest, UsersCannotTakeTheIdsOfHiddenFamilies) {
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
  ColumnFamilyOptions options(options_);
  options.l1 = L1Kind::kBraidedSkipList;  // takes no segment of its own
  Status status;
  while (status.ok() && handles.size() <= kMaxColumnFamilies) {
    std::unique_ptr<ColumnFamilyHandle> handle;
    status = db_->CreateColumnFamily(options, "family" + std::to_string(handles.size()), &handle);
    if (status.ok()) handles.push_back(std::move(handle));
  }
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  EXPECT_EQ(handles.size(), kMaxColumnFamilies - 4u) << "beside the default family and three hidden ones";
  ASSERT_OK(db_->Put({}, "a", "1"));
  EXPECT_OK(db_->DeleteRange({}, db_->DefaultColumnFamily(), "a", "b"));
  EXPECT_TRUE(HoldsExactly(db_.get(), {}));
}

}  // namespace
}  // namespace braiddb::test
