// WritePace: what writers owe for an entry where L0 is longer than it should be.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>

namespace braiddb {

// A merge takes its tables away evenly, but for what it does before its first entry and behind its last one. Then tables come for
// some tenths of a second and none goes, and writers would be the slower for it, and faster behind it, with each merge. So the
// number of tables is evened out over some seconds, and not where it changes by more than that explains: else writers would be
// ahead of merges for as long when a burst begins, and have to wait for that afterwards.
// Thread safety: none.
class WritePace {
 public:
  using Clock = std::chrono::steady_clock;

  // With `tables` more than there should be writers owe `ns` for an entry, and more than twice as much with twice as many.
  struct Slope {
    double tables;
    double ns;
    bool is_evened_out;
  };

  // Nanoseconds for an entry. `over`: tables more than there should be.
  double Next(const Slope& slope, double over, Clock::time_point now) {
    over = std::max(0.0, over);
    const std::chrono::duration<double> since = now - changed_;
    changed_ = now;
    const double evened_out = over_ + since / (since + kEvenedOut) * (over - over_);
    over_ = slope.is_evened_out ? std::clamp(evened_out, std::max(0.0, over - kMostTables), over + kMostTables) : over;
    return std::min(kMostNs, slope.ns * (std::exp2(over_ / slope.tables) - 1));
  }

 private:
  static constexpr std::chrono::duration<double> kEvenedOut{2};
  static constexpr double kMostTables = 12;
  static constexpr double kMostNs = 1e6;

  Clock::time_point changed_;
  double over_ = 0;
};

}  // namespace braiddb
