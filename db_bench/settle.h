// What writes leave to be done in the background, and how long that takes: for --settle, with every engine.
#pragma once

#include "db_bench/engine.h"
#include "db_bench/rate.h"

namespace braiddb::bench {

// Of this process, since it began, all threads.
struct CpuTime {
  double user = 0;  // seconds
  double system = 0;

  double sum() const { return user + system; }
};
CpuTime CpuTimeOfProcess();

// Finds the time from which on a process uses no CPU. Gets samples of its CPU time, kPauseMs apart.
class QuietWatch {
 public:
  static constexpr int kPauseMs = 10;
  static constexpr int kQuietSamples = 10;
  static constexpr double kIdleSeconds = 0.001;  // at most so much CPU time between two samples is none

  // True when kQuietSamples in turn have used none.
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

// Returns when has_work() was false twice in turn: what ends may begin something else. Calls pause() behind a true only, so a
// wait for nothing takes no time.
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

// Waits until the engine has flushed and merged all that is due, and returns when that was. `finished`: when the last call of the
// engine returned. An engine that cannot be asked (Engine::WaitForCompaction is not supported) is done when this process uses no
// CPU any more; if it uses none from the beginning, that was at `finished`. Ends the process if the engine fails.
Clock::time_point WaitUntilSettled(Engine* engine, Clock::time_point finished);

}  // namespace braiddb::bench
