// Epochs: memory that readers may still be inside is reclaimed only after they have left.
//
// A reader enters and leaves by a store to its own cache line (a plain one if there are asymmetric fences); a writer first
// unlinks an object, then retires it. An object retired in epoch e is reclaimed when every reader inside entered later than e
// and no pin from e or before is held.
// Two domains: Reads (Enter/Exit) are short, nested never; Pins (iterators, pinned slices) are long and only hold back
// objects that were retired with RetirePinned.
// From: K. Fraser, "Practical lock-freedom", 2004, section 5.2.3; ListDB, OSDI '22, on simple epoch-based reclamation.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>

#include "util/asymmetric_fence.h"
#include "util/check.h"
#include "util/per_thread.h"

namespace braiddb {

// Thread safety: all methods may be called concurrently.
class EpochManager {
 public:
  // `asymmetric`: readers pay no fence, and those who reclaim pay for all (util/asymmetric_fence.h). REQUIRES: if so, that the
  // system has such fences.
  explicit EpochManager(bool asymmetric = HasAsymmetricFences()) : asymmetric_(asymmetric) {}
  ~EpochManager();  // runs everything that is still retired. REQUIRES: no reader inside, no pin held
  EpochManager(const EpochManager&) = delete;
  EpochManager& operator=(const EpochManager&) = delete;

  class Guard {
   public:
    explicit Guard(std::atomic<uint64_t>* slot) : slot_(slot) {}
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    // release: pairs with the acquire in Observe, so that what the reader read happens before it is reclaimed.
    ~Guard() { slot_->store(kIdle, std::memory_order_release); }

   private:
    std::atomic<uint64_t>* slot_;
  };

  // What the guard's owner reads while it lives is not reclaimed. Not re-entrant per thread. With more than kMaxThreads threads
  // it waits for a place in a shared slot.
  Guard Enter() { return Guard(EnterSlot()); }
  // The same for who makes the guard of it at once, or hands it to who does.
  std::atomic<uint64_t>* EnterSlot() {
    std::atomic<uint64_t>* const slot = OwnSlot();
    if (__builtin_expect(slot == nullptr, 0)) return EnterOverflow();
    EnterOwn(slot);
    return slot;
  }
  // The calling thread's own slot, for EnterOwn; null if it has no ThreadIndex.
  std::atomic<uint64_t>* OwnSlot() {
    Slot* const slot = slots_.Get();
    return __builtin_expect(slot == nullptr, 0) ? nullptr : &slot->epoch;
  }
  // EnterSlot in few instructions, if there are asymmetric fences. `slot`: OwnSlot of this thread, or of one of before whose
  // ThreadIndex it has.
  void EnterOwn(std::atomic<uint64_t>* slot) noexcept {
    if (__builtin_expect(!asymmetric_, 0)) return EnterWithFence(slot);
    BRAIDDB_DCHECK(slot->load(std::memory_order_relaxed) >= kNew);  // not re-entrant
    // acquire: pairs with the release in Advance. The light fence pairs with FenceBeforeScan; see epoch.cc. release: who sees it
    // sees the pins of the guard before.
    slot->store(epoch_.load(std::memory_order_acquire), std::memory_order_release);
    AsymmetricFenceLight();
  }

  // A long-lived hold on everything that is reachable now and, if the thread is inside a Guard, on everything that the Guard
  // holds: so the Guard may go and what was found under it stays. Given back, once, by Unpin from any thread. Not 0.
  // COST  Inside a Guard some loads and two stores in the thread's own two cache lines, as long as no more than kOwnPins are held
  //       of it or of a thread that ended and whose place it has; else a mutex.
  uint64_t Pin();
  void Unpin(uint64_t pin);

  // Runs `reclaim` once no reader can be inside (Retire), or no reader and no pin (RetirePinned). The object must already be
  // unreachable for those who enter or pin from now on. `reclaim` runs in a thread that calls Reclaim(), and must not throw.
  void Retire(std::function<void()> reclaim);
  void RetirePinned(std::function<void()> reclaim);

  // Advances the epoch and runs what has become safe. Returns the number of objects still waiting.
  size_t Reclaim();
  // Waits until every reader that is inside now has left (not pins).
  void Synchronize();

 private:
  static constexpr uint64_t kIdle = UINT64_MAX;
  static constexpr uint64_t kNew = UINT64_MAX - 1;  // idle, and no reader has ever used the slot
  static constexpr size_t kOwnPins = 15;
  // `pins` are the epochs of pins, 0 if there is none; only the slot's thread sets them, inside a guard.
  struct Slot {
    std::atomic<uint64_t> epoch{kNew};
    std::atomic<uint64_t> pins[kOwnPins] = {};
  };
  struct Retired {
    uint64_t epoch;
    std::function<void()> reclaim;
  };
  // In epoch order: the epoch is read under the mutex. A list, so that reclaiming needs no memory.
  using RetiredQueue = std::list<Retired>;

  void EnterWithFence(std::atomic<uint64_t>* slot) noexcept;
  std::atomic<uint64_t>* EnterOverflow();
  void RetireTo(RetiredQueue* queue, std::function<void()> reclaim);
  uint64_t Advance();
  void FenceBeforeScan() const;
  static uint64_t Observe(Slot* slot);
  static void WaitUntilLeft(Slot* slot, uint64_t epoch);
  // The least epoch of readers that are inside; *pinned: of pins in slots.
  uint64_t MinActive(uint64_t* pinned);
  static void TakeBefore(uint64_t epoch, RetiredQueue* queue, RetiredQueue* taken);

  alignas(128) std::atomic<uint64_t> epoch_{1};  // only changed under the mutex
  const bool asymmetric_;
  PerThread<Slot> slots_;
  Slot overflow_;
  std::mutex mutex_;
  std::map<uint64_t, uint32_t> pins_;  // epoch → holders that are in no slot
  RetiredQueue retired_;
  RetiredQueue retired_pinned_;
};

}  // namespace braiddb
