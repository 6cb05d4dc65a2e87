// The indexed batch against a model: a map to which the same updates were applied.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/write_batch_with_index.h"
#include "tests/support/db_test_util.h"
#include "tests/support/merge_operators.h"
#include "tests/support/pmem_temp_dir.h"
#include "util/random.h"

namespace braiddb::test {
namespace {

using Map = std::map<std::string, std::string>;

class WriteBatchWithIndexTest : public testing::Test {
 protected:
  void SetUp() override {
    Options options = TinyOptions(1);
    options.create_if_missing = true;
    ASSERT_OK(DB::Open(options, directory_.Sub("db"), &db_));
  }

  Pairs Forward(Iterator* iterator) {
    Pairs found;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) found.emplace_back(iterator->key(), iterator->value());
    EXPECT_OK(iterator->status());
    return found;
  }
  Pairs Backward(Iterator* iterator) {
    Pairs found;
    for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) found.emplace_back(iterator->key(), iterator->value());
    EXPECT_OK(iterator->status());
    std::reverse(found.begin(), found.end());
    return found;
  }
  static Pairs Of(const Map& map) { return Pairs(map.begin(), map.end()); }

  PmemTempDir directory_;
  std::unique_ptr<DB> db_;
};

TEST_F(WriteBatchWithIndexTest, ReadsItsOwnUpdatesBeforeTheDatabase) {
  ASSERT_OK(db_->Put({}, "below", "db"));
  ASSERT_OK(db_->Put({}, "hidden", "db"));
  ASSERT_OK(db_->Put({}, "deleted", "db"));
  WriteBatchWithIndex batch;
  batch.Put("hidden", "first");
  batch.Put("hidden", "batch");
  batch.Put("own", "");
  batch.Delete("deleted");
  std::string value;
  EXPECT_OK(batch.GetFromBatch("hidden", &value));
  EXPECT_EQ(value, "batch");
  EXPECT_TRUE(batch.GetFromBatch("below", &value).IsNotFound());
  EXPECT_TRUE(batch.GetFromBatch("deleted", &value).IsNotFound());
  EXPECT_OK(batch.GetFromBatchAndDB(db_.get(), {}, "below", &value));
  EXPECT_EQ(value, "db");
  EXPECT_OK(batch.GetFromBatchAndDB(db_.get(), {}, "own", &value));
  EXPECT_EQ(value, "");
  EXPECT_TRUE(batch.GetFromBatchAndDB(db_.get(), {}, "deleted", &value).IsNotFound());
  EXPECT_TRUE(batch.GetFromBatchAndDB(db_.get(), {}, "nowhere", &value).IsNotFound());
  EXPECT_EQ(batch.GetWriteBatch().Count(), 4u);
  ASSERT_OK(db_->Write({}, batch.GetWriteBatch()));
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"below", "db"}, {"hidden", "batch"}, {"own", ""}}));
}

TEST_F(WriteBatchWithIndexTest, SavePointsAreAStack) {
  WriteBatchWithIndex batch;
  EXPECT_TRUE(batch.RollbackToSavePoint().IsNotFound());
  EXPECT_TRUE(batch.PopSavePoint().IsNotFound());
  batch.Put("a", "1");
  batch.SetSavePoint();
  batch.Put("a", "2");
  batch.SetSavePoint();
  batch.Delete("a");
  batch.Put("b", "3");
  std::string value;
  ASSERT_OK(batch.RollbackToSavePoint());
  EXPECT_OK(batch.GetFromBatch("a", &value));
  EXPECT_EQ(value, "2");
  EXPECT_TRUE(batch.GetFromBatch("b", &value).IsNotFound());
  batch.SetSavePoint();
  batch.Put("c", "4");
  ASSERT_OK(batch.PopSavePoint());
  ASSERT_OK(batch.RollbackToSavePoint());
  EXPECT_OK(batch.GetFromBatch("a", &value));
  EXPECT_EQ(value, "1");
  EXPECT_TRUE(batch.GetFromBatch("c", &value).IsNotFound());
  EXPECT_EQ(batch.GetWriteBatch().Count(), 1u);
  EXPECT_TRUE(batch.RollbackToSavePoint().IsNotFound());
}

TEST_F(WriteBatchWithIndexTest, RebuildTakesAnotherBatchsUpdates) {
  WriteBatch from;
  from.Put("a", "1");
  from.Delete("b");
  WriteBatchWithIndex batch;
  batch.Put("old", "");
  batch.SetSavePoint();
  ASSERT_OK(batch.Rebuild(from));
  Slice value;
  EXPECT_EQ(batch.Find("a", &value), WriteBatchWithIndex::Found::kValue);
  EXPECT_EQ(value, "1");
  EXPECT_EQ(batch.Find("b", &value), WriteBatchWithIndex::Found::kDeletion);
  EXPECT_EQ(batch.Find("old", &value), WriteBatchWithIndex::Found::kNothing);
  EXPECT_TRUE(batch.RollbackToSavePoint().IsNotFound());
}

// The class has no updates at timestamps. Those behind them must not vanish.
TEST_F(WriteBatchWithIndexTest, RebuildRefusesUpdatesAtTimestamps) {
  WriteBatch other;
  other.PutAt(nullptr, "key", std::string(8, '\0'), "value");
  other.Put("plain", "value");
  WriteBatchWithIndex batch;
  batch.Put("before", "value");
  EXPECT_FALSE(batch.Rebuild(other).ok());
  std::string value;
  EXPECT_OK(batch.GetFromBatch("before", &value));
  EXPECT_TRUE(batch.GetFromBatch("plain", &value).IsNotFound());
}

TEST_F(WriteBatchWithIndexTest, IteratorsShowTheModelInBothDirections) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto key = [&] { return NumberedKey(static_cast<int>(random.Uniform(30))); };
    Map model;
    {
      const auto all = db_->NewIterator({});
      WriteBatch clear;
      for (all->SeekToFirst(); all->Valid(); all->Next()) clear.Delete(all->key());
      ASSERT_OK(db_->Write({}, clear));
    }
    for (uint64_t i = random.Uniform(25); i > 0; --i) {
      const std::string k = key();
      model[k] = "db";
      ASSERT_OK(db_->Put({}, k, "db"));
    }
    WriteBatchWithIndex batch;
    const auto update = [&] {
      const std::string k = key();
      if (random.OneIn(2)) {
        batch.Delete(k);
        model.erase(k);
      } else {
        model[k] = std::to_string(random.Uniform(100));
        batch.Put(k, model[k]);
      }
    };
    for (uint64_t i = random.Uniform(25); i > 0; --i) update();
    const auto iterator = batch.NewIteratorWithBase(db_->NewIterator({}));
    EXPECT_EQ(Forward(iterator.get()), Of(model));
    EXPECT_EQ(Backward(iterator.get()), Of(model));

    // A walk that turns, and meanwhile updates that come between.
    iterator->Seek(key());
    for (int step = 0; step < 60 && iterator->Valid(); ++step) {
      const std::string at(iterator->key());
      if (random.OneIn(4)) update();
      const auto after = model.upper_bound(at);
      const auto before = model.lower_bound(at);
      if (random.OneIn(2)) {
        iterator->Next();
        ASSERT_EQ(iterator->Valid(), after != model.end()) << "behind " << at;
        if (iterator->Valid()) {
          EXPECT_EQ(iterator->key(), after->first);
          EXPECT_EQ(iterator->value(), after->second);
        }
      } else {
        iterator->Prev();
        ASSERT_EQ(iterator->Valid(), before != model.begin()) << "before " << at;
        if (iterator->Valid()) {
          EXPECT_EQ(iterator->key(), std::prev(before)->first);
          EXPECT_EQ(iterator->value(), std::prev(before)->second);
        }
      }
    }

    const std::string target = key();
    iterator->SeekForPrev(target);
    const auto behind = model.upper_bound(target);
    ASSERT_EQ(iterator->Valid(), behind != model.begin());
    if (iterator->Valid()) {
      EXPECT_EQ(iterator->key(), std::prev(behind)->first);
    }

    const std::string lower = NumberedKey(7), upper = NumberedKey(21);
    ReadOptions bounded;
    bounded.iterate_lower_bound = lower;
    bounded.iterate_upper_bound = upper;
    const auto within = batch.NewIteratorWithBase(db_->NewIterator(bounded), bounded);
    const Pairs expected(model.lower_bound(lower), model.lower_bound(upper));
    EXPECT_EQ(Forward(within.get()), expected);
    EXPECT_EQ(Backward(within.get()), expected);
  }
}

TEST_F(WriteBatchWithIndexTest, PrefixBoundsTheBatchToo) {
  WriteBatchWithIndex batch;
  for (const char* key : {"a", "ab", "abc", "ac", "b"}) batch.Put(key, "");
  ReadOptions options;
  options.prefix = "ab";
  const auto iterator = batch.NewIteratorWithBase(db_->NewIterator(options), options);
  EXPECT_EQ(Forward(iterator.get()), (Pairs{{"ab", ""}, {"abc", ""}}));
}

TEST_F(WriteBatchWithIndexTest, OrderOfTheComparator) {
  WriteBatchWithIndex batch(ReverseBytewiseComparator());
  Options options = TinyOptions(1);
  options.create_if_missing = true;
  options.comparator = ReverseBytewiseComparator();
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::Open(options, directory_.Sub("reverse"), &db));
  ASSERT_OK(db->Put({}, "b", "db"));
  batch.Put("a", "batch");
  batch.Put("c", "batch");
  const auto iterator = batch.NewIteratorWithBase(db->NewIterator({}));
  EXPECT_EQ(Forward(iterator.get()), (Pairs{{"c", "batch"}, {"b", "db"}, {"a", "batch"}}));
}

TEST_F(WriteBatchWithIndexTest, EachFamilyHasItsOrderAndItsUpdates) {
  ColumnFamilyOptions reverse;
  reverse.comparator = ReverseBytewiseComparator();
  std::unique_ptr<ColumnFamilyHandle> family;
  ASSERT_OK(db_->CreateColumnFamily(reverse, "reverse", &family));
  ASSERT_OK(db_->Put({}, family.get(), "b", "db"));
  ASSERT_OK(db_->Put({}, "b", "default"));
  const auto shown = [&](const WriteBatchWithIndex& batch) {
    const auto iterator = batch.NewIteratorWithBase(family.get(), db_->NewIterator({}, family.get()));
    const Pairs found = Forward(iterator.get());
    EXPECT_EQ(Backward(iterator.get()), found);
    return found;
  };
  WriteBatchWithIndex batch;
  EXPECT_EQ(batch.OrderOf(family->GetID()), nullptr);
  EXPECT_EQ(shown(batch), (Pairs{{"b", "db"}}));
  for (const char* key : {"a", "c"}) batch.Put(family.get(), key, "batch");
  batch.Put("a", "default");
  EXPECT_EQ(shown(batch), (Pairs{{"c", "batch"}, {"b", "db"}, {"a", "batch"}}));
  batch.SetSavePoint();
  batch.Delete(family.get(), "a");
  batch.Put(family.get(), "d", "batch");
  batch.Delete("a");
  EXPECT_EQ(shown(batch), (Pairs{{"d", "batch"}, {"c", "batch"}, {"b", "db"}}));
  std::string value;
  EXPECT_CODE(batch.GetFromBatch(family.get(), "a", &value), kNotFound);
  ASSERT_OK(batch.RollbackToSavePoint());
  EXPECT_EQ(shown(batch), (Pairs{{"c", "batch"}, {"b", "db"}, {"a", "batch"}}));
  ASSERT_OK(batch.GetFromBatch("a", &value));
  EXPECT_EQ(value, "default");
  ASSERT_OK(batch.GetFromBatchAndDB(db_.get(), {}, family.get(), "b", &value));
  EXPECT_EQ(value, "db");

  // Made of another batch, it knows no order until it is told.
  WriteBatchWithIndex copy;
  ASSERT_OK(copy.Rebuild(batch.GetWriteBatch()));
  EXPECT_EQ(copy.OrderOf(family->GetID()), BytewiseComparator());
  copy.SetOrder(family->GetID(), reverse.comparator);
  EXPECT_EQ(shown(copy), shown(batch));
  ASSERT_OK(copy.GetFromBatch("a", &value)) << "other families stay";
  copy.Clear();
  EXPECT_EQ(shown(copy), (Pairs{{"b", "db"}}));
  EXPECT_EQ(copy.OrderOf(family->GetID()), nullptr);
}

TEST_F(WriteBatchWithIndexTest, OperandsAreAppliedToWhatIsBelowThem) {
  const auto append = std::make_shared<AppendOperator>();
  Options options = TinyOptions(1);
  options.merge_operator = append;
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::Open(options, directory_.Sub("merge"), &db));
  ASSERT_OK(db->Put({}, "a", "db"));
  ASSERT_OK(db->Merge({}, "a", "0"));
  ASSERT_OK(db->Put({}, "b", "db"));
  ASSERT_OK(db->Put({}, "z", "db"));
  WriteBatchWithIndex batch;
  batch.Merge("a", "1");
  batch.SetSavePoint();
  batch.Merge("a", "gone");
  batch.Put("z", "gone");
  ASSERT_OK(batch.RollbackToSavePoint());
  batch.Merge("a", "2");
  batch.Delete("b");
  batch.Merge("b", "3");
  batch.Put("c", "own");
  batch.Merge("c", "4");
  batch.Merge("d", "5");
  const Pairs expected = {{"a", "db012"}, {"b", "3"}, {"c", "own4"}, {"d", "5"}, {"z", "db"}};
  for (const auto& [key, wanted] : expected) {
    std::string value;
    ASSERT_OK(batch.GetFromBatchAndDB(db.get(), {}, key, &value));
    EXPECT_EQ(value, wanted) << key;
  }
  std::string value;
  ASSERT_OK(batch.GetFromBatch("c", &value, append.get()));
  EXPECT_EQ(value, "own4");
  EXPECT_TRUE(batch.GetFromBatch("a", &value, append.get()).IsInvalidArgument());
  EXPECT_TRUE(batch.GetFromBatch("c", &value).IsInvalidArgument());
  const auto iterator = batch.NewIteratorWithBase(db->NewIterator({}), {}, append);
  EXPECT_EQ(Forward(iterator.get()), expected);
  EXPECT_EQ(Backward(iterator.get()), expected);
  const auto without = batch.NewIteratorWithBase(db->NewIterator({}));
  without->SeekToFirst();
  EXPECT_FALSE(without->Valid());
  EXPECT_TRUE(without->status().IsInvalidArgument());
  ASSERT_OK(db->Write({}, batch.GetWriteBatch()));
  EXPECT_TRUE(HoldsExactly(db.get(), expected));
}

}  // namespace
}  // namespace braiddb::test
