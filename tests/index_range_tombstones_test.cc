// The set of range tombstones against a list of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "index/range_tombstones.h"
#include "tests/support/db_test_util.h"
#include "util/random.h"

namespace braiddb::test {
namespace {

using Tombstone = RangeTombstones::Tombstone;

Tombstone Make(std::string begin, std::string end, uint64_t sequence) {
  return std::make_shared<RangeTombstone>(RangeTombstone{std::move(begin), std::move(end), sequence, sequence});
}

std::string Key(uint64_t number) { return NumberedKey(static_cast<int>(number)); }

TEST(RangeTombstonesTest, TheBeginIsInAndTheEndIsOut) {
  const KeyOrder order(BytewiseComparator());
  const auto set = RangeTombstones::With(nullptr, {Make("b", "d", 5)}, order);
  for (const auto& [key, newest] : std::vector<std::pair<const char*, uint64_t>>{
           {"", 0}, {"a", 0}, {"az", 0}, {"b", 5}, {"c", 5}, {"czz", 5}, {"d", 0}, {"e", 0}}) {
    EXPECT_EQ(set->Newest(key, kMaxSequence), newest) << key;
  }
  EXPECT_EQ(set->Newest("c", 5), 5u);
  EXPECT_EQ(set->Newest("c", 4), 0u) << "it is newer";
  EXPECT_TRUE(set->Hides("c", 4, 5));
  EXPECT_FALSE(set->Hides("c", 6, 9)) << "the version is newer";
}

TEST(RangeTombstonesTest, OrdersOfTheUsersOwn) {
  const KeyOrder order(ReverseBytewiseComparator());
  const auto set = RangeTombstones::With(nullptr, {Make("d", "b", 5)}, order);
  EXPECT_EQ(set->Newest("d", kMaxSequence), 5u);
  EXPECT_EQ(set->Newest("c", kMaxSequence), 5u);
  EXPECT_EQ(set->Newest("b", kMaxSequence), 0u);
}

TEST(RangeTombstonesTest, BytesGrowAndShrinkWithTheTombstones) {
  const KeyOrder order(BytewiseComparator());
  const auto small = RangeTombstones::With(nullptr, {Make("b", "d", 5)}, order);
  const auto both = RangeTombstones::With(small.get(), {Make("a", "c", 7)}, order);
  EXPECT_GE(small->bytes(), sizeof(RangeTombstone));
  EXPECT_EQ(both->bytes(), 2 * small->bytes());
  const auto large = RangeTombstones::With(both.get(), {Make(std::string(1000, 'a'), std::string(3000, 'b'), 8)}, order);
  EXPECT_GE(large->bytes(), both->bytes() + 4000);
  const auto less = RangeTombstones::Without(*large, [](const RangeTombstone& one) { return one.sequence == 8; });
  EXPECT_EQ(less->bytes(), both->bytes());
}

TEST(RangeTombstonesTest, ASetStaysAsItIs) {
  const KeyOrder order(BytewiseComparator());
  const auto first = RangeTombstones::With(nullptr, {Make("b", "d", 5)}, order);
  const auto second = RangeTombstones::With(first.get(), {Make("a", "c", 7)}, order);
  EXPECT_EQ(first->size(), 1u);
  EXPECT_EQ(second->size(), 2u);
  EXPECT_EQ(first->Newest("b", kMaxSequence), 5u);
  EXPECT_EQ(second->Newest("b", kMaxSequence), 7u);
  const auto third = RangeTombstones::Without(*second, [](const RangeTombstone& one) { return one.sequence == 7; });
  EXPECT_EQ(third->Newest("b", kMaxSequence), 5u);
  EXPECT_EQ(RangeTombstones::Without(*third, [](const RangeTombstone&) { return true; }), nullptr);
}

class CountingComparator final : public Comparator {
 public:
  const char* Name() const override { return "counting"; }
  int Compare(Slice a, Slice b) const override {
    ++compared;
    return a.compare(b);
  }
  mutable uint64_t compared = 0;
};

// A program that clears one range again and again.
TEST(RangeTombstonesTest, ManyRangesOverOneKeyCostLittle) {
  constexpr uint64_t kRanges = 10000;
  const CountingComparator comparator;
  const KeyOrder order(&comparator);
  for (const bool nested : {false, true}) {
    std::shared_ptr<const RangeTombstones> set;
    for (uint64_t i = 1; i <= kRanges; ++i) {
      const Tombstone one = nested ? Make(Key(kRanges - i), Key(kRanges + i), i) : Make("a", "z", i);
      set = RangeTombstones::With(set.get(), {one}, order);
    }
    const std::string key = nested ? Key(kRanges - 1) : "k";
    comparator.compared = 0;
    EXPECT_EQ(set->Newest(key, kMaxSequence), kRanges);
    EXPECT_EQ(set->Next(key, 0), 1u);
    EXPECT_LE(comparator.compared, 400u) << nested;
  }
}

// Disjoint, nested, equal, and any; some leave again.
TEST(RangeTombstonesTest, AgreesWithAList) {
  constexpr uint64_t kKeys = 300;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const KeyOrder order(BytewiseComparator());
    std::shared_ptr<const RangeTombstones> set;
    std::vector<Tombstone> list;
    uint64_t sequence = 0;
    for (int step = 0; step < 120; ++step) {
      std::vector<Tombstone> added;
      for (uint64_t i = 0; i <= random.Uniform(3); ++i) {
        uint64_t begin = random.Uniform(kKeys);
        uint64_t end = seed % 3 == 0 ? begin + 1 + random.Uniform(4) : random.Uniform(kKeys);
        if (seed % 3 == 1) end = kKeys - begin;
        if (begin == end) ++end;
        added.push_back(Make(Key(std::min(begin, end)), Key(std::max(begin, end)), ++sequence));
        list.push_back(added.back());
      }
      set = RangeTombstones::With(set.get(), std::move(added), order);
      if (random.OneIn(20)) {
        const uint64_t limit = random.Uniform(sequence);
        const auto leaves = [limit](const RangeTombstone& one) { return one.sequence % 3 == 0 && one.sequence < limit; };
        set = RangeTombstones::Without(*set, leaves);
        std::erase_if(list, [&](const Tombstone& one) { return leaves(*one); });
      }
      ASSERT_EQ(set == nullptr ? 0 : set->size(), list.size());
      for (int look = 0; look < 20 && set != nullptr; ++look) {
        const std::string key = Key(random.Uniform(kKeys));
        const uint64_t at_most = random.OneIn(2) ? kMaxSequence : random.Uniform(sequence + 2);
        uint64_t expected = 0;
        for (const Tombstone& one : list) {
          if (one->sequence <= at_most && one->begin <= key && key < one->end) expected = std::max(expected, one->sequence);
        }
        ASSERT_EQ(set->Newest(key, at_most), expected) << key << " as of " << at_most;
        uint64_t next = UINT64_MAX;
        for (const Tombstone& one : list) {
          if (one->sequence > at_most && one->begin <= key && key < one->end) next = std::min(next, one->sequence);
        }
        ASSERT_EQ(set->Next(key, at_most), next) << key << " above " << at_most;
      }
    }
  }
}

}  // namespace
}  // namespace braiddb::test
