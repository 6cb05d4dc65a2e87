// SampledLatencies: durations of some calls of one thread, in fixed buckets.
//
// SAMPLING  DBImpl::GetMetrics begins a window of kSampleWindowNs. Calls of users that begin in the window are measured by the
//           observed variants of the read and write paths. The first call that ends behind the window ends the sampling, so
//           no timer is needed. A call outside of a window only loads the flag that it loads in any case (DBImpl::IsObserved).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "metrics/figures.h"
#include "util/thread_counter.h"

namespace braiddb {

inline constexpr uint64_t kSampleWindowNs = 1'000'000;

// Thread safety: Add by the owning thread, AddTo by any.
class SampledLatencies {
 public:
  void Add(uint64_t ns) {
    counts_[BucketOf(ns)].Add(1);
    sum_ns_.Add(ns);
  }
  void AddTo(SampledDurations* durations) const {
    for (size_t i = 0; i < SampledDurations::kBuckets; ++i) durations->counts[i] += counts_[i].value();
    durations->sum_ns += sum_ns_.value();
  }
  // The bucket of SampledDurations.
  static size_t BucketOf(uint64_t ns) {
    constexpr int kFirstBits = std::countr_zero(SampledDurations::kFirstBoundNs);
    const auto bits = static_cast<int>(std::bit_width(ns));
    const int bucket = bits <= kFirstBits ? 0 : (bits - kFirstBits + 1) / 2;
    return std::min(static_cast<size_t>(bucket), SampledDurations::kBuckets - 1);
  }

 private:
  ThreadCounter counts_[SampledDurations::kBuckets];
  ThreadCounter sum_ns_;
};

}  // namespace braiddb
