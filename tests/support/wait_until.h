// Test support: waits for what other threads do, however busy the machine is.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace braiddb::test {

// How long a test waits before it fails. Less than the time limit of a test program.
inline constexpr std::chrono::seconds kPatience{240};

// Calls `happened` until it returns true. Returns false if kPatience ends before.
template <class Condition>
[[nodiscard]] bool WaitUntil(const Condition& happened) {
  for (const auto end = std::chrono::steady_clock::now() + kPatience; !happened();) {
    if (std::chrono::steady_clock::now() > end) return happened();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// The rounds in which threads race. A loaded machine makes fewer of them, as each switch of threads takes long.
class Rounds {
 public:
  explicit Rounds(uint64_t most) : most_(most) {}

  // Whether another round begins. The last one is number `most`, or the one at the end of kEnough.
  bool Next() {
    const bool goes_on = done_ == 0 || (done_ < most_ && std::chrono::steady_clock::now() < end_);
    done_ += goes_on;
    return goes_on;
  }
  // The round that Next has begun, from 1 on.
  uint64_t number() const { return done_; }

 private:
  static constexpr std::chrono::seconds kEnough{40};

  const uint64_t most_;
  const std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + kEnough;
  uint64_t done_ = 0;
};

}  // namespace braiddb::test
