// DB::Merge in column families: each has its own operator, order and last level; one batch has operands for several.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braiddb/backup.h"
#include "braiddb/db.h"
#include "braiddb/write_batch_with_index.h"
#include "tests/support/db_test_util.h"
#include "tests/support/merge_operators.h"

namespace braiddb::test {
namespace {

using Content = std::map<std::string, std::string>;

std::string BytesOf(uint64_t number) { return std::string(reinterpret_cast<const char*>(&number), sizeof number); }

// The default family appends; so do "list" and "tree", the latter in reverse order; "sums" adds; "plain" has no operator.
class DbMergeFamilyTest : public testing::Test {
 protected:
  enum Number { kDefault, kList, kTree, kSums, kPlain };

  void SetUp() override { Reopen(); }
  void TearDown() override { Close(); }

  std::vector<ColumnFamilyDescriptor> Descriptors() const {
    ColumnFamilyOptions appends;
    appends.merge_operator = append_;
    std::vector<ColumnFamilyDescriptor> all{{kDefaultColumnFamilyName, ColumnFamilyOptions(options_)}};
    all.push_back({"list", appends});
    appends.l1 = L1Kind::kNvTree;
    appends.comparator = ReverseBytewiseComparator();
    all.push_back({"tree", appends});
    ColumnFamilyOptions sums;
    sums.merge_operator = UInt64AddOperator();
    sums.l1 = L1Kind::kNvTree;
    all.push_back({"sums", sums});
    all.push_back({"plain", ColumnFamilyOptions()});
    return all;
  }
  void Reopen() {
    Close();
    options_.merge_operator = append_;
    options_.create_missing_column_families = true;
    ASSERT_OK(DB::Open(options_, directory_.File("db"), Descriptors(), &handles_, &db_));
  }
  void Close() {
    handles_.clear();
    db_.reset();
  }
  ColumnFamilyHandle* At(int number) const { return handles_[number].get(); }

  template <class Check>
  void AtEveryStage(const Check& check) {
    check();
    ASSERT_OK(db_->Flush());
    check();
    for (size_t i = 0; i < handles_.size(); ++i) ASSERT_OK(db_->CompactRange({}, At(static_cast<int>(i)), nullptr, nullptr));
    check();
    Reopen();
    check();
  }
  // As every kind of read sees it.
  void Expect(int number, const Content& expected) {
    SCOPED_TRACE(At(number)->GetName());
    std::vector<ColumnFamilyHandle*> families;
    std::vector<Slice> keys;
    for (const auto& [key, value] : expected) {
      std::string read;
      ASSERT_OK(db_->Get({}, At(number), key, &read));
      EXPECT_EQ(read, value) << key;
      PinnableSlice pinned;
      ASSERT_OK(db_->Get({}, At(number), key, &pinned));
      EXPECT_EQ(pinned.slice(), value) << key;
      families.push_back(At(number));
      keys.push_back(key);
    }
    std::vector<std::string> values;
    const std::vector<Status> statuses = db_->MultiGet({}, families, keys, &values);
    for (size_t i = 0; i < keys.size(); ++i) {
      EXPECT_OK(statuses[i]);
      EXPECT_EQ(values[i], expected.at(std::string(keys[i])));
    }
    const auto iterator = db_->NewIterator({}, At(number));
    Content forward;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) forward.emplace(iterator->key(), iterator->value());
    EXPECT_OK(iterator->status());
    EXPECT_EQ(forward, expected);
    Content backward;
    for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) backward.emplace(iterator->key(), iterator->value());
    EXPECT_OK(iterator->status());
    EXPECT_EQ(backward, expected);
  }

  TestDirectory directory_;
  Options options_ = TinyOptions(2);
  std::shared_ptr<AppendOperator> append_ = std::make_shared<AppendOperator>();
  std::unique_ptr<DB> db_;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles_;
};

TEST_F(DbMergeFamilyTest, OneKeyHasOperandsInEachFamily) {
  for (const int number : {kDefault, kList, kTree}) {
    const std::string name = At(number)->GetName();
    ASSERT_OK(db_->Put({}, At(number), "on put", name));
    for (const char* operand : {"1", "2"}) {
      ASSERT_OK(db_->Merge({}, At(number), "on put", operand));
      ASSERT_OK(db_->Merge({}, At(number), "on nothing", name + operand));
    }
    ASSERT_OK(db_->Merge({}, At(number), "deleted", name));
    ASSERT_OK(db_->Delete({}, At(number), "deleted"));
  }
  ASSERT_OK(db_->Merge({}, "on put", "3"));  // the default one's
  ASSERT_OK(db_->Put({}, At(kSums), "on put", BytesOf(1000)));
  for (uint64_t i = 1; i <= 10; ++i) ASSERT_OK(db_->Merge({}, At(kSums), "on put", BytesOf(i)));
  AtEveryStage([this] {
    Expect(kDefault, {{"on put", "default123"}, {"on nothing", "default1default2"}});
    Expect(kList, {{"on put", "list12"}, {"on nothing", "list1list2"}});
    Expect(kTree, {{"on put", "tree12"}, {"on nothing", "tree1tree2"}});
    Expect(kSums, {{"on put", BytesOf(1055)}});
    Expect(kPlain, {});
  });
}

TEST_F(DbMergeFamilyTest, BatchesHaveOperandsForSeveral) {
  ASSERT_OK(db_->Put({}, At(kTree), "k", "0"));
  WriteBatch batch;
  batch.Merge("k", "a");
  batch.Merge(At(kList), "k", "b");
  batch.MergeCF(At(kTree)->GetID(), "k", "c");
  batch.Put(At(kList), "k", "d");
  batch.Merge(At(kList), "k", "e");
  batch.Merge(nullptr, "k", "f");
  batch.Delete(At(kTree), "j");
  batch.Merge(At(kTree), "k", "g");
  ASSERT_OK(db_->Write({}, batch));
  AtEveryStage([this] {
    Expect(kDefault, {{"k", "af"}});
    Expect(kList, {{"k", "de"}});
    Expect(kTree, {{"k", "0cg"}});
  });
}

TEST_F(DbMergeFamilyTest, BatchesWithAnIndexApplyOperandsOfEachFamily) {
  ASSERT_OK(db_->Put({}, At(kTree), "k", "0"));
  ASSERT_OK(db_->Put({}, At(kTree), "z", "1"));
  WriteBatchWithIndex batch;
  batch.Merge("k", "a");
  batch.Merge(At(kTree), "k", "b");
  batch.Merge(At(kSums), "k", BytesOf(1));
  batch.Merge(At(kSums), "k", BytesOf(2));
  batch.Delete(At(kTree), "z");
  batch.Merge(At(kTree), "z", "c");
  batch.SetSavePoint();
  batch.Merge(At(kPlain), "k", "d");
  std::string value;
  ASSERT_OK(batch.GetFromBatchAndDB(db_.get(), {}, "k", &value));
  EXPECT_EQ(value, "a");
  ASSERT_OK(batch.GetFromBatchAndDB(db_.get(), {}, At(kTree), "k", &value));
  EXPECT_EQ(value, "0b");
  ASSERT_OK(batch.GetFromBatchAndDB(db_.get(), {}, At(kSums), "k", &value));
  EXPECT_EQ(value, BytesOf(3));
  EXPECT_CODE(batch.GetFromBatchAndDB(db_.get(), {}, At(kPlain), "k", &value), kInvalidArgument);
  ASSERT_OK(batch.GetFromBatch(At(kTree), "z", &value));
  EXPECT_EQ(value, "c");
  EXPECT_CODE(batch.GetFromBatch(At(kTree), "k", &value), kInvalidArgument);
  auto iterator = batch.NewIteratorWithBase(At(kTree), db_->NewIterator({}, At(kTree)));
  std::string seen;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) seen.append(iterator->key()).append(iterator->value());
  EXPECT_OK(iterator->status());
  EXPECT_EQ(seen, "zck0b");
  iterator.reset();
  WriteBatchWithIndex copy;
  ASSERT_OK(copy.Rebuild(batch.GetWriteBatch()));
  ASSERT_OK(copy.GetFromBatchAndDB(db_.get(), {}, At(kTree), "k", &value));
  EXPECT_EQ(value, "0b");
  EXPECT_CODE(db_->Write({}, batch.GetWriteBatch()), kInvalidArgument) << "one family has no operator";
  Expect(kTree, {{"k", "0"}, {"z", "1"}});
  ASSERT_OK(batch.RollbackToSavePoint());
  ASSERT_OK(db_->Write({}, batch.GetWriteBatch()));
  AtEveryStage([this] {
    Expect(kDefault, {{"k", "a"}});
    Expect(kTree, {{"k", "0b"}, {"z", "c"}});
    Expect(kSums, {{"k", BytesOf(3)}});
  });
}

TEST_F(DbMergeFamilyTest, FilesWithOperandsAreIngested) {
  std::unique_ptr<SortedFileWriter> writer;
  ASSERT_OK(SortedFileWriter::Create(directory_.File("operands"), ReverseBytewiseComparator(), &writer));
  ASSERT_OK(writer->Merge("k", "1"));
  ASSERT_OK(writer->Merge("j", "2"));
  ASSERT_OK(writer->Finish());
  ASSERT_OK(SortedFileWriter::Create(directory_.File("range"), ReverseBytewiseComparator(), &writer));
  ASSERT_OK(writer->DeleteRange("j", "i"));
  ASSERT_OK(writer->Merge("h", "3"));
  ASSERT_OK(writer->Finish());
  for (const char* key : {"k", "j", "i"}) ASSERT_OK(db_->Put({}, At(kTree), key, "0"));
  IngestOptions options;
  options.family = At(kTree);
  ASSERT_OK(IngestExternalFiles(db_.get(), {directory_.File("operands")}, options));
  Expect(kTree, {{"i", "0"}, {"j", "02"}, {"k", "01"}});
  ASSERT_OK(IngestExternalFiles(db_.get(), {directory_.File("operands"), directory_.File("range")}, options));
  AtEveryStage([this] {
    Expect(kDefault, {});
    Expect(kTree, {{"h", "3"}, {"i", "0"}, {"k", "011"}});
  });
}

TEST_F(DbMergeFamilyTest, AFamilyWithoutAnOperatorTakesNone) {
  EXPECT_EQ(db_->Merge({}, At(kPlain), "k", "1").ToString(), "Not implemented: Provide a merge_operator when opening DB");
  EXPECT_CODE(db_->Merge({}, nullptr, "k", "1"), kInvalidArgument);
  Expect(kPlain, {});
  // What an earlier open wrote is not lost.
  ASSERT_OK(db_->Put({}, At(kList), "k", "put"));
  ASSERT_OK(db_->Merge({}, At(kList), "k", "1"));
  const auto kept = std::exchange(append_, nullptr);
  Reopen();
  std::string value;
  EXPECT_CODE(db_->Get({}, At(kList), "k", &value), kInvalidArgument);
  auto iterator = db_->NewIterator({}, At(kList));
  iterator->SeekToFirst();
  EXPECT_FALSE(iterator->Valid());
  EXPECT_CODE(iterator->status(), kInvalidArgument);
  iterator.reset();
  ASSERT_OK(db_->CompactRange({}, At(kList), nullptr, nullptr));
  append_ = kept;
  Reopen();
  Expect(kList, {{"k", "put1"}});
}

TEST_F(DbMergeFamilyTest, OperandsOfEachFamilyBecomePuts) {
  Content expected;
  for (int i = 0; i < 500; ++i) {
    const std::string key = NumberedKey(i % 100);
    const std::string operand = "," + std::to_string(i);
    for (const int number : {kDefault, kList, kTree}) ASSERT_OK(db_->Merge({}, At(number), key, operand));
    expected[key] = AppendOperator::Apply(expected[key], operand);
    if (i % 120 == 119) {
      ASSERT_OK(db_->Flush());
    }
  }
  // One call collapses what is in the last levels of all, but merges tables of all as well.
  ASSERT_OK(db_->CompactRange({}, At(kTree), nullptr, nullptr));
  EXPECT_GE(db_->GetStatistics().collapsed_keys, 300u);
  const uint64_t merges = append_->full_merges;
  for (const int number : {kDefault, kList, kTree}) Expect(number, expected);
  EXPECT_EQ(append_->full_merges, merges);
  Reopen();
  for (const int number : {kDefault, kList, kTree}) {
    Expect(number, expected);
    uint64_t entries = 0;
    ASSERT_TRUE(db_->GetIntProperty(At(number), "braiddb.estimate-num-keys", &entries));
    EXPECT_EQ(entries, expected.size());
  }
  EXPECT_EQ(append_->full_merges, merges);
}

TEST_F(DbMergeFamilyTest, OperandsOfAnEarlierSessionBecomePuts) {
  for (const int number : {kList, kTree}) {
    ASSERT_OK(db_->Put({}, At(number), "a", "put"));
    ASSERT_OK(db_->Merge({}, At(number), "a", "1"));
    ASSERT_OK(db_->Merge({}, At(number), "b", "1"));
  }
  const auto kept = std::exchange(append_, nullptr);
  Reopen();
  for (const int number : {kList, kTree}) ASSERT_OK(db_->CompactRange({}, At(number), nullptr, nullptr));
  EXPECT_EQ(db_->GetStatistics().collapsed_keys, 0u);
  append_ = kept;
  Reopen();
  ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
  EXPECT_EQ(db_->GetStatistics().collapsed_keys, 4u);
  for (const int number : {kList, kTree}) Expect(number, {{"a", "put1"}, {"b", "1"}});
}

// While it lives, the family is there for it: what a collapse has taken out of its sight it reads in the view of now.
TEST_F(DbMergeFamilyTest, AnIteratorOutlivesItsFamilyAndTheOperands) {
  Content expected;
  for (int i = 0; i < 300; ++i) {
    const std::string key = NumberedKey(i % 100);
    const std::string operand = "," + std::to_string(i);
    for (const int number : {kList, kTree}) ASSERT_OK(db_->Merge({}, At(number), key, operand));
    expected[key] = AppendOperator::Apply(expected[key], operand);
    if (i % 100 == 99) {
      ASSERT_OK(db_->Flush());
    }
  }
  for (const int number : {kList, kTree}) {
    const auto iterator = db_->NewIterator({}, At(number));
    const auto untouched = db_->NewIterator({}, At(number));
    iterator->SeekToFirst();
    ASSERT_TRUE(iterator->Valid());
    ASSERT_OK(db_->CompactRange({}, At(number), nullptr, nullptr));
    ASSERT_OK(db_->DropColumnFamily(At(number)));
    handles_[number].reset();
    ASSERT_OK(db_->Put({}, "more", "work"));
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    Content seen;
    for (; iterator->Valid(); iterator->Next()) seen.emplace(iterator->key(), iterator->value());
    EXPECT_OK(iterator->status());
    EXPECT_EQ(seen, expected);
    Content backward;
    for (untouched->SeekToLast(); untouched->Valid(); untouched->Prev()) backward.emplace(untouched->key(), untouched->value());
    EXPECT_OK(untouched->status());
    EXPECT_EQ(backward, expected);
  }
}

}  // namespace
}  // namespace braiddb::test
