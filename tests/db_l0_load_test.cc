// L0Load: the pressure on writers by the number of tables, and the progress of a merge.
#include <gtest/gtest.h>

#include "db/l0_load.h"

namespace braiddb::test {
namespace {

constexpr uint32_t kTrigger = 4;
constexpr double kSlowdown = 64;

double PressureOf(uint32_t most, uint32_t sum, uint32_t families) {
  L0Load load;
  load.Set({most, sum, families, 0, 1});
  return load.Pressure(kSlowdown, kTrigger);
}

TEST(L0Load, IsEmptyAtFirst) {
  const L0Load load;
  EXPECT_EQ(load.most(), 0u);
  EXPECT_EQ(load.entries(), 0u);
  EXPECT_EQ(load.oldest_id(), UINT64_MAX);
  EXPECT_EQ(load.NotSettled(), 0u);
  EXPECT_EQ(load.Pressure(kSlowdown, kTrigger), 0);
}

TEST(L0Load, OneFamilyPressesByItsTables) {
  for (const uint32_t tables : {0u, 1u, 63u, 64u, 200u}) EXPECT_EQ(PressureOf(tables, tables, tables > 0 ? 1 : 0), tables);
}

TEST(L0Load, ManyFamiliesPressByTheSum) {
  constexpr uint32_t kFamilies = 10;
  constexpr uint32_t kAllowed = 64 + (kFamilies - 1) * 2 * kTrigger;  // at which the slowdown begins
  EXPECT_LT(PressureOf(20, kAllowed - 1, kFamilies), kSlowdown);
  EXPECT_DOUBLE_EQ(PressureOf(20, kAllowed, kFamilies), kSlowdown);
  // Beyond that point the sum counts twice.
  EXPECT_DOUBLE_EQ(PressureOf(20, 2 * kAllowed, kFamilies), 3 * kSlowdown);
  EXPECT_EQ(PressureOf(500, 510, kFamilies), 500) << "one family alone may press more";
}

TEST(L0Load, AMergeSettlesEntries) {
  L0Load load;
  load.Set({2, 2, 1, 1000, 7});
  EXPECT_EQ(load.NotSettled(), 1000u);
  EXPECT_EQ(load.NotSettledShare(), 1);
  load.settled_counter()->store(250);
  EXPECT_EQ(load.NotSettled(), 750u);
  EXPECT_DOUBLE_EQ(load.NotSettledShare(), 0.75);
  load.Set({1, 1, 1, 100, 8});  // a view without the merged tables, before the counter is reset
  EXPECT_EQ(load.NotSettled(), 0u);
  EXPECT_EQ(load.NotSettledShare(), 0);
}

}  // namespace
}  // namespace braiddb::test
