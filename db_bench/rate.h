// Rate limits that all threads of a benchmark share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#include "db_bench/mixgraph.h"
#include "util/random.h"

namespace braiddb::bench {

using Clock = std::chrono::steady_clock;

// A rate per second of a·sin(b·seconds + c) + d.
struct SineParameters {
  bool active = false;
  double a = 1, b = 1, c = 0, d = 1;
  uint64_t interval_ms = 10000;  // period after which the rate is recomputed
  double noise = 0;              // 0 to 1: random change of the rate, as a share of a

  double Rate(double seconds) const;
};

// A rate that follows the curve. Time 0 is the first call of At. Thread safety: one thread at a time.
class SineRate {
 public:
  struct Demand {
    double seconds;  // since the start
    double rate;     // the rate from this time on
  };

  SineRate(const SineParameters& parameters, uint64_t seed) : parameters_(parameters), random_(seed) {}

  bool active() const { return parameters_.active; }
  // Whether At was called.
  bool started() const { return !demands_.empty(); }
  // Recomputes the rate if its interval is over. Returns 0 if the rate was never positive.
  double At(Clock::time_point now);
  // All rates up to this call.
  const std::vector<Demand>& demands() const { return demands_; }

 private:
  const SineParameters parameters_;
  Clock::time_point start_;
  Random random_;
  double rate_ = 0;
  Clock::time_point next_change_;
  std::vector<Demand> demands_;
};

// Limits all users together to `rate` units per second, or to the rate of a sine. The schedule starts with the first request, so
// that no unit is due before a thread can use it. Thread safety: all methods may be called concurrently.
class RateLimiter {
 public:
  // 0: no limit.
  explicit RateLimiter(int64_t rate, const SineParameters& sine = {}, uint64_t seed = 0)
      : active_(rate > 0 || sine.active), rate_(static_cast<double>(rate)), sine_(sine, seed) {}

  bool active() const { return active_; }
  // Returns when the units are due. The result is the time from which the units were usable: the end of the wait, or for a late
  // caller the time when they were due.
  Clock::time_point Request(uint64_t units);
  // The rates of the sine. REQUIRES: no request is in progress.
  const std::vector<SineRate::Demand>& demands() const { return sine_.demands(); }

 private:
  Clock::time_point DueBySine(uint64_t units);

  const bool active_;
  const double rate_;
  std::once_flag started_;
  Clock::time_point start_;  // set by the first request; unused with a sine
  std::atomic<uint64_t> used_{0};
  std::mutex mutex_;  // guards all members below
  SineRate sine_;
  Clock::time_point next_;
};

// mixgraph's rate, as in RocksDB: reads and writes have shares of the rate, and request a hundred operations at once. The curve
// holds from the first request, whereas RocksDB uses a million per second for the first interval.
// Thread safety: all methods may be called concurrently.
class SinePace {
 public:
  static constexpr uint64_t kOperations = 100;

  SinePace(const SineParameters& parameters, const MixParameters& mix, uint64_t seed);

  bool active() const { return sine_.active(); }
  // Return when the next kOperations are due.
  void RequestReads() { Request(&reads_); }
  void RequestWrites() { Request(&writes_); }

  // All rates up to this call. REQUIRES: no request is in progress.
  const std::vector<SineRate::Demand>& demands() const { return sine_.demands(); }

 private:
  struct Queue {
    double share;
    Clock::time_point next;
  };

  void Request(Queue* queue);

  std::mutex mutex_;  // guards all members below
  SineRate sine_;
  Queue reads_;
  Queue writes_;
};

}  // namespace braiddb::bench
