// Prefix extractors, and iterators that end with the prefix of what was sought.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "braiddb/perf_context.h"
#include "braiddb/slice_transform.h"
#include "braiddb/transaction.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

TEST(SliceTransformTest, BuiltInOnes) {
  const auto fixed = NewFixedPrefixTransform(3);
  EXPECT_STREQ(fixed->Name(), "rocksdb.FixedPrefix.3");
  EXPECT_TRUE(fixed->InDomain("abc"));
  EXPECT_FALSE(fixed->InDomain("ab"));
  EXPECT_EQ(fixed->Transform("abcd"), "abc");
  const auto capped = NewCappedPrefixTransform(3);
  EXPECT_STREQ(capped->Name(), "rocksdb.CappedPrefix.3");
  EXPECT_TRUE(capped->InDomain(""));
  EXPECT_EQ(capped->Transform("ab"), "ab");
  EXPECT_EQ(capped->Transform("abcd"), "abc");
  const auto noop = NewNoopTransform();
  EXPECT_STREQ(noop->Name(), "rocksdb.Noop");
  EXPECT_EQ(noop->Transform("abcd"), "abcd");
}

class DbPrefixTest : public testing::Test {
 protected:
  void SetUp() override {
    options_ = TinyOptions(1);
    options_.create_if_missing = true;
    options_.prefix_extractor = NewFixedPrefixTransform(2);
    read_.prefix_same_as_start = true;
  }
  // Some in each level.
  void Open() {
    db_ = OpenOrFail(options_, directory_.File("db"));
    ASSERT_NE(db_, nullptr);
    for (const char* key : {"a", "aa1", "ab1", "ab3"}) ASSERT_OK(db_->Put({}, key, "l1"));
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    for (const char* key : {"ab2", "b", "bb1"}) ASSERT_OK(db_->Put({}, key, "l0"));
    ASSERT_OK(db_->Flush());
    for (const char* key : {"ab4", "bb2"}) ASSERT_OK(db_->Put({}, key, "memtable"));
  }
  // The keys from where the iterator is, forwards or backwards.
  static std::string Rest(Iterator* iterator, bool forwards = true) {
    std::string keys;
    for (; iterator->Valid(); forwards ? iterator->Next() : iterator->Prev()) keys.append(iterator->key()).append(" ");
    EXPECT_OK(iterator->status());
    return keys;
  }
  static std::string From(Iterator* iterator, Slice target) {
    iterator->Seek(target);
    return Rest(iterator);
  }
  static std::string Before(Iterator* iterator, Slice target) {
    iterator->SeekForPrev(target);
    return Rest(iterator, false);
  }

  TestDirectory directory_;
  Options options_;
  ReadOptions read_;
  std::unique_ptr<DB> db_;
};

TEST_F(DbPrefixTest, IteratorsEndWithThePrefix) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const auto iterator = db_->NewIterator(read_);
  EXPECT_FALSE(iterator->Valid());
  EXPECT_EQ(From(iterator.get(), "ab"), "ab1 ab2 ab3 ab4 ");
  EXPECT_EQ(From(iterator.get(), "ab3x"), "ab4 ");
  EXPECT_EQ(From(iterator.get(), "ab5"), "");
  EXPECT_EQ(From(iterator.get(), "ac"), "");
  EXPECT_EQ(Before(iterator.get(), "ab3"), "ab3 ab2 ab1 ");
  EXPECT_EQ(Before(iterator.get(), "ab0"), "");
  EXPECT_EQ(Before(iterator.get(), "bb9"), "bb2 bb1 ");
  // A target without a prefix is no limit.
  EXPECT_EQ(From(iterator.get(), "b"), "b bb1 bb2 ");
  EXPECT_EQ(Before(iterator.get(), "b"), "b ab4 ab3 ab2 ab1 aa1 a ");
  // A key without a prefix ends one that is limited.
  EXPECT_EQ(From(iterator.get(), "aa"), "aa1 ");
  EXPECT_EQ(Before(iterator.get(), "aa9"), "aa1 ");
  // Without a target it is the prefix of the first key, or of the last.
  iterator->SeekToFirst();
  EXPECT_EQ(Rest(iterator.get()), "a aa1 ab1 ab2 ab3 ab4 b bb1 bb2 ");
  iterator->SeekToLast();
  EXPECT_EQ(Rest(iterator.get(), false), "bb2 bb1 ");
  // Turning around inside.
  iterator->Seek("ab2");
  iterator->Next();
  iterator->Prev();
  iterator->Prev();
  EXPECT_EQ(Rest(iterator.get()), "ab1 ab2 ab3 ab4 ");
}

TEST_F(DbPrefixTest, NothingElseLimitsThem) {
  ASSERT_NO_FATAL_FAILURE(Open());
  const std::string all = "ab1 ab2 ab3 ab4 b bb1 bb2 ";
  EXPECT_EQ(From(db_->NewIterator({}).get(), "ab"), all);
  ReadOptions other;
  other.total_order_seek = true;
  EXPECT_EQ(From(db_->NewIterator(other).get(), "ab"), all);
  other.auto_prefix_mode = true;
  EXPECT_EQ(From(db_->NewIterator(other).get(), "ab"), all);
  read_.total_order_seek = true;  // as in RocksDB: it does not lift the limit
  EXPECT_EQ(From(db_->NewIterator(read_).get(), "ab"), "ab1 ab2 ab3 ab4 ");
  read_.iterate_upper_bound = "ab3";
  EXPECT_EQ(From(db_->NewIterator(read_).get(), "ab"), "ab1 ab2 ");
  db_.reset();
  options_.prefix_extractor = nullptr;
  read_.iterate_upper_bound.reset();
  db_ = OpenOrFail(options_, directory_.File("db"));
  EXPECT_EQ(From(db_->NewIterator(read_).get(), "ab"), all);
}

// The prefix is what is behind the first '/'.
// As in RocksDB: the movement to the first key is a seek to the lower bound, that to the last key one to before the upper bound.
TEST_F(DbPrefixTest, BoundsAreTheTargetsOfTheFirstAndTheLastMovement) {
  ASSERT_NO_FATAL_FAILURE(Open());
  read_.iterate_lower_bound = "aa2";
  read_.iterate_upper_bound = "ba";
  const auto iterator = db_->NewIterator(read_);
  iterator->SeekToFirst();
  EXPECT_EQ(Rest(iterator.get()), "");  // the next key is ab1
  iterator->SeekToLast();
  EXPECT_EQ(Rest(iterator.get(), false), "");  // the key before is b
  read_.iterate_lower_bound = "ab2";
  read_.iterate_upper_bound = "ab4";
  const auto inside = db_->NewIterator(read_);
  inside->SeekToFirst();
  EXPECT_EQ(Rest(inside.get()), "ab2 ab3 ");
  inside->SeekToLast();
  EXPECT_EQ(Rest(inside.get(), false), "ab3 ab2 ");
}

TEST_F(DbPrefixTest, ABoundWithoutAPrefixLeavesThatOfTheKey) {
  ASSERT_NO_FATAL_FAILURE(Open());
  read_.iterate_lower_bound = "a";
  read_.iterate_upper_bound = "b";
  const auto iterator = db_->NewIterator(read_);
  iterator->Seek("aa0");
  iterator->SeekToLast();
  EXPECT_EQ(Rest(iterator.get(), false), "ab4 ab3 ab2 ab1 ");
}

TEST_F(DbPrefixTest, ExtractorsOfTheUsersOwn) {
  struct Directory : SliceTransform {
    const char* Name() const override { return "test.Directory"; }
    bool InDomain(Slice key) const override { return key.find('/') != Slice::npos; }
    Slice Transform(Slice key) const override { return key.substr(0, key.find('/')); }
  };
  options_.prefix_extractor = std::make_shared<Directory>();
  db_ = OpenOrFail(options_, directory_.File("db"));
  ASSERT_NE(db_, nullptr);
  for (const char* key : {"a/1", "a/2", "aa/1", "b", "b/1"}) ASSERT_OK(db_->Put({}, key, ""));
  const auto iterator = db_->NewIterator(read_);
  EXPECT_EQ(From(iterator.get(), "a/"), "a/1 a/2 ");
  EXPECT_EQ(From(iterator.get(), "aa/"), "aa/1 ");
  EXPECT_EQ(From(iterator.get(), "b/"), "b/1 ");
}

// Keys that nobody sees end a scan as visible ones do: it does not go through all of them to the next visible key.
TEST_F(DbPrefixTest, DeletedKeysOfOtherPrefixesEndThem) {
  constexpr int kDeleted = 2000;
  options_.memtable_size = 8 << 20;
  options_.memtable_max_entries = 1 << 16;
  options_.disable_auto_compaction = true;
  ASSERT_NO_FATAL_FAILURE(Open());
  for (int i = 0; i < kDeleted; ++i) {
    for (const char* prefix : {"aa", "ac"}) ASSERT_OK(db_->Delete({}, prefix + std::to_string(kDeleted + i)));
  }
  for (const bool is_flushed : {false, true}) {
    SCOPED_TRACE(is_flushed ? "L0" : "memtable");
    if (is_flushed) {
      ASSERT_OK(db_->Flush());
    }
    const auto iterator = db_->NewIterator(read_);
    SetPerfLevel(PerfLevel::kEnableCount);
    GetPerfContext()->Reset();
    EXPECT_EQ(From(iterator.get(), "ab"), "ab1 ab2 ab3 ab4 ");
    EXPECT_EQ(Before(iterator.get(), "ab3"), "ab3 ab2 ab1 ");
    EXPECT_EQ(From(iterator.get(), "ab9"), "");
    EXPECT_LT(GetPerfContext()->internal_delete_skipped_count, 10u);
    // Inside the prefix they are stepped over.
    EXPECT_EQ(From(iterator.get(), "ac"), "");
    EXPECT_GE(GetPerfContext()->internal_delete_skipped_count, static_cast<uint64_t>(kDeleted));
    SetPerfLevel(PerfLevel::kDisable);
  }
}

TEST_F(DbPrefixTest, TransactionsSeeTheirOwnKeysUpToThere) {
  std::unique_ptr<OptimisticTransactionDB> db;
  ASSERT_OK(OptimisticTransactionDB::Open(options_, directory_.File("db"), &db));
  for (const char* key : {"ab1", "ab3", "bb1"}) ASSERT_OK(db->Put({}, key, ""));
  std::unique_ptr<Transaction> transaction = db->BeginTransaction({}, {});
  ASSERT_OK(transaction->Put("aa9", ""));
  ASSERT_OK(transaction->Put("ab2", ""));
  ASSERT_OK(transaction->Delete("ab3"));
  ASSERT_OK(transaction->Put("ac1", ""));
  const auto iterator = transaction->NewIterator(read_);
  EXPECT_EQ(From(iterator.get(), "ab"), "ab1 ab2 ");
  EXPECT_EQ(From(iterator.get(), "ac"), "ac1 ");
  EXPECT_EQ(Before(iterator.get(), "ab9"), "ab2 ab1 ");
  iterator->SeekToFirst();
  EXPECT_EQ(Rest(iterator.get()), "aa9 ");
  EXPECT_EQ(From(transaction->NewIterator({}).get(), "ab"), "ab1 ab2 ac1 bb1 ");
}

}  // namespace
}  // namespace braiddb::test
