// The list of a region's parts, as text.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "pmem/part_list.h"
#include "pmem/region_files.h"
#include "tests/support/db_test_util.h"

namespace braiddb {
namespace {

constexpr uint64_t kMiB = 1ull << 20;

TEST(PartListTest, TextAndBack) {
  PartList list;
  list.database_id = 0xfedcba9876543210;
  list.region = 3;
  list.region_count = 4;
  list.parts = {8 * kMiB, 1ull << 40};
  list.next = 5;
  PartList read;
  ASSERT_TRUE(PartList::Parse(list.ToText(), "PARTS", &read).ok());
  EXPECT_EQ(read.ToText(), list.ToText());
  EXPECT_EQ(read.TotalBytes(), 8 * kMiB + (1ull << 40));
  EXPECT_EQ(read.next, 5u);
}

TEST(PartListTest, EveryFlippedOrMissingByteIsFound) {
  PartList list;
  list.database_id = 1;
  list.region_count = 1;
  list.parts = {8 * kMiB};
  const std::string text = list.ToText();
  PartList read;
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] ^= 1;
    EXPECT_FALSE(PartList::Parse(damaged, "PARTS", &read).ok()) << i;
    EXPECT_FALSE(PartList::Parse(text.substr(0, i), "PARTS", &read).ok()) << i;
  }
}

// The image of a region is as large as the sum says, so a sum that wraps would map parts over other memory of the process.
TEST(PartListTest, SizesWhoseSumWrapsAreDamage) {
  const std::vector<std::vector<uint64_t>> damaged = {
      {8 * kMiB, UINT64_MAX - 8 * kMiB + 1, 4 * kMiB}, {UINT64_MAX, 1}, {kMaxTotalBytes, 1}, {kMaxTotalBytes + 1}};
  for (const std::vector<uint64_t>& parts : damaged) {
    PartList list;
    list.database_id = 1;
    list.region_count = 1;
    list.parts = parts;
    PartList read;
    EXPECT_TRUE(PartList::Parse(list.ToText(), "PARTS", &read).IsCorruption()) << list.ToText();
    EXPECT_GE(list.TotalBytes(), kMaxTotalBytes);
    list.parts = {8 * kMiB};
    list.next = UINT64_MAX - 4 * kMiB;
    EXPECT_TRUE(PartList::Parse(list.ToText(), "PARTS", &read).IsCorruption()) << list.ToText();
  }
}

// A region that grows to the largest size, each zone of 16 GiB ended by a part: the list stays as short as an open reads.
TEST(PartListTest, TheListOfTheLargestRegionIsRead) {
  constexpr uint64_t kZoneBytes = 16ull << 30;
  PartList list;
  list.region_count = 1;
  list.parts = {kMiB};
  for (uint64_t reserved = kMiB; reserved < kMaxTotalBytes;) {
    const uint64_t zone_end = (reserved / kZoneBytes + 1) * kZoneBytes;
    const uint64_t bytes = std::min({UsualGrowth(reserved), zone_end - reserved, kMaxTotalBytes - reserved});
    list.parts.push_back(bytes);
    reserved += bytes;
    ASSERT_LT(list.parts.size(), 100'000u) << reserved;
  }
  EXPECT_EQ(list.TotalBytes(), kMaxTotalBytes);
  EXPECT_LE(list.ToText().size(), kMaxPartListBytes);
}

TEST(PartListTest, SmallRegionsDoubleAndLargeOnesGrowByAFixedStep) {
  EXPECT_EQ(UsualGrowth(kMiB), kMiB);
  EXPECT_EQ(UsualGrowth(16 * kMiB), 8 * kMiB);
  EXPECT_EQ(UsualGrowth(4096 * kMiB), 128 * kMiB);
  EXPECT_EQ(UsualGrowth(1ull << 40), 1ull << 30);
}

// An older version has grown the region in small steps. The growth that would make the list too long is refused, and the list
// stays readable.
TEST(PartListTest, AListThatIsFullRefusesAPart) {
  const test::TestDirectory directory;
  PartList list;
  list.region_count = 1;
  list.parts = {kMiB};
  const size_t line = std::string("part 000000.pmem 134217728\n").size();
  list.parts.resize(1 + (kMaxPartListBytes - list.ToText().size()) / line - 2, 128 * kMiB);
  test::WriteFileOrDie(directory.File("PARTS"), list.ToText());
  RegionFiles files(directory.path());
  ASSERT_TRUE(files.ReadList().ok());
  int added = 0;
  Status status;
  for (; status.ok() && added < 4; added += status.ok() ? 1 : 0) {
    status = files.AddPart(64 << 10);
    if (status.ok()) status = files.CommitPart();
  }
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  EXPECT_GE(added, 1);
  EXPECT_LT(added, 4);
  RegionFiles again(directory.path());
  EXPECT_TRUE(again.ReadList().ok());
  EXPECT_EQ(again.list().parts.size(), list.parts.size() + static_cast<size_t>(added));
  EXPECT_EQ(test::ListFiles(directory.path()).size(), 1u + static_cast<size_t>(added));
}

}  // namespace
}  // namespace braiddb
