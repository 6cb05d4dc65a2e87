#include "util/announced_number.h"

#include <sched.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "util/spin.h"

namespace braiddb {
namespace {

// The sleeping threads of several numbers. A waiter that is woken for another number checks its own number and sleeps again.
struct alignas(128) ParkingBucket {
  std::mutex mutex;
  std::condition_variable woken;
};

ParkingBucket* BucketOf(const void* number) {
  constexpr size_t kBuckets = 64;                                     // 2^6: the index is the upper 6 bits of a hash
  static ParkingBucket* const buckets = new ParkingBucket[kBuckets];  // never freed
  return &buckets[reinterpret_cast<uintptr_t>(number) * 0x9e3779b97f4a7c15 >> 58];
}

}  // namespace

void AnnouncedNumber::WaitLonger(uint64_t bound, bool has_asymmetric_fences) const {
  constexpr int kPauses = 64;  // about 3 microseconds
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
    ParkingBucket* const bucket = BucketOf(this);
    std::unique_lock lock(bucket->mutex);
    while (value() <= bound) bucket->woken.wait(lock);
  }
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
}

void AnnouncedNumber::Wake() const {
  ParkingBucket* const bucket = BucketOf(this);
  { const std::lock_guard lock(bucket->mutex); }  // after this, a waiter has seen the number or sleeps
  bucket->woken.notify_all();
}

}  // namespace braiddb
