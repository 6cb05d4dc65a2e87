// Sorted runs: what an exchange leaves after power cuts, with canaries without a fence; cursors over runs; damage. [CC-52]
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "levels/sorted_runs/run_writer.h"
#include "log/log_reader.h"
#include "skiplist/sorted_runs.h"
#include "tests/support/entry_store.h"
#include "tests/support/power_cut.h"

namespace braiddb::test {
namespace {

using Luck = PowerCut::Luck;

class SortedRunsTest : public testing::TestWithParam<uint32_t> {
 protected:
  SortedRunsTest() {
    for (uint32_t region = 0; region < GetParam(); ++region) store_.segments()->PrepareSpares(region, 16);
    EXPECT_OK(SortedRuns::Create(store_.regions(), {}));
    EXPECT_OK(TryOpen());
  }

  // As after a crash.
  Status TryOpen() {
    level_.reset();
    epochs_ = std::make_unique<EpochManager>();
    store_.ReopenSegments();
    return SortedRuns::Open(store_.regions(), store_.segments(), epochs_.get(), &store_.order(), {}, &level_);
  }

  // Versions of keys `begin`, `begin` + 1, …, in the log.
  std::vector<Version> Draw(uint64_t begin, uint64_t count) {
    std::vector<Version> versions;
    for (uint64_t i = 0; i < count; ++i) {
      versions.push_back({NumberedKey(begin + i), sequence_++, false, static_cast<uint32_t>(random_.Uniform(GetParam())),
                          RandomHeight(random_.Next())});
      store_.Write(versions.back());
    }
    return versions;
  }

  std::shared_ptr<const SortedRun> MakeRun(const std::vector<Version>& versions) {
    RunWriter writer(store_.regions(), store_.segments(), &store_.order(), {});
    for (const Version& version : versions) {
      const PmPtr from = store_.Find(version.sequence);
      PmPtr copy;
      EXPECT_OK(writer.Append(*store_.Resolve(from), from, &copy));
    }
    RunRecord* record = nullptr;
    EXPECT_OK(writer.Finish(&record));
    auto run = std::make_shared<const SortedRun>(store_.regions(), &store_.order(), record, writer.segments(), 1 << 12);
    writer.Take();
    return run;
  }
  Status Exchange(size_t begin, size_t end, const std::vector<std::vector<Version>>& runs) {
    std::vector<std::shared_ptr<const SortedRun>> made;
    for (const auto& run : runs) made.push_back(MakeRun(run));
    return level_->Exchange(begin, end, made, [] {});
  }

  // What is in the level; nothing if an entry is damaged.
  std::vector<Version> Content() const {
    std::vector<Version> versions;
    const auto cursor = level_->NewCursor();
    for (cursor->SeekToFirst(); cursor->entry() != nullptr; cursor->Next()) {
      const PmPtr place = store_.regions()->Find(cursor->entry());
      const Segment* const home = place ? store_.segments()->Find(place) : nullptr;
      if (home == nullptr || !LogReader(*home, home->capacity()).ValidAt(home->OffsetOf(place))) return {};
      versions.push_back(store_.VersionAt(place));
    }
    return versions;
  }

  static std::vector<Version> Concatenate(const std::vector<std::vector<Version>>& runs) {
    std::vector<Version> all;
    for (const auto& run : runs) all.insert(all.end(), run.begin(), run.end());
    return all;
  }

  // Which of the two fences of an exchange is not in the code.
  enum class Without { kNone, kRuns, kLink };
  // Cuts the power at every fence; the number of outcomes that are neither before nor after, or before an exchange that was
  // acknowledged.
  int CutEverywhere(Without without) {
    const std::vector<Version> first = Draw(0, 20), middle = Draw(100, 30), last = Draw(200, 20);
    const std::vector<Version> new_middle = Draw(90, 25), new_end = Draw(150, 25);
    EXPECT_OK(Exchange(0, 0, {first, middle, last}));
    while (epochs_->Reclaim() > 0) {
    }
    const std::vector<Version> before = Concatenate({first, middle, last}),
                               after = Concatenate({first, new_middle, new_end, last});
    const RegionImage image(store_.regions());
    int wrong = 0;
    bool is_there = true;
    for (uint64_t fence = 0; is_there; ++fence) {
      is_there = false;
      for (int attempt = 0; attempt < 16; ++attempt) {
        const Luck luck = PowerCut::kEveryLuck[attempt % 4];
        image.Restore(store_.regions());
        EXPECT_OK(TryOpen());
        bool done = false;
        {
          PowerCut cut(store_.regions(), fence);
          try {
            std::vector<std::shared_ptr<const SortedRun>> runs = {MakeRun(new_middle), MakeRun(new_end)};
            const uint64_t begun = cut.fences();
            const uint64_t out = without == Without::kNone ? UINT64_MAX : begun + (without == Without::kRuns ? 0 : 1);
            cut.TakeOut([out](uint64_t number) { return number != out; });
            EXPECT_OK(level_->Exchange(1, 2, runs, [] {}));
            done = true;
          } catch (const PowerCut::Failed&) {
            is_there = true;
          }
          cut.Lose(luck, &random_);
        }
        const Status status = TryOpen();
        const std::vector<Version> content = status.ok() ? Content() : std::vector<Version>();
        wrong += content != after && (done || content != before);
      }
    }
    return wrong;
  }

  EntryStore store_{GetParam()};
  std::unique_ptr<EpochManager> epochs_;
  std::shared_ptr<SortedRuns> level_;
  uint64_t sequence_ = 1;
  Random random_{31};
};

INSTANTIATE_TEST_SUITE_P(Regions, SortedRunsTest, testing::Values(1, 2));

TEST_P(SortedRunsTest, ExchangesAreThereAfterAnOpen) {
  const auto a = Draw(0, 10), b = Draw(20, 10), c = Draw(40, 10), d = Draw(5, 30);
  ASSERT_OK(Exchange(0, 0, {a, b, c}));
  EXPECT_EQ(Content(), Concatenate({a, b, c}));
  ASSERT_OK(TryOpen());
  EXPECT_EQ(Content(), Concatenate({a, b, c}));
  EXPECT_EQ(level_->GetStats().runs, 3u);
  ASSERT_OK(Exchange(0, 2, {}));  // those go
  EXPECT_EQ(Content(), c);
  ASSERT_OK(Exchange(0, 0, {d}));
  ASSERT_OK(TryOpen());
  EXPECT_EQ(Content(), Concatenate({d, c}));
  ASSERT_OK(Exchange(0, 2, {}));
  ASSERT_OK(TryOpen());
  EXPECT_TRUE(Content().empty());
  LookupTrace trace;
  EXPECT_EQ(level_->Find(SearchKey(store_.order(), "k", kMaxSequence), &trace), nullptr);
}

TEST_P(SortedRunsTest, CursorsKeepTheRunsThatTheyBeganWith) {
  const auto a = Draw(0, 10), b = Draw(20, 10), c = Draw(0, 30);
  ASSERT_OK(Exchange(0, 0, {a, b}));
  const uint64_t pin = epochs_->Pin();
  const auto cursor = level_->NewCursor();
  cursor->SeekToFirst();
  ASSERT_OK(Exchange(0, 2, {c}));
  epochs_->Reclaim();
  size_t seen = 0;
  for (; cursor->entry() != nullptr; cursor->Next(), ++seen)
    EXPECT_EQ(store_.VersionAt(store_.regions()->Find(cursor->entry())), Concatenate({a, b})[seen]);
  EXPECT_EQ(seen, 20u);
  for (cursor->SeekToLast(); cursor->entry() != nullptr; cursor->Prev()) --seen;
  EXPECT_EQ(seen, 0u);
  epochs_->Unpin(pin);
  while (epochs_->Reclaim() > 0) {
  }
  // Only the new run's segments are taken.
  uint64_t taken = 0;
  store_.segments()->ForEachIndex([&](Segment* segment) {
    EXPECT_TRUE(level_->Owns(segment));
    ++taken;
  });
  EXPECT_EQ(taken, level_->current().runs[0]->segments().size());
}

TEST_P(SortedRunsTest, IndexesShareWhatTheyMayTake) {
  std::vector<std::vector<Version>> runs;
  for (uint64_t i = 0; i < 8; ++i) runs.push_back(Draw(1000 * i, 900));
  ASSERT_OK(Exchange(0, 0, runs));
  ASSERT_OK(TryOpen());
  EXPECT_EQ(level_->GetStats().index_bytes, 0u);
  constexpr uint64_t kBytes = 16 << 10;
  level_->Refresh(kBytes);
  EXPECT_GT(level_->GetStats().index_bytes, 0u);
  EXPECT_LE(level_->GetStats().index_bytes, 2 * kBytes);
  EXPECT_EQ(Content(), Concatenate(runs));
  LookupTrace trace;
  for (const Version& version : Concatenate(runs)) {
    const LogEntry* const entry = level_->Find(SearchKey(store_.order(), version.key, kMaxSequence), &trace);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->sequence(), version.sequence);
  }
}

TEST_P(SortedRunsTest, AnExchangeHappensWholeOrNotAtAll) { EXPECT_EQ(CutEverywhere(Without::kNone), 0); }
// Canaries.
TEST_P(SortedRunsTest, WithoutTheFenceOfTheRunsItDoesNot) { EXPECT_GT(CutEverywhere(Without::kRuns), 0); }
TEST_P(SortedRunsTest, WithoutTheFenceOfTheLinkItIsLost) { EXPECT_GT(CutEverywhere(Without::kLink), 0); }

TEST_P(SortedRunsTest, ADamagedRootRecordOrLinkIsFound) {
  const auto a = Draw(0, 10), b = Draw(20, 10);
  ASSERT_OK(Exchange(0, 0, {a, b}));
  RunRecord* const record = level_->current().runs[1]->record();
  auto* const root = static_cast<RunsRoot*>(LevelPlace().Find(*store_.regions(), 0, sizeof(RunsRoot)));
  std::vector<uint64_t*> words = {&root->first, &root->magic, &root->number, &root->checksum};
  for (uint64_t i = 0; i < RunRecordBytes(record->regions, record->segments) / 8; ++i)
    words.push_back(reinterpret_cast<uint64_t*>(record) + i);
  for (uint64_t* const word : words) {
    const uint64_t sound = *word;
    *word = sound ^ uint64_t { 1 } << random_.Uniform(64);
    EXPECT_CODE(TryOpen(), kCorruption);
    *word = sound;
  }
  EXPECT_OK(TryOpen());
  EXPECT_EQ(Content(), Concatenate({a, b}));
}

}  // namespace
}  // namespace braiddb::test
