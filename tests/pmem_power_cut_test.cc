// Power cuts in the life of a segment, with lines that are lost: what pmem/ makes durable itself, without PMDK. [CC-33] [CC-36]
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "tests/support/pmem_store.h"
#include "tests/support/power_cut.h"

namespace braiddb::test {
namespace {

class SegmentPowerCutTest : public testing::Test {
 protected:
  static constexpr uint64_t kSegmentSize = 256ull << 10;
  static constexpr int kRounds = 3;

  void SetUp() override {
    options_.database_path = directory_.File("db");
    options_.regions = 1;
    options_.max_region_size = 64ull << 20;
    options_.persist_mode = PersistMode::kEmulated;
    std::filesystem::create_directories(options_.database_path);
    Reopen();
    // Free segments, so that PMDK is not asked for more.
    Segment* segments[2 * kRounds];
    for (Segment*& segment : segments) {
      ASSERT_OK(store_.allocator->Allocate(0, 1, &segment));
      before_.insert(segment->generation());
    }
    for (Segment* segment : segments) ASSERT_OK(store_.allocator->Release(segment));
    Reopen();
  }
  void Reopen() { ASSERT_OK(Store::Open(options_, kSegmentSize, &store_)); }

  struct Seal {
    uint64_t bytes;
    uint64_t last_sequence;
  };
  // Uses segments in every way; notes what it has been given, and what it has been told is durable.
  void UseSegments() {
    for (uint64_t round = 0; round < kRounds; ++round) {
      Segment *sealed = nullptr, *open = nullptr;
      ASSERT_OK(store_.allocator->Allocate(0, 1, &sealed));
      Note(sealed);
      ASSERT_OK(store_.allocator->Allocate(0, 1, &open));
      Note(open);
      open_.insert(open->generation());
      const Seal seal = {100 + round, 5000 + round};
      sealing_[sealed->generation()] = seal;
      ASSERT_OK(store_.allocator->Seal(sealed, seal.bytes, seal.last_sequence));
      sealed_.insert(sealed->generation());
      if (round == 0) {
        open_.erase(open->generation());
        ASSERT_OK(store_.allocator->Release(open));
      }
    }
  }
  void Note(Segment* segment) {
    EXPECT_TRUE(given_.insert(segment->generation()).second) << "a generation comes twice";
    seeds_[segment->generation()] = segment->entry_seed();
  }

  // Whether there is such a fence.
  bool UseSegmentsUntil(uint64_t fence, PowerCut::Luck luck) {
    PowerCut cut(store_.regions.get(), fence);
    try {
      UseSegments();
      // Everything it did is durable.
      cut.Lose(PowerCut::Luck::kNothing, &random_);
      return false;
    } catch (const PowerCut::Failed&) {
      cut.Lose(luck, &random_);
      return true;
    }
  }

  TestDirectory directory_;
  RegionSetOptions options_;
  Store store_;
  Random random_{91};
  std::set<uint64_t> before_;           // generations of earlier uses
  std::set<uint64_t> given_;            // generations that were used
  std::set<uint64_t> open_, sealed_;    // of segments that are durably so
  std::map<uint64_t, uint64_t> seeds_;  // of the entries of segments that were given out
  std::map<uint64_t, Seal> sealing_;    // of segments that are being sealed, or are
};

TEST_F(SegmentPowerCutTest, EverySegmentIsAsBeforeAStepOrAsAfterIt) {
  const RegionImage before(store_.regions.get());
  uint64_t fence = 0;
  for (bool is_there = true; is_there; ++fence) {
    for (const PowerCut::Luck luck : PowerCut::kEveryLuck) {
      SCOPED_TRACE("fence " + std::to_string(fence) + ", luck " + std::to_string(static_cast<int>(luck)));
      before.Restore(store_.regions.get());
      Reopen();
      given_ = before_;
      open_.clear();
      sealed_.clear();
      sealing_.clear();
      seeds_.clear();
      is_there = UseSegmentsUntil(fence, luck);

      ASSERT_NO_FATAL_FAILURE(Reopen());
      std::set<uint64_t> open, sealed;
      store_.allocator->ForEachLog([&](Segment* segment) {
        const uint64_t generation = segment->generation();
        if (seeds_.contains(generation)) {
          EXPECT_EQ(segment->entry_seed(), seeds_[generation]) << "its entries would be lost";
        }
        if (segment->state() == SegmentState::kOpen) {
          open.insert(generation);
          return;
        }
        sealed.insert(generation);
        ASSERT_TRUE(sealing_.contains(generation));
        EXPECT_EQ(segment->sealed_bytes(), sealing_[generation].bytes);
        EXPECT_EQ(segment->sealed_last_sequence(), sealing_[generation].last_sequence);
      });
      for (const uint64_t generation : sealed_) EXPECT_TRUE(sealed.contains(generation)) << "the seal was durable";
      for (const uint64_t generation : open_) EXPECT_TRUE(open.contains(generation)) << "it was durably open";
      // No generation that was ever handed out comes again, also not that of an allocation that was cut off.
      given_.insert(open.begin(), open.end());
      UseSegments();
      if (HasFailure()) return;
    }
  }
  EXPECT_GE(fence, 5u * kRounds);
}

// What copies were written to and is free again has no header, whatever a cut leaves: a repair without the directories would
// take the copies for entries. [CC-47]
TEST_F(SegmentPowerCutTest, DiscardedCopiesHaveNoHeader) {
  Segment* copies = nullptr;
  ASSERT_OK(store_.allocator->AllocateCopies(0, 1, &copies));
  auto* const header = reinterpret_cast<SegmentHeader*>(copies->data()) - 1;
  const PmPtr place = copies->ptr(0);
  const uint64_t header_offset = reinterpret_cast<uint8_t*>(header) - store_.regions->base(0);
  const RegionImage before(store_.regions.get());
  // Whether a cut at one of the fences left a header in a segment that is free.
  const auto leaves_one = [&](bool forget) {
    bool found = false;
    uint64_t fence = 0;
    for (bool is_there = true; is_there; ++fence) {
      for (const PowerCut::Luck luck : PowerCut::kEveryLuck) {
        before.Restore(store_.regions.get());
        Reopen();
        Segment* const segment = store_.allocator->Find(place);
        EXPECT_EQ(segment->state(), SegmentState::kCopies);
        PowerCut cut(store_.regions.get(), fence);
        if (forget) cut.TakeOutFlushesOf(store_.regions->base(0) + header_offset);
        try {
          EXPECT_OK(store_.allocator->Discard(segment));
          is_there = false;
          cut.Lose(PowerCut::Luck::kNothing, &random_);
        } catch (const PowerCut::Failed&) {
          cut.Lose(luck, &random_);
        }
        Reopen();
        int of_copies = 0;
        store_.allocator->ForEachCopies([&](Segment*) { ++of_copies; });
        const auto* left = reinterpret_cast<const SegmentHeader*>(store_.regions->base(0) + header_offset);
        if (of_copies == 0 && left->magic != 0) found = true;
        EXPECT_TRUE(is_there || of_copies == 0) << "it was discarded";
      }
    }
    EXPECT_GE(fence, 3u);
    return found;
  };
  EXPECT_FALSE(leaves_one(false));
  EXPECT_TRUE(leaves_one(true)) << "without that flush nothing keeps the header from coming back";
}

// A process is killed at each fence, and only when the segments were found again the power fails: they are as they were found.
// [CC-46]
TEST_F(SegmentPowerCutTest, AnOpenMakesDurableWhatItFinds) {
  const auto found = [this] {
    std::unique_ptr<SegmentAllocator> allocator;
    EXPECT_OK(SegmentAllocator::Open(store_.regions.get(), kSegmentSize, &allocator));
    std::set<std::tuple<uint64_t, uint64_t, SegmentState, uint64_t>> segments;
    allocator->ForEachLog([&](Segment* segment) {
      segments.emplace(segment->ptr(0).raw(), segment->generation(), segment->state(), segment->sealed_bytes());
    });
    return segments;
  };
  const RegionImage before(store_.regions.get());
  uint64_t fence = 0;
  for (bool killed = true; killed; ++fence) {
    SCOPED_TRACE(fence);
    before.Restore(store_.regions.get());
    Reopen();
    given_ = before_;
    PowerCut cut(store_.regions.get(), fence);
    try {
      UseSegments();
      killed = false;
    } catch (const PowerCut::Failed&) {
    }
    cut.Kill();
    const auto segments = found();
    cut.Lose(PowerCut::Luck::kNothing, &random_);
    EXPECT_EQ(found(), segments);
  }
  EXPECT_GE(fence, 5u * kRounds);
}

}  // namespace
}  // namespace braiddb::test
