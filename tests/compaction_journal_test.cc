// The merge journal alone: batches of stores to words, made atomic across power cuts. [CC-4]
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstring>

#include "compaction/merge_journal.h"
#include "tests/support/level_store.h"
#include "tests/support/power_cut.h"

namespace braiddb::test {
namespace {

using Luck = PowerCut::Luck;

class MergeJournalTest : public testing::TestWithParam<uint32_t> {
 protected:
  static constexpr uint64_t kWords = 400;
  static constexpr uint64_t kBufferBytes = 64 + kJournalStores * sizeof(JournalStore);

  void SetUp() override {
    for (uint32_t region = 0; region < GetParam(); ++region) {
      Segment* segment = nullptr;
      ASSERT_OK(store_.segments()->Allocate(region, kWords * 8, &segment));
      for (uint64_t i = 0; i < kWords; ++i) words_.push_back(segment->ptr(8 * i));
    }
    Open();
  }
  void Open() { ASSERT_OK(MergeJournal::Open(store_.regions(), &(journal_ = MergeJournal()))); }

  uint64_t& Word(size_t i) { return *store_.regions()->Resolve<uint64_t>(words_[i]); }
  std::vector<uint64_t> Values() {
    std::vector<uint64_t> values;
    for (size_t i = 0; i < words_.size(); ++i) values.push_back(Word(i));
    return values;
  }
  // A batch that stores to about half of the words, to some of them twice.
  std::vector<JournalStore> DrawBatch() {
    std::vector<JournalStore> stores;
    for (uint64_t i = random_.Range(1, words_.size()); i > 0; --i) {
      stores.push_back({words_[random_.Uniform(words_.size())].raw(), random_.Next()});
    }
    return stores;
  }
  std::vector<uint64_t> After(std::vector<uint64_t> values, const std::vector<JournalStore>& stores) {
    std::map<uint64_t, size_t> index_of;
    for (size_t i = 0; i < words_.size(); ++i) index_of[words_[i].raw()] = i;
    for (const JournalStore& store : stores) values[index_of.at(store.address)] = store.value;
    return values;
  }
  Status Apply(const std::vector<JournalStore>& stores, PmPtr progress) {
    return journal_.Apply(stores, progress, &flushed_lines_);
  }
  Status Redo(uint64_t merge_id) { return journal_.Redo(merge_id, &progress_); }

  // As documented in docs/FORMAT.md.
  uint64_t& Begun() { return *static_cast<uint64_t*>(store_.regions()->Metadata(0, MetadataSlot::kMergeJournal)); }
  uint8_t* Buffer(uint64_t number) { return reinterpret_cast<uint8_t*>(&Begun()) + 64 + number % 2 * kBufferBytes; }

  LevelStore store_{GetParam()};
  Random random_{31};
  MergeJournal journal_;
  std::vector<PmPtr> words_;
  PmPtr progress_;
  uint64_t flushed_lines_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Regions, MergeJournalTest, testing::Values(1, 2));

TEST_P(MergeJournalTest, WithNoBatchThereIsNothingToRedo) {
  const std::vector<uint64_t> before = Values();
  ASSERT_OK(Redo(0));
  EXPECT_EQ(progress_, PmPtr());
  ASSERT_OK(Redo(5));
  EXPECT_EQ(progress_, PmPtr());
  EXPECT_EQ(Values(), before);
}

TEST_P(MergeJournalTest, ABatchIsDurableWhenApplyReturns) {
  journal_.Begin(1);
  for (int round = 0; round < 20; ++round) {
    const std::vector<JournalStore> batch = DrawBatch();
    const std::vector<uint64_t> expected = After(Values(), batch);
    PowerCut cut(store_.regions(), PowerCut::kNever);
    ASSERT_OK(Apply(batch, words_[0]));
    EXPECT_EQ(Values(), expected);
    EXPECT_EQ(cut.fences(), 2u);
    cut.Lose(Luck::kNothing, &random_);
    EXPECT_EQ(Values(), expected) << "later stores to a word win";
  }
}

TEST_P(MergeJournalTest, AFullBatch) {
  std::vector<JournalStore> batch;
  for (uint64_t i = 0; i < kJournalStores; ++i) batch.push_back({words_[i % words_.size()].raw(), i + 1});
  journal_.Begin(1);
  const std::vector<uint64_t> before = Values();
  const std::vector<uint64_t> after = After(before, batch);
  ASSERT_OK(Apply(batch, words_[1]));
  EXPECT_EQ(Values(), after);
  for (size_t i = 0; i < words_.size(); ++i) Word(i) = before[i];
  Open();
  ASSERT_OK(Redo(1));
  EXPECT_EQ(Values(), after);
}

// Databases of earlier versions have a journal with buffers for 16,384 stores.
TEST_P(MergeJournalTest, AnOlderJournalKeepsItsBuffers) {
  constexpr uint64_t kOldBufferBytes = 64 + 16384 * sizeof(JournalStore);
  ASSERT_OK(store_.regions()->FreeMetadata(0, MetadataSlot::kMergeJournal));
  void* object = nullptr;
  ASSERT_OK(store_.regions()->AllocateMetadata(0, MetadataSlot::kMergeJournal, 64 + 2 * kOldBufferBytes, &object));
  Open();
  journal_.Begin(1);
  std::vector<uint64_t> values = Values();
  for (int round = 0; round < 3; ++round) {  // both buffers, and one again
    const std::vector<JournalStore> batch = DrawBatch();
    const std::vector<uint64_t> before = values;
    values = After(values, batch);
    ASSERT_OK(Apply(batch, words_[0]));
    const uint8_t* const buffer = static_cast<uint8_t*>(object) + 64 + (round + 1) % 2 * kOldBufferBytes;
    EXPECT_EQ(std::memcmp(buffer + 64, batch.data(), batch.size() * sizeof(JournalStore)), 0);
    for (size_t i = 0; i < words_.size(); ++i) Word(i) = before[i];
    Open();
    ASSERT_OK(Redo(1));
    EXPECT_EQ(Values(), values);
  }
}

// At every fence of several batches, with every kind of loss; then once more at the fence of the redo.
TEST_P(MergeJournalTest, AfterAPowerCutABatchHappenedOrNot) {
  constexpr uint64_t kBatches = 5;
  const RegionImage fresh(store_.regions());
  uint64_t redone = 0;
  for (uint64_t fence = 0; fence < 2 * kBatches; ++fence) {
    for (const Luck luck : PowerCut::kEveryLuck) {
      for (const Luck second_luck : PowerCut::kEveryLuck) {
        SCOPED_TRACE("fence " + std::to_string(fence) + ", luck " + std::to_string(static_cast<int>(luck)));
        fresh.Restore(store_.regions());
        Open();
        journal_.Begin(9);
        std::vector<std::vector<uint64_t>> states = {Values()};
        std::vector<PmPtr> progress = {PmPtr()};
        PowerCut cut(store_.regions(), fence);
        try {
          for (uint64_t batch = 0; batch < kBatches; ++batch) {
            const std::vector<JournalStore> stores = DrawBatch();
            states.push_back(After(states.back(), stores));
            progress.push_back(words_[batch]);
            ASSERT_OK(Apply(stores, progress.back()));
          }
          FAIL() << "there is no such fence";
        } catch (const PowerCut::Failed&) {
        }
        cut.Lose(luck, &random_);

        Open();
        PowerCut second(store_.regions(), 0);
        try {
          ASSERT_OK(Redo(9));
          ASSERT_EQ(progress_, PmPtr()) << "a redo of something without a fence";
        } catch (const PowerCut::Failed&) {
          second.Lose(second_luck, &random_);
          Open();
          ASSERT_OK(Redo(9));
          ++redone;
        }
        // As before the batch that was cut, or as after it; after it if its record was durable.
        const size_t last = states.size() - 1;
        const size_t now = progress_ == progress[last] ? last : last - 1;
        EXPECT_EQ(progress_, progress[now]);
        EXPECT_EQ(Values(), states[now]);
        if (fence % 2 == 1) {
          EXPECT_EQ(now, last);
        }
      }
    }
  }
  EXPECT_GT(redone, 0u);
}

// The record of the newest batch is damaged in each of its words in turn: if none of its stores was begun, it was torn, and the
// one before it is the newest.
TEST_P(MergeJournalTest, ATornRecordDoesNotCountUnlessItWasBegun) {
  journal_.Begin(3);
  const std::vector<JournalStore> first = {{words_[0].raw(), 10}, {words_[1].raw(), 11}};
  const std::vector<JournalStore> second = {{words_[0].raw(), 20}, {words_[1].raw(), 21}, {words_[2].raw(), 22}};
  ASSERT_OK(Apply(first, words_[5]));
  const uint64_t begun_first = Begun();
  ASSERT_OK(Apply(second, words_[6]));
  const uint64_t begun_second = Begun();
  auto* record = reinterpret_cast<uint64_t*>(Buffer(2));
  for (uint64_t word = 0; word < 8 + 2 * second.size(); ++word) {
    const uint64_t whole = record[word];
    record[word] = ~whole;
    for (size_t i = 0; i < 3; ++i) Word(i) = 0;
    Open();
    EXPECT_CODE(Redo(3), kCorruption);
    Begun() = begun_first;
    Open();
    ASSERT_OK(Redo(3));
    EXPECT_EQ(progress_, words_[5]) << "word " << word;
    EXPECT_EQ(Word(0), 10u);
    EXPECT_EQ(Word(1), 11u);
    EXPECT_EQ(Word(2), 0u);
    record[word] = whole;
    Begun() = begun_second;
  }
  Open();
  ASSERT_OK(Redo(3));
  EXPECT_EQ(progress_, words_[6]);
  EXPECT_EQ(Word(2), 22u);
}

TEST_P(MergeJournalTest, BatchesOfAnEarlierMergeAreNotDoneAgain) {
  journal_.Begin(3);
  ASSERT_OK(Apply({{words_[0].raw(), 10}}, words_[5]));
  ASSERT_OK(Apply({{words_[0].raw(), 20}}, words_[6]));
  Word(0) = 99;
  for (const uint64_t merge : {0, 4}) {
    Open();
    ASSERT_OK(Redo(merge));
    EXPECT_EQ(progress_, PmPtr());
    EXPECT_EQ(Word(0), 99u);
  }
  // One buffer holds the newest batch of merge 3, the other the first one of merge 4.
  journal_.Begin(4);
  ASSERT_OK(Apply({{words_[0].raw(), 30}}, words_[7]));
  Word(0) = 99;
  Open();
  ASSERT_OK(Redo(4));
  EXPECT_EQ(progress_, words_[7]);
  EXPECT_EQ(Word(0), 30u);
}

// Whichever buffer has the newest batch: the numbers go on after an open, so that the next batch goes to the other one and is the
// newest.
TEST_P(MergeJournalTest, NumbersGoOnAfterAnOpen) {
  uint64_t value = 0;
  for (const uint64_t merge : {1, 1, 1, 2, 2, 3, 3, 3, 3}) {
    Open();
    ASSERT_OK(Redo(merge));
    journal_.Begin(merge);
    const uint64_t batches = random_.Range(1, 3);
    for (uint64_t i = 0; i < batches; ++i) {
      ++value;
      ASSERT_OK(Apply({{words_[0].raw(), value}}, words_[value]));
    }
    // The last batch is cut off after its record: the one before must still be there.
    const std::vector<JournalStore> last = {{words_[0].raw(), ++value}};
    PowerCut cut(store_.regions(), 0);
    EXPECT_THROW(static_cast<void>(Apply(last, words_[value])), PowerCut::Failed);
    cut.Lose(Luck::kNothing, &random_);
    Open();
    ASSERT_OK(Redo(merge));
    EXPECT_EQ(progress_, words_[value - 1]);
    EXPECT_EQ(Word(0), value - 1);
  }
}

// A record that is valid and leads out of the database.
TEST_P(MergeJournalTest, AnAddressOutsideIsCorruption) {
  for (const PmPtr bad : {PmPtr(GetParam(), 4096), PmPtr(0, 1ull << 40), words_[0] + 4}) {
    journal_.Begin(3);
    ASSERT_OK(Apply({{words_[0].raw(), 10}, {words_[1].raw(), 11}}, words_[5]));
    for (const uint64_t number : {0, 1}) {
      auto* record = reinterpret_cast<uint64_t*>(Buffer(number));
      if (record[3] != 2) continue;
      record[8 + 2] = bad.raw();
      record[0] = XXH3_64bits(record + 1, 56 + 2 * sizeof(JournalStore));
    }
    Word(0) = 0;
    Open();
    EXPECT_CODE(Redo(3), kCorruption);
    EXPECT_EQ(Word(0), 0u) << "nothing is done of it";
  }
}

TEST(MergeJournalOpenTest, WithoutTheObjectIsCorruption) {
  TestDirectory directory;
  RegionSetOptions options;
  options.database_path = directory.path();
  options.regions = 1;
  options.max_region_size = 64ull << 20;
  Store store;
  ASSERT_OK(Store::Open(options, LevelStore::kSegmentSize, &store));
  MergeJournal journal;
  EXPECT_CODE(MergeJournal::Open(store.regions.get(), &journal), kCorruption);
}

}  // namespace
}  // namespace braiddb::test
