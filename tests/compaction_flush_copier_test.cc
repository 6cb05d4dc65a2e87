// A flush that copies: what the table has, and what a power cut at any of its fences leaves. [CC-53]
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compaction/flush_copier.h"
#include "compaction/flush_job.h"
#include "index/key_hash.h"
#include "log/log_reader.h"
#include "lsm/skiplist_memtable.h"
#include "recovery/replay.h"
#include "tests/support/entry_store.h"
#include "tests/support/power_cut.h"

namespace braiddb::test {
namespace {

class FlushCopierTest : public testing::TestWithParam<uint32_t> {
 protected:
  static constexpr uint64_t kFirst = 100;
  static constexpr uint64_t kBoundary = 100'000;

  // Versions in the log, durable, and a memtable of them.
  void Write(size_t count, uint64_t keys) {
    memtable_ = std::make_unique<SkipListMemtable>(7, store_.regions(), &store_.order(), Arena::Create(), 4096, 1);
    memtable_->boundary.store(kBoundary);
    uint64_t sequence = kFirst;
    versions_ = store_.DrawVersions(&random_, count, keys, 5, &sequence);
    for (const Version& version : versions_) {
      const PmPtr pointer = store_.Write(version);
      const LogEntry* entry = store_.Resolve(pointer);
      Memtable::Insertion insertion;
      insertion.key_hash = KeyHash(entry->key());
      ASSERT_TRUE(memtable_->Allocate(&block_, entry->height(), &insertion));
      memtable_->Prepare(entry, pointer, &insertion);
      memtable_->Publish(&insertion);
      memtable_->entry_count.fetch_add(1);
    }
  }
  FlushResult Flush(FlushCopier* copier) {
    return FlushMemtable(memtable_.get(), store_.regions(), &store_.order(), *store_.segments(), VersionFilter({}), nullptr,
                         nullptr, copier);
  }
  // The newest of each key.
  std::vector<Version> Expected() const {
    std::vector<Version> newest;
    for (const Version& version : InEntryOrder(versions_)) {
      if (newest.empty() || newest.back().key != version.key) newest.push_back(version);
    }
    return newest;
  }
  std::vector<Segment*> Segments(bool copies) const {
    std::vector<Segment*> found;
    store_.segments()->ForEachLog([&](Segment* segment) {
      if (segment->holds_copies == copies) found.push_back(segment);
    });
    return found;
  }
  uint64_t CopiesThatAreWritten() const {
    uint64_t count = 0;
    store_.segments()->ForEachFlushed([&count](Segment*) { ++count; });
    return count;
  }
  std::vector<Version> Replayed(uint64_t boundary) {
    ReplayContext context{store_.regions(), store_.segments(), {&store_.order()}, boundary, 9, 2, {}, false};
    ReplayResult result;
    EXPECT_OK(ReplayLog(context, &result));
    return result.tables.empty() ? std::vector<Version>() : store_.Dump(result.tables[0]->list);
  }

  EntryStore store_{GetParam()};
  Random random_{97};
  Memtable::NodeBlock block_;
  std::vector<Version> versions_;
  std::unique_ptr<SkipListMemtable> memtable_;
};

INSTANTIATE_TEST_SUITE_P(Regions, FlushCopierTest, testing::Values(1, 2));

TEST_P(FlushCopierTest, TheTableHasCopiesAndTheLogStaysAsItIs) {
  ASSERT_NO_FATAL_FAILURE(Write(3000, 700));
  memtable_->AddExtent(nullptr, 64);
  FlushCopier copier(store_.regions(), store_.segments());
  const FlushResult flushed = Flush(&copier);
  EXPECT_TRUE(Segments(true).empty());
  EXPECT_GT(CopiesThatAreWritten(), 0u);
  uint64_t lines = 0;
  ASSERT_OK(copier.Finish(&lines));
  EXPECT_GT(lines, 0u);
  EXPECT_EQ(CopiesThatAreWritten(), 0u);

  const std::vector<Version> expected = Expected();
  EXPECT_EQ(store_.Dump(flushed.table->list), expected);
  EXPECT_EQ(flushed.table->entries, expected.size());
  EXPECT_EQ(flushed.dropped, versions_.size() - expected.size());
  EXPECT_TRUE(flushed.table->extents.empty()) << "a checkpoint has nothing to flush";
  ASSERT_EQ(flushed.table->moves.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const PmTable::Move& move = flushed.table->moves[i];
    const LogEntry* const copy = store_.Resolve(move.to);
    EXPECT_EQ(move.from, store_.Resolve(store_.Find(expected[i].sequence)));
    EXPECT_TRUE(copy->is_copy() && !move.from->is_copy());
    EXPECT_EQ(copy->value(), move.from->value());
    EXPECT_EQ(copy->type(), move.from->type());
    Segment* const segment = store_.segments()->Find(move.to);
    ASSERT_NE(segment, nullptr);
    EXPECT_TRUE(segment->state() == SegmentState::kSealed && segment->holds_copies);
    EXPECT_TRUE(LogReader(*segment, segment->sealed_bytes()).ValidAt(segment->OffsetOf(move.to)));
  }
  for (const Version& version : versions_) {
    const LogEntry* const original = store_.Resolve(store_.Find(version.sequence));
    EXPECT_FALSE(original->is_obsolete());
    EXPECT_EQ(original->Next(0), PmPtr());
  }
}

// Whoever did not finish leaves nothing, and what an open finds is the log.
TEST_P(FlushCopierTest, AnAbandonedFlushGivesItsSegmentsBack) {
  ASSERT_NO_FATAL_FAILURE(Write(500, 200));
  {
    FlushCopier copier(store_.regions(), store_.segments());
    Flush(&copier);
    EXPECT_GT(CopiesThatAreWritten(), 0u);
  }
  EXPECT_EQ(CopiesThatAreWritten(), 0u);
  EXPECT_EQ(Replayed(kFirst), Expected());
}

// Before the MANIFEST lists the table the log counts, and all of the copies go; afterwards the copies are durable, with pointers
// that lead through all of them, and it does not matter what the log has.
TEST_P(FlushCopierTest, PowerCutAtEveryFence) {
  ASSERT_NO_FATAL_FAILURE(Write(300, 200));
  for (uint32_t region = 0; region < GetParam(); ++region) store_.SealSegment(region);
  {
    std::vector<Segment*> spare(4 * GetParam());  // PMDK is not asked for more between the cuts
    for (size_t i = 0; i < spare.size(); ++i)
      ASSERT_OK(store_.segments()->Allocate(static_cast<uint32_t>(i % GetParam()), 1, &spare[i]));
    for (Segment* segment : spare) ASSERT_OK(store_.segments()->Release(segment));
  }
  const std::vector<Version> expected = Expected();
  const RegionImage before(store_.regions());
  uint64_t fence = 0;
  static auto* const crashed = new std::vector<FlushCopier*>;  // a crash runs no destructor
  for (bool is_there = true; is_there; ++fence) {
    for (const PowerCut::Luck luck : PowerCut::kEveryLuck) {
      SCOPED_TRACE("fence " + std::to_string(fence) + ", luck " + std::to_string(static_cast<int>(luck)));
      before.Restore(store_.regions());
      store_.OpenRegions();
      std::shared_ptr<PmTable> table;
      auto copier = std::make_unique<FlushCopier>(store_.regions(), store_.segments());
      {
        PowerCut cut(store_.regions(), fence);
        try {
          uint64_t lines = 0;
          table = Flush(copier.get()).table;
          EXPECT_OK(copier->Finish(&lines));
          is_there = false;
          cut.Lose(PowerCut::Luck::kNothing, &random_);
        } catch (const PowerCut::Failed&) {
          cut.Lose(luck, &random_);
        }
      }
      crashed->push_back(copier.release());
      if (is_there) {
        store_.OpenRegions();
        ASSERT_OK(FinishFlushes(store_.segments(), kFirst));
        EXPECT_TRUE(Segments(true).empty());
        EXPECT_EQ(CopiesThatAreWritten(), 0u);
        EXPECT_EQ(Replayed(kFirst), expected);
      } else {
        const std::vector<uint64_t> heads = table->heads();  // as the MANIFEST has them
        table.reset();
        store_.OpenRegions();
        ASSERT_OK(FinishFlushes(store_.segments(), kBoundary));
        EXPECT_EQ(Segments(true).size(), GetParam());
        PmTable listed(7, kBoundary, store_.regions(), &store_.order());
        listed.heads() = heads;
        for (uint32_t region = 0; region < GetParam(); ++region)
          listed.list.SetHead(region, &listed.heads()[region * kMaxHeight]);
        EXPECT_TRUE(store_.IsWhole(listed.list));
        EXPECT_EQ(store_.Dump(listed.list), expected);
        EXPECT_TRUE(Replayed(kBoundary).empty());
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GE(fence, 5u) << "two to take a segment, one for the copies, two to seal it";
}

// What an open has replayed becomes a table of copies as well.
TEST_P(FlushCopierTest, ATableIsCopiedAsItIs) {
  uint64_t sequence = kFirst;
  versions_ = store_.DrawVersions(&random_, 2000, 2000, 5, &sequence);
  const std::shared_ptr<PmTable> table = store_.MakeTable(versions_);
  FlushCopier copier(store_.regions(), store_.segments());
  PmTable copy(8, kBoundary, store_.regions(), &store_.order());
  ASSERT_OK(CopyTable(*table, &copier, &copy));
  uint64_t lines = 0;
  ASSERT_OK(copier.Finish(&lines));
  EXPECT_EQ(store_.Dump(copy.list), InEntryOrder(versions_));
  EXPECT_EQ(copy.entries, versions_.size());
  for (const LogEntry* entry = copy.list.First(); entry != nullptr; entry = copy.list.Next(entry)) EXPECT_TRUE(entry->is_copy());
}

}  // namespace
}  // namespace braiddb::test
