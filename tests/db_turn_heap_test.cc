// TurnHeap: cursors that go forward side by side come to all entries in order, whatever is in which of them.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "db/turn_heap.h"
#include "tests/support/key_kinds.h"
#include "tests/support/level_store.h"

namespace braiddb::test {
namespace {

// Over entries in order.
class VectorCursor final : public EntryCursor {
 public:
  VectorCursor(const KeyOrder* order, std::vector<const LogEntry*> entries, bool knows_prefixes)
      : EntryCursor(knows_prefixes), order_(*order), entries_(std::move(entries)) {}

  void SeekToFirst() override { Set(0); }
  void SeekToLast() override { Set(entries_.size() - 1); }
  void Seek(const SearchKey&) override {}
  void SeekBefore(const SearchKey&) override {}
  void Next() override { Set(at_ + 1); }
  void Prev() override { Set(at_ - 1); }

 private:
  void Set(size_t at) {
    at_ = at;
    entry_ = at < entries_.size() ? entries_[at] : nullptr;
    if (entry_ != nullptr && knows_prefixes()) prefix_ = order_.Prefix(entry_->key());
  }

  const KeyOrder& order_;
  const std::vector<const LogEntry*> entries_;
  size_t at_ = 0;
};

class TurnHeapTest : public testing::TestWithParam<size_t> {
 protected:
  TurnHeapTest() {
    const KeyKind& keys = kKeyKinds[GetParam()];
    std::vector<Version> versions;
    for (uint64_t sequence = 1; sequence <= 400; ++sequence) versions.push_back({keys.draw(&random_), sequence});
    table_ = store_.MakeTable(versions);
    for (const LogEntry* entry = table_->list.First(); entry != nullptr; entry = table_->list.Next(entry)) pool_.push_back(entry);
  }

  void Load(LevelCursor* cursor) const {
    cursor->entry = cursor->cursor->entry();
    if (cursor->entry != nullptr) cursor->prefix = store_.order().Prefix(cursor->entry->key());
  }
  // Each with a part of the pool, some of it in several of them.
  std::vector<LevelCursor> Draw(size_t count, uint64_t one_in) {
    std::vector<LevelCursor> cursors(count);
    for (LevelCursor& cursor : cursors) {
      std::vector<const LogEntry*> part;
      for (const LogEntry* entry : pool_) {
        if (random_.OneIn(one_in)) part.push_back(entry);
      }
      cursor.cursor = std::make_unique<VectorCursor>(&store_.order(), part, random_.OneIn(2));
      cursor.cursor->SeekToFirst();
      Load(&cursor);
    }
    return cursors;
  }
  // Which comes first of those that are not at their end; null if all are.
  LevelCursor* First(std::vector<LevelCursor>* cursors) const {
    LevelCursor* first = nullptr;
    for (LevelCursor& cursor : *cursors) {
      if (cursor.entry == nullptr) continue;
      if (first == nullptr || CompareEntries(store_.order(), *cursor.entry, *first->entry) < 0) first = &cursor;
    }
    return first;
  }

  LevelStore store_{1};
  Random random_{17};
  std::shared_ptr<PmTable> table_;
  std::vector<const LogEntry*> pool_;
};

INSTANTIATE_TEST_SUITE_P(Keys, TurnHeapTest, testing::Range<size_t>(0, std::size(kKeyKinds)),
                         [](const auto& suite) { return std::string(kKeyKinds[suite.param].name); });

TEST_P(TurnHeapTest, TheFirstOneIsAlwaysTheLeast) {
  for (const size_t count : {1, 2, 3, 4, 7, 15, 16, 17, 31, 70}) {
    for (const uint64_t one_in : {1, 3, 20, 300}) {
      std::vector<LevelCursor> cursors = Draw(count, one_in);
      TurnHeap turns(&store_.order());
      turns.Reserve(count);
      turns.Take(&cursors);
      while (!turns.empty()) {
        LevelCursor* const first = turns.first();
        ASSERT_EQ(first, First(&cursors)) << count << " cursors, one in " << one_in;
        ASSERT_EQ(turns.first_prefix(), first->prefix);
        first->cursor->Next();
        Load(first);
        turns.FirstMoved();
        if (random_.OneIn(50)) turns.Take(&cursors);  // wherever they stand
      }
      EXPECT_EQ(First(&cursors), nullptr);
    }
  }
}

// Lists that lead on from one entry are one list from there.
TEST_P(TurnHeapTest, TwinsEnd) {
  for (const size_t count : {2, 3, 8, 40}) {
    std::vector<LevelCursor> cursors = Draw(count, 2);
    for (LevelCursor& cursor : cursors) cursor.is_list = random_.OneIn(2);
    TurnHeap turns(&store_.order());
    turns.Reserve(count);
    turns.Take(&cursors);
    while (!turns.empty()) {
      LevelCursor* const first = turns.first();
      const LogEntry* const entry = first->entry;
      const bool ended = first->is_list && turns.EndTwins();
      ASSERT_EQ(turns.first(), first);
      ASSERT_EQ(first->entry, entry);
      if (ended) {
        ASSERT_EQ(First(&cursors), first);
      }
      first->cursor->Next();
      Load(first);
      turns.FirstMoved();
      if (!turns.empty()) {
        ASSERT_EQ(turns.first(), First(&cursors));
      }
    }
  }
}

TEST_P(TurnHeapTest, TwinsAreThoseListsThatStandOnTheFirstOnesEntry) {
  std::vector<LevelCursor> cursors(4);
  for (LevelCursor& cursor : cursors) {
    cursor.cursor = std::make_unique<VectorCursor>(&store_.order(), pool_, false);
    cursor.cursor->SeekToFirst();
    Load(&cursor);
    cursor.is_list = true;
  }
  cursors[2].is_list = false;
  cursors[3].cursor->Next();
  Load(&cursors[3]);
  TurnHeap turns(&store_.order());
  turns.Reserve(cursors.size());
  turns.Take(&cursors);
  EXPECT_EQ(turns.first(), &cursors[0]);
  EXPECT_TRUE(turns.EndTwins());
  EXPECT_EQ(cursors[1].entry, nullptr);
  EXPECT_EQ(cursors[2].entry, pool_[0]);
  EXPECT_EQ(cursors[3].entry, pool_[1]);
  EXPECT_FALSE(turns.EndTwins());
}

}  // namespace
}  // namespace braiddb::test
