// The list of a region's parts, as text.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "pmem/part_list.h"

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

}  // namespace
}  // namespace braiddb
