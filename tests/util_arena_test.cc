// Arenas: what they give is zero, whatever was there before.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
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
  EXPECT_NE(arena->AllocateBlock(4096 * kMiB), 0u);
  EXPECT_EQ(arena->AllocateBlock(4096 * kMiB), 0u) << "8 GiB less what is left out at the begin";
  EXPECT_EQ(arena->AllocateBlock(8), 0u);
  arena->Reset(0);
  ExpectZerosAndFill(arena.get(), kMiB);
}

}  // namespace
}  // namespace braiddb
