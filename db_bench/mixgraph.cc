#include "db_bench/mixgraph.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

namespace braiddb::bench {

namespace {

// Like a cast on x86: a value out of range becomes the smallest number.
int64_t RoundUp(double x) {
  const double rounded = std::ceil(x);
  return rounded >= -0x1p63 && rounded < 0x1p63 ? static_cast<int64_t>(rounded) : INT64_MIN;
}

// The rank where the distribution function of the power law reaches `share`.
uint64_t PowerInverse(double share, double a, double b) { return static_cast<uint64_t>(RoundUp(std::pow(share / a, 1 / b))); }

// The value where the generalized Pareto distribution function exceeds `share`.
int64_t ParetoInverse(double share, double theta, double k, double sigma) {
  if (k == 0) return RoundUp(theta - sigma * std::log(share));
  return RoundUp(theta + sigma * (std::pow(share, -k) - 1) / k);
}

// The ratio in thousandths, rounded up.
uint64_t Thousandths(double ratio, double sum) { return static_cast<uint64_t>(std::ceil(1000 * (ratio / sum))); }

}  // namespace

MixGenerator::MixGenerator(const MixParameters& parameters, uint64_t num) : parameters_(parameters), num_(num) {
  const double sum = parameters.get_ratio + parameters.put_ratio + parameters.seek_ratio;
  gets_below_ = Thousandths(parameters.get_ratio, sum);
  puts_below_ = gets_below_ + Thousandths(parameters.put_ratio, sum);
  seeks_below_ = puts_below_ + Thousandths(parameters.seek_ratio, sum);
  if (parameters_.has_ranges()) MakeRanges();
}

// The coldest range is the last of the law and the first here. Then the ranges are shuffled, with a fixed seed.
void MixGenerator::MakeRanges() {
  const auto count = static_cast<uint64_t>(std::max<int64_t>(parameters_.keyrange_num, 1));
  double scale = 0;
  for (uint64_t i = count; i >= 1; --i) {
    const auto x = static_cast<double>(i);
    double weight = parameters_.keyrange_dist_a * std::exp(parameters_.keyrange_dist_b * x) +
                    parameters_.keyrange_dist_c * std::exp(parameters_.keyrange_dist_d * x);
    if (!(weight >= 1e-16)) weight = 0;
    if (scale == 0 && weight > 0) scale = std::floor(1 / weight) + 1;
    ranges_.push_back({0, static_cast<uint64_t>(std::floor(scale * weight))});
    total_ += ranges_.back().weight;
  }
  std::mt19937_64 random(total_);
  for (KeyRange& range : ranges_) std::swap(range, ranges_[random() % count]);
  uint64_t start = 0;
  for (KeyRange& range : ranges_) {
    range.start = start;
    start += range.weight;
  }
}

uint64_t MixGenerator::Key(uint64_t draw) const {
  const double a = parameters_.key_dist_a, b = parameters_.key_dist_b;
  if (a == 0 || b == 0) return draw;
  if (total_ == 0) {
    const double share = static_cast<double>(draw) / static_cast<double>(num_);
    return static_cast<uint64_t>(static_cast<int64_t>(FirstMersenneNumber(PowerInverse(share, a, b))) %
                                 static_cast<int64_t>(num_));
  }
  const auto starts_after = [](uint64_t position, const KeyRange& range) { return position < range.start; };
  const auto after = std::upper_bound(ranges_.begin() + 1, ranges_.end(), draw % total_, starts_after);
  const auto range = static_cast<uint64_t>(after - ranges_.begin()) - 1;
  const uint64_t keys = num_ / ranges_.size();
  const double share = static_cast<double>(draw % keys) / static_cast<double>(keys);
  return keys * range + FirstMersenneNumber(PowerInverse(share, a, b)) % keys;
}

MixOperation MixGenerator::Operation(uint64_t draw) const {
  const uint64_t position = draw % seeks_below_;
  if (position < gets_below_) return MixOperation::kGet;
  return position < puts_below_ ? MixOperation::kPut : MixOperation::kSeek;
}

uint32_t MixGenerator::ValueSize(double share) const {
  const int64_t most = std::min<int64_t>(parameters_.max_value_size, 1 << 20);
  const int64_t size = ParetoInverse(share, parameters_.value_theta, parameters_.value_k, parameters_.value_sigma);
  return static_cast<uint32_t>(size < 10 ? 10 : size > most ? size % most : size);
}

uint32_t MixGenerator::ScanLength(double share) const {
  const int64_t length = ParetoInverse(share, parameters_.iter_theta, parameters_.iter_k, parameters_.iter_sigma);
  return static_cast<uint32_t>(std::max<int64_t>(length % parameters_.max_scan_len, 0));
}

MixQuery MixGenerator::Make(uint64_t draw) const {
  const double share = static_cast<double>(draw) / static_cast<double>(num_);
  const MixOperation operation = Operation(draw);
  uint32_t length = 0;
  if (operation == MixOperation::kPut) length = ValueSize(share);
  if (operation == MixOperation::kSeek) length = ScanLength(share);
  return {Key(draw), length, operation};
}

// Each word of the generator depends on its predecessors. The first number depends on three words.
uint64_t FirstMersenneNumber(uint64_t seed) {
  constexpr int kMiddle = 156;
  constexpr uint64_t kUpperBits = ~uint64_t{0} << 31;
  uint64_t word = seed, second = 0;
  for (uint64_t i = 1; i <= kMiddle; ++i) {
    word = 6364136223846793005u * (word ^ (word >> 62)) + i;
    if (i == 1) second = word;
  }
  const uint64_t mixed = (seed & kUpperBits) | (second & ~kUpperBits);
  uint64_t number = word ^ (mixed >> 1) ^ ((mixed & 1) != 0 ? 0xb5026f5aa96619e9u : 0);
  number ^= (number >> 29) & 0x5555555555555555u;
  number ^= (number << 17) & 0x71d67fffeda60000u;
  number ^= (number << 37) & 0xfff7eee000000000u;
  return number ^ (number >> 43);
}

}  // namespace braiddb::bench
