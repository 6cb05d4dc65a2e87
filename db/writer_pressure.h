// WriterPressure: estimates from flushes whether writers use all CPU time.
#pragma once

#include <chrono>
#include <cstdint>

namespace braiddb {

// If writers use all CPUs, a merge takes CPU time from them. A merge of many tables takes less per table than a merge of few, so
// it is better to merge when writers pause, or when L0 is long. If a CPU is idle, merges do not slow writers down.
// Thread safety: none.
class WriterPressure {
 public:
  explicit WriterPressure(uint32_t cpus) : cpus_(cpus) {}

  // Measurements of a flush, and of the interval until the next one.
  struct Flush {
    std::chrono::nanoseconds took;
    std::chrono::nanoseconds cpu_time;     // the thread's CPU time during `took`
    std::chrono::nanoseconds interval;     // from the begin of the flush to the begin of the next one
    std::chrono::nanoseconds process_cpu;  // the process's CPU time on all CPUs in the interval, except for merges of sorted runs
    uint32_t waiting;                      // memtables that wait, except for the one that is flushed next
    std::chrono::nanoseconds orders{
        0};  // the time after the flush in which the flush thread merged sorted runs, which could wait
  };
  // Adds a measurement. REQUIRES: no table was merged during the interval.
  void Note(const Flush& flush) {
    // If flushes take less than half of the interval, writers leave time between flushes, whichever process takes that time.
    const bool is_busy = flush.took * 2 > flush.interval - flush.orders;
    const bool waited_for_cpu = flush.cpu_time * 10 < flush.took * 8;
    const bool takes_all = flush.process_cpu * 10 > flush.interval * cpus_ * 9;
    if ((is_busy && (waited_for_cpu || takes_all)) || flush.waiting >= kWaiting) {
      flushes_left_ = kFlushes;
    } else if (flushes_left_ > 0) {
      --flushes_left_;
    }
  }
  bool is_high() const { return flushes_left_ > 0; }

 private:
  static constexpr uint32_t kWaiting = 2;
  // The estimate falls only after this number of flushes in a row without pressure: a single flush may by chance have a CPU for
  // itself.
  static constexpr uint32_t kFlushes = 8;

  const uint32_t cpus_;
  uint32_t flushes_left_ = 0;
};

}  // namespace braiddb
