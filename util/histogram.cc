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

namespace {

// RocksDB's bucket bounds: 1, 2, and 2 times powers of 1.5, rounded down to two digits.
class RocksDbBounds {
 public:
  uint64_t upper() const { return upper_; }
  void Next() {
    if (upper_ == 1) {
      upper_ = 2;
      return;
    }
    exact_ *= 1.5;
    uint64_t power_of_ten = 1;
    for (upper_ = static_cast<uint64_t>(exact_); upper_ / 10 > 10; upper_ /= 10) power_of_ten *= 10;
    upper_ *= power_of_ten;
  }

 private:
  uint64_t upper_ = 1;
  double exact_ = 2;
};

}  // namespace

std::string Histogram::ToString(double unit) const {
  std::string text = Format("Count: %llu Average: %.4f  StdDev: %.2f\n", static_cast<unsigned long long>(count_),
                            Average() / unit, StandardDeviation() / unit);
  text += Format("Min: %.0f  Median: %.4f  Max: %.0f\n", std::floor(static_cast<double>(min()) / unit), Percentile(50) / unit,
                 std::ceil(static_cast<double>(max()) / unit));
  text += Format("Percentiles: P50: %.2f P75: %.2f P99: %.2f P99.9: %.2f P99.99: %.2f\n", Percentile(50) / unit,
                 Percentile(75) / unit, Percentile(99) / unit, Percentile(99.9) / unit, Percentile(99.99) / unit);
  text += "------------------------------------------------------\n";
  RocksDbBounds bounds;
  uint64_t lower = 0, here = 0, cumulative = 0;
  const auto add_row = [&] {
    if (here == 0) return;
    cumulative += here;
    const double percent = 100.0 / static_cast<double>(count_), share = percent * static_cast<double>(here);
    text += Format("%c %7llu, %7llu ] %8llu %7.3f%% %7.3f%% ", lower == 0 ? '[' : '(', static_cast<unsigned long long>(lower),
                   static_cast<unsigned long long>(bounds.upper()), static_cast<unsigned long long>(here), share,
                   percent * static_cast<double>(cumulative));
    text.append(static_cast<size_t>(share / 5 + 0.5), '#').push_back('\n');
  };
  ForEachBucket([&](double begin, double end, uint64_t count) {
    // A bucket with one number is represented by the number.
    const double middle = (end - begin > 1 ? (begin + end) / 2 : begin) / unit;
    while (middle > static_cast<double>(bounds.upper()) && bounds.upper() < UINT64_MAX / 2) {
      add_row();
      lower = bounds.upper();
      bounds.Next();
      here = 0;
    }
    here += count;
  });
  add_row();
  return text;
}

}  // namespace braiddb
