// The pace of writers where L0 is long.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "db/write_pace.h"

namespace braiddb::test {
namespace {

using std::chrono::milliseconds;

constexpr WritePace::Slope kEven{36, 190, true};
constexpr WritePace::Slope kExact{36, 190, false};
constexpr WritePace::Clock::time_point kStart{std::chrono::hours(1)};

TEST(WritePaceTest, IsNothingWhereL0IsShort) {
  WritePace pace;
  EXPECT_EQ(pace.Next(kEven, -40, kStart), 0);
  EXPECT_EQ(pace.Next(kEven, 0, kStart + milliseconds(10)), 0);
}

TEST(WritePaceTest, MoreThanDoublesWithTwiceAsManyTables) {
  for (const auto& slope : {kEven, kExact}) {
    double before = 0;
    for (double over = 9; over < 300; over *= 2) {
      WritePace pace;
      const double ns = pace.Next(slope, over, kStart);  // the first one has nothing to be evened out with
      EXPECT_GT(ns, 2 * before);
      EXPECT_NEAR(ns, 190 * (std::exp2(over / 36) - 1), 1 + ns / 100);
      before = ns;
    }
    EXPECT_LE(WritePace().Next(slope, 1e9, kStart), 1e6);
  }
}

// As a merge of 80 tables with half a second in which nothing counts down.
TEST(WritePaceTest, EvensOutWhatMergesDoBetweenTables) {
  const auto spread = [](const WritePace::Slope& slope) {
    WritePace pace;
    double least = 1e9, most = 0;
    for (int ms = 0; ms < 20'000; ms += 10) {
      const int phase = ms % 2500;
      const double over = phase < 500 ? 40 + 20 * phase / 500.0 : 60 - 20 * (phase - 500) / 2000.0;
      const double ns = pace.Next(slope, over, kStart + milliseconds(ms));
      if (ms < 5000) continue;
      least = std::min(least, ns);
      most = std::max(most, ns);
    }
    return most / least;
  };
  EXPECT_GT(spread(kExact), 1.6);
  EXPECT_LT(spread(kEven), 1.25);
}

// A burst is not let in for seconds, nor are writers held for seconds when L0 is short again.
TEST(WritePaceTest, FollowsWhatIsMore) {
  WritePace pace;
  pace.Next(kEven, 0, kStart);
  EXPECT_GE(pace.Next(kEven, 100, kStart + milliseconds(1)), 190 * (std::exp2(87 / 36.0) - 1));
  EXPECT_LE(pace.Next(kEven, 0, kStart + milliseconds(2)), 190 * (std::exp2(13 / 36.0) - 1));
  EXPECT_LE(pace.Next(kEven, 0, kStart + std::chrono::seconds(60)), 10);
}

TEST(WritePaceTest, IsExactWhereItBoundsMemory) {
  WritePace pace;
  EXPECT_GT(pace.Next({2, 20, false}, 12, kStart), 1000);
  EXPECT_EQ(pace.Next({2, 20, false}, 0, kStart), 0);
}

}  // namespace
}  // namespace braiddb::test
