// Segments: their life, sizes, generations and reuse.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <set>

#include "pmem/segment_directory.h"
#include "tests/support/segment_test.h"

namespace braiddb::test {
namespace {

// ---- Life of a segment

TEST_F(SegmentTest, AllocateSealReleaseAndFindAgain) {
  Segment* const first = Allocate();
  EXPECT_EQ(first->state(), SegmentState::kOpen);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first->data()) % 64, 0u);
  EXPECT_GE(first->generation(), 1u);
  EXPECT_EQ(store_.regions->Resolve(first->ptr(0)), first->data());
  Segment* const second = Allocate();
  Segment* const third = Allocate();
  std::memset(first->data(), 1, first->capacity());
  std::memset(second->data(), 2, second->capacity());
  ASSERT_TRUE(allocator()->Seal(second, 4096, 77).ok());
  EXPECT_EQ(second->state(), SegmentState::kSealed);
  ASSERT_TRUE(allocator()->Release(third).ok());
  EXPECT_EQ(third->state(), SegmentState::kFree);
  const uint64_t generation = first->generation();
  const PmPtr first_start = first->ptr(0), second_start = second->ptr(0);
  EXPECT_EQ(allocator()->allocated_count(), 3u);
  EXPECT_EQ(allocator()->recycled_count(), 1u);

  Reopen();
  ASSERT_EQ(Used().size(), 2u);
  Segment* const open = allocator()->Find(first_start);
  ASSERT_NE(open, nullptr);
  EXPECT_EQ(open->state(), SegmentState::kOpen);
  EXPECT_EQ(open->generation(), generation);
  EXPECT_EQ(open->data()[open->capacity() - 1], 1);
  Segment* const sealed = allocator()->Find(second_start + 100);
  ASSERT_NE(sealed, nullptr);
  EXPECT_EQ(sealed->state(), SegmentState::kSealed);
  EXPECT_EQ(sealed->sealed_bytes(), 4096u);
  EXPECT_EQ(sealed->sealed_last_sequence(), 77u);
  EXPECT_EQ(sealed->data()[0], 2);
  EXPECT_EQ(allocator()->GetUsage(0).segments, 2u);
  EXPECT_EQ(allocator()->GetUsage(0).free_segments, 1u);
  ExpectNoLeak();
}

TEST_F(SegmentTest, AllocateResetsTheWorkingState) {
  Segment* segment = Allocate();
  segment->used_bytes = segment->entries = segment->dead_entries = segment->last_sequence = 5;
  ASSERT_TRUE(allocator()->Seal(segment, 5, 5).ok());
  ASSERT_TRUE(allocator()->Release(segment).ok());
  ASSERT_EQ(Allocate(), segment);
  EXPECT_EQ(segment->used_bytes + segment->entries + segment->dead_entries + segment->last_sequence, 0u);
  EXPECT_EQ(segment->sealed_bytes() + segment->sealed_last_sequence(), 0u);
}

TEST_F(SegmentTest, CapacityFillsTheChunksOfThePool) {
  for (uint64_t bytes : {uint64_t{0}, uint64_t{1}, kSmallSegment - 128, kSmallSegment - 127, 3 * kMiB, 3 * kMiB - 128}) {
    Segment* const segment = Allocate(bytes);
    EXPECT_GE(segment->capacity(), bytes);
    EXPECT_EQ((segment->capacity() + 128) % kSmallSegment, 0u);
  }
}

TEST_F(SegmentTest, YoungRegionsTakeSmallSegments) {
  EXPECT_LE(Allocate()->capacity(), kMiB / 2);
  // Few are open at a time.
  while (store_.regions->ReservedBytes(0) < 16 * segment_size_) ASSERT_TRUE(allocator()->Seal(Allocate(), 0, 0).ok());
  EXPECT_EQ(Allocate()->capacity(), segment_size_ - 128);
}

TEST_F(SegmentTest, SegmentSizeIsChecked) {
  std::unique_ptr<SegmentAllocator> other;
  EXPECT_TRUE(SegmentAllocator::Open(store_.regions.get(), kSmallSegment - 1, &other).IsInvalidArgument());
  EXPECT_TRUE(SegmentAllocator::Open(store_.regions.get(), (1ull << 30) + 1, &other).IsInvalidArgument());
}

TEST_F(SegmentTest, AnEmptyDatabaseWithASegmentIsSmall) {
  segment_size_ = 8 * kMiB;
  Reopen();
  Allocate();
  EXPECT_LT(store_.regions->ReservedBytes(0), 16 * kMiB);
}

// ---- Generations

// [CC-33]
// Nor are they those of another region or database, whose log may be in a value here: its bytes would pass as entries.
TEST_F(SegmentTest, GenerationsBeginSomewhereElseInEveryRegion) {
  options_.regions = 4;
  std::vector<uint64_t> generations;
  for (int database = 0; database < 8; ++database) {
    options_.database_path = dir_.Sub("other" + std::to_string(database));
    Reopen();
    for (uint32_t region = 0; region < 4; ++region) generations.push_back(Allocate(1, region)->generation());
  }
  std::sort(generations.begin(), generations.end());
  // Of 2^40 places, 32 near each other or near the beginning would be a wonder.
  uint64_t before = 0;
  for (const uint64_t generation : generations) {
    EXPECT_GT(generation - before, 100'000u);
    before = generation;
  }
}

TEST_F(SegmentTest, GenerationsNeverRepeat) {
  segment_size_ = kSmallSegment;
  std::set<uint64_t> seen;
  for (int round = 0; round < 5; ++round) {
    Reopen();
    for (int i = 0; i < 100; ++i) {
      Segment* const segment = Allocate();
      EXPECT_TRUE(seen.insert(segment->generation()).second);
      ASSERT_TRUE(allocator()->Release(segment).ok());
    }
    store_ = Store();
    // The same in a process that dies.
    int pipes[2];
    ASSERT_EQ(pipe(pipes), 0);
    EXPECT_EQ(RunInChild([&] {
                Store child;
                if (!Store::Open(options_, segment_size_, &child).ok()) return 1;
                for (int i = 0; i < 10; ++i) {
                  Segment* segment = nullptr;
                  if (!child.allocator->Allocate(0, 1, &segment).ok()) return 2;
                  const uint64_t generation = segment->generation();
                  if (write(pipes[1], &generation, sizeof(generation)) != sizeof(generation)) return 3;
                }
                return 0;
              }),
              0);
    for (int i = 0; i < 10; ++i) {
      uint64_t generation = 0;
      ASSERT_EQ(read(pipes[0], &generation, sizeof(generation)), static_cast<ssize_t>(sizeof(generation)));
      EXPECT_TRUE(seen.insert(generation).second);
    }
    close(pipes[0]);
    close(pipes[1]);
    EXPECT_TRUE(PoolIsConsistent(SetPath()));
  }
}

// ---- Free segments

TEST_F(SegmentTest, ReusesTheBestFit) {
  Segment* const large = Allocate(kMiB - 128);
  Segment* const middle = Allocate(kMiB / 2 + 1);
  for (Segment* segment : {large, middle}) ASSERT_TRUE(allocator()->Release(segment).ok());
  EXPECT_EQ(Allocate(kMiB / 2 + 1), middle);
  EXPECT_EQ(Allocate(kMiB / 2 + 1), large);  // wastes less than half
}

TEST_F(SegmentTest, AMuchLargerFreeSegmentIsLeftForOthers) {
  segment_size_ = 4 * kMiB;
  Reopen();
  Segment* const large = Allocate(4 * kMiB - 128);
  ASSERT_TRUE(allocator()->Release(large).ok());
  Segment* const small = Allocate();
  EXPECT_NE(small, large);
  EXPECT_EQ(Allocate(3 * kMiB), large);
}

TEST_F(SegmentTest, LargeSegmentsGoBackToThePool) {
  Region* const region = store_.regions->impl()->region(0);
  Allocate();
  const std::set<uint64_t> before = PoolObjects(region);
  Segment* const big = Allocate(5 * kMiB);
  const PmPtr start = big->ptr(0);
  EXPECT_EQ(big->capacity(), 5 * kMiB + kSmallSegment - 128);
  EXPECT_EQ(allocator()->Find(start + 3 * kMiB), big);
  ASSERT_TRUE(allocator()->Release(big).ok());
  EXPECT_EQ(PoolObjects(region), before);
  EXPECT_EQ(allocator()->Find(start), nullptr);
  EXPECT_EQ(allocator()->Find(start + 3 * kMiB), nullptr);
  EXPECT_EQ(allocator()->GetUsage(0).free_segments, 0u);
  // Its place is usable for others, its slot and handle too.
  const uint64_t reserved = store_.regions->ReservedBytes(0);
  for (int i = 0; i < 500; ++i) {
    Segment* const again = Allocate(5 * kMiB);
    ASSERT_EQ(allocator()->Find(again->ptr(1 * kMiB)), again);
    ASSERT_TRUE(allocator()->Release(again).ok());
  }
  EXPECT_LE(store_.regions->ReservedBytes(0), reserved);
  EXPECT_EQ(PoolObjects(region), before);
}

// Of values of all sizes beyond segment_size: each place where a segment can start has one handle.
TEST_F(SegmentTest, HandlesAreAsManyAsPlaces) {
  segment_size_ = kSmallSegment;
  Reopen();
  std::mt19937_64 random(3);
  std::set<const Segment*> handles;
  std::set<uint64_t> starts;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t bytes = kMiB + random() % (8 * kMiB);
    Segment* const segment = Allocate(bytes);
    EXPECT_GE(segment->capacity(), bytes);
    EXPECT_EQ(allocator()->Find(segment->ptr(segment->capacity() - 1)), segment);
    EXPECT_NE(allocator()->Find(segment->ptr(segment->capacity() + 256)), segment);
    handles.insert(segment);
    starts.insert(segment->ptr(0).offset());
    ASSERT_TRUE(allocator()->Release(segment).ok());
    EXPECT_EQ(allocator()->Find(segment->ptr(0)), nullptr);
  }
  EXPECT_EQ(handles.size(), starts.size());
  Reopen();
  ExpectNoLeak();
}

TEST_F(SegmentTest, FreeSegmentsMergeForALargeRequestWhenTheRegionIsFull) {
  options_ = PmemOptions(dir_.Sub("full"), 1, kMinRegionSize);
  segment_size_ = kSmallSegment;
  Reopen();
  std::vector<Segment*> segments;
  for (Segment* segment = nullptr; allocator()->Allocate(0, 1, &segment).ok();) segments.push_back(segment);
  Segment* big = nullptr;
  EXPECT_TRUE(allocator()->Allocate(0, 4 * kMiB, &big).IsNoSpace());
  for (size_t i = 0; i < segments.size(); ++i) {
    if (i % 40 != 0) {
      ASSERT_TRUE(allocator()->Release(segments[i]).ok());
    }
  }
  ASSERT_NE(Allocate(4 * kMiB), nullptr);
  ExpectNoLeak();
}

TEST_F(SegmentTest, SparesAreTakenWithoutGrowth) {
  allocator()->PrepareSpares(0, 3);
  EXPECT_EQ(allocator()->GetUsage(0).free_segments, 3u);
  allocator()->PrepareSpares(0, 3);
  EXPECT_EQ(allocator()->GetUsage(0).free_segments, 3u);
  const size_t objects = PoolObjects(store_.regions->impl()->region(0)).size();
  for (int i = 0; i < 3; ++i) Allocate();
  EXPECT_EQ(PoolObjects(store_.regions->impl()->region(0)).size(), objects);
  EXPECT_EQ(allocator()->GetUsage(0).free_segments, 0u);
}

TEST_F(SegmentTest, TouchingASpareKeepsItsBytes) {
  Segment* const segment = Allocate();
  std::memset(segment->data(), 9, segment->capacity());
  ASSERT_TRUE(allocator()->Release(segment).ok());
  Reopen();
  allocator()->PrepareSpares(0, 1);
  Segment* const again = Allocate();
  EXPECT_EQ(std::string(reinterpret_cast<char*>(again->data()), again->capacity()), std::string(again->capacity(), 9));
}

TEST_F(SegmentTest, PlentyOfFreeSegmentsMakeRoomForALargeOne) {
  segment_size_ = kSmallSegment;
  Reopen();
  std::vector<Segment*> segments;
  for (int i = 0; i < 200; ++i) segments.push_back(Allocate());
  for (Segment* segment : segments) ASSERT_TRUE(allocator()->Release(segment).ok());
  const uint64_t reserved = store_.regions->ReservedBytes(0);
  Allocate(10 * kMiB);
  EXPECT_EQ(store_.regions->ReservedBytes(0), reserved);
  EXPECT_EQ(allocator()->GetUsage(0).free_segments, 0u);
  ExpectNoLeak();
}

// ---- Releases that wait for readers

TEST_F(SegmentTest, AReleaseWaitsForReadersOnMediaAlone) {
  bool is_read = true;
  int asked = 0;
  allocator()->SetReaderCheck([&](uint64_t) { return ++asked, is_read; });
  Segment* const sealed = Allocate();
  Segment* index = nullptr;
  ASSERT_TRUE(allocator()->AllocateIndex(0, 1, &index).ok());
  ASSERT_TRUE(allocator()->Seal(sealed, 100, 7).ok());
  EXPECT_EQ(asked, 0) << "puts never ask";
  EXPECT_FALSE(allocator()->has_deferred());
  ASSERT_TRUE(allocator()->Release(sealed).ok());
  ASSERT_TRUE(allocator()->Release(index).ok());
  EXPECT_EQ(asked, 2);
  EXPECT_TRUE(allocator()->has_deferred());
  EXPECT_EQ(sealed->state(), SegmentState::kFree);
  EXPECT_EQ(allocator()->recycled_count(), 2u);
  EXPECT_EQ(allocator()->GetUsage(0).segments, 0u);
  EXPECT_EQ(allocator()->GetUsage(0).free_segments, 0u);
  Segment* const other = Allocate();
  EXPECT_TRUE(other != sealed && other != index);
  // What is open, and copies, are freed at once: a crash would replay the one, and may count the others.
  Segment* copies = nullptr;
  ASSERT_TRUE(allocator()->AllocateCopies(0, 1, &copies).ok());
  ASSERT_TRUE(allocator()->Discard(copies).ok());
  ASSERT_TRUE(allocator()->Release(other).ok());
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(allocator()->GetUsage(0).free_segments, 2u);
  ASSERT_TRUE(allocator()->FreeDeferred(false).ok());
  EXPECT_TRUE(allocator()->has_deferred());
  is_read = false;
  ASSERT_TRUE(allocator()->FreeDeferred(false).ok());
  EXPECT_FALSE(allocator()->has_deferred());
  EXPECT_EQ(allocator()->GetUsage(0).free_segments, 4u);
  ExpectNoLeak();
}

// To a crash a release that waits has not begun.
TEST_F(SegmentTest, ACrashForgetsReleasesThatWait) {
  Segment* const sealed = Allocate();
  ASSERT_TRUE(allocator()->Seal(sealed, 100, 7).ok());
  const uint64_t generation = sealed->generation();
  store_ = Store();
  const int code = RunInChild([&] {
    Store child;
    if (!Store::Open(options_, segment_size_, &child).ok()) return 1;
    child.allocator->SetReaderCheck([](uint64_t) { return true; });
    Segment* found = nullptr;
    child.allocator->ForEachLog([&](Segment* segment) { found = segment; });
    return child.allocator->Release(found).ok() && child.allocator->has_deferred() ? 0 : 2;
  });
  EXPECT_EQ(code, 0);
  Reopen();
  ASSERT_EQ(Used().size(), 1u);
  EXPECT_EQ(Used()[0]->state(), SegmentState::kSealed);
  EXPECT_EQ(Used()[0]->generation(), generation);
  ExpectNoLeak();
}

TEST_F(SegmentTest, ReleasesThatWaitGiveWayToAllocations) {
  options_ = PmemOptions(dir_.Sub("full"), 1, kMinRegionSize);
  Reopen();
  allocator()->SetReaderCheck([](uint64_t) { return true; });
  std::vector<Segment*> segments;
  Segment* segment = nullptr;
  while (allocator()->Allocate(0, 1, &segment).ok()) segments.push_back(segment);
  for (Segment* full : segments) {
    ASSERT_TRUE(allocator()->Seal(full, 10, 10).ok());
    ASSERT_TRUE(allocator()->Release(full).ok());
  }
  EXPECT_TRUE(allocator()->has_deferred());
  for (size_t i = 0; i < segments.size(); ++i) Allocate();
  EXPECT_FALSE(allocator()->has_deferred());
  ExpectNoLeak();
}

// A reader that never ends keeps a bounded share of the space.
TEST_F(SegmentTest, TheSpaceThatWaitsForReadersIsBounded) {
  options_ = PmemOptions(dir_.Sub("large"), 1, 256 * kMiB);
  Reopen();
  allocator()->SetReaderCheck([](uint64_t) { return true; });
  std::vector<Segment*> segments;
  for (int i = 0; i < 160; ++i) segments.push_back(Allocate(kMiB / 2));
  for (Segment* segment : segments) ASSERT_TRUE(allocator()->Seal(segment, 10, 10).ok());
  for (Segment* segment : segments) ASSERT_TRUE(allocator()->Release(segment).ok());
  EXPECT_GT(allocator()->GetUsage(0).free_bytes, 8 * kMiB);
  EXPECT_TRUE(allocator()->has_deferred());
}

// ---- Seeds of entries

TEST_F(SegmentTest, EachUseHasASeedOfItsOwn) {
  std::set<uint64_t> seeds;
  for (int i = 0; i < 100; ++i) {
    Segment* const segment = Allocate();
    EXPECT_TRUE(seeds.insert(segment->entry_seed()).second);
    EXPECT_GE(segment->entry_seed(), uint64_t{1} << 63);
    ASSERT_TRUE(allocator()->Release(segment).ok());
  }
  Segment* const segment = Allocate();
  const uint64_t seed = segment->entry_seed();
  ASSERT_TRUE(allocator()->Seal(segment, 10, 10).ok());
  Reopen();
  EXPECT_EQ(Used().at(0)->entry_seed(), seed);
}

// ---- No space

TEST_F(SegmentTest, NoSpaceLeavesEverythingUsable) {
  options_ = PmemOptions(dir_.Sub("full"), 1, kMinRegionSize);
  Reopen();
  std::vector<Segment*> segments;
  Status status;
  for (;;) {
    Segment* segment = nullptr;
    status = allocator()->Allocate(0, 1000, &segment);
    if (!status.ok()) break;
    std::memset(segment->data(), static_cast<int>(segments.size()), segment->capacity());
    segments.push_back(segment);
  }
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  EXPECT_NE(status.message().find("max_region_size"), std::string::npos);
  uint64_t bytes = 0;
  for (size_t i = 0; i < segments.size(); ++i) {
    EXPECT_EQ(segments[i]->data()[segments[i]->capacity() - 1], static_cast<uint8_t>(i));
    bytes += segments[i]->capacity();
  }
  EXPECT_GT(bytes, kMinRegionSize * 3 / 4);  // little of the region is wasted
  ASSERT_TRUE(allocator()->Seal(segments[1], 10, 10).ok());
  ASSERT_TRUE(allocator()->Release(segments[0]).ok());
  EXPECT_EQ(Allocate(), segments[0]);
  allocator()->PrepareSpares(0, 5);  // silently makes none
  Segment* impossible = nullptr;
  EXPECT_TRUE(allocator()->Allocate(0, 1ull << 40, &impossible).IsInvalidArgument());
  EXPECT_TRUE(allocator()->Allocate(0, UINT64_MAX, &impossible).IsInvalidArgument());
  const size_t count = segments.size();
  Reopen();
  EXPECT_EQ(Used().size(), count);
  ExpectNoLeak();
}

// ---- Find

TEST_F(SegmentTest, FindAgreesWithAModelOverManySizes) {
  segment_size_ = 2 * kMiB;
  Reopen();
  std::mt19937_64 random(1);
  std::map<uint64_t, Segment*> model;  // by start
  const auto check = [&](uint64_t offset) {
    const auto after = model.upper_bound(offset);
    Segment* expected = after == model.begin() ? nullptr : std::prev(after)->second;
    if (expected != nullptr && !expected->Contains(PmPtr(0, offset))) expected = nullptr;
    ASSERT_EQ(allocator()->Find(PmPtr(0, offset)), expected) << offset;
  };
  for (int i = 0; i < 200; ++i) {
    if (model.size() > 20) {
      auto victim = std::next(model.begin(), static_cast<long>(random() % model.size()));
      const bool returned = victim->second->capacity() > segment_size_;
      ASSERT_TRUE(allocator()->Release(victim->second).ok());
      if (returned) model.erase(victim);
    }
    Segment* const segment = Allocate(random() % (random() % 3 == 0 ? 8 * kMiB : kMiB));
    model[segment->ptr(0).offset()] = segment;
    for (const auto& [start, one] : model) {
      check(start - 8);
      check(start);
      check(start + one->capacity() - 8);
      check(start + one->capacity());
    }
    for (int k = 0; k < 50; ++k) check(random() % (512 * kMiB) / 8 * 8);
    // Everything released but kept is allocated again now and then, so that the model has no kFree segments of its own kind.
    std::vector<Segment*> kept;
    for (const auto& [start, one] : model) {
      if (one->state() == SegmentState::kFree) kept.push_back(one);
    }
    for (Segment* one : kept) {
      Segment* const again = Allocate(one->capacity());
      model[again->ptr(0).offset()] = again;
    }
  }
  EXPECT_EQ(allocator()->Find(PmPtr(1, 4096)), nullptr);
  EXPECT_EQ(allocator()->Find(PmPtr(UINT64_MAX - 7)), nullptr);
}

}  // namespace
}  // namespace braiddb::test
