// WriterPressure: whether writers take all the CPU time there is, as flushes find it.
#pragma once

#include <chrono>
#include <cstdint>

namespace braiddb {

// While they do, a merge that begins takes its time from them, and many tables merged at once take less of it than few: better
// when writers pause, or L0 is long. Where a CPU is free, merges cost nobody anything.
// Thread safety: none.
class WriterPressure {
 public:
  explicit WriterPressure(uint32_t cpus) : cpus_(cpus) {}

  // A flush, and what there was until the next one began.
  struct Flush {
    std::chrono::nanoseconds took;
    std::chrono::nanoseconds cpu_time;     // of that
    std::chrono::nanoseconds interval;     // from its begin to the next one's
    std::chrono::nanoseconds process_cpu;  // that the process took of all CPUs in the interval, but for what orders took
    uint32_t waiting;                      // memtables, but for the one that is flushed next
    std::chrono::nanoseconds orders{0};    // that the flush thread then merged orders, which could as well wait
  };
  // REQUIRES: no table was merged meanwhile.
  void Note(const Flush& flush) {
    // Who writes less than that leaves time in between, whoever else takes it.
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
  // Of so many in a row none may tell of pressure: now and then one has a CPU for itself.
  static constexpr uint32_t kFlushes = 8;

  const uint32_t cpus_;
  uint32_t flushes_left_ = 0;
};

}  // namespace braiddb
