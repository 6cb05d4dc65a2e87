// Partial merges by a compaction: which operands the operator combines, in which order, and what the reads return.
#include <gtest/gtest.h>

#include <mutex>
#include <span>
#include <stdexcept>
#include <utility>

#include "braiddb/column_family.h"
#include "tests/support/db_fixture.h"
#include "util/sync_point.h"

namespace braiddb::test {
namespace {

using Operands = std::vector<std::string>;

// Concatenates, and records what it is called with. So the order of operands shows in every value.
class Concatenator final : public MergeOperator {
 public:
  const char* Name() const override { return "test.Concatenator"; }
  bool FullMerge(Slice, const Slice* existing, std::span<const Slice> operands, std::string* value) const override {
    Record(operands, &full_);
    if (existing != nullptr) value->assign(*existing);
    for (const Slice operand : operands) value->append(operand);
    return true;
  }
  bool PartialMergeMulti(Slice, std::span<const Slice> operands, std::string* operand) const override {
    Record(operands, &partial_);
    if (throws) throw std::runtime_error("no");
    for (const Slice part : operands) operand->append(part);
    operand->append(padding, '.');
    return !refuses;
  }

  // The operands of each call since the last question.
  std::vector<Operands> TakePartial() { return Take(&partial_); }
  std::vector<Operands> TakeFull() { return Take(&full_); }

  bool refuses = false;  // partial merges
  bool throws = false;   // partial merges
  size_t padding = 0;    // bytes at the end of the results of partial merges

 private:
  void Record(std::span<const Slice> operands, std::vector<Operands>* calls) const {
    const std::lock_guard lock(mutex_);
    calls->emplace_back(operands.begin(), operands.end());
  }
  std::vector<Operands> Take(std::vector<Operands>* calls) {
    const std::lock_guard lock(mutex_);
    return std::exchange(*calls, {});
  }

  mutable std::mutex mutex_;
  mutable std::vector<Operands> full_;
  mutable std::vector<Operands> partial_;
};

class DbPartialMergeTest : public DbTest {
 protected:
  void SetUp() override {
    options_.disable_auto_compaction = true;
    options_.memtable_size = 4 << 20;
    options_.memtable_max_entries = 1 << 16;
    options_.merge_operator = operator_;
    DbTest::SetUp();
  }
  void Merge(const std::string& key, std::initializer_list<const char*> operands) {
    for (const char* operand : operands) ASSERT_OK(db_->Merge({}, key, operand));
  }
  void Compact() { ASSERT_OK(db_->CompactRange({}, nullptr, nullptr)); }
  std::string ValueOf(const std::string& key, const Snapshot* snapshot = nullptr) {
    ReadOptions options;
    options.snapshot = snapshot;
    return GetOrText(db_.get(), key, options);
  }
  // A read of a collapsed key calls no operator.
  void ExpectPut(const std::string& key, const std::string& value) {
    operator_->TakeFull();
    EXPECT_EQ(ValueOf(key), value);
    EXPECT_TRUE(operator_->TakeFull().empty());
  }

  std::shared_ptr<Concatenator> operator_ = std::make_shared<Concatenator>();
};

INSTANTIATE_TEST_SUITE_P(Regions, DbPartialMergeTest, testing::Values(1u, 2u));

// The calls that RocksDB's bindings expect: a partial merge of the operands, then a full merge of its result.
TEST_P(DbPartialMergeTest, OperandsAreCombinedBeforeTheyAreApplied) {
  ASSERT_OK(db_->Put({}, "hello", "foo"));
  Compact();
  Merge("hello", {"bar", "baz"});
  Compact();
  EXPECT_EQ(operator_->TakePartial(), (std::vector<Operands>{{"bar", "baz"}}));
  EXPECT_EQ(operator_->TakeFull(), (std::vector<Operands>{{"barbaz"}}));
  ExpectPut("hello", "foobarbaz");
  Reopen();
  ExpectPut("hello", "foobarbaz");
}

TEST_P(DbPartialMergeTest, OneOperandIsNotCombined) {
  ASSERT_OK(db_->Put({}, "k", "put"));
  Merge("k", {"1"});
  Compact();
  EXPECT_TRUE(operator_->TakePartial().empty());
  EXPECT_EQ(operator_->TakeFull(), (std::vector<Operands>{{"1"}}));
  ExpectPut("k", "put1");
}

TEST_P(DbPartialMergeTest, OperandsOfSeveralTablesAreCombinedInTheirOrder) {
  Merge("k", {"1", "2"});
  ASSERT_OK(db_->Flush());
  ASSERT_OK(db_->Delete({}, "deleted"));
  Merge("deleted", {"a"});
  Merge("k", {"3"});
  ASSERT_OK(db_->Flush());
  Merge("k", {"4"});
  Merge("deleted", {"b"});
  EXPECT_TRUE(operator_->TakePartial().empty());
  Compact();
  EXPECT_EQ(operator_->TakePartial(), (std::vector<Operands>{{"1", "2", "3", "4"}, {"a", "b"}}));
  ExpectPut("k", "1234");
  ExpectPut("deleted", "ab");
  // Operands on the result of the last compaction.
  Merge("k", {"5", "6"});
  Compact();
  EXPECT_EQ(operator_->TakePartial(), (std::vector<Operands>{{"5", "6"}}));
  ExpectPut("k", "123456");
}

TEST_P(DbPartialMergeTest, AFailedPartialMergeLeavesTheOperands) {
  operator_->refuses = true;
  Merge("refused", {"1", "2", "3"});
  Compact();
  EXPECT_EQ(operator_->TakePartial(), (std::vector<Operands>{{"1", "2", "3"}}));
  EXPECT_EQ(operator_->TakeFull(), (std::vector<Operands>{{"1", "2", "3"}}));
  ExpectPut("refused", "123");

  operator_->refuses = false;
  operator_->throws = true;
  Merge("refused", {"4", "5"});
  Compact();
  EXPECT_EQ(operator_->TakePartial().size(), 1u);
  EXPECT_EQ(operator_->TakeFull(), (std::vector<Operands>{{"4", "5"}}));
  ExpectPut("refused", "12345");
}

TEST_P(DbPartialMergeTest, ATooLongResultIsNotUsed) {
  operator_->padding = 64 << 10;
  Merge("k", {"1", "2"});
  Compact();
  EXPECT_EQ(operator_->TakePartial().size(), 1u);
  EXPECT_EQ(operator_->TakeFull(), (std::vector<Operands>{{"1", "2"}}));
  ExpectPut("k", "12");
}

TEST_P(DbPartialMergeTest, OperandsOnTwoSidesOfASnapshotAreNotCombined) {
  ASSERT_OK(db_->Put({}, "k", "0"));
  Merge("k", {"1", "2"});
  const Snapshot* const two = db_->GetSnapshot();
  Merge("k", {"3"});
  const Snapshot* const three = db_->GetSnapshot();
  ASSERT_OK(db_->Put({}, "other", "put"));
  const Snapshot* const same = db_->GetSnapshot();
  Merge("k", {"4", "5", "6"});
  Compact();
  EXPECT_EQ(operator_->TakePartial(), (std::vector<Operands>{{"1", "2"}, {"4", "5", "6"}}));
  EXPECT_EQ(operator_->TakeFull(), (std::vector<Operands>{{"12", "3", "456"}}));
  EXPECT_EQ(ValueOf("k", two), "012");
  EXPECT_EQ(ValueOf("k", three), "0123");
  EXPECT_EQ(ValueOf("k", same), "0123");
  ExpectPut("k", "0123456");
  for (const Snapshot* const snapshot : {two, three, same}) db_->ReleaseSnapshot(snapshot);
  Merge("k", {"7", "8"});
  Compact();
  EXPECT_EQ(operator_->TakePartial(), (std::vector<Operands>{{"7", "8"}}));
  ExpectPut("k", "012345678");
}

TEST_P(DbPartialMergeTest, OperandsBelowADeletedRangeAreNotCombined) {
  Merge("k", {"1", "2"});
  ASSERT_OK(db_->DeleteRange({}, db_->DefaultColumnFamily(), "a", "z"));
  Merge("k", {"3", "4"});
  Compact();
  EXPECT_EQ(operator_->TakePartial(), (std::vector<Operands>{{"3", "4"}}));
  EXPECT_EQ(ValueOf("k"), "34");
}

TEST_P(DbPartialMergeTest, ACallHasABoundedNumberOfOperands) {
  std::string expected;
  for (int i = 0; i < 200; ++i) {
    const std::string operand = std::to_string(i) + ",";
    ASSERT_OK(db_->Merge({}, "k", operand));
    expected += operand;
  }
  Compact();
  std::vector<size_t> sizes;
  std::string joined;
  for (const Operands& operands : operator_->TakePartial()) {
    sizes.push_back(operands.size());
    for (const std::string& operand : operands) joined += operand;
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{64, 64, 64, 8}));
  EXPECT_EQ(joined, expected);
  const std::vector<Operands> full = operator_->TakeFull();
  ASSERT_EQ(full.size(), 1u);
  EXPECT_EQ(full[0].size(), 4u);
  ExpectPut("k", expected);
}

TEST_P(DbPartialMergeTest, ACallHasABoundedNumberOfBytes) {
  std::string expected;
  // 64 KiB a call: two of the first three, one of the next.
  for (const size_t kib : {30, 30, 30, 40, 70, 1, 1}) {
    const std::string operand(kib << 10, static_cast<char>('a' + expected.size() % 26));
    ASSERT_OK(db_->Merge({}, "k", operand));
    expected += operand;
  }
  Compact();
  std::vector<size_t> kibs;
  for (const Operands& operands : operator_->TakePartial()) {
    for (const std::string& operand : operands) kibs.push_back(operand.size() >> 10);
    kibs.push_back(0);
  }
  EXPECT_EQ(kibs, (std::vector<size_t>{30, 30, 0, 1, 1, 0}));
  ExpectPut("k", expected);
}

// The results for one key take a bounded amount of DRAM. Further operands are applied one by one.
TEST_P(DbPartialMergeTest, TheResultsOfAKeyAreBounded) {
  operator_->padding = 60'000;
  for (int i = 0; i < 64 * 30; ++i) ASSERT_OK(db_->Merge({}, "k", "x"));
  Compact();
  const size_t calls = operator_->TakePartial().size();
  EXPECT_EQ(calls, ((1u << 20) + 60'063) / 60'064);
  const std::vector<Operands> full = operator_->TakeFull();
  ASSERT_EQ(full.size(), 1u);
  EXPECT_EQ(full[0].size(), calls + 64 * (30 - calls));
}

TEST_P(DbPartialMergeTest, OperandsOfAnEarlierSessionAreCombined) {
  ASSERT_OK(db_->Put({}, "k", "put"));
  Merge("k", {"1", "2"});
  options_.merge_operator = nullptr;
  Reopen();
  Compact();
  options_.merge_operator = operator_;
  Reopen();
  Merge("k", {"3"});
  Reopen();
  Compact();
  EXPECT_EQ(operator_->TakePartial(), (std::vector<Operands>{{"1", "2", "3"}}));
  ExpectPut("k", "put123");
}

// Where a collapse keeps originals for their readers, here for an iterator that ends while CompactRange waits for it.
TEST_P(DbPartialMergeTest, CompactRangeWaitsForReadersOfAMoment) {
  Merge("k", {"1", "2"});
  std::unique_ptr<Iterator> reader = db_->NewIterator({});
  Compact();
  EXPECT_EQ(operator_->TakePartial(), (std::vector<Operands>{{"1", "2"}}));
  Merge("k", {"3", "4"});
  SyncPoints::Instance().SetCallback("DBImpl::ReleaseMovedWithin:Wait", [&reader](void*) { reader.reset(); });
  SyncPoints::Instance().Enable();
  Compact();
  SyncPoints::Instance().Clear();
  EXPECT_EQ(operator_->TakePartial(), (std::vector<Operands>{{"3", "4"}}));
  ExpectPut("k", "1234");
}

TEST_P(DbPartialMergeTest, EachFamilyHasItsOperator) {
  const auto other = std::make_shared<Concatenator>();
  ColumnFamilyOptions with_operator;
  with_operator.l1 = TestedL1();
  ColumnFamilyOptions without = with_operator;
  with_operator.merge_operator = other;
  std::unique_ptr<ColumnFamilyHandle> one;
  std::unique_ptr<ColumnFamilyHandle> none;
  ASSERT_OK(db_->CreateColumnFamily(with_operator, "one", &one));
  ASSERT_OK(db_->CreateColumnFamily(without, "none", &none));
  Merge("k", {"1", "2"});
  ASSERT_OK(db_->Merge({}, one.get(), "k", "a"));
  ASSERT_OK(db_->Merge({}, one.get(), "k", "b"));
  ASSERT_OK(db_->Put({}, none.get(), "k", "old"));
  ASSERT_OK(db_->Put({}, none.get(), "k", "new"));
  for (ColumnFamilyHandle* const family : {db_->DefaultColumnFamily(), one.get(), none.get()}) {
    ASSERT_OK(db_->CompactRange({}, family, nullptr, nullptr));
  }
  EXPECT_EQ(operator_->TakePartial(), (std::vector<Operands>{{"1", "2"}}));
  EXPECT_EQ(other->TakePartial(), (std::vector<Operands>{{"a", "b"}}));
  ExpectPut("k", "12");
  std::string value;
  ASSERT_OK(db_->Get({}, one.get(), "k", &value));
  EXPECT_EQ(value, "ab");
}

}  // namespace
}  // namespace braiddb::test
