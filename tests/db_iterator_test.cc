// Iterators: every movement, in every level and mixture of levels, against a reference on a sorted vector.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/db_places.h"

namespace braiddb::test {
namespace {

class DbIteratorTest : public DbPlacesTest {};

INSTANTIATE_TEST_SUITE_P(Places, DbIteratorTest, AllPlaces(), NameOfPlace);

TEST_P(DbIteratorTest, EmptyDatabaseHasNoPosition) {
  auto iterator = db_->NewIterator({});
  EXPECT_FALSE(iterator->Valid());
  iterator->SeekToFirst();
  EXPECT_FALSE(iterator->Valid());
  iterator->SeekToLast();
  EXPECT_FALSE(iterator->Valid());
  iterator->Seek("");
  EXPECT_FALSE(iterator->Valid());
  iterator->SeekForPrev("x");
  EXPECT_FALSE(iterator->Valid());
  EXPECT_OK(iterator->status());
}

TEST_P(DbIteratorTest, FreshIteratorIsNotValid) {
  ASSERT_NO_FATAL_FAILURE(Load({"a"}));
  EXPECT_FALSE(db_->NewIterator({})->Valid());
}

TEST_P(DbIteratorTest, ScansBothWays) {
  ASSERT_NO_FATAL_FAILURE(Load(ScatteredKeys(400)));
  EXPECT_TRUE(HoldsExactly(db_.get(), content_));
}

TEST_P(DbIteratorTest, ScansKeysOfEveryShape) {
  Random random(3);
  ASSERT_NO_FATAL_FAILURE(Load(MakeKeyUniverse(&random, 300, true)));
  EXPECT_TRUE(HoldsExactly(db_.get(), content_));
}

TEST_P(DbIteratorTest, SeeksToEveryKeyAndEveryGap) {
  ASSERT_NO_FATAL_FAILURE(Load(ScatteredKeys(120)));
  auto actual = db_->NewIterator({});
  auto expected = Expected();
  for (int number = 0; number <= 240; ++number) {  // the even ones were written
    for (const auto& target : {NumberedKey(number), NumberedKey(number) + '\0', NumberedKey(number).substr(0, 8)}) {
      SCOPED_TRACE(Printable(target));
      expected.Seek(target);
      actual->Seek(target);
      ASSERT_TRUE(SamePosition(expected, *actual));
      expected.SeekForPrev(target);
      actual->SeekForPrev(target);
      ASSERT_TRUE(SamePosition(expected, *actual));
    }
  }
  for (const std::string target : {"", "a", "z", "\xff\xff"}) {
    SCOPED_TRACE(Printable(target));
    expected.Seek(target);
    actual->Seek(target);
    ASSERT_TRUE(SamePosition(expected, *actual));
    expected.SeekForPrev(target);
    actual->SeekForPrev(target);
    ASSERT_TRUE(SamePosition(expected, *actual));
  }
}

TEST_P(DbIteratorTest, TurnsRoundAtEveryPosition) {
  ASSERT_NO_FATAL_FAILURE(Load(ScatteredKeys(100)));
  auto actual = db_->NewIterator({});
  for (int steps = 0; steps < 100; ++steps) {
    auto expected = Expected();
    expected.SeekToFirst();
    actual->SeekToFirst();
    for (int i = 0; i < steps && expected.Valid(); ++i) {
      expected.Next();
      actual->Next();
    }
    // forward, back, forward again
    for (const bool forward : {false, true, true, false, false, true}) {
      if (!expected.Valid()) break;
      forward ? expected.Next() : expected.Prev();
      forward ? actual->Next() : actual->Prev();
      ASSERT_TRUE(SamePosition(expected, *actual)) << "after " << steps << " steps";
    }
  }
}

TEST_P(DbIteratorTest, RandomWalks) {
  Random random(17);
  ASSERT_NO_FATAL_FAILURE(Load(MakeKeyUniverse(&random, 200, false)));
  for (int walk = 0; walk < 20 / kSlowdown + 1; ++walk) {
    auto expected = Expected();
    auto actual = db_->NewIterator({});
    ASSERT_TRUE(WalkTogether(&expected, actual.get(), keys_, 200, &random)) << "walk " << walk;
  }
}

TEST_P(DbIteratorTest, BoundsAndPrefixes) {
  Random random(23);
  std::vector<std::string> keys = ScatteredKeys(100);
  for (const auto& key : MakeKeyUniverse(&random, 100, false)) keys.push_back(key);
  for (int i = 0; i < 20; ++i) keys.push_back("\xff\xff" + std::string(i, 'x'));
  ASSERT_NO_FATAL_FAILURE(Load(keys));
  struct Range {
    std::optional<std::string> lower, upper, prefix;
  };
  std::vector<Range> ranges = {
      {"key000020", "key000100", {}},
      {"key000021", "key000101", {}},
      {{}, "key000050", {}},
      {"key000150", {}, {}},
      {"key000050", "key000050", {}},
      {"key000060", "key000050", {}},
      {"zzz", {}, {}},
      {{}, "", {}},
      {"", {}, {}},
      {{}, {}, "key"},
      {{}, {}, "key0001"},
      {{}, {}, "key000100"},
      {{}, {}, ""},
      {{}, {}, "\xff"},
      {{}, {}, "\xff\xff"},
      {{}, {}, "nothing like it"},
      {"key000020", "key000120", "key0001"},
      {{}, {}, std::string(300, 'p')},
      {"\xff", {}, std::string(1, '\0')},
  };
  for (int i = 0; i < 20; ++i) ranges.push_back({keys[random.Uniform(keys.size())], keys[random.Uniform(keys.size())], {}});
  for (const auto& range : ranges) {
    ReadOptions options;
    if (range.lower) options.iterate_lower_bound = *range.lower;
    if (range.upper) options.iterate_upper_bound = *range.upper;
    if (range.prefix) options.prefix = *range.prefix;
    SCOPED_TRACE((range.lower ? "from " + Printable(*range.lower) : "") + (range.upper ? " to " + Printable(*range.upper) : "") +
                 (range.prefix ? " prefix " + Printable(*range.prefix) : ""));
    const Pairs visible = VisiblePairs(content_, options);
    EXPECT_EQ(ScanForward(db_.get(), options), visible);
    Pairs backward = ScanBackward(db_.get(), options);
    std::reverse(backward.begin(), backward.end());
    EXPECT_EQ(backward, visible);
    auto expected = Expected(options);
    auto actual = db_->NewIterator(options);
    ASSERT_TRUE(WalkTogether(&expected, actual.get(), keys_, 100, &random));
  }
}

}  // namespace
}  // namespace braiddb::test
