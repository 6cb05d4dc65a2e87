// Iterators: each has one view of the data, whatever is written, flushed and merged beside it, and however much nobody sees.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/db_places.h"

namespace braiddb::test {
namespace {

class DbIteratorViewsTest : public DbPlacesTest {};

INSTANTIATE_TEST_SUITE_P(Places, DbIteratorViewsTest, AllPlaces(), NameOfPlace);

TEST_P(DbIteratorViewsTest, BoundsAreCopied) {
  ASSERT_NO_FATAL_FAILURE(Load(ScatteredKeys(100)));
  auto lower = std::make_unique<std::string>("key000050");
  auto upper = std::make_unique<std::string>("key000060");
  ReadOptions options;
  options.iterate_lower_bound = *lower;
  options.iterate_upper_bound = *upper;
  const Pairs visible = VisiblePairs(content_, options);
  auto iterator = db_->NewIterator(options);
  lower->assign("zzzzzzzzz");
  upper->assign("aaaaaaaaa");
  lower.reset();
  upper.reset();
  Pairs seen;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) seen.emplace_back(iterator->key(), iterator->value());
  EXPECT_EQ(seen, visible);
}

TEST_P(DbIteratorViewsTest, SeesOneViewWhateverHappensLater) {
  ASSERT_NO_FATAL_FAILURE(Load(ScatteredKeys(200)));
  const auto frozen = content_;
  const Snapshot* snapshot = db_->GetSnapshot();
  ReadOptions at_snapshot;
  at_snapshot.snapshot = snapshot;
  auto before = db_->NewIterator({});
  Random random(29);
  ReferenceIterator expected(VisiblePairs(frozen, {}), BytewiseComparator());
  for (int round = 0; round < 6; ++round) {
    ASSERT_TRUE(WalkTogether(&expected, before.get(), keys_, 40, &random)) << "round " << round;
    ASSERT_EQ(ScanForward(db_.get(), at_snapshot), VisiblePairs(frozen, {})) << "round " << round;
    for (int i = 0; i < 100; ++i) {
      const std::string key = NumberedKey(random.Uniform(400));
      random.OneIn(3) ? Delete(key) : Put(key, PatternedValue(random.Next(), 100));
    }
    if (round % 3 == 0) {
      ASSERT_OK(Flush());
    }
    if (round % 3 == 1) {
      ASSERT_OK(Merge());
    }
  }
  before.reset();
  db_->ReleaseSnapshot(snapshot);
  ASSERT_OK(Merge());
  EXPECT_TRUE(HoldsExactly(db_.get(), content_));
}

TEST_P(DbIteratorViewsTest, ValuesStayReadableUntilTheIteratorMoves) {
  ASSERT_NO_FATAL_FAILURE(Load(ScatteredKeys(50)));
  auto iterator = db_->NewIterator({});
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  const Slice key = iterator->key();
  const Slice value = iterator->value();
  const std::string key_copy(key);
  const std::string value_copy(value);
  for (int i = 0; i < 2000 / kSlowdown; ++i) Put(key_copy, PatternedValue(i, 500));
  ASSERT_OK(Merge());
  EXPECT_EQ(key, key_copy);
  EXPECT_EQ(value, value_copy);
}

TEST_P(DbIteratorViewsTest, LongRunsOfTombstonesAndOldVersions) {
  // Two keys that stay, and between them thousands of entries that nobody sees.
  std::vector<std::string> keys = {"a", "z"};
  for (int i = 0; i < 300; ++i) keys.push_back("m" + NumberedKey(i));
  ASSERT_NO_FATAL_FAILURE(Load(keys));
  Put("a", "first");
  Put("z", "last");
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 300; ++i) Put("m" + NumberedKey(i), "version");
    for (int i = 0; i < 300; ++i) Delete("m" + NumberedKey(i));
    if (round == 0) {
      ASSERT_OK(Flush());
    }
  }
  EXPECT_TRUE(HoldsExactly(db_.get(), {{"a", "first"}, {"z", "last"}}));
  auto iterator = db_->NewIterator({});
  iterator->Seek("m");
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), "z");
  iterator->Prev();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), "a");
  iterator->Next();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), "z");
  iterator->SeekForPrev("y");
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), "a");
  iterator->Prev();
  EXPECT_FALSE(iterator->Valid());
}

TEST(DbIteratorUnderWork, ManyIteratorsEachWithItsOwnView) {
  TestDirectory directory;
  auto db = OpenOrFail(TinyOptions(2), directory.File("db"));
  ASSERT_NE(db, nullptr);
  struct View {
    std::unique_ptr<Iterator> iterator;
    ReferenceIterator expected;
  };
  std::vector<View> views;
  std::map<std::string, std::string> content;
  std::vector<std::string> keys;
  for (int i = 0; i < 200; ++i) keys.push_back(NumberedKey(i));
  Random random(37);
  for (int i = 0; i < 8000 / kSlowdown; ++i) {
    const auto& key = keys[random.Uniform(keys.size())];
    if (random.OneIn(4)) {
      ASSERT_OK(db->Delete({}, key));
      content.erase(key);
    } else {
      content[key] = PatternedValue(i, random.Uniform(200));
      ASSERT_OK(db->Put({}, key, content[key]));
    }
    if (i % 100 == 0) {
      if (views.size() == 10) views.erase(views.begin() + static_cast<int>(random.Uniform(10)));
      views.push_back({db->NewIterator({}), ReferenceIterator(VisiblePairs(content, {}))});
    }
    if (i % (1000 / kSlowdown) == 0) {  // however slow merges are beside this, some come in between
      ASSERT_OK(db->WaitForCompaction());
    }
    if (i % 20 == 0) {
      auto& view = views[random.Uniform(views.size())];
      ASSERT_TRUE(WalkTogether(&view.expected, view.iterator.get(), keys, 30, &random)) << "after " << i << " writes";
    }
  }
  EXPECT_GT(db->GetStatistics().compactions, 5u);
  for (auto& view : views) {
    EXPECT_TRUE(WalkTogether(&view.expected, view.iterator.get(), keys, 300, &random));
  }
}

}  // namespace
}  // namespace braiddb::test
