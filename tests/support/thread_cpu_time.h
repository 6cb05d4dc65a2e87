// Test support: CPU time, which does not grow while other threads and processes run.
#pragma once

#include <ctime>

namespace braiddb::test {

// Seconds of CPU time that the calling thread has used.
inline double ThreadCpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

}  // namespace braiddb::test
