// mixgraph against what RocksDB's db_bench did: the same distributions, by figures that were taken from its traces once.
//
// The figures are of db_bench 7.8.3 (Debian 12, package rocksdb-tools):
//   db_bench --benchmarks=fillseq,mixgraph --num=300000 --reads=1000000 --key_size=48 --key_dist_a=0.002312 --key_dist_b=0.3467
//     --value_k=0.2615 --value_sigma=25.45 --iter_k=2.517 --iter_sigma=14.236 --mix_get_ratio=0.5 --mix_put_ratio=0.45
//     --mix_seek_ratio=0.05 --trace_file=… and
//   with ranges: --keyrange_dist_a=14.18 --keyrange_dist_b=-2.917 --keyrange_dist_c=0.0164 --keyrange_dist_d=-0.08082
//     --keyrange_num=30 --seed=11
//   without: --keyrange_num=1 --seed=12
// Counted from the trace, by key and by size of the value in each record; the lengths of scans are in its result line only.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "db_bench/mixgraph.h"
#include "db_bench/rate.h"
#include "util/random.h"

namespace braiddb::bench {
namespace {

constexpr uint64_t kKeys = 300000;
constexpr int kQueries = 1000000;

MixParameters Parameters(bool ranges) {
  MixParameters parameters;
  parameters.key_dist_a = 0.002312;
  parameters.key_dist_b = 0.3467;
  if (ranges) {
    parameters.keyrange_dist_a = 14.18;
    parameters.keyrange_dist_b = -2.917;
    parameters.keyrange_dist_c = 0.0164;
    parameters.keyrange_dist_d = -0.08082;
    parameters.keyrange_num = 30;
  }
  parameters.get_ratio = 0.5;
  parameters.put_ratio = 0.45;
  parameters.seek_ratio = 0.05;
  return parameters;
}

struct Drawn {
  std::array<int, 3> operations{};
  std::map<int64_t, int> keys;
  std::vector<uint32_t> value_sizes;  // ascending
  double steps = 0;                   // with ranges
};

Drawn Draw(const MixParameters& parameters) {
  const MixGenerator generator(parameters, kKeys);
  Random random(5);
  Drawn drawn;
  for (int i = 0; i < kQueries; ++i) {
    const MixQuery query = generator.Make(random.Uniform(kKeys));
    ++drawn.operations[static_cast<size_t>(query.operation)];
    ++drawn.keys[static_cast<int64_t>(query.key)];
    if (query.operation == MixOperation::kPut) drawn.value_sizes.push_back(query.length);
    // Scans end behind the last key.
    if (query.operation == MixOperation::kSeek)
      drawn.steps += static_cast<double>(std::min(query.length + query.key, kKeys) - query.key);
  }
  std::sort(drawn.value_sizes.begin(), drawn.value_sizes.end());
  return drawn;
}

// Two counts of so many independent draws, one here and one there: six standard deviations of their difference.
void ExpectAlike(int here, int there, const char* what) {
  EXPECT_NEAR(here, there, 6 * std::sqrt(2.0 * std::max(there, 1))) << what;
}

// Shares of the hottest keys of all queries, each for the first so many keys.
std::map<size_t, double> SharesOfHottest(const Drawn& drawn) {
  std::vector<int> counts;
  for (const auto& [key, count] : drawn.keys) counts.push_back(count);
  std::sort(counts.rbegin(), counts.rend());
  std::map<size_t, double> shares;
  double sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    sum += counts[i];
    for (const size_t mark : {1u, 10u, 100u, 1000u, 10000u, 30000u}) {
      if (i + 1 == mark) shares[mark] = sum / kQueries;
    }
  }
  return shares;
}

void ExpectShares(const std::map<size_t, double>& here, const std::map<size_t, double>& there) {
  ASSERT_EQ(here.size(), there.size());
  for (const auto& [keys, share] : there) EXPECT_NEAR(here.at(keys), share, 0.002 + share * 0.02) << keys;
}

void ExpectValueSizes(const std::vector<uint32_t>& sizes, double mean, const std::map<double, uint32_t>& quantiles) {
  EXPECT_EQ(sizes.front(), 10u);
  double sum = 0;
  for (const uint32_t size : sizes) sum += size;
  EXPECT_NEAR(sum / static_cast<double>(sizes.size()), mean, 0.3);
  const auto count = static_cast<double>(sizes.size());
  for (const auto& [quantile, size] : quantiles) {
    // Six standard deviations of the ranks.
    const double distance = 6 * std::sqrt(2 * quantile * (1 - quantile) / count);
    EXPECT_LE(sizes[static_cast<size_t>(count * (quantile - distance))], size) << quantile;
    EXPECT_GE(sizes[static_cast<size_t>(count * (quantile + distance))], size) << quantile;
  }
}

TEST(MixGraph, RangesAreHitAsByRocksDB) {
  const Drawn drawn = Draw(Parameters(true));
  constexpr std::array<int, 30> kHits = {1571, 2935, 4510, 1490,  1463, 1521, 1532,  10601, 2978, 14868,
                                         1612, 7638, 5958, 4517,  9141, 7531, 11765, 3039,  5992, 4506,
                                         7510, 1565, 1479, 57167, 4396, 3064, 2967,  8892,  1507, 806285};
  std::array<int, 30> hits{};
  for (const auto& [key, count] : drawn.keys) hits.at(static_cast<size_t>(key) / (kKeys / 30)) += count;
  for (size_t i = 0; i < hits.size(); ++i) ExpectAlike(hits[i], kHits[i], std::to_string(i).c_str());
  EXPECT_NEAR(static_cast<double>(drawn.keys.size()), 40482, 500);
  ExpectShares(SharesOfHottest(drawn),
               {{1, 0.00217}, {10, 0.00735}, {100, 0.04325}, {1000, 0.2652}, {10000, 0.88102}, {30000, 0.98}});
}

TEST(MixGraph, OperationsSizesAndLengthsAreRocksDBs) {
  const Drawn drawn = Draw(Parameters(true));
  ExpectAlike(drawn.operations[0], 499696, "gets");
  ExpectAlike(drawn.operations[1], 450105, "puts");
  ExpectAlike(drawn.operations[2], 50199, "seeks");
  ExpectValueSizes(drawn.value_sizes, 35.8, {{0.25, 10}, {0.5, 20}, {0.75, 43}, {0.9, 80}, {0.99, 214}, {0.999, 390}});
  // Lengths have a standard deviation of some 1,500.
  EXPECT_NEAR(drawn.steps / drawn.operations[2], 449.3, 60);
}

// Half of the keys are negative numbers there: RocksDB takes the remainder of a signed number.
TEST(MixGraph, KeysWithoutRangesAreRocksDBs) {
  const Drawn drawn = Draw(Parameters(false));
  int negative = 0;
  for (const auto& [key, count] : drawn.keys) {
    if (key < 0) negative += count;
    EXPECT_LT(std::abs(key), static_cast<int64_t>(kKeys));
  }
  EXPECT_NEAR(negative, 500300, 3000);
  EXPECT_NEAR(static_cast<double>(drawn.keys.size()), 224386, 1500);
  ExpectShares(SharesOfHottest(drawn),
               {{1, 0.00228}, {10, 0.00502}, {100, 0.0116}, {1000, 0.03038}, {10000, 0.13734}, {30000, 0.30486}});
  ExpectValueSizes(drawn.value_sizes, 35.9, {{0.25, 10}, {0.5, 20}, {0.75, 43}, {0.9, 81}, {0.99, 215}, {0.999, 391}});
}

// Against the distribution function of the law, which RocksDB's figures do not show alone.
TEST(MixGraph, ScanLengthsFollowTheLaw) {
  MixParameters parameters = Parameters(true);
  parameters.get_ratio = parameters.put_ratio = 0;
  parameters.seek_ratio = 1;
  const MixGenerator generator(parameters, kKeys);
  std::vector<int> shorter(10001);
  for (uint64_t draw = 1; draw < kKeys; ++draw) {
    const MixQuery query = generator.Make(draw);
    ASSERT_EQ(query.operation, MixOperation::kSeek);
    ASSERT_LT(query.length, 10000u);
    ++shorter[query.length];
  }
  // The survival function is (1 + k·x/σ)^(-1/k); what exceeds 10,000 is spread below it by the remainder.
  const auto survives = [&](double x) {
    return std::pow(1 + parameters.iter_k * x / parameters.iter_sigma, -1 / parameters.iter_k);
  };
  double drawn = 0;
  for (int length = 0; length <= 9000; ++length) {
    drawn += static_cast<double>(shorter[static_cast<size_t>(length)]) / static_cast<double>(kKeys);
    if (length % 50 != 0 || length == 0) continue;
    // At least those that the law has so short; at most those and the ones that are folded.
    const double least = 1 - survives(length);
    EXPECT_GE(drawn, least - 0.002) << length;
    EXPECT_LE(drawn, least + survives(10000) + 0.002) << length;
  }
}

// Ranges by another computation: their weights in any order, and the same order for the same law.
TEST(MixGraph, RangesHaveTheLawsWeights) {
  const MixGenerator generator(Parameters(true), kKeys);
  std::vector<double> law;
  for (int i = 1; i <= 30; ++i) law.push_back(14.18 * std::exp(-2.917 * i) + 0.0164 * std::exp(-0.08082 * i));
  std::vector<uint64_t> weights;
  uint64_t start = 0;
  for (const KeyRange& range : generator.ranges()) {
    EXPECT_EQ(range.start, start);
    start += range.weight;
    weights.push_back(range.weight);
  }
  EXPECT_EQ(start, generator.total());
  std::sort(weights.rbegin(), weights.rend());
  std::sort(law.rbegin(), law.rend());
  const double scale = std::floor(1 / law.back()) + 1;
  for (size_t i = 0; i < law.size(); ++i) EXPECT_EQ(weights[i], static_cast<uint64_t>(law[i] * scale)) << i;
}

TEST(MixGraph, FirstMersenneNumberIsTheStandardLibrarys) {
  Random random(3);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t seed = i < 10 ? static_cast<uint64_t>(i) : random.Next();
    EXPECT_EQ(FirstMersenneNumber(seed), std::mt19937_64(seed)()) << seed;
  }
  EXPECT_EQ(FirstMersenneNumber(UINT64_MAX), std::mt19937_64(UINT64_MAX)());
}

TEST(MixGraph, SizesStayInBounds) {
  MixParameters parameters;
  parameters.get_ratio = 0;
  parameters.put_ratio = 1;
  for (const double k : {0.0, 0.2615, 3.0}) {
    for (const int64_t most : {1, 5, 11, 1024, 1 << 30}) {
      parameters.value_k = k;
      parameters.max_value_size = most;
      const MixGenerator generator(parameters, 1000);
      for (uint64_t draw = 0; draw < 1000; ++draw) {
        const MixQuery query = generator.Make(draw);
        EXPECT_EQ(query.key, draw);
        EXPECT_LE(query.length, std::max<int64_t>(10, std::min<int64_t>(most, 1 << 20)));
      }
    }
  }
}

TEST(SinePace, RequestsTakeAsLongAsTheRateSays) {
  SineParameters parameters;
  parameters.active = true;
  parameters.a = 2000;
  parameters.b = 3;
  parameters.d = 20000;
  parameters.interval_ms = 20;
  MixParameters mix;
  mix.get_ratio = 0.5;
  mix.put_ratio = 0.5;
  SinePace pace(parameters, mix, 1);
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < 50; ++i) {  // 10,000 operations
    pace.RequestReads();
    pace.RequestWrites();
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  // The last request waits for those before it only: 9,900 operations at 22,000 a second at most.
  EXPECT_GE(seconds, 0.44);
  ASSERT_GT(pace.demands().size(), 5u);
  for (const SineRate::Demand& demand : pace.demands()) {
    EXPECT_NEAR(demand.rate, 20000 + 2000 * std::sin(3 * demand.seconds), 1e-6);
  }
}

TEST(SinePace, NoiseIsHalfOfTheAmplitudeAtMost) {
  SineParameters parameters;
  parameters.active = true;
  parameters.a = 100000;
  parameters.b = 0;
  parameters.d = 1e6;
  parameters.interval_ms = 1;
  parameters.noise = 0.5;
  SinePace pace(parameters, MixParameters(), 1);
  while (pace.demands().size() < 50) pace.RequestReads();
  double least = 1e9, most = 0;
  for (const SineRate::Demand& demand : pace.demands()) {
    least = std::min(least, demand.rate);
    most = std::max(most, demand.rate);
  }
  EXPECT_GE(least, 1e6 - 25000);
  EXPECT_LE(most, 1e6 + 25000);
  EXPECT_GT(most - least, 10000);
}

TEST(RateLimiter, WhoComesLateHasAnEarlierStart) {
  RateLimiter limiter(100);
  ASSERT_TRUE(limiter.active());
  const Clock::time_point start = limiter.Request(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  // Due after 10 ms.
  const Clock::time_point late = limiter.Request(1);
  EXPECT_GE(late - start, std::chrono::milliseconds(9));
  EXPECT_LT(late - start, std::chrono::milliseconds(11));
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(50));
  // Those that were due meanwhile do not wait; the one behind them does, and starts when its wait ends.
  while (limiter.Request(1) - start < std::chrono::milliseconds(50)) {
  }
  limiter.Request(30);
  EXPECT_GE(limiter.Request(1) - start, std::chrono::milliseconds(350));
  EXPECT_FALSE(RateLimiter(0).active());
}

// Threads begin some time after the limits are made, on a busy machine much later. Nothing is due in that time.
TEST(RateLimiter, SchedulesStartWithTheFirstRequest) {
  constexpr auto kLate = std::chrono::milliseconds(60);
  SineParameters sine;
  sine.active = true;
  sine.a = 0;
  sine.d = 1000;
  RateLimiter limiter(1000);
  RateLimiter sine_limiter(0, sine);
  SinePace pace(sine, MixParameters(), 1);
  std::this_thread::sleep_for(kLate);
  for (RateLimiter* of : {&limiter, &sine_limiter}) {
    const Clock::time_point start = Clock::now();
    of->Request(30);
    EXPECT_GE(of->Request(1) - start, std::chrono::milliseconds(30));
  }
  const Clock::time_point start = Clock::now();
  pace.RequestReads();
  pace.RequestReads();
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(100));
}

TEST(RateLimiter, FollowsASine) {
  SineParameters sine;
  sine.active = true;
  sine.a = 5000;
  sine.b = 6.2831853;  // a second a turn
  sine.d = 10000;
  sine.interval_ms = 50;
  RateLimiter limiter(0, sine);
  const Clock::time_point start = Clock::now();
  double units = 0;
  for (double seconds = 0; seconds < 1; seconds = std::chrono::duration<double>(Clock::now() - start).count()) {
    limiter.Request(10);
    units += 10;
  }
  // A whole turn: as many as without the sine.
  EXPECT_LE(units, 10000 * 1.15);
  EXPECT_GE(limiter.demands().size(), 5u);
  EXPECT_NEAR(limiter.demands().front().rate, 10000, 500);
  for (const SineRate::Demand& demand : limiter.demands()) EXPECT_NEAR(demand.rate, sine.Rate(demand.seconds), 1);
}

}  // namespace
}  // namespace braiddb::bench
