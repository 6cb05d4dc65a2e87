// ConcurrentHistogram: a Histogram to which one thread adds while others read it.
#pragma once

#include <atomic>
#include <cstdint>

#include "util/histogram.h"

namespace braiddb {

// CONCURRENCY  Add: one thread at a time; each sees the additions of the one before. AddTo: any thread; it may miss parts of
//              concurrent additions.
class ConcurrentHistogram {
 public:
  void Add(uint64_t value) {
    Increase(&buckets_[Histogram::BucketOf(value)], uint64_t{1});
    if (value < min_.load(std::memory_order_relaxed)) min_.store(value, std::memory_order_relaxed);
    if (value > max_.load(std::memory_order_relaxed)) max_.store(value, std::memory_order_relaxed);
    const auto x = static_cast<double>(value);
    Increase(&sum_, x);
    Increase(&sum_of_squares_, x * x);
  }
  void AddTo(Histogram* all) const;

 private:
  // There is one writer, so a load and a store are enough.
  template <class Number>
  static void Increase(std::atomic<Number>* number, Number by) {
    number->store(number->load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  std::atomic<uint64_t> buckets_[Histogram::kBuckets] = {};
  std::atomic<uint64_t> min_{UINT64_MAX};
  std::atomic<uint64_t> max_{0};
  std::atomic<double> sum_{0};
  std::atomic<double> sum_of_squares_{0};
};

}  // namespace braiddb
