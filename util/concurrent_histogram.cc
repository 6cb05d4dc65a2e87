#include "util/concurrent_histogram.h"

#include <algorithm>

namespace braiddb {

// The count is the sum of the buckets that were read, so that percentiles are consistent.
void ConcurrentHistogram::AddTo(Histogram* all) const {
  for (size_t i = 0; i < Histogram::kBuckets; ++i) {
    const uint64_t count = buckets_[i].load(std::memory_order_relaxed);
    all->buckets_[i] += count;
    all->count_ += count;
  }
  all->min_ = std::min(all->min_, min_.load(std::memory_order_relaxed));
  all->max_ = std::max(all->max_, max_.load(std::memory_order_relaxed));
  all->sum_ += sum_.load(std::memory_order_relaxed);
  all->sum_of_squares_ += sum_of_squares_.load(std::memory_order_relaxed);
}

}  // namespace braiddb
