// WritePace: computes the delay per entry that writers must sleep while L0 holds more tables than its target.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>

namespace braiddb {

// A merge takes its tables away at a steady rate, except before its first entry and after its last one. During these tenths of a
// second new tables come and none goes. Without smoothing, writers would slow down and speed up with each merge. So the number of
// tables is smoothed over some seconds (exponential moving average). A deviation of more than kMaxDeviation has another cause,
// and is not smoothed: otherwise writers would run ahead of merges for seconds when a burst begins, and would have to wait
// afterwards.
// Thread safety: none.
class WritePace {
 public:
  using Clock = std::chrono::steady_clock;

  // With `tables` more tables than the target the delay is `ns` per entry. With twice the excess it is three times that.
  struct Slope {
    double tables;
    double ns;
    bool is_smoothed;
  };

  // The delay in nanoseconds per entry. `over`: the number of tables above the target.
  double Next(const Slope& slope, double over, Clock::time_point now) {
    over = std::max(0.0, over);
    const std::chrono::duration<double> since = now - changed_;
    changed_ = now;
    const double smoothed = over_ + since / (since + kSmoothingTime) * (over - over_);
    over_ = slope.is_smoothed ? std::clamp(smoothed, std::max(0.0, over - kMaxDeviation), over + kMaxDeviation) : over;
    return std::min(kMaxNs, slope.ns * (std::exp2(over_ / slope.tables) - 1));
  }

 private:
  static constexpr std::chrono::duration<double> kSmoothingTime{2};
  static constexpr double kMaxDeviation = 12;
  static constexpr double kMaxNs = 1e6;

  Clock::time_point changed_;
  double over_ = 0;
};

// The pace of all writers. One thread at a time computes it. Meanwhile the others use the last delay and wait for nothing.
// Thread safety: all methods may be called concurrently.
class SharedWritePace {
 public:
  // The delay in nanoseconds per entry. `over()`: as in WritePace::Next.
  template <class Over>
  double Next(const WritePace::Slope& slope, const Over& over) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return last_ns();
    const double ns = pace_.Next(slope, over(), WritePace::Clock::now());
    last_ns_.store(ns, std::memory_order_relaxed);
    return ns;
  }
  double last_ns() const { return last_ns_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  WritePace pace_;
  std::atomic<double> last_ns_{0};
};

}  // namespace braiddb
