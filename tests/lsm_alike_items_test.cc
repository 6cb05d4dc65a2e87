// AlikeItems: sorts and merges by the entries, whatever the keys are, under any comparator.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "lsm/alike_items.h"
#include "tests/support/entry_store.h"
#include "tests/support/key_kinds.h"
#include "tests/support/thread_cpu_time.h"

namespace braiddb::test {
namespace {

// Compares the sizes first.
class ShorterFirst final : public Comparator {
 public:
  const char* Name() const override { return "test.ShorterFirst"; }
  int Compare(Slice a, Slice b) const override {
    if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
    return a.compare(b);
  }
};

class AlikeItemsTest : public testing::Test {
 protected:
  static std::vector<KeyKind> Kinds() {
    std::vector<KeyKind> kinds(std::begin(kKeyKinds), std::end(kKeyKinds));
    kinds.insert(kinds.end(), std::begin(kAlikeKinds), std::end(kAlikeKinds));
    kinds.push_back({"OneKey", [](Random*) { return std::string("the only key"); }});
    kinds.push_back({"Nested", [](Random* random) { return std::string(8 * random->Uniform(60), 'n') + "e"; }});
    return kinds;
  }
  // Keys get one prefix, since that is required.
  std::vector<OrderedItem> Draw(const KeyKind& keys, size_t count) {
    std::vector<OrderedItem> items;
    for (size_t i = 0; i < count; ++i) {
      const PmPtr entry = store_.Write({"a prefix" + keys.draw(&random_), next_++});
      items.push_back({0, entry.raw() | (random_.OneIn(2) ? OrderedItem::kOlder : 0)});
    }
    return items;
  }
  const LogEntry& At(const OrderedItem& item) const { return *store_.Resolve(item.Entry()); }
  std::vector<OrderedItem> Sorted(std::vector<OrderedItem> items, const KeyOrder& order) const {
    std::sort(items.begin(), items.end(), [&](const OrderedItem& a, const OrderedItem& b) {
      const int by = order.Compare(At(a).key(), At(b).key());
      return by != 0 ? by < 0 : At(a).sequence() > At(b).sequence();
    });
    for (size_t i = 0; i < items.size(); ++i) items[i].SetOlder(i > 0 && At(items[i - 1]).key() == At(items[i]).key());
    return items;
  }
  static std::vector<uint64_t> Words(const std::vector<OrderedItem>& items) {
    std::vector<uint64_t> words;
    for (const OrderedItem& item : items) words.push_back(item.word);
    return words;
  }

  EntryStore store_{1};
  Random random_{23};
  uint64_t next_ = 1;
  const ShorterFirst shorter_first_;
  const std::vector<KeyOrder> orders_ = {KeyOrder(BytewiseComparator()), KeyOrder(ReverseBytewiseComparator()),
                                         KeyOrder(&shorter_first_)};
};

TEST_F(AlikeItemsTest, SortsKeysOfAnyKind) {
  for (const KeyKind& keys : Kinds()) {
    SCOPED_TRACE(keys.name);
    for (const KeyOrder& order : orders_) {
      for (const size_t count : {0, 1, 2, 15, 16, 17, 300, 2000}) {
        std::vector<OrderedItem> items = Draw(keys, count);
        if (random_.OneIn(3)) std::reverse(items.begin(), items.end());
        if (random_.OneIn(3)) std::shuffle(items.begin(), items.end(), std::mt19937_64(count));
        const std::vector<OrderedItem> expected = Sorted(items, order);
        AlikeItems(store_.regions(), &order).Sort(items);
        ASSERT_EQ(Words(items), Words(expected)) << count << " by " << order.comparator()->Name();
      }
    }
  }
}

// A counter that is overwritten all the time has that many.
TEST_F(AlikeItemsTest, ManyVersionsOfOneKeyAreSortedFasterThanKeys) {
  constexpr size_t kCount = 100'000 / kSlowdown;
  const KeyKind one_key{"OneKey", [](Random*) { return std::string("the only key"); }};
  const KeyKind many_keys{"ManyKeys", [](Random* random) { return std::to_string(random->Next()); }};
  const AlikeItems alike(store_.regions(), &orders_.front());
  const auto seconds_for = [&](const KeyKind& keys) {
    std::vector<OrderedItem> items = Draw(keys, kCount);
    const double before = ThreadCpuSeconds();
    alike.Sort(items);
    return ThreadCpuSeconds() - before;
  };
  EXPECT_LT(seconds_for(one_key), seconds_for(many_keys));
}

TEST_F(AlikeItemsTest, MergesArraysOfAnySizes) {
  for (const KeyKind& keys : Kinds()) {
    SCOPED_TRACE(keys.name);
    for (const KeyOrder& order : orders_) {
      for (const size_t count : {0, 1, 2, 3, 5, 8, 13}) {
        std::vector<std::vector<OrderedItem>> arrays;
        std::vector<OrderedItem> all;
        for (size_t i = 0; i < count; ++i) {
          arrays.push_back(Sorted(Draw(keys, random_.OneIn(3) ? random_.Uniform(3) : random_.Uniform(200)), order));
          all.insert(all.end(), arrays.back().begin(), arrays.back().end());
        }
        const std::vector<OrderedItem> expected = Sorted(all, order);
        std::vector<OrderedItem> merged(all.size());
        ASSERT_TRUE(AlikeItems(store_.regions(), &order).Merge({arrays.begin(), arrays.end()}, merged.data()));
        ASSERT_EQ(Words(merged), Words(expected)) << count << " by " << order.comparator()->Name();
      }
    }
  }
}

// A copy has the key and the sequence number of its entry.
TEST_F(AlikeItemsTest, OfAnEntryAndItsCopyTheEarlierArraysComesFirst) {
  const KeyOrder& order = orders_.front();
  const auto write = [this](uint64_t sequence) { return OrderedItem{0, store_.Write({"a prefix", sequence}).raw()}; };
  const std::vector<OrderedItem> first = {write(9), write(5)}, second = {write(9), write(7), write(5)};
  std::vector<OrderedItem> merged(5);
  ASSERT_TRUE(AlikeItems(store_.regions(), &order).Merge({first, second}, merged.data()));
  std::vector<PmPtr> entries;
  for (const OrderedItem& item : merged) entries.push_back(item.Entry());
  EXPECT_EQ(entries,
            (std::vector<PmPtr>{first[0].Entry(), second[0].Entry(), second[1].Entry(), first[1].Entry(), second[2].Entry()}));
}

TEST_F(AlikeItemsTest, MergesTheLongestKeys) {
  const KeyOrder& order = orders_.front();
  std::vector<std::vector<OrderedItem>> arrays(3);
  std::vector<OrderedItem> all;
  for (size_t i = 0; i < 60; ++i) {
    std::string key(kMaxKeySize, 'k');
    key[key.size() - 1 - random_.Uniform(3)] = static_cast<char>(random_.Uniform(256));
    all.push_back({0, store_.Write({key, next_++}).raw()});
    arrays[i % 3].push_back(all.back());
  }
  for (auto& array : arrays) array = Sorted(array, order);
  const std::vector<OrderedItem> expected = Sorted(all, order);
  std::vector<OrderedItem> merged(all.size());
  const AlikeItems alike(store_.regions(), &order);
  ASSERT_TRUE(alike.Merge({arrays.begin(), arrays.end()}, merged.data()));
  EXPECT_EQ(Words(merged), Words(expected));
  alike.Sort(all);
  EXPECT_EQ(Words(all), Words(expected));
}

TEST_F(AlikeItemsTest, AMergeIsGivenUpWhereItShouldStop) {
  const KeyOrder& order = orders_.front();
  const std::vector<OrderedItem> first = Sorted(Draw(kKeyKinds[2], 2000), order),
                                 second = Sorted(Draw(kKeyKinds[2], 2000), order);
  std::vector<OrderedItem> merged(4000);
  const AlikeItems alike(store_.regions(), &order);
  int asked = 0;
  ASSERT_TRUE(alike.Merge({first, second}, merged.data(), [&](size_t items) {
    EXPECT_EQ(items, AlikeItems::kItemsPerStop);
    return ++asked < 0;
  }));
  ASSERT_EQ(asked, 3);
  for (int until = 1; until <= asked; ++until) {
    int turn = 0;
    EXPECT_FALSE(alike.Merge({first, second}, merged.data(), [&](size_t) { return ++turn == until; }));
  }
}

}  // namespace
}  // namespace braiddb::test
