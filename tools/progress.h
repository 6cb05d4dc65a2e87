// Progress: a line on the terminal with amount, rate and time left.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace braiddb::tools {

// Shows nothing during the first second, or if the standard error is no terminal.
// Thread safety: one thread at a time.
class Progress {
 public:
  enum class Unit : uint8_t { kBytes, kEntries };
  // `total` may be an estimate; 0 if it is unknown.
  Progress(std::string action, Unit unit, uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` counts from the start of the work. May be called for each entry.
  void Update(uint64_t done) {
    if (is_shown_ && (++calls_ & 255) == 0) Show(done);
  }
  // The same for callers with few calls.
  void UpdateNow(uint64_t done) {
    if (is_shown_) Show(done);
  }

  // "importing: 12000 of about 100000, 6000 per second, 15 s left"
  static std::string Text(const std::string& action, Unit unit, uint64_t done, uint64_t total, double seconds);

 private:
  using Clock = std::chrono::steady_clock;
  void Show(uint64_t done);

  const std::string action_;
  const Unit unit_;
  const uint64_t total_;
  const bool is_shown_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_ + std::chrono::seconds(1);
  uint32_t calls_ = 0;
};

}  // namespace braiddb::tools
