// Histogram and Random.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "util/histogram.h"
#include "util/random.h"

namespace braiddb {
namespace {

TEST(Histogram, EmptyIsAllZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.min(), 0u);
  EXPECT_EQ(histogram.max(), 0u);
  EXPECT_EQ(histogram.Percentile(99), 0);
  EXPECT_EQ(histogram.Average(), 0);
  EXPECT_NE(histogram.ToString().find("Count: 0 "), std::string::npos);
}

TEST(Histogram, ExtremesStayInside) {
  Histogram histogram;
  histogram.Add(0);
  histogram.Add(UINT64_MAX);
  EXPECT_EQ(histogram.min(), 0u);
  EXPECT_EQ(histogram.max(), UINT64_MAX);
  EXPECT_LE(histogram.Percentile(100), static_cast<double>(UINT64_MAX));
  EXPECT_GE(histogram.Percentile(0.001), 0);
}

TEST(Histogram, OneValueIsEveryPercentile) {
  Histogram histogram;
  for (int i = 0; i < 10; ++i) histogram.Add(123456);
  for (const double p : {0.1, 50.0, 99.99, 100.0}) EXPECT_EQ(histogram.Percentile(p), 123456);
  EXPECT_EQ(histogram.Average(), 123456);
  EXPECT_NEAR(histogram.StandardDeviation(), 0, 1);
}

TEST(Histogram, PercentilesAreWithinABucketOfTheTruth) {
  Random random(301);
  Histogram histogram;
  std::vector<uint64_t> values;
  for (int i = 0; i < 100000; ++i) {
    // Over many powers of two.
    values.push_back(random.Next() >> random.Uniform(60));
    histogram.Add(values.back());
  }
  std::sort(values.begin(), values.end());
  for (const double p : {1.0, 10.0, 50.0, 75.0, 99.0, 99.9}) {
    const auto exact = static_cast<double>(values[static_cast<size_t>(static_cast<double>(values.size()) * p / 100) - 1]);
    EXPECT_NEAR(histogram.Percentile(p), exact, exact / 15 + 1) << p;
  }
}

TEST(Histogram, MergeEqualsAddingAll) {
  Random random(7);
  Histogram all, even, odd;
  for (int i = 0; i < 10000; ++i) {
    const uint64_t value = random.Uniform(1000000);
    all.Add(value);
    (i % 2 == 0 ? even : odd).Add(value);
  }
  even.Merge(odd);
  EXPECT_EQ(even.ToString(), all.ToString());
  even.Merge(Histogram());
  EXPECT_EQ(even.ToString(), all.ToString());
}

TEST(Histogram, PrintsTheLinesOfRocksDB) {
  Histogram histogram;
  for (uint64_t i = 1; i <= 1000; ++i) histogram.Add(i * 1000);
  const std::string text = histogram.ToString(1000);
  EXPECT_EQ(text.find("Count: 1000 Average: 500.5000  StdDev: 288.67\nMin: 1  Median: "), 0u) << text;
  EXPECT_NE(text.find("  Max: 1000\nPercentiles: P50: "), std::string::npos) << text;
  EXPECT_NE(text.find(" 100.000% "), std::string::npos) << text;
}

// Whole numbers, however small or large they are, and RocksDB's bounds.
TEST(Histogram, PrintsRocksDBsBuckets) {
  Histogram histogram;
  for (const uint64_t ns : {50u, 900u, 1400u, 7000u, 30000000u}) histogram.Add(ns);
  histogram.Add(50'000'000'000);
  const std::string text = histogram.ToString(1000);
  EXPECT_NE(text.find("Min: 0  Median: "), std::string::npos) << text;
  EXPECT_NE(text.find("  Max: 50000000\n"), std::string::npos) << text;
  const std::string rows = text.substr(text.find("-\n") + 2);
  EXPECT_EQ(rows,
            "[       0,       1 ]        2  33.333%  33.333% #######\n"
            "(       1,       2 ]        1  16.667%  50.000% ###\n"
            "(       6,      10 ]        1  16.667%  66.667% ###\n"
            "(   22000,   33000 ]        1  16.667%  83.333% ###\n"
            "( 49000000, 74000000 ]        1  16.667% 100.000% ###\n");
}

TEST(Random, SameSeedSameSequence) {
  Random a(1), b(1), c(2);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const uint64_t x = a.Next();
    EXPECT_EQ(x, b.Next());
    differs |= x != c.Next();
  }
  EXPECT_TRUE(differs);
}

TEST(Random, UniformCoversItsRangeEvenly) {
  Random random(3);
  uint32_t counts[10] = {};
  for (int i = 0; i < 100000; ++i) ++counts[random.Uniform(10)];
  for (const uint32_t count : counts) EXPECT_NEAR(count, 10000, 500);
  EXPECT_EQ(random.Uniform(1), 0u);
  EXPECT_TRUE(random.OneIn(1));
  for (int i = 0; i < 1000; ++i) {
    const double x = random.NextDouble();
    EXPECT_TRUE(x >= 0 && x < 1);
  }
}

}  // namespace
}  // namespace braiddb
