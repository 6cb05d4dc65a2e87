// MergingCursor: several arrays, and what is below them, are one, from wherever and in whatever direction one goes.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "lsm/merging_cursor.h"
#include "lsm/table_order.h"
#include "tests/support/entry_store.h"
#include "tests/support/key_kinds.h"

namespace braiddb::test {
namespace {

// All kinds but the longest keys, and keys whose prefixes say all, with the first and the last one that there can be.
constexpr size_t kKinds = kAllKinds - 1;
const KeyKind& KindOf(size_t param) {
  static constexpr KeyKind kFirstAndLast = {"FirstAndLast",
                                            [](Random* random) {
                                              return random->OneIn(4) ? std::string(8, random->OneIn(2) ? '\xff' : '\0')
                                                                      : PatternedValue(random->Uniform(400), 8);
                                            },
                                            true};
  return param < kKinds ? KindAt(param) : kFirstAndLast;
}

// What is below the arrays: gives items, and does not step.
class ItemsCursor final : public EntryCursor {
 public:
  ItemsCursor(const RegionSet* regions, const KeyOrder* order, OrderedArray array)
      : EntryCursor(true, array.fetch_bytes), regions_(*regions), order_(*order), array_(std::move(array)) {}

  uint64_t entries() const override { return array_.size; }
  void SeekToFirst() override { at_ = 0; }
  void SeekToLast() override { at_ = array_.size - 1; }
  void Seek(const SearchKey& target) override {
    const auto is_before = [&](const OrderedItem& item) {
      return CompareEntry(order_, *regions_.Resolve<LogEntry>(item.Entry()), target) < 0;
    };
    at_ = static_cast<size_t>(std::partition_point(array_.items, array_.items + array_.size, is_before) - array_.items);
  }
  void SeekBefore(const SearchKey& target) override {
    Seek(target);
    --at_;
  }
  void Next() override { ADD_FAILURE(); }
  void Prev() override { ADD_FAILURE(); }
  bool FetchForSeek(const SearchKey&) override { return ++stage_ < 3; }
  bool gives_items() const override { return true; }
  size_t TakeItems(OrderedItem* items, size_t count, bool forward) override {
    size_t taken = 0;
    for (; taken < count && at_ < array_.size; ++taken, at_ += forward ? 1 : -1)
      items[forward ? taken : count - 1 - taken] = array_.items[at_];
    return taken;
  }

 private:
  const RegionSet& regions_;
  const KeyOrder& order_;
  const OrderedArray array_;
  size_t at_ = 0;
  int stage_ = 0;
};

class MergingCursorTest : public testing::TestWithParam<size_t> {
 protected:
  bool Before(const LogEntry* a, const LogEntry* b) const { return CompareEntries(store_.order(), *a, *b) < 0; }
  void Sort(std::vector<const LogEntry*>* entries) const {
    std::sort(entries->begin(), entries->end(), [this](const auto* a, const auto* b) { return Before(a, b); });
  }

  // Orders of `count` tables, the newest first, with up to so many entries each; `are_whole`: where prefixes say all of keys, the
  // newer tables have the newer versions. What all have is in entries_, in order.
  void Draw(size_t count, uint64_t most, bool are_whole) {
    Clear(count);
    for (size_t i = 0; i < count; ++i) {
      std::vector<const LogEntry*> entries;
      for (uint64_t left = random_.OneIn(4) ? 0 : random_.Uniform(most + 1); left > 0; --left) {
        const uint64_t sequence = are_whole ? next_++ : Scattered(next_++);
        const Version version{KindOf(GetParam()).draw(&random_), sequence, random_.OneIn(5)};
        entries.push_back(store_.Resolve(store_.Write(version)));
      }
      ASSERT_NO_FATAL_FAILURE(AddTable(std::move(entries), are_whole));
    }
    Sort(&entries_);
  }
  // The same, of keys with one of three prefixes, of which some have many versions in a table. Keys with other prefixes are
  // before and behind them.
  void DrawManyVersions(size_t count, bool are_whole) {
    Clear(count);
    for (size_t i = 0; i < count; ++i) {
      std::vector<const LogEntry*> entries;
      for (const char* single : {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "d", "e", "f", "g", "h", "i", "j", "k", "l"})
        entries.push_back(store_.Resolve(store_.Write(Version{single, next_++})));
      for (const char* prefix : {"aaaaaaaa", "bbbbbbbb", "cccccccc"}) {
        for (const char* rest : {"", "A", "B", "C"}) {
          const uint64_t versions = random_.OneIn(2) ? 0 : random_.OneIn(3) ? 250 + random_.Uniform(60) : 1 + random_.Uniform(3);
          for (uint64_t version = 0; version < versions; ++version)
            entries.push_back(store_.Resolve(store_.Write(Version{std::string(prefix) + rest, next_++, random_.OneIn(5)})));
        }
      }
      ASSERT_NO_FATAL_FAILURE(AddTable(std::move(entries), are_whole));
    }
    Sort(&entries_);
  }
  void Clear(size_t count) {
    orders_.clear();
    entries_.clear();
    has_level_ = count > 1 && random_.OneIn(2);
    are_large_ = random_.OneIn(2);
  }
  // Adds a newer table, and leaves entries_ unsorted.
  void AddTable(std::vector<const LogEntry*> entries, bool are_whole) {
    Sort(&entries);
    auto order = std::make_shared<TableOrder>(entries.size());
    const LogEntry* last = nullptr;
    for (const LogEntry* entry : entries) {
      order->Append(store_.order().Prefix(entry->key()), store_.regions()->Find(entry),
                    last != nullptr && last->key() == entry->key(), are_whole && store_.order().PrefixIsWhole(entry->key()));
      last = entry;
    }
    ASSERT_TRUE(order->Finish(*store_.regions(), store_.order()));
    orders_.insert(orders_.begin(), order);
    entries_.insert(entries_.end(), entries.begin(), entries.end());
  }
  // Neighbours are far apart, so tables have newer and older versions in any order.
  static uint64_t Scattered(uint64_t number) { return number * 7919 % (uint64_t{1} << 40); }

  MergingCursor NewCursor() const {
    std::vector<OrderedArray> arrays;
    for (const auto& order : orders_) arrays.push_back(order->array());
    if (are_large_) arrays.front().fetch_bytes = 10 * kCacheLine;
    std::unique_ptr<EntryCursor> level;
    if (has_level_) {
      level = std::make_unique<ItemsCursor>(store_.regions(), &store_.order(), arrays.back());
      arrays.pop_back();
    }
    return {store_.regions(), &store_.order(), std::move(arrays), std::move(level)};
  }
  void ExpectAt(const MergingCursor& cursor, size_t at) const {
    if (at >= entries_.size()) {
      ASSERT_EQ(cursor.entry(), nullptr);
      return;
    }
    ASSERT_EQ(cursor.entry(), entries_[at]);
    ASSERT_EQ(cursor.prefix(), store_.order().Prefix(entries_[at]->key()));
  }
  // A place, most often one of a version or between two.
  SearchKey DrawTarget(std::string* key) {
    *key = random_.OneIn(3) || entries_.empty() ? KindOf(GetParam()).draw(&random_)
                                                : std::string(entries_[random_.Uniform(entries_.size())]->key());
    const uint64_t sequence = random_.OneIn(3)   ? kMaxSequence
                              : random_.OneIn(3) ? 0
                              : entries_.empty() ? 1
                                                 : entries_[random_.Uniform(entries_.size())]->sequence();
    return {store_.order(), *key, sequence};
  }
  size_t PlaceOf(const SearchKey& target) const {
    return static_cast<size_t>(
        std::partition_point(entries_.begin(), entries_.end(),
                             [&](const LogEntry* entry) { return CompareEntry(store_.order(), *entry, target) < 0; }) -
        entries_.begin());
  }
  // From key to key: nothing is passed over but versions older than one that was shown.
  void ExpectKeysFrom(MergingCursor* cursor, size_t at, bool by_array_only) const {
    size_t shown = at;
    ASSERT_NO_FATAL_FAILURE(ExpectAt(*cursor, at));
    while (cursor->entry() != nullptr) {
      cursor->NextKey();
      size_t next = shown + 1;
      while (next < entries_.size() && entries_[next] != cursor->entry()) {
        ASSERT_EQ(entries_[next]->key(), entries_[shown]->key());
        ++next;
      }
      if (by_array_only && cursor->entry() != nullptr) {
        ASSERT_NE(entries_[next]->key(), entries_[shown]->key());
      }
      ASSERT_NO_FATAL_FAILURE(ExpectAt(*cursor, next));
      shown = next;
    }
    ASSERT_GE(shown, entries_.size());
  }

  EntryStore store_{2};
  Random random_{19};
  uint64_t next_ = 1;
  std::vector<std::shared_ptr<const TableOrder>> orders_;  // the newest first
  bool has_level_ = false;                                 // the oldest one is what is below the arrays
  bool are_large_ = false;                                 // … is what entries seem to be
  std::vector<const LogEntry*> entries_;
};

INSTANTIATE_TEST_SUITE_P(Keys, MergingCursorTest, testing::Range<size_t>(0, kKinds + 1),
                         [](const auto& suite) { return std::string(KindOf(suite.param).name); });

TEST_P(MergingCursorTest, WalksAllThatTheArraysHave) {
  for (const size_t count : {1, 2, 3, 4, 5, 8, 17, 33}) {
    for (const uint64_t most : {0, 1, 40, 400}) {
      for (const size_t ahead : {1, 2, 12, 24, 1000}) {
        if (kSlowdown > 1 && random_.OneIn(2)) continue;
        SCOPED_TRACE(std::to_string(count) + " of " + std::to_string(most) + ", " + std::to_string(ahead) + " ahead");
        ASSERT_NO_FATAL_FAILURE(Draw(count, most, random_.OneIn(2)));
        MergingCursor cursor = NewCursor();
        EXPECT_EQ(cursor.entries(), entries_.size());
        cursor.SetReadAhead(ahead);
        cursor.SeekToFirst();
        for (size_t at = 0; at < entries_.size(); ++at, cursor.Next()) ASSERT_NO_FATAL_FAILURE(ExpectAt(cursor, at));
        ExpectAt(cursor, entries_.size());
        cursor.SeekToLast();
        for (size_t at = entries_.size(); at-- > 0; cursor.Prev()) ASSERT_NO_FATAL_FAILURE(ExpectAt(cursor, at));
        ExpectAt(cursor, entries_.size());
      }
    }
  }
}

TEST_P(MergingCursorTest, GoesFromKeyToKey) {
  for (const size_t count : {1, 2, 3, 8, 20}) {
    for (const bool are_whole : {false, true}) {
      ASSERT_NO_FATAL_FAILURE(Draw(count, 500, are_whole));
      // Keys that prefixes say all of are known to be the same in whichever arrays they are.
      const bool knows_all = count == 1 || (are_whole && KindOf(GetParam()).are_whole);
      MergingCursor cursor = NewCursor();
      cursor.SeekToFirst();
      ASSERT_NO_FATAL_FAILURE(ExpectKeysFrom(&cursor, 0, knows_all));
      for (int i = 0; i < 20; ++i) {
        std::string key;
        const SearchKey target = DrawTarget(&key);
        MergingCursor from = NewCursor();
        from.SetReadAhead(1 + random_.Uniform(40));
        from.Seek(target);
        ASSERT_NO_FATAL_FAILURE(ExpectKeysFrom(&from, PlaceOf(target), false));
        // Behind steps back, too.
        cursor.SeekToLast();
        for (uint64_t steps = random_.Uniform(40); steps > 0 && cursor.entry() != nullptr; --steps) cursor.Prev();
        cursor.Seek(target);
        ASSERT_NO_FATAL_FAILURE(ExpectKeysFrom(&cursor, PlaceOf(target), false));
      }
    }
  }
}

// A search behind a key's versions in one array leaves out no other key with the same prefix in another array.
TEST_P(MergingCursorTest, PassesManyVersionsBesideOtherKeys) {
  for (int round = 0; round < 40 / kSlowdown; ++round) {
    ASSERT_NO_FATAL_FAILURE(DrawManyVersions(2 + GetParam() % 5, random_.OneIn(2)));
    if (entries_.empty()) continue;
    MergingCursor cursor = NewCursor();
    cursor.SeekToFirst();
    ASSERT_NO_FATAL_FAILURE(ExpectKeysFrom(&cursor, 0, false));
    const LogEntry& entry = *entries_[random_.Uniform(entries_.size())];
    const SearchKey target(store_.order(), entry.key(), random_.OneIn(2) ? entry.sequence() : kMaxSequence);
    cursor.Seek(target);
    ASSERT_NO_FATAL_FAILURE(ExpectKeysFrom(&cursor, PlaceOf(target), false));
    size_t at = entries_.size() - 1;
    for (cursor.SeekToLast(); cursor.entry() != nullptr; cursor.Prev(), --at) ASSERT_NO_FATAL_FAILURE(ExpectAt(cursor, at));
    ASSERT_EQ(at, SIZE_MAX);
  }
}

// In any order, with what is fetched for a seek in part, in full, or not at all.
TEST_P(MergingCursorTest, SeeksAndSteps) {
  for (const size_t count : {1, 2, 3, 7, 16, 19}) {
    ASSERT_NO_FATAL_FAILURE(Draw(count, 600, random_.OneIn(2)));
    MergingCursor cursor = NewCursor();
    size_t at = entries_.size();
    for (int i = 0; i < 3000 / kSlowdown; ++i) {
      std::string key;
      const SearchKey target = DrawTarget(&key);
      const bool is_at_end = at >= entries_.size();
      if (random_.OneIn(10)) cursor.SetReadAhead(1 + random_.Uniform(40));
      switch (is_at_end ? random_.Uniform(4) : random_.Uniform(12)) {
        case 0:
          cursor.SeekToFirst();
          at = 0;
          break;
        case 1:
          cursor.SeekToLast();
          at = entries_.size() - 1;
          break;
        case 2:
        case 3: {
          size_t rounds = random_.Uniform(5);
          for (bool more = rounds > 0 && cursor.BeginFetchForSeek(target); more && --rounds > 0;)
            more = cursor.FetchForSeek(target);
          const bool is_before = random_.OneIn(2);
          is_before ? cursor.SeekBefore(target) : cursor.Seek(target);
          at = PlaceOf(target) - (is_before ? 1 : 0);
          break;
        }
        case 4:
        case 5:
          for (uint64_t steps = random_.Uniform(80); steps > 0 && at < entries_.size(); --steps, --at) cursor.Prev();
          break;
        case 6:  // from wherever NextKey has left it
          cursor.NextKey();
          for (++at; at < entries_.size() && entries_[at] != cursor.entry(); ++at)
            ASSERT_EQ(entries_[at]->key(), entries_[at - 1]->key());
          break;
        default:
          for (uint64_t steps = random_.Uniform(80); steps > 0 && at < entries_.size(); --steps, ++at) cursor.Next();
      }
      ASSERT_NO_FATAL_FAILURE(ExpectAt(cursor, at));
    }
  }
}

// More of them than are looked at in one go, and than there are places ahead.
TEST_P(MergingCursorTest, LeavesManyVersionsOut) {
  std::vector<const LogEntry*> entries;
  const bool are_whole = GetParam() % 2 == 0;
  const std::string end = are_whole ? "1234567" : "";
  const std::string keys[] = {"a" + end, "b" + end, "c" + end};
  for (const std::string& key : keys) {
    for (int i = 0; i < 1000; ++i) entries.push_back(store_.Resolve(store_.Write(Version{key, next_++})));
  }
  Sort(&entries);
  TableOrder order(entries.size());
  for (const LogEntry* entry : entries)
    order.Append(store_.order().Prefix(entry->key()), store_.regions()->Find(entry), entry->sequence() % 1000 != 0, are_whole);
  ASSERT_TRUE(order.Finish(*store_.regions(), store_.order()));
  const auto cursor = order.NewCursor(store_.regions(), &store_.order());
  cursor->SeekToFirst();
  for (const std::string& key : keys) {
    ASSERT_NE(cursor->entry(), nullptr);
    EXPECT_EQ(cursor->entry()->key(), key);
    cursor->NextKey();
  }
  EXPECT_EQ(cursor->entry(), nullptr);
  // In the middle of the versions what was sought is there.
  cursor->Seek(SearchKey(store_.order(), keys[1], 1500));
  ASSERT_NE(cursor->entry(), nullptr);
  EXPECT_EQ(cursor->entry()->sequence(), 1500u);
  cursor->NextKey();
  ASSERT_NE(cursor->entry(), nullptr);
  EXPECT_EQ(cursor->entry()->sequence(), 3000u);
}

// What a step over the versions of a key takes does not grow with their number, whether or not the cursor has all versions.
TEST_P(MergingCursorTest, PassesVersionsByASearch) {
  using Clock = std::chrono::steady_clock;
  const bool are_whole = GetParam() % 2 == 0;
  const std::string hot = are_whole ? "b1234567" : "b";
  const std::string next = are_whole ? "c1234567" : "c";
  const auto best_step = [&](size_t versions, bool has_all) {
    // The versions but the newest are one entry again and again: only their order counts.
    const LogEntry* const oldest = store_.Resolve(store_.Write(Version{hot, next_++}));
    const LogEntry* const newest = store_.Resolve(store_.Write(Version{hot, next_++}));
    const LogEntry* const last = store_.Resolve(store_.Write(Version{next, next_++}));
    TableOrder order(versions + 1);
    const auto append = [&](const LogEntry* entry, bool is_older) {
      order.Append(store_.order().Prefix(entry->key()), store_.regions()->Find(entry), is_older, are_whole);
    };
    append(newest, false);
    for (size_t i = 1; i < versions; ++i) append(oldest, true);
    append(last, false);
    EXPECT_TRUE(order.Finish(*store_.regions(), store_.order()));
    auto best = Clock::duration::max();
    for (int i = 0; i < 20; ++i) {
      const auto cursor = order.NewCursor(store_.regions(), &store_.order());
      if (has_all) {
        cursor->SeekToFirst();
        cursor->Next();
      }
      const auto begin = Clock::now();
      cursor->SeekToFirst();
      cursor->NextKey();
      best = std::min(best, Clock::now() - begin);
      EXPECT_EQ(cursor->entry(), last);
    }
    return best;
  };
  for (const bool has_all : {false, true}) EXPECT_LT(best_step(1'000'000, has_all), 30 * best_step(300, has_all)) << has_all;
}

}  // namespace
}  // namespace braiddb::test
