// Progress: a line on the terminal with amount, rate and time left.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

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

// The line of work in several passes, as CheckOptions::progress reports it: a pass begins with `done` 0. Rate and time left are
// those of the pass. Thread safety: one thread at a time.
class PassProgress {
 public:
  using Clock = std::chrono::steady_clock;
  // A name for each pass; the last name is that of all further passes.
  explicit PassProgress(std::vector<std::string> actions, Clock::time_point start = Clock::now())
      : actions_(std::move(actions)), next_(start + std::chrono::seconds(1)) {}

  // Returns the line to show, or none: during the first second, and less than 0.2 s after another line.
  std::optional<std::string> Line(uint64_t done, uint64_t total, Clock::time_point now);

 private:
  const std::vector<std::string> actions_;
  size_t passes_ = 0;  // that have begun
  Clock::time_point pass_start_{};
  Clock::time_point next_;
};

// Shows the progress of a call that has no callback: another thread asks `done` from time to time.
class PolledProgress {
 public:
  // `done` must be safe to call from another thread until the destruction. No thread if the standard error is no terminal.
  PolledProgress(std::string action, Progress::Unit unit, uint64_t total, std::function<uint64_t()> done);
  ~PolledProgress();
  PolledProgress(const PolledProgress&) = delete;
  PolledProgress& operator=(const PolledProgress&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ends_;
  bool is_ending_ = false;  // mutex_
  std::thread thread_;
};

}  // namespace braiddb::tools
