#include "util/announced_number.h"

#include <sched.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "util/spin.h"

namespace braiddb {
namespace {

// Where threads sleep. Numbers share a few of these places: a waiter that is woken for another number looks, and sleeps on.
struct alignas(128) Bed {
  std::mutex mutex;
  std::condition_variable woken;
};

Bed* BedOf(const void* number) {
  constexpr size_t kBeds = 64;  // 2^6: by the upper 6 bits of a hash
  static Bed* const beds = new Bed[kBeds];  // for as long as the process lives
  return &beds[reinterpret_cast<uintptr_t>(number) * 0x9e3779b97f4a7c15 >> 58];
}

}  // namespace

void AnnouncedNumber::WaitLonger(uint64_t bound, bool has_asymmetric_fences) const {
  constexpr int kPauses = 64;  // some 3 microseconds
  constexpr int kYields = 16;  // for an owner that waits for this CPU
  for (int i = 0; i < kPauses + kYields; ++i) {
    if (value() > bound) return;
    if (i < kPauses) {
      CpuRelax();
    } else {
      sched_yield();
    }
  }
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  if (has_asymmetric_fences) AsymmetricFenceHeavy();
  {
    Bed* const bed = BedOf(this);
    std::unique_lock lock(bed->mutex);
    while (value() <= bound) bed->woken.wait(lock);
  }
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
}

void AnnouncedNumber::Wake() const {
  Bed* const bed = BedOf(this);
  { const std::lock_guard lock(bed->mutex); }  // a waiter has seen the number, or sleeps
  bed->woken.notify_all();
}

}  // namespace braiddb
