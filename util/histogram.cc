#include "util/histogram.h"

#include <algorithm>
#include <cmath>

#include "util/format.h"

namespace braiddb {

double Histogram::LowerBound(size_t bucket) {
  if (bucket < kSub) return static_cast<double>(bucket);
  const auto shift = static_cast<int>(bucket / kSub) - 1;
  return std::ldexp(static_cast<double>(kSub + bucket % kSub), shift);
}

void Histogram::Merge(const Histogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
  sum_of_squares_ += other.sum_of_squares_;
}

double Histogram::Average() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

double Histogram::StandardDeviation() const {
  if (count_ == 0) return 0;
  const double average = Average();
  return std::sqrt(std::max(0.0, sum_of_squares_ / static_cast<double>(count_) - average * average));
}

double Histogram::Percentile(double percentile) const {
  if (count_ == 0) return 0;
  const double wanted = static_cast<double>(count_) * percentile / 100;
  double seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    if (buckets_[i] == 0) continue;
    const auto in_bucket = static_cast<double>(buckets_[i]);
    if (seen + in_bucket >= wanted) {
      const double position = (wanted - seen) / in_bucket;
      const double value = LowerBound(i) + (UpperBound(i) - LowerBound(i)) * position;
      return std::clamp(value, static_cast<double>(min()), static_cast<double>(max()));
    }
    seen += in_bucket;
  }
  return static_cast<double>(max());
}

std::string Histogram::ToString(double unit) const {
  std::string text = Format("Count: %llu Average: %.4f  StdDev: %.2f\n", static_cast<unsigned long long>(count_),
                            Average() / unit, StandardDeviation() / unit);
  text += Format("Min: %.4g  Median: %.4f  Max: %.7g\n", static_cast<double>(min()) / unit, Percentile(50) / unit,
                 static_cast<double>(max()) / unit);
  text += Format("Percentiles: P50: %.2f P75: %.2f P99: %.2f P99.9: %.2f P99.99: %.2f\n", Percentile(50) / unit,
                 Percentile(75) / unit, Percentile(99) / unit, Percentile(99.9) / unit, Percentile(99.99) / unit);
  text += "------------------------------------------------------\n";
  double cumulative = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    if (buckets_[i] == 0) continue;
    const double share = 100.0 * static_cast<double>(buckets_[i]) / static_cast<double>(count_);
    cumulative += share;
    text += Format("[ %10.3f, %10.3f ) %10llu %7.3f%% %7.3f%% ", LowerBound(i) / unit, UpperBound(i) / unit,
                   static_cast<unsigned long long>(buckets_[i]), share, cumulative);
    text.append(static_cast<size_t>(share / 5 + 0.5), '#').push_back('\n');
  }
  return text;
}

}  // namespace braiddb
