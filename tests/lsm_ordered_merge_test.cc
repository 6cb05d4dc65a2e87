// Items of several arrays in one order, by prefix; of equal ones those of the array that is given first, in their order.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lsm/ordered_merge.h"
#include "tests/support/db_test_util.h"
#include "util/random.h"

namespace braiddb::test {
namespace {

using Items = std::vector<OrderedItem>;
using Pairs = std::vector<std::pair<uint64_t, uint64_t>>;

// Their words say which is which.
Items Draw(Random* random, size_t count, uint64_t prefixes, uint64_t* next) {
  Items items(count);
  for (OrderedItem& item : items) item = {random->Uniform(prefixes), 0};
  std::ranges::sort(items, {}, &OrderedItem::prefix);
  for (OrderedItem& item : items) item.word = ++*next;
  return items;
}

Pairs AsPairs(const Items& items) {
  Pairs pairs;
  for (const OrderedItem& item : items) pairs.emplace_back(item.prefix, item.word);
  return pairs;
}

// All of one after the other, in order by prefix, what is equal as it was.
Pairs Expected(const std::vector<Items>& inputs) {
  Items all;
  for (const Items& items : inputs) all.insert(all.end(), items.begin(), items.end());
  std::ranges::stable_sort(all, {}, &OrderedItem::prefix);
  return AsPairs(all);
}

TEST(OrderedMergeTest, OfTwo) {
  Random random(3);
  uint64_t next = 0;
  for (const uint64_t prefixes : {uint64_t{1}, uint64_t{9}, uint64_t{5000}, UINT64_MAX}) {
    for (const auto& [of_a, of_b] : {std::pair(0, 0), {0, 5}, {5, 0}, {1, 1}, {1, 300}, {300, 1}, {300, 299}, {1000, 70}}) {
      const Items a = Draw(&random, static_cast<size_t>(of_a), prefixes, &next);
      const Items b = Draw(&random, static_cast<size_t>(of_b), prefixes, &next);
      Items merged(a.size() + b.size());
      const bool alike = MergeByPrefix(a, b, merged.data());
      EXPECT_EQ(AsPairs(merged), Expected({a, b}));
      const bool expected = std::ranges::any_of(
          a, [&b](const OrderedItem& item) { return std::ranges::binary_search(b, item.prefix, {}, &OrderedItem::prefix); });
      EXPECT_EQ(alike, expected) << prefixes << " prefixes, " << of_a << " and " << of_b;
    }
  }
}

TEST(OrderedMergeTest, OfAnyNumber) {
  constexpr int kMany = 80 / kSlowdown;
  Random random(5);
  uint64_t next = 0;
  for (const size_t count : {1, 2, 3, 4, 5, 8, 13, kMany}) {
    for (const uint64_t prefixes : {uint64_t{1}, uint64_t{40}, uint64_t{100'000}, UINT64_MAX}) {
      for (const size_t most : {0, 3, 1500, 6000}) {  // buffers are of 1024
        std::vector<Items> inputs;
        for (size_t i = 0; i < count; ++i)
          inputs.push_back(Draw(&random, random.Uniform(4) == 0 ? 0 : random.Uniform(most + 1), prefixes, &next));
        if (count > 2 && most > 0) inputs[1] = Draw(&random, 20 * most, prefixes, &next);  // one that others are short against
        const Pairs expected = Expected(inputs);
        OrderedFunnel funnel({inputs.begin(), inputs.end()});
        Items merged(expected.size() + 1);
        size_t size = 0;
        // In parts of many sizes.
        for (size_t part = 1; size < expected.size(); part = 1 + random.Uniform(3000)) {
          const size_t taken = funnel.Take(merged.data() + size, part);
          ASSERT_EQ(taken, std::min(part, expected.size() - size));
          size += taken;
        }
        EXPECT_EQ(funnel.Take(merged.data() + size, 1), 0u);
        merged.pop_back();
        EXPECT_EQ(AsPairs(merged), expected) << count << " inputs, " << prefixes << " prefixes, at most " << most;
      }
    }
  }
}

}  // namespace
}  // namespace braiddb::test
