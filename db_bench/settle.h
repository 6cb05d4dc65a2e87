// Measures the background work that writes leave, for --settle, with every engine.
#pragma once

#include "db_bench/engine.h"
#include "db_bench/rate.h"

namespace braiddb::bench {

// CPU time of this process since its start, all threads.
struct CpuTime {
  double user = 0;  // seconds
  double system = 0;

  double sum() const { return user + system; }
};
CpuTime CpuTimeOfProcess();

// Detects when a process stops using CPU. Gets samples of its CPU time, kPauseMs apart.
class QuietWatch {
 public:
  static constexpr int kPauseMs = 10;
  static constexpr int kQuietSamples = 10;
  static constexpr double kIdleSeconds = 0.001;  // less CPU time than this between two samples counts as none

  // Returns true when kQuietSamples consecutive samples have used no CPU time.
  bool Add(double cpu_seconds) {
    quiet_ = cpu_seconds - before_ <= kIdleSeconds ? quiet_ + 1 : 0;
    before_ = cpu_seconds;
    return quiet_ >= kQuietSamples;
  }
  bool is_quiet() const { return quiet_ > 0; }

 private:
  double before_ = 0;
  int quiet_ = 0;
};

// Returns when has_work() was false twice in a row, because finished work may start other work. Calls pause() only after a true,
// so a wait without work takes no time.
template <class HasWork, class Pause>
void WaitUntilIdle(HasWork has_work, Pause pause) {
  for (int idle = 0; idle < 2;) {
    if (has_work()) {
      idle = 0;
      pause();
    } else {
      ++idle;
    }
  }
}

// Waits until the engine has flushed and merged all pending data. Returns the time when it had. `finished`: end of the last call
// of the engine. If Engine::WaitForCompaction is not supported, waits until this process uses no CPU. If it uses none from the
// beginning, returns `finished`. Ends the process if the engine fails.
Clock::time_point WaitUntilSettled(Engine* engine, Clock::time_point finished);

}  // namespace braiddb::bench
