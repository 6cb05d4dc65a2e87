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

// Lets its users together use `rate` units per second. Thread safety: all methods may be called concurrently.
class RateLimiter {
 public:
  explicit RateLimiter(int64_t rate) : rate_(static_cast<double>(rate)) {}

  bool active() const { return rate_ > 0; }
  void Request(uint64_t units);

 private:
  const double rate_;
  const Clock::time_point start_ = Clock::now();
  std::atomic<uint64_t> used_{0};
};

// --sine_mix_rate: a rate, in operations per second of all threads, of a·sin(b·seconds + c) + d.
struct SineParameters {
  bool active = false;
  double a = 1, b = 1, c = 0, d = 1;
  uint64_t interval_ms = 10000;  // after which the rate is computed again
  double noise = 0;              // 0 to 1: of a, added to or taken from the rate, by chance

  double Rate(double seconds) const;
};

// mixgraph's pace, as in RocksDB: reads and writes have their shares of the rate, and ask for a hundred operations at once. But
// here the curve holds from the start, where RocksDB begins with a million a second for the first interval.
// Thread safety: all methods may be called concurrently.
class SinePace {
 public:
  static constexpr uint64_t kOperations = 100;

  struct Demand {
    double seconds;  // since the start
    double rate;     // from then on
  };

  SinePace(const SineParameters& parameters, const MixParameters& mix, uint64_t seed);

  bool active() const { return parameters_.active; }
  // Returns when the next kOperations are due.
  void RequestReads() { Request(&reads_); }
  void RequestWrites() { Request(&writes_); }

  // All rates so far. REQUIRES: no request is under way.
  const std::vector<Demand>& demands() const { return demands_; }

 private:
  struct Queue {
    double share;
    Clock::time_point next;
  };

  void Request(Queue* queue);
  void Adjust(Clock::time_point now);

  const SineParameters parameters_;
  const Clock::time_point start_ = Clock::now();
  std::mutex mutex_;  // for all below
  Random random_;
  Queue reads_;
  Queue writes_;
  double rate_ = 0;
  Clock::time_point next_change_ = start_;
  std::vector<Demand> demands_;
};

}  // namespace braiddb::bench
