// A cursor with an index reads ahead: it stands where one without does, whatever way it went.
#include <gtest/gtest.h>

#include <algorithm>

#include "skiplist/list_cursor.h"
#include "tests/support/key_kinds.h"
#include "tests/support/level_store.h"

namespace braiddb::test {
namespace {

class BraidedCursorTest : public testing::TestWithParam<std::tuple<uint32_t, size_t>> {
 protected:
  std::vector<Version> DrawVersions(size_t count) {
    std::vector<Version> versions;
    for (size_t i = 0; i < count; ++i) {
      versions.push_back({keys_.draw(&random_), i + 1, false, static_cast<uint32_t>(random_.Uniform(std::get<0>(GetParam()))),
                          RandomHeight(random_.Next())});
    }
    return versions;
  }
  // Of a list, in order.
  static std::vector<const LogEntry*> EntriesOf(const BraidedList& list) {
    std::vector<const LogEntry*> entries;
    for (const LogEntry* entry = list.First(); entry != nullptr; entry = list.Next(entry)) entries.push_back(entry);
    return entries;
  }

  LevelStore store_{std::get<0>(GetParam())};
  const KeyKind& keys_ = KindAt(std::get<1>(GetParam()));
  Random random_{5};
};

INSTANTIATE_TEST_SUITE_P(Lists, BraidedCursorTest, testing::Combine(testing::Values(1, 2), testing::Range<size_t>(0, kAllKinds)),
                         [](const auto& suite) {
                           return std::string(KindAt(std::get<1>(suite.param)).name) + std::to_string(std::get<0>(suite.param));
                         });

// Every node, if there is one region; of a layer, few of them, next to none, and the head of the list only.
constexpr uint64_t kIndexBytes[] = {1 << 20, 16 << 10, 8000, 1000, 0};

TEST_P(BraidedCursorTest, GoesThroughTheListBothWays) {
  for (const size_t count : {0, 1, 5, 100, 3000}) {
    const auto table = store_.MakeTable(DrawVersions(count));
    const std::vector<const LogEntry*> entries = EntriesOf(table->list);
    ASSERT_EQ(entries.size(), count);
    for (const uint64_t bytes : kIndexBytes) {
      const TallIndex index(table->list, count, bytes);
      const std::unique_ptr<EntryCursor> made = NewListCursor(&table->list, &index);
      EntryCursor& cursor = *made;
      std::vector<const LogEntry*> seen;
      for (cursor.SeekToFirst(); cursor.entry() != nullptr; cursor.Next()) seen.push_back(cursor.entry());
      EXPECT_EQ(seen, entries) << count << " " << bytes;
      seen.clear();
      for (cursor.SeekToLast(); cursor.entry() != nullptr; cursor.Prev()) seen.push_back(cursor.entry());
      std::reverse(seen.begin(), seen.end());
      EXPECT_EQ(seen, entries) << count << " " << bytes;
    }
  }
}

TEST_P(BraidedCursorTest, TurnsAndSeeksAnywhere) {
  const size_t count = 3000;
  const auto table = store_.MakeTable(DrawVersions(count));
  const std::vector<const LogEntry*> entries = EntriesOf(table->list);
  for (const uint64_t bytes : kIndexBytes) {
    const TallIndex index(table->list, count, bytes);
    const std::unique_ptr<EntryCursor> made = NewListCursor(&table->list, &index);
    EntryCursor& cursor = *made;
    for (int i = 0; i < 300; ++i) {
      size_t at = random_.Uniform(count);
      const SearchKey target(store_.order(), entries[at]->key(), entries[at]->sequence());
      // Not at all, by halves, and as far as it goes.
      uint64_t rounds = random_.Uniform(5);
      for (bool more = rounds > 0 && cursor.BeginFetchForSeek(target); more && --rounds > 0;) more = cursor.FetchForSeek(target);
      if (random_.Uniform(8) == 0) {  // another seek, which is not made
        const LogEntry& other = *entries[random_.Uniform(count)];
        for (bool more = cursor.BeginFetchForSeek(SearchKey(store_.order(), other.key(), 0)); more;)
          more = cursor.FetchForSeek(SearchKey(store_.order(), other.key(), 0));
        cursor.BeginFetchForSeek(target);
      }
      if (random_.Uniform(2) == 0) {
        cursor.Seek(target);
      } else {
        cursor.SeekBefore(target);
        --at;
      }
      for (int run = 0; run < 6 && at < count; ++run) {
        const bool forward = random_.Uniform(2) == 0;
        for (uint64_t steps = random_.Uniform(run == 0 ? 200 : 40); steps > 0 && at < count; --steps) {
          ASSERT_EQ(cursor.entry(), entries[at]);
          forward ? cursor.Next() : cursor.Prev();
          at += forward ? 1 : -1;
        }
      }
      ASSERT_EQ(cursor.entry(), at < count ? entries[at] : nullptr);
    }
  }
}

// What it knows without a look at entries, from anywhere to the end.
TEST_P(BraidedCursorTest, GivesItemsWhereTheIndexHasEveryNode) {
  for (const size_t count : {0, 1, 7, 8, 9, 3000}) {
    const auto table = store_.MakeTable(DrawVersions(count));
    const std::vector<const LogEntry*> entries = EntriesOf(table->list);
    const TallIndex index(table->list, count, kIndexBytes[0]);
    const std::unique_ptr<EntryCursor> cursor = NewListCursor(&table->list, &index);
    ASSERT_EQ(cursor->gives_items(), std::get<0>(GetParam()) == 1);
    if (!cursor->gives_items()) return;
    for (int i = 0; i < 60; ++i) {
      const bool forward = random_.OneIn(2);
      size_t at = forward ? 0 : count - 1;
      if (count == 0 || i < 6) {
        forward ? cursor->SeekToFirst() : cursor->SeekToLast();
      } else {
        at = random_.Uniform(count);
        const SearchKey target(store_.order(), entries[at]->key(), entries[at]->sequence());
        forward ? cursor->Seek(target) : cursor->SeekBefore(target);
        if (!forward) --at;
      }
      for (bool is_end = false; !is_end;) {
        const size_t wanted = 1 + random_.Uniform(40);
        std::vector<OrderedItem> items(wanted);
        const size_t taken = cursor->TakeItems(items.data(), wanted, forward);
        is_end = taken < wanted;
        for (size_t j = 0; j < taken; ++j, at += forward ? 1 : -1) {
          const OrderedItem& item = items[forward ? j : wanted - 1 - j];
          ASSERT_LT(at, count);
          ASSERT_EQ(store_.regions()->Resolve<LogEntry>(item.Entry()), entries[at]);
          ASSERT_EQ(item.prefix, store_.order().Prefix(entries[at]->key()));
          ASSERT_EQ(item.IsWhole(), store_.order().PrefixIsWhole(entries[at]->key()));
          ASSERT_FALSE(item.IsOlder());
        }
      }
      ASSERT_EQ(at, forward ? count : size_t{0} - 1);
      ASSERT_EQ(cursor->TakeItems(nullptr, 0, forward), 0u);
    }
  }
}

// Nodes of the index that left the list since: what is in the list is seen, in order, and besides only what has left it.
TEST_P(BraidedCursorTest, SeesAllOfAListThatLostNodesOfTheIndex) {
  const size_t count = 3000;
  const auto table = store_.MakeTable(DrawVersions(count));
  const std::vector<const LogEntry*> entries = EntriesOf(table->list);
  const TallIndex all(table->list, count, kIndexBytes[0]), tall(table->list, count, kIndexBytes[1]);
  std::vector<const LogEntry*> kept;
  uint64_t* before[2][kMaxHeight];  // by region and layer; the bottom is region 0's
  for (uint32_t region = 0; region < std::get<0>(GetParam()); ++region)
    std::fill_n(before[region], kMaxHeight, table->list.head(region));
  for (size_t i = 0; i < count; ++i) {
    auto* const entry = const_cast<LogEntry*>(entries[i]);
    const uint32_t region = store_.regions()->Find(entry).region();
    const bool leaves = i > 0 && (i + 3 >= count || random_.Uniform(entry->height() > 1 ? 2 : 8) == 0);
    if (leaves) {
      // As a merge drops a version: its own pointers stay.
      for (uint32_t layer = 0; layer < entry->height(); ++layer)
        StoreRelease(&before[layer == 0 ? 0 : region][layer][layer], entry->Next(layer).raw());
      StoreRelease(&entry->next[0], LoadAcquire(&entry->next[0]) | LogEntry::kDeadBit);
    } else {
      for (uint32_t layer = 0; layer < entry->height(); ++layer) before[layer == 0 ? 0 : region][layer] = entry->next;
      kept.push_back(entry);
    }
  }
  ASSERT_LT(kept.size(), count - 200);
  for (const auto& [index, forward] : {std::pair(&all, true), {&all, false}, {&tall, true}, {&tall, false}}) {
    const std::unique_ptr<EntryCursor> made = NewListCursor(&table->list, index);
    EntryCursor& cursor = *made;
    std::vector<const LogEntry*> alive;
    const LogEntry* last = nullptr;
    forward ? cursor.SeekToFirst() : cursor.SeekToLast();
    while (const LogEntry* const entry = cursor.entry()) {
      if (last != nullptr) {
        const LogEntry& first = forward ? *last : *entry;
        ASSERT_LT(CompareEntries(store_.order(), first, forward ? *entry : *last), 0);
      }
      last = entry;
      if (!entry->is_dead()) alive.push_back(entry);
      forward ? cursor.Next() : cursor.Prev();
    }
    if (!forward) std::reverse(alive.begin(), alive.end());
    EXPECT_EQ(alive, kept);
  }
}

}  // namespace
}  // namespace braiddb::test
