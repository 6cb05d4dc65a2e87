// Orders of the user's own, in every level.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>
#include <vector>

#include "tests/support/db_places.h"

namespace braiddb::test {
namespace {

// Orders by the last byte, then by the whole: nothing like the bytewise order.
class LastByteComparator : public Comparator {
 public:
  int Compare(Slice a, Slice b) const override {
    const int last_a = a.empty() ? -1 : static_cast<unsigned char>(a.back());
    const int last_b = b.empty() ? -1 : static_cast<unsigned char>(b.back());
    return last_a != last_b ? last_a - last_b : a.compare(b);
  }
  const char* Name() const override { return "test.LastByte"; }
};

// Upper and lower case are the same letter: keys that are equal without being the same bytes.
class CaseInsensitiveComparator : public Comparator {
 public:
  int Compare(Slice a, Slice b) const override {
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      const int difference = std::tolower(static_cast<unsigned char>(a[i])) - std::tolower(static_cast<unsigned char>(b[i]));
      if (difference != 0) return difference;
    }
    return a.size() < b.size() ? -1 : a.size() > b.size();
  }
  const char* Name() const override { return "test.CaseInsensitive"; }
};

class DbComparatorTest : public DbPlacesTest {};

INSTANTIATE_TEST_SUITE_P(Places, DbComparatorTest, AllPlaces(), NameOfPlace);

TEST_P(DbComparatorTest, CustomComparators) {
  static const LastByteComparator last_byte;
  for (const Comparator* comparator : std::initializer_list<const Comparator*>{ReverseBytewiseComparator(), &last_byte}) {
    SCOPED_TRACE(comparator->Name());
    content_.clear();
    options_.comparator = comparator;
    ASSERT_NO_FATAL_FAILURE(Open());
    Random random(31);
    ASSERT_NO_FATAL_FAILURE(Load(MakeKeyUniverse(&random, 200, false)));
    EXPECT_TRUE(HoldsExactly(db_.get(), VisiblePairs(content_, {}, comparator)));
    auto expected = Expected();
    auto actual = db_->NewIterator({});
    ASSERT_TRUE(WalkTogether(&expected, actual.get(), keys_, 500, &random));
    for (int i = 0; i < 10; ++i) {
      ReadOptions options;
      const std::string lower = keys_[random.Uniform(keys_.size())];
      const std::string upper = keys_[random.Uniform(keys_.size())];
      options.iterate_lower_bound = lower;
      options.iterate_upper_bound = upper;
      EXPECT_EQ(ScanForward(db_.get(), options), VisiblePairs(content_, options, comparator));
    }
  }
}

TEST_P(DbComparatorTest, KeysThatAreEqualWithoutBeingTheSameBytes) {
  static const CaseInsensitiveComparator comparator;
  options_.comparator = &comparator;
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Load({"Alpha", "beta"}));
  Put("Alpha", "newer");
  ASSERT_OK(db_->Put({}, "ALPHA", "newest"));
  ASSERT_OK(db_->Put({}, "Gamma", "3"));
  ASSERT_OK(db_->Delete({}, "gAMMA"));
  for (int stage = 0; stage < 3; ++stage) {
    SCOPED_TRACE(stage);
    EXPECT_EQ(GetOrText(db_.get(), "alpha"), "newest");
    EXPECT_EQ(GetOrText(db_.get(), "gamma"), "<not found>");
    const Pairs pairs = ScanForward(db_.get());
    ASSERT_EQ(pairs.size(), content_.size());
    EXPECT_EQ(pairs.front().second, "newest");
    ASSERT_OK(stage == 0 ? Flush() : Merge());
  }
}

}  // namespace
}  // namespace braiddb::test
