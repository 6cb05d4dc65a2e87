// The order of a leaf's elements: searches against a sorted array, for kinds of keys, and changes against an order made anew.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "nvtree/leaf_order.h"
#include "tests/support/key_kinds.h"

namespace braiddb::test {
namespace {

struct Version {
  std::string key;
  uint64_t sequence;
};

class LeafOrderTest : public testing::TestWithParam<std::tuple<const KeyKind*, const Comparator*>> {
 protected:
  bool Less(const Version& a, const Version& b) const {
    const int by_key = order_.Compare(a.key, b.key);
    return by_key != 0 ? by_key < 0 : a.sequence > b.sequence;
  }
  Version Draw() { return {std::get<0>(GetParam())->draw(&random_), 1 + random_.Uniform(20)}; }
  // Sorted versions; no two are equal.
  std::vector<Version> DrawLeaf(size_t count) {
    std::vector<Version> leaf;
    for (size_t i = 0; i < count; ++i) leaf.push_back(Draw());
    const auto less = [this](const Version& a, const Version& b) { return Less(a, b); };
    std::sort(leaf.begin(), leaf.end(), less);
    leaf.erase(std::unique(leaf.begin(), leaf.end(), [&](const Version& a, const Version& b) { return !less(a, b); }),
               leaf.end());
    return leaf;
  }
  static LeafRanks RanksOf(const std::vector<Version>& leaf) {
    LeafRanks ranks;
    ranks.live = static_cast<uint32_t>(leaf.size());
    ranks.has_bits = true;
    for (uint32_t i = 0; i < ranks.live; ++i) {
      ranks.slot[i] = static_cast<uint8_t>(i);
      ranks.differ[i] = 0;
      if (i > 0) ranks.SetDifference(i, leaf[i - 1].key, leaf[i].key);
    }
    return ranks;
  }
  uint32_t Search(const std::vector<Version>& leaf, const RankView& ranks, const Version& target, bool* has_key) {
    reads_ = 0;
    return ranks.FirstNotBefore(
        order_, SearchKey(order_, target.key, target.sequence),
        [&](uint32_t rank) {
          ++reads_;
          return SearchKey(order_, leaf.at(rank).key, leaf.at(rank).sequence);
        },
        has_key);
  }
  void ExpectFound(const std::vector<Version>& leaf, const RankView& ranks, const Version& target) {
    const auto at = std::partition_point(leaf.begin(), leaf.end(), [&](const Version& version) { return Less(version, target); });
    const auto versions = std::count_if(leaf.begin(), leaf.end(), [&](const Version& v) { return v.key == target.key; });
    bool has_key = false;
    ASSERT_EQ(Search(leaf, ranks, target, &has_key), static_cast<uint32_t>(at - leaf.begin())) << target.key;
    if (!ranks.has_bits) return;
    EXPECT_EQ(has_key, versions > 0) << target.key;
    EXPECT_LE(reads_, versions <= 1 ? 1u : 1u + static_cast<uint32_t>(std::bit_width(static_cast<uint64_t>(versions))));
  }

  const KeyOrder order_{std::get<1>(GetParam())};
  Random random_{3};
  uint32_t reads_ = 0;
};

std::vector<const KeyKind*> AllKinds() {
  std::vector<const KeyKind*> kinds;
  for (const KeyKind& kind : kKeyKinds) kinds.push_back(&kind);
  for (const KeyKind& kind : kAlikeKinds) kinds.push_back(&kind);
  return kinds;
}
INSTANTIATE_TEST_SUITE_P(Kinds, LeafOrderTest,
                         testing::Combine(testing::ValuesIn(AllKinds()),
                                          testing::Values(BytewiseComparator(), ReverseBytewiseComparator())),
                         [](const auto& suite) {
                           const bool reverse = std::get<1>(suite.param) == ReverseBytewiseComparator();
                           return std::string(std::get<0>(suite.param)->name) + (reverse ? "Reverse" : "");
                         });

TEST_P(LeafOrderTest, SearchesReadOneKey) {
  for (int round = 0; round < 100; ++round) {
    const std::vector<Version> leaf = DrawLeaf(1 + random_.Uniform(LeafRanks::kMost));
    const LeafRanks ranks = RanksOf(leaf);
    for (int i = 0; i < 50; ++i) {
      ExpectFound(leaf, ranks.view(), Draw());
      ExpectFound(leaf, ranks.view(), leaf[random_.Uniform(leaf.size())]);
    }
    // Also where no key of this kind is.
    for (const char* key : {"", "a", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"})
      ExpectFound(leaf, ranks.view(), {key, 5});
    if (HasFailure()) return;
  }
}

TEST_P(LeafOrderTest, ChangesLeaveWhatAnOrderOfTheSameElementsHas) {
  std::vector<Version> leaf = DrawLeaf(40);
  LeafRanks ranks = RanksOf(leaf);
  for (int i = 0; i < 400; ++i) {
    const Version version = Draw();
    const auto at = std::partition_point(leaf.begin(), leaf.end(), [&](const Version& other) { return Less(other, version); });
    const auto rank = static_cast<uint32_t>(at - leaf.begin());
    if (leaf.size() > 1 && (leaf.size() == 200 || random_.OneIn(2) || (at != leaf.end() && !Less(version, *at)))) {
      const auto removed = static_cast<uint32_t>(random_.Uniform(leaf.size()));
      leaf.erase(leaf.begin() + removed);
      ranks.Remove(removed);
    } else {
      leaf.insert(at, version);
      ranks.Insert(rank, static_cast<uint8_t>(rank));
      if (rank > 0) ranks.SetDifference(rank, leaf[rank - 1].key, version.key);
      if (rank + 1 < leaf.size()) ranks.SetDifference(rank + 1, version.key, leaf[rank + 1].key);
    }
    if (!ranks.has_bits) return;  // keys that differ too far behind; the leaf is searched without bits from then on
    const LeafRanks expected = RanksOf(leaf);
    ASSERT_EQ(ranks.live, expected.live);
    for (uint32_t j = 1; j < ranks.live; ++j) ASSERT_EQ(ranks.differ[j], expected.differ[j]) << j;
  }
}

TEST(LeafOrdersTest, AnOrderIsReplacedOnlyIfItIsTheExpectedOne) {
  LeafOrders orders(2, 512);
  LeafRanks ranks;
  const auto make = [&](uint32_t covered) { return LeafOrder::New(covered, ranks); };
  const PmPtr places[] = {PmPtr(0, 64), PmPtr(0, 64 + 512), PmPtr(1, 64), PmPtr(1, (uint64_t{1} << 40) + 512)};
  for (const PmPtr place : places) EXPECT_EQ(orders.Find(place), nullptr);
  std::vector<const LeafOrder*> made;
  for (const PmPtr place : places) {
    made.push_back(make(static_cast<uint32_t>(made.size())));
    ASSERT_TRUE(orders.Replace(place, nullptr, made.back()));
  }
  EXPECT_EQ(orders.bytes(), std::size(places) * made[0]->bytes());
  for (size_t i = 0; i < std::size(places); ++i) EXPECT_EQ(orders.Find(places[i]), made[i]);
  const LeafOrder* const other = make(7);
  EXPECT_FALSE(orders.Replace(places[1], nullptr, other));
  EXPECT_FALSE(orders.Replace(places[1], made[0], other));
  ASSERT_TRUE(orders.Replace(places[1], made[1], other));
  LeafOrder::Delete(made[1]);
  EXPECT_EQ(orders.Find(places[1]), other);
  orders.Drop(places[1]);
  orders.Drop(places[1]);
  EXPECT_EQ(orders.Find(places[1]), nullptr);
  EXPECT_EQ(orders.bytes(), (std::size(places) - 1) * made[0]->bytes());
}

}  // namespace
}  // namespace braiddb::test
