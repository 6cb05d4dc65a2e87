// Short waits.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>

namespace braiddb {

inline void CpuRelax() { asm volatile("pause" ::: "memory"); }

// Pauses first, later yields. For waits that another running thread ends within microseconds.
class SpinWait {
 public:
  void Once() {
    if (++rounds_ < 64) {
      CpuRelax();
    } else {
      sched_yield();
    }
  }

 private:
  uint32_t rounds_ = 0;
};

// Burns CPU time for `ns` nanoseconds, to simulate slow memory.
inline void SpinFor(uint64_t ns) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(ns);
  while (std::chrono::steady_clock::now() < until) CpuRelax();
}

}  // namespace braiddb
