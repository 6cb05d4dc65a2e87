// The engine's counters for a thread's PerfContext.
#pragma once

#include <chrono>
#include <cstdint>

#include "braiddb/perf_context.h"

namespace braiddb::perf {

// Trivial types with constant initializers, like t_thread_index: access is one load without a guard.
extern constinit thread_local PerfLevel t_level;
extern constinit thread_local bool t_counts;  // t_level enables at least one counter
extern constinit thread_local PerfContext t_context;

// The only check that a call makes when nothing is counted.
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

// Adds its lifetime in nanoseconds to the counter.
class Timer {
 public:
  explicit Timer(Counter counter, bool runs = Times()) : counter_(counter), begin_(runs ? NowNs() : 0) {}
  ~Timer() { Stop(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  // Ends the measured time.
  void Stop() {
    if (begin_ != 0) t_context.*counter_ += NowNs() - begin_;
    begin_ = 0;
  }

 private:
  const Counter counter_;
  uint64_t begin_;  // 0: not running
};

}  // namespace braiddb::perf
