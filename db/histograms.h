// Histograms of single threads, which add up to Histograms in braiddb/statistics.h.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "braiddb/statistics.h"
#include "util/concurrent_histogram.h"

namespace braiddb {

// The histograms of one thread. Durations are in nanoseconds.
class ThreadHistograms {
 public:
  void Add(HistogramKind kind, uint64_t value) { all_[static_cast<size_t>(kind)].Add(value); }
  void AddTo(Histograms* histograms) const;

 private:
  std::array<ConcurrentHistogram, kHistogramKinds> all_;
};

// Histograms that are allocated at the first value.
// Thread safety: one thread may call GetOrMake; any thread may call Get.
class LazyHistograms {
 public:
  LazyHistograms() = default;
  LazyHistograms(const LazyHistograms&) = delete;
  LazyHistograms& operator=(const LazyHistograms&) = delete;
  ~LazyHistograms() { delete Get(); }

  // May be null. acquire: pairs with the release in GetOrMake.
  const ThreadHistograms* Get() const { return made_.load(std::memory_order_acquire); }
  // Null if there is no memory.
  ThreadHistograms* GetOrMake();

 private:
  std::atomic<ThreadHistograms*> made_{nullptr};
};

}  // namespace braiddb
