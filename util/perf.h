// How the engine counts for a thread's PerfContext.
#pragma once

#include <chrono>
#include <cstdint>

#include "braiddb/perf_context.h"

namespace braiddb::perf {

// Of trivial types with constant initializers, as t_thread_index: one load, without a guard.
extern constinit thread_local PerfLevel t_level;
extern constinit thread_local bool t_counts;  // whether t_level counts anything
extern constinit thread_local PerfContext t_context;

// The one look that a call pays which counts nothing.
inline bool Counts() { return __builtin_expect(t_counts, 0); }
inline bool Times() { return __builtin_expect(t_level >= PerfLevel::kEnableTimeExceptForMutex, 0); }
inline bool TimesLocks() { return __builtin_expect(t_level >= PerfLevel::kEnableTime, 0); }

using Counter = uint64_t PerfContext::*;

inline void Add(Counter counter, uint64_t n = 1) {
  if (Counts()) t_context.*counter += n;
}

inline uint64_t NowNs() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// Adds what its life lasts to the counter.
class Timer {
 public:
  explicit Timer(Counter counter, bool runs = Times()) : counter_(counter), begin_(runs ? NowNs() : 0) {}
  ~Timer() { Stop(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  // What follows is not counted.
  void Stop() {
    if (begin_ != 0) t_context.*counter_ += NowNs() - begin_;
    begin_ = 0;
  }

 private:
  const Counter counter_;
  uint64_t begin_;  // 0: it does not run
};

}  // namespace braiddb::perf
