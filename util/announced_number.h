// AnnouncedNumber: a number that one thread sets often and other threads rarely wait for.
#pragma once

#include <atomic>
#include <cstdint>

#include "util/asymmetric_fence.h"

namespace braiddb {

// COST  The owner pays a store and a load of one cache line. A waiter spins for some microseconds, then sleeps.
//
// WHY NO WAKE-UP IS LOST  A waiter increments sleepers_, runs a heavy fence, and loads the number again. Either this load sees
//   the owner's store, or the owner loads sleepers_ after the fence, sees the waiter, and wakes it. The owner wakes under the
//   mutex that the waiter holds from before its load until it sleeps. Without asymmetric fences, both sides use sequentially
//   consistent operations instead.
// SHARED MEMORY  Zeroed memory is a number that is kNone: the complement is stored. Another process may map the memory and call
//   value(); a wait would need the mutexes of the owner's process.
// Thread safety: one thread at a time is the owner and calls Begin, Set and End; any thread may call the others.
class AnnouncedNumber {
 public:
  static constexpr uint64_t kNone = UINT64_MAX;

  uint64_t value() const { return ~complement_.load(std::memory_order_seq_cst); }

  // Announces a number. REQUIRES: the value is kNone, and no thread waits for a bound larger than the number. The owner's later
  // loads happen after other threads can see the number; see DBImpl::FenceAnnouncements.
  [[gnu::always_inline]] void Begin(uint64_t number, bool has_asymmetric_fences) {
    Store(number, has_asymmetric_fences, std::memory_order_relaxed);
  }
  // Replaces the number by a larger one and wakes the waiters. A thread that sees the new number sees all earlier stores of the
  // owner.
  [[gnu::always_inline]] void Set(uint64_t number, bool has_asymmetric_fences) {
    Store(number, has_asymmetric_fences, std::memory_order_release);
    if (__builtin_expect(sleepers_.load(std::memory_order_seq_cst) != 0, 0)) Wake();
  }
  // Replaces the number by a larger one, and wakes no waiter.
  [[gnu::always_inline]] void Refine(uint64_t number) { complement_.store(~number, std::memory_order_release); }
  [[gnu::always_inline]] void End(bool has_asymmetric_fences) { Set(kNone, has_asymmetric_fences); }

  // Returns when the number is larger than `bound`. REQUIRES: from some time on, the owner announces no number <= `bound`.
  void WaitAbove(uint64_t bound, bool has_asymmetric_fences) const {
    if (__builtin_expect(value() <= bound, 0)) WaitLonger(bound, has_asymmetric_fences);
  }
  // Number of threads that sleep until the number changes. For tests.
  uint32_t sleepers() const { return sleepers_.load(std::memory_order_relaxed); }

 private:
  [[gnu::always_inline]] void Store(uint64_t number, bool has_asymmetric_fences, std::memory_order order) {
    if (__builtin_expect(has_asymmetric_fences, 1)) {
      complement_.store(~number, order);
      AsymmetricFenceLight();
    } else {
      complement_.store(~number, std::memory_order_seq_cst);
    }
  }
  void WaitLonger(uint64_t bound, bool has_asymmetric_fences) const;
  void Wake() const;

  std::atomic<uint64_t> complement_{~kNone};
  mutable std::atomic<uint32_t> sleepers_{0};
};

}  // namespace braiddb
