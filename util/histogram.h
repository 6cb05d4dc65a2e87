// Histogram: a distribution of numbers, for example latencies, in buckets whose width grows with the number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace braiddb {

// ACCURACY     A bucket is at most 1/16 as wide as its numbers, so a percentile is off by at most 6 %.
// COST         An addition takes a few nanoseconds and never allocates.
// CONCURRENCY  const methods may be called concurrently. Each thread should have its own histogram, to be merged.
class Histogram {
 public:
  void Add(uint64_t value) {
    ++buckets_[BucketOf(value)];
    if (value < min_) min_ = value;
    if (value > max_) max_ = value;
    ++count_;
    const auto x = static_cast<double>(value);
    sum_ += x;
    sum_of_squares_ += x * x;
  }
  void Merge(const Histogram& other);
  void Clear() { *this = Histogram(); }

  uint64_t count() const { return count_; }
  uint64_t min() const { return count_ == 0 ? 0 : min_; }
  uint64_t max() const { return max_; }
  double Sum() const { return sum_; }
  double Average() const;
  double StandardDeviation() const;
  // `percentile`: in (0, 100]. Interpolates within the bucket; the result is within [min, max]. 0 if the histogram is empty.
  double Percentile(double percentile) const;

  // Calls f(lower, upper, count) for each non-empty bucket in order; its numbers are in [lower, upper).
  template <class Function>
  void ForEachBucket(Function f) const {
    for (size_t i = 0; i < kBuckets; ++i) {
      if (buckets_[i] > 0) f(LowerBound(i), UpperBound(i), buckets_[i]);
    }
  }

  // Count, average, deviation, extremes, percentiles and non-empty buckets in RocksDB's layout. RocksDB has whole numbers only:
  // the minimum is rounded down and the maximum up. A bucket of RocksDB's contains the buckets whose middle is within its bounds.
  // Numbers are divided by `unit` first: 1000 prints nanoseconds as microseconds.
  std::string ToString(double unit = 1) const;

 private:
  friend class ConcurrentHistogram;

  static constexpr int kSubBits = 4;
  static constexpr size_t kSub = size_t{1} << kSubBits;
  // Numbers below kSub have a bucket each. Larger ones have kSub buckets per power of two.
  static constexpr size_t kBuckets = kSub + (64 - kSubBits) * kSub;

  static size_t BucketOf(uint64_t value) {
    if (value < kSub) return value;
    const int shift = 63 - __builtin_clzll(value) - kSubBits;
    return (static_cast<size_t>(shift) + 1) * kSub + ((value >> shift) & (kSub - 1));
  }
  static double LowerBound(size_t bucket);
  static double UpperBound(size_t bucket) { return LowerBound(bucket + 1); }

  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
  uint64_t min_ = UINT64_MAX;
  uint64_t max_ = 0;
  double sum_ = 0;
  double sum_of_squares_ = 0;
};

}  // namespace braiddb
