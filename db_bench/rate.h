// Rates that the threads of a benchmark keep together.
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

// A rate a second of a·sin(b·seconds + c) + d.
struct SineParameters {
  bool active = false;
  double a = 1, b = 1, c = 0, d = 1;
  uint64_t interval_ms = 10000;  // after which the rate is computed again
  double noise = 0;              // 0 to 1: of a, added to or taken from the rate, by chance

  double Rate(double seconds) const;
};

// A rate that follows the curve, from the object's making on. Thread safety: one thread at a time.
class SineRate {
 public:
  struct Demand {
    double seconds;  // since the start
    double rate;     // from then on
  };

  SineRate(const SineParameters& parameters, uint64_t seed) : parameters_(parameters), random_(seed) {}

  bool active() const { return parameters_.active; }
  // Computed again if its interval is over. 0: there was no positive one yet.
  double At(Clock::time_point now);
  // All rates so far.
  const std::vector<Demand>& demands() const { return demands_; }

 private:
  const SineParameters parameters_;
  const Clock::time_point start_ = Clock::now();
  Random random_;
  double rate_ = 0;
  Clock::time_point next_change_ = start_;
  std::vector<Demand> demands_;
};

// Lets its users together use `rate` units per second, or as many as a sine says. Thread safety: all methods may be called
// concurrently.
class RateLimiter {
 public:
  // 0: no limit.
  explicit RateLimiter(int64_t rate, const SineParameters& sine = {}, uint64_t seed = 0)
      : active_(rate > 0 || sine.active), rate_(static_cast<double>(rate)), sine_(sine, seed) {}

  bool active() const { return active_; }
  // Returns when the units are due. Says since when they could have been used: the end of the wait, or for a caller that came
  // late, when they were due.
  Clock::time_point Request(uint64_t units);
  // Of the sine. REQUIRES: no request is under way.
  const std::vector<SineRate::Demand>& demands() const { return sine_.demands(); }

 private:
  Clock::time_point DueBySine(uint64_t units);

  const bool active_;
  const double rate_;
  const Clock::time_point start_ = Clock::now();
  std::atomic<uint64_t> used_{0};
  std::mutex mutex_;  // for all below
  SineRate sine_;
  Clock::time_point next_ = start_;
};

// mixgraph's pace, as in RocksDB: reads and writes have their shares of the rate, and ask for a hundred operations at once. But
// here the curve holds from the start, where RocksDB begins with a million a second for the first interval.
// Thread safety: all methods may be called concurrently.
class SinePace {
 public:
  static constexpr uint64_t kOperations = 100;

  SinePace(const SineParameters& parameters, const MixParameters& mix, uint64_t seed);

  bool active() const { return sine_.active(); }
  // Returns when the next kOperations are due.
  void RequestReads() { Request(&reads_); }
  void RequestWrites() { Request(&writes_); }

  // All rates so far. REQUIRES: no request is under way.
  const std::vector<SineRate::Demand>& demands() const { return sine_.demands(); }

 private:
  struct Queue {
    double share;
    Clock::time_point next;
  };

  void Request(Queue* queue);

  std::mutex mutex_;  // for all below
  SineRate sine_;
  Queue reads_;
  Queue writes_;
};

}  // namespace braiddb::bench
