// The order of several tables together: what each has, in entry order; and how a view exchanges one for the other.
#include <gtest/gtest.h>

#include <algorithm>

#include "lsm/read_view.h"
#include "lsm/table_order.h"
#include "tests/support/entry_store.h"
#include "tests/support/key_kinds.h"

namespace braiddb::test {
namespace {

using Orders = TableOrder::Orders;

const TableOrder::Stop kNever = [] { return false; };

class TableOrderTest : public testing::Test {
 protected:
  bool Before(const LogEntry* a, const LogEntry* b) const { return CompareEntries(store_.order(), *a, *b) < 0; }

  // Of these versions; what it has is added to entries_.
  std::shared_ptr<const TableOrder> MakeOrder(const std::vector<Version>& versions, bool are_copies = false,
                                              SharedHeap* heap = nullptr) {
    std::vector<const LogEntry*> entries;
    for (const Version& version : versions) entries.push_back(store_.Resolve(store_.Write(version)));
    std::sort(entries.begin(), entries.end(), [this](const auto* a, const auto* b) { return Before(a, b); });
    auto order = std::make_shared<TableOrder>(entries.size() / 2, heap);  // it grows
    const LogEntry* last = nullptr;
    for (const LogEntry* entry : entries) {
      order->Append(store_.order().Prefix(entry->key()), store_.regions()->Find(entry),
                    last != nullptr && last->key() == entry->key(), !are_copies && store_.order().PrefixIsWhole(entry->key()));
      last = entry;
    }
    EXPECT_TRUE(order->Finish(*store_.regions(), store_.order()));
    entries_.insert(entries_.end(), entries.begin(), entries.end());
    return order;
  }
  std::shared_ptr<const TableOrder> DrawOrder(const KeyKind& keys, size_t count, bool has_old_ones) {
    std::vector<Version> versions;
    for (size_t i = 0; i < count; ++i) {
      // As tables of copies have them, which are older than what lies below.
      const uint64_t sequence = has_old_ones ? next_old_-- : next_++;
      versions.push_back({keys.draw(&random_), sequence, false, static_cast<uint32_t>(random_.Uniform(2)), 1});
    }
    return MakeOrder(versions, has_old_ones);
  }

  void ExpectAll(const TableOrder& order) {
    std::sort(entries_.begin(), entries_.end(), [this](const auto* a, const auto* b) { return Before(a, b); });
    ASSERT_EQ(order.entries(), entries_.size());
    const auto cursor = order.NewCursor(store_.regions(), &store_.order());
    std::vector<const LogEntry*> seen;
    for (cursor->SeekToFirst(); cursor->entry() != nullptr; cursor->Next()) seen.push_back(cursor->entry());
    EXPECT_EQ(seen, entries_);
    seen.clear();
    for (cursor->SeekToLast(); cursor->entry() != nullptr; cursor->Prev()) seen.push_back(cursor->entry());
    std::reverse(seen.begin(), seen.end());
    EXPECT_EQ(seen, entries_);
    // The newest of each key, and no other.
    seen.clear();
    for (cursor->SeekToFirst(); cursor->entry() != nullptr; cursor->NextKey()) seen.push_back(cursor->entry());
    std::vector<const LogEntry*> newest;
    for (const LogEntry* entry : entries_) {
      if (newest.empty() || newest.back()->key() != entry->key()) newest.push_back(entry);
    }
    EXPECT_EQ(seen, newest);
    // Merges rely on it; cursors make up for it.
    for (size_t i = 0; i < entries_.size(); ++i)
      ASSERT_EQ(order.IsOlderAt(i), i > 0 && entries_[i]->key() == entries_[i - 1]->key()) << i << " of " << entries_.size();
    for (size_t i = 0; i < entries_.size(); i += 7) {
      const SearchKey target(store_.order(), entries_[i]->key(), entries_[i]->sequence());
      // Not at all, by halves, and as far as it goes.
      size_t rounds = i % 5;
      for (bool more = rounds > 0 && cursor->BeginFetchForSeek(target); more && --rounds > 0;)
        more = cursor->FetchForSeek(target);
      cursor->Seek(target);
      ASSERT_EQ(cursor->entry(), entries_[i]);
      cursor->SeekBefore(target);
      ASSERT_EQ(cursor->entry(), i == 0 ? nullptr : entries_[i - 1]);
    }
  }

  EntryStore store_{2};
  Random random_{7};
  uint64_t next_ = 1'000'000;
  uint64_t next_old_ = 999'999;
  std::vector<const LogEntry*> entries_;
};

TEST_F(TableOrderTest, OfSeveralIsTheOrderOfAll) {
  // Of the last kind some thirty begin alike.
  std::vector<KeyKind> kinds(std::begin(kKeyKinds), std::end(kKeyKinds));
  kinds.insert(kinds.end(), std::begin(kAlikeKinds), std::end(kAlikeKinds));
  kinds.push_back({"Alike", [](Random* random) {
                     return "pre" + std::to_string(100 + random->Uniform(100)) + NumberedKey(random->Uniform(500));
                   }});
  for (const KeyKind& keys : kinds) {
    SCOPED_TRACE(keys.name);
    for (const size_t count : {1, 2, 3, 4, 7, 16}) {
      for (const size_t most : {0, 1, 30, 2000}) {
        entries_.clear();
        Orders orders;
        // Of one table after the other, the newest first.
        for (size_t i = 0; i < count; ++i) {
          const size_t size = most == 0 ? 0 : random_.Uniform(most + 1) * (i % 3);
          orders.insert(orders.begin(), DrawOrder(keys, std::min<size_t>(size, 3000 / count), random_.Uniform(4) == 0));
        }
        const auto together = TableOrder::Merge(orders, *store_.regions(), store_.order(), kNever);
        ASSERT_NE(together, nullptr);
        ExpectAll(*together);
      }
    }
  }
}

// Versions of few keys, in many tables: each is marked but the newest.
TEST_F(TableOrderTest, KnowsWhichVersionsAreOlder) {
  const KeyKind few = {"Few", [](Random* random) { return std::to_string(random->Uniform(100)); }};
  Orders orders, fours;
  for (int i = 0; i < 16; ++i) orders.insert(orders.begin(), DrawOrder(few, 60, false));
  for (size_t i = 0; i < orders.size(); i += 4)
    fours.push_back(TableOrder::Merge({orders.begin() + i, orders.begin() + i + 4}, *store_.regions(), store_.order(), kNever));
  const auto together = TableOrder::Merge(fours, *store_.regions(), store_.order(), kNever);
  ASSERT_NE(together, nullptr);
  ExpectAll(*together);
}

// As another process reads it, which makes its own steps.
TEST_F(TableOrderTest, AnArrayOfAnotherProcessReadsTheSame) {
  const auto heap = SharedHeap::Create();
  ASSERT_NE(heap, nullptr);
  for (const KeyKind& keys : kKeyKinds) {
    SCOPED_TRACE(keys.name);
    entries_.clear();
    Orders orders;
    for (int i = 0; i < 3; ++i) {
      std::vector<Version> versions;
      for (int j = 0; j < 700; ++j) versions.push_back({keys.draw(&random_), next_++});
      orders.insert(orders.begin(), MakeOrder(versions, false, heap.get()));
    }
    const auto together = TableOrder::Merge(orders, *store_.regions(), store_.order(), kNever, heap.get());
    ASSERT_NE(together, nullptr);
    const auto attached = TableOrder::Attach(heap->memory(), together->shared());
    ASSERT_NE(attached, nullptr);
    EXPECT_TRUE(attached->array().is_foreign);
    EXPECT_LT(attached->bytes(), together->bytes() / 16);
    ExpectAll(*attached);
  }
}

TEST_F(TableOrderTest, AttachRefusesWhatIsNotInTheHeap) {
  const auto heap = SharedHeap::Create();
  ASSERT_NE(heap, nullptr);
  const uint64_t bytes = heap->memory().bytes();
  const uint64_t end = bytes - sizeof(OrderedItem);
  EXPECT_NE(TableOrder::Attach(heap->memory(), {1, end, 1, 64}), nullptr);
  for (const auto& [offset, entries] : std::vector<std::pair<uint64_t, uint64_t>>{{0, 1},
                                                                                  {4096, 0},
                                                                                  {4100, 1},
                                                                                  {end, 2},
                                                                                  {bytes, 1},
                                                                                  {UINT64_MAX - 7, 1},
                                                                                  {4096, UINT64_MAX},
                                                                                  {4096, UINT64_MAX / 16 + 2}}) {
    EXPECT_EQ(TableOrder::Attach(heap->memory(), {1, offset, entries, 64}), nullptr) << offset << ", " << entries;
  }
}

// The memory of a reader that has expired may be used for something else while the reader is in the middle of a call.
TEST_F(TableOrderTest, AnArrayThatChangesCanBeRead) {
  const auto heap = SharedHeap::Create();
  ASSERT_NE(heap, nullptr);
  constexpr uint64_t kEntries = 3000;
  std::vector<Version> versions;
  for (uint64_t i = 0; i < kEntries; ++i) versions.push_back({kKeyKinds[1].draw(&random_), next_++});
  const auto order = MakeOrder(versions, false, heap.get());
  const auto attached = TableOrder::Attach(heap->memory(), order->shared());
  ASSERT_NE(attached, nullptr);
  auto* const items = reinterpret_cast<OrderedItem*>(heap->At(order->shared().offset));
  const uint64_t some_entry = order->EntryAt(0).raw();
  for (int round = 0; round < 200; ++round) {
    const auto cursor = attached->NewCursor(store_.regions(), &store_.order());
    for (int i = 0; i < 200; ++i) {
      OrderedItem& item = items[random_.Uniform(kEntries)];
      if (random_.OneIn(2)) item.prefix = random_.OneIn(2) ? items[random_.Uniform(kEntries)].prefix : random_.Next();
      // In no region, or in the middle of the entries.
      if (random_.OneIn(2))
        item.word = random_.OneIn(2) ? random_.Next() | uint64_t{1} << 63 : some_entry + random_.Uniform(65536);
      const SearchKey target(store_.order(), versions[random_.Uniform(kEntries)].key, random_.Next());
      switch (random_.Uniform(6)) {
        case 0:
          cursor->Seek(target);
          break;
        case 1:
          cursor->SeekBefore(target);
          break;
        case 2:
          if (cursor->entry() != nullptr) cursor->Prev();
          break;
        case 3:
          if (cursor->entry() != nullptr) cursor->NextKey();
          break;
        default:
          if (cursor->entry() != nullptr) cursor->Next();
      }
    }
  }
}

// Groups around the number from which on they are merged from the arrays, and a group of several batches between others.
TEST_F(TableOrderTest, OfKeysThatBeginAlike) {
  const auto numbered = [this](const std::string& begin, size_t from, size_t count) {
    std::vector<Version> versions;
    for (size_t i = 0; i < count; ++i) versions.push_back({begin + NumberedKey(from + 2 * i), next_++});
    return versions;
  };
  for (const size_t count : {31, 32, 33, 34, 5000}) {
    SCOPED_TRACE(count);
    entries_.clear();
    Orders orders;
    for (size_t i = 0; i < 3; ++i) {
      std::vector<Version> versions = numbered("the same ", i, count);
      for (const std::string begin : {"before ", "unlike ", "zz", ""}) {
        const std::vector<Version> others = numbered(begin, i, 10);
        versions.insert(versions.end(), others.begin(), others.end());
      }
      orders.insert(orders.begin(), MakeOrder(versions));
    }
    const auto together = TableOrder::Merge(orders, *store_.regions(), store_.order(), kNever);
    ASSERT_NE(together, nullptr);
    ExpectAll(*together);
  }
}

// Keys of eight bytes are known by their prefixes, so they may have any number of versions; but not those of seven and a zero
// byte, and copies have versions that are in other tables as well.
TEST_F(TableOrderTest, OfKeysThatPrefixesSay) {
  const KeyKind few = {"Few", [](Random* random) {
                         return NumberedKey(100000 + random->Uniform(20)).substr(0, 6) +
                                std::string(2, static_cast<char>(random->Uniform(3)));
                       }};
  Orders orders;
  for (int i = 0; i < 16; ++i) orders.insert(orders.begin(), DrawOrder(few, 500, false));
  auto together = TableOrder::Merge(orders, *store_.regions(), store_.order(), kNever);
  ASSERT_NE(together, nullptr);
  ExpectAll(*together);
  const KeyKind mixed = {"Mixed", [](Random* random) {
                           return "key" + std::to_string(1000 + random->Uniform(300)) + std::string(random->Uniform(3), '\0');
                         }};
  entries_.clear();
  orders.clear();
  for (int i = 0; i < 9; ++i) orders.insert(orders.begin(), DrawOrder(mixed, 300, i % 3 == 0));
  together = TableOrder::Merge(orders, *store_.regions(), store_.order(), kNever);
  ASSERT_NE(together, nullptr);
  ExpectAll(*together);
}

// Items are merged and looked at some thousands at a time; what is alike may go on from one time to the next.
TEST_F(TableOrderTest, OfMoreThanIsMergedAtOnce) {
  const KeyKind few = {"Few", [](Random* random) { return std::to_string(10'000'000 + random->Uniform(11)); }};
  const KeyKind mixed = {"Mixed", [](Random* random) {
                           return "key" + std::to_string(1000 + random->Uniform(900)) + std::string(random->Uniform(3), '\0');
                         }};
  for (const auto& [keys, has_old_ones] : {std::pair{few, false}, {mixed, false}, {mixed, true}, {kKeyKinds[0], false}}) {
    SCOPED_TRACE(std::string(keys.name) + (has_old_ones ? ", copies" : ""));
    entries_.clear();
    Orders orders;
    for (int i = 0; i < 5; ++i) orders.insert(orders.begin(), DrawOrder(keys, 2500, has_old_ones && i % 2 == 0));
    const auto together = TableOrder::Merge(orders, *store_.regions(), store_.order(), kNever);
    ASSERT_NE(together, nullptr);
    ExpectAll(*together);
  }
  // Some are not whole, near the begin, and versions of a key, or of many, are on both sides of where the first ones end.
  for (const int keys_of_all : {1, 6000}) {
    for (int shift = 0; shift < 4; ++shift) {
      SCOPED_TRACE(std::to_string(keys_of_all) + " keys, " + std::to_string(shift));
      entries_.clear();
      Orders orders;
      for (int i = 0; i < 3; ++i) {
        std::vector<Version> versions = {{"1", next_++}, {"10", next_++}};
        for (int j = 0; j < (i == 0 ? shift : 0); ++j)
          versions.push_back({"1" + std::string(1, static_cast<char>('a' + j)), next_++});
        for (int j = 0; j < 6000; ++j) versions.push_back({std::to_string(10'000'000 + j % keys_of_all), next_++});
        orders.insert(orders.begin(), MakeOrder(versions));
      }
      const auto together = TableOrder::Merge(orders, *store_.regions(), store_.order(), kNever);
      ASSERT_NE(together, nullptr);
      ExpectAll(*together);
    }
  }
  // One key is whole, the other one is not, and only that they are alike tells that it has to be looked at.
  const std::string seven = "zzzzzzz", eight = seven + '\0';
  for (const bool eight_is_newer : {false, true}) {
    for (const size_t before : {4093, 4094, 4095, 4096}) {
      entries_.clear();
      std::vector<Version> versions;
      for (size_t i = 0; i < before; ++i) versions.push_back({std::to_string(10'000'000 + i), next_++});
      versions.push_back({eight_is_newer ? seven : eight, next_++});
      for (size_t i = 0; i < 10; ++i) versions.push_back({"zzzzzzz" + std::to_string(i), next_++});
      const auto older = MakeOrder(versions);
      const std::string& of_newer = eight_is_newer ? eight : seven;
      const auto newer = MakeOrder({{of_newer, next_}, {of_newer, next_ + 1}});
      next_ += 2;
      const auto together = TableOrder::Merge({newer, older}, *store_.regions(), store_.order(), kNever);
      ASSERT_NE(together, nullptr);
      ExpectAll(*together);
    }
  }
}

TEST_F(TableOrderTest, IsGivenUpWhereItShouldStop) {
  const Orders two = {DrawOrder(kKeyKinds[0], 300, false), DrawOrder(kKeyKinds[0], 300, false)};
  int asked = 0;
  ASSERT_NE(TableOrder::Merge(two, *store_.regions(), store_.order(), [&] { return ++asked < 0; }), nullptr);
  ASSERT_GE(asked, 2) << "before the merge, and when it is done";
  for (int until = 1; until <= asked; ++until) {
    int turn = 0;
    EXPECT_EQ(TableOrder::Merge(two, *store_.regions(), store_.order(), [&] { return ++turn == until; }), nullptr);
  }
  // Keys that begin alike cost more, so fewer of them are merged between two questions.
  const Orders alike = {DrawOrder(kKeyKinds[2], 3000, false), DrawOrder(kKeyKinds[2], 3000, false)};
  int asked_of_alike = 0;
  ASSERT_NE(TableOrder::Merge(alike, *store_.regions(), store_.order(), [&] { return ++asked_of_alike < 0; }), nullptr);
  ASSERT_GT(asked_of_alike, asked);
  for (int until = 1; until <= asked_of_alike; ++until) {
    int turn = 0;
    EXPECT_EQ(TableOrder::Merge(alike, *store_.regions(), store_.order(), [&] { return ++turn == until; }), nullptr);
  }
}

class FamilyViewTest : public TableOrderTest {
 protected:
  std::vector<size_t> Shape() const {
    std::vector<size_t> shape;
    for (const auto& ordered : view_.orders) shape.push_back(ordered.order == nullptr ? 0 : ordered.tables);
    return shape;
  }
  std::shared_ptr<const TableOrder> AddTable() {
    auto order = MakeOrder({{NumberedKey(next_), next_}});
    ++next_;
    view_.AddTable(store_.MakeTable({}), order);
    return order;
  }

  FamilyView view_;
};

using Shapes = std::vector<size_t>;

TEST_F(FamilyViewTest, ExchangesOrders) {
  view_.AddTable(store_.MakeTable({}));  // a list only
  Orders orders;
  for (int i = 0; i < 5; ++i) orders.insert(orders.begin(), AddTable());
  EXPECT_EQ(Shape(), (Shapes{1, 1, 1, 1, 1, 0}));
  const Orders three = {orders[1], orders[2], orders[3]};
  const auto together = TableOrder::Merge(three, *store_.regions(), store_.order(), kNever);
  EXPECT_EQ(view_.FindOrders(three), 1u);
  EXPECT_EQ(view_.FindOrders({orders[1], orders[3]}), view_.orders.size());
  view_.MergeOrders(three, together);
  EXPECT_EQ(Shape(), (Shapes{1, 3, 1, 0}));
  EXPECT_EQ(view_.orders[1].order, together);
  EXPECT_EQ(view_.FindOrders(three), view_.orders.size());
  EXPECT_EQ(view_.FindOrders({orders[0], together, orders[4]}), 0u);
  EXPECT_EQ(view_.TablesBehind(*orders[4]), 1u);
  EXPECT_EQ(view_.TablesBehind(*together), 2u);
  EXPECT_EQ(view_.TablesBehind(*orders[0]), 5u);
  view_.AddOldest(store_.MakeTable({}));
  EXPECT_EQ(Shape(), (Shapes{1, 3, 1, 0, 0}));
  EXPECT_EQ(view_.l0.size(), 7u);
}

TEST_F(FamilyViewTest, WhatIsLeftOfMergedTablesIsLists) {
  Orders orders;
  for (int i = 0; i < 6; ++i) orders.insert(orders.begin(), AddTable());
  const Orders four = {orders[1], orders[2], orders[3], orders[4]};
  view_.MergeOrders(four, TableOrder::Merge(four, *store_.regions(), store_.order(), kNever));
  EXPECT_EQ(Shape(), (Shapes{1, 4, 1}));
  view_.RemoveOldest(0);
  EXPECT_EQ(Shape(), (Shapes{1, 4, 1}));
  view_.RemoveOldest(1);
  EXPECT_EQ(Shape(), (Shapes{1, 4}));
  view_.RemoveOldest(3);
  EXPECT_EQ(Shape(), (Shapes{1, 0}));
  EXPECT_EQ(view_.orders[1].tables, 1u);
  EXPECT_EQ(view_.l0.size(), 2u);
  view_.RemoveOldest(2);
  EXPECT_EQ(Shape(), Shapes{});
  EXPECT_TRUE(view_.l0.empty());
}

// A merge takes the oldest tables, with the orders of all of them, or with none.
TEST_F(FamilyViewTest, OrdersOfTheOldestTables) {
  EXPECT_EQ(view_.AlignToOrders(0), 0u);
  Orders orders;
  for (int i = 0; i < 6; ++i) orders.insert(orders.begin(), AddTable());
  const Orders three = {orders[1], orders[2], orders[3]};
  const auto together = TableOrder::Merge(three, *store_.regions(), store_.order(), kNever);
  view_.MergeOrders(three, together);
  ASSERT_EQ(Shape(), (Shapes{1, 3, 1, 1}));
  EXPECT_EQ(view_.OldestOrders(0), Orders{});
  EXPECT_EQ(view_.OldestOrders(1), Orders{orders[5]});
  EXPECT_EQ(view_.OldestOrders(2), (Orders{orders[4], orders[5]}));
  EXPECT_EQ(view_.OldestOrders(3), Orders{}) << "a part of an order";
  EXPECT_EQ(view_.OldestOrders(5), (Orders{together, orders[4], orders[5]}));
  EXPECT_EQ(view_.OldestOrders(6), (Orders{orders[0], together, orders[4], orders[5]}));
  for (const auto& [tables, aligned] : {std::pair<size_t, size_t>{1, 1}, {2, 2}, {3, 2}, {4, 2}, {5, 5}, {6, 6}})
    EXPECT_EQ(view_.AlignToOrders(tables), aligned);
  view_.RemoveOldest(2);
  EXPECT_EQ(view_.AlignToOrders(2), 2u) << "else there would be no table to merge";
  EXPECT_EQ(view_.OldestOrders(2), Orders{});
  view_.AddOldest(store_.MakeTable({}));  // a list only
  EXPECT_EQ(view_.AlignToOrders(1), 1u);
  EXPECT_EQ(view_.OldestOrders(1), Orders{});
  EXPECT_EQ(view_.OldestOrders(4), Orders{});
  view_.RemoveOldest(1);
  view_.AddOldest(store_.MakeTable({}), orders[5]);
  EXPECT_EQ(view_.OldestOrders(4), (Orders{together, orders[5]}));
}

}  // namespace
}  // namespace braiddb::test
