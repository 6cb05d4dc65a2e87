// Arenas: what they give is zero, whatever was there before.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/failing_calls.h"
#include "util/arena.h"

namespace braiddb {
namespace {

constexpr uint64_t kMiB = 1 << 20;

void ExpectZerosAndFill(Arena* arena, uint64_t bytes) {
  const uint32_t reference = arena->AllocateBlock(bytes);
  ASSERT_NE(reference, 0u);
  auto* const memory = arena->At<char>(reference);
  EXPECT_TRUE(std::all_of(memory, memory + bytes, [](char byte) { return byte == 0; }));
  memset(memory, 0x5a, bytes);
}

TEST(ArenaTest, BlocksAreZeroAfterEachReset) {
  const std::unique_ptr<Arena> arena = Arena::Create();
  ASSERT_NE(arena, nullptr);
  uint64_t used = 0;
  for (const uint64_t keep : {uint64_t{0}, 1 * kMiB, 3 * kMiB, 64 * kMiB, 5 * kMiB, UINT64_MAX}) {
    for (const uint64_t bytes : {uint64_t{8}, uint64_t{4096}, 7 * kMiB, 2 * kMiB}) {
      ExpectZerosAndFill(arena.get(), bytes);
      used += bytes;
    }
    EXPECT_GE(arena->used_bytes(), used);
    arena->Reset(keep);
    EXPECT_LT(arena->used_bytes(), kMiB);
    used = 0;
  }
  ExpectZerosAndFill(arena.get(), 20 * kMiB);
}

uint64_t ResidentBytes(const Arena& arena, uint64_t of) {
  constexpr uint64_t kPage = 4096;
  std::vector<unsigned char> pages(of / kPage);
  EXPECT_EQ(mincore(arena.At<void>(0), of, pages.data()), 0);
  return kPage *
         static_cast<uint64_t>(std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page % 2 != 0; }));
}

// Locked memory, for example, is not taken back.
TEST(ArenaTest, BlocksAreZeroWhenTheSystemKeepsTheMemory) {
  const std::unique_ptr<Arena> arena = Arena::Create();
  ASSERT_NE(arena, nullptr);
  ExpectZerosAndFill(arena.get(), 6 * kMiB);
  test::FailingCalls::Arm(0, EINVAL, test::FailingCalls::kForEver, "madvise");
  arena->Reset(2 * kMiB);
  EXPECT_EQ(test::FailingCalls::failed(), 1);
  test::FailingCalls::Stop();
  ExpectZerosAndFill(arena.get(), 7 * kMiB);
}

TEST(ArenaTest, PopulatedMemoryIsThereAndZero) {
  const std::unique_ptr<Arena> arena = Arena::Create(false);
  ASSERT_NE(arena, nullptr);
  EXPECT_EQ(ResidentBytes(*arena, 8 * kMiB), 0u);
  arena->Populate(3 * kMiB);
  struct utsname system;
  ASSERT_EQ(uname(&system), 0);
  int major = 0, minor = 0;
  ASSERT_EQ(sscanf(system.release, "%d.%d", &major, &minor), 2);
  if (major > 5 || (major == 5 && minor >= 14)) {
    EXPECT_EQ(ResidentBytes(*arena, 8 * kMiB), 3 * kMiB);
  }
  ExpectZerosAndFill(arena.get(), 5 * kMiB);
  arena->Reset(2 * kMiB);
  arena->Populate(0);
  arena->Populate(4 * kMiB);
  ExpectZerosAndFill(arena.get(), 5 * kMiB);
}

TEST(ArenaTest, AFullOneSaysSo) {
  const std::unique_ptr<Arena> arena = Arena::Create();
  ASSERT_NE(arena, nullptr);
  EXPECT_NE(arena->AllocateBlock(2048 * kMiB), 0u);
  EXPECT_EQ(arena->AllocateBlock(2048 * kMiB), 0u) << "8 GiB less what blocks skipped";
  EXPECT_EQ(arena->AllocateBlock(2048 * kMiB), 0u);
  EXPECT_EQ(arena->AllocateBlock(8), 0u);
  arena->Reset(0);
  ExpectZerosAndFill(arena.get(), kMiB);
}

// Blocks of many sizes, in all extents: none shares a byte with another, and each is zero at first.
TEST(ArenaTest, GrowsByExtents) {
  for (const uint64_t first : {64ull << 10, 1ull << 20}) {
    const std::unique_ptr<Arena> arena = Arena::Create(false, first);
    ASSERT_NE(arena, nullptr);
    for (int round = 0; round < 2; ++round) {
      std::vector<std::pair<uint32_t, uint64_t>> blocks;
      for (uint64_t i = 0; i < 3000; ++i) {
        const uint64_t bytes = i % 100 == 99 ? 200'000 : 8 * (1 + i * 37 % 500);
        const uint32_t reference = arena->AllocateBlock(bytes);
        ASSERT_NE(reference, 0u);
        auto* const memory = arena->At<uint8_t>(reference);
        ASSERT_TRUE(std::all_of(memory, memory + bytes, [](uint8_t byte) { return byte == 0; })) << i;
        memset(memory, static_cast<int>(1 + i % 250), bytes);
        blocks.emplace_back(reference, bytes);
      }
      for (uint64_t i = 0; i < blocks.size(); ++i) {
        const auto* const memory = arena->At<uint8_t>(blocks[i].first);
        ASSERT_TRUE(std::all_of(memory, memory + blocks[i].second, [i](uint8_t byte) { return byte == 1 + i % 250; })) << i;
        ASSERT_EQ(arena->At<uint8_t>(blocks[i].first + static_cast<uint32_t>(blocks[i].second / 8) - 1),
                  memory + blocks[i].second - 8);
      }
      arena->Reset(32 << 10);
    }
  }
}

// A thousand small arenas take little address space.
// The arena of another process may be in use for something else already.
TEST(ArenaTest, EachReferenceToAForeignArenaLeadsToMemory) {
  const std::unique_ptr<SharedHeap> heap = SharedHeap::Create();
  ASSERT_NE(heap, nullptr);
  for (const uint64_t first_bytes : {64 * kMiB / 1024, kMiB, 64 * kMiB}) {
    const std::unique_ptr<Arena> arena = Arena::Create(false, first_bytes, heap.get());
    ASSERT_NE(arena, nullptr);
    const std::unique_ptr<SharedMemory> memory = SharedMemory::Attach(heap->memory().OpenToRead(), false, 1, Arena::kGuardBytes);
    ASSERT_NE(memory, nullptr);
    const std::unique_ptr<Arena> foreign = Arena::Attach(memory.get(), arena->heap_offset(), arena->first_bytes());
    ASSERT_NE(foreign, nullptr);
    const uint8_t* const begin = memory->base();
    const uint8_t* const end = begin + memory->bytes() + Arena::kGuardBytes;
    for (const uint64_t word : {uint64_t{0}, uint64_t{1} << 20, memory->bytes() - 1, memory->bytes(), UINT64_MAX}) {
      for (uint64_t i = 0; i < 256 / 8; ++i) reinterpret_cast<uint64_t*>(heap->At(arena->heap_offset()))[i] = word;
      for (uint32_t bit = 0; bit < 32; ++bit) {
        for (const uint32_t reference : {1u << bit, (2u << bit) - 8, UINT32_MAX - (1u << bit) + 1}) {
          const auto* const at = foreign->At<uint8_t>(reference);
          SCOPED_TRACE(std::to_string(reference) + " " + std::to_string(word));
          EXPECT_GE(at, begin);
          EXPECT_LT(at + Arena::kGuardBytes - Arena::kMostInGuard, end);
          EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % 8, 0u);
          if (reference % 8 == 0) {
            EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % 64, 0u);
          }
          EXPECT_EQ(*reinterpret_cast<const volatile uint8_t*>(at) & 0, 0);  // can be read
        }
      }
    }
    memset(heap->At(arena->heap_offset()), 0, 256);
  }
}

TEST(ArenaTest, ReservesWhatItIsTold) {
  const auto mapped_kib = [] {
    std::ifstream statm("/proc/self/statm");
    uint64_t pages = 0;
    statm >> pages;
    return pages * 4;
  };
  const uint64_t before = mapped_kib();
  std::vector<std::unique_ptr<Arena>> arenas;
  for (int i = 0; i < 1000; ++i) {
    arenas.push_back(Arena::Create(false, 64 << 10));
    ASSERT_NE(arenas.back(), nullptr);
    ASSERT_NE(arenas.back()->AllocateBlock(100'000), 0u);
  }
  EXPECT_LT(mapped_kib() - before, 1u << 20);
}

}  // namespace
}  // namespace braiddb
