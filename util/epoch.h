// Epochs: deferred reclamation. Memory is reclaimed after all readers that may use it have left.
//
// PROTOCOL     A reader enters and leaves by a store to its own cache line; with asymmetric fences this is a plain store. A
//              writer first unlinks an object, then retires it.
// GUARANTEE    An object retired in epoch e is reclaimed after every reader inside has entered later than e, and no pin from e or
//              before is held.
// DOMAINS      Reads (guards) are short and not nested. Pins (iterators, pinned slices) are long and only hold back objects that
//              were retired with RetirePinned.
//
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
  // `asymmetric`: readers run no fence, and Reclaim pays for all of them (util/asymmetric_fence.h). REQUIRES: if `asymmetric`,
  // the system has such fences.
  explicit EpochManager(bool asymmetric = HasAsymmetricFences()) : asymmetric_(asymmetric) {}
  ~EpochManager();  // runs all retired callbacks. REQUIRES: no reader inside, no pin held
  EpochManager(const EpochManager&) = delete;
  EpochManager& operator=(const EpochManager&) = delete;

  class Guard {
   public:
    explicit Guard(std::atomic<uint64_t>* slot) : slot_(slot) {}
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    // release: pairs with the acquire in Observe, so that the reader's loads happen before the reclamation.
    ~Guard() { slot_->store(kIdle, std::memory_order_release); }

   private:
    std::atomic<uint64_t>* slot_;
  };

  // Begins a read. Objects that the thread can reach until the guard's end are not reclaimed. Not re-entrant per thread. With
  // more than kMaxThreads threads, the call waits for a shared slot.
  Guard Enter() { return Guard(EnterSlot()); }
  // Like Enter, for a caller that creates the guard itself or passes the slot on.
  std::atomic<uint64_t>* EnterSlot() {
    std::atomic<uint64_t>* const slot = OwnSlot();
    if (__builtin_expect(slot == nullptr, 0)) return EnterOverflow();
    EnterOwn(slot);
    return slot;
  }
  // The calling thread's own slot, for EnterOwn; null if the thread has no ThreadIndex.
  std::atomic<uint64_t>* OwnSlot() {
    Slot* const slot = slots_.Get();
    return __builtin_expect(slot == nullptr, 0) ? nullptr : &slot->epoch;
  }
  // EnterSlot in few instructions if there are asymmetric fences. `slot`: OwnSlot of this thread, or of an earlier thread with
  // the same ThreadIndex.
  void EnterOwn(std::atomic<uint64_t>* slot) noexcept {
    if (__builtin_expect(!asymmetric_, 0)) return EnterWithFence(slot);
    BRAIDDB_DCHECK(slot->load(std::memory_order_relaxed) >= kNew);  // not re-entrant
    // acquire: pairs with the release in Advance. The light fence pairs with FenceBeforeScan (epoch.cc). release: a thread that
    // sees this store sees the pins of the guard before.
    slot->store(epoch_.load(std::memory_order_acquire), std::memory_order_release);
    AsymmetricFenceLight();
  }

  // Holds all objects that are reachable now. If the thread is inside a Guard, it also holds all objects that the Guard holds, so
  // the Guard may end. Returns the pin, which is not 0; any thread passes it to Unpin once.
  // COST  Inside a Guard some loads and two stores in two cache lines of the thread, while at most kOwnPins pins of its slot are
  //       held; otherwise a mutex.
  uint64_t Pin();
  void Unpin(uint64_t pin);

  // Runs `reclaim` when no reader can be inside (Retire), or no reader and no pin (RetirePinned). REQUIRES: threads that enter or
  // pin from now on cannot reach the object. `reclaim` runs in a thread that calls Reclaim(), and must not throw.
  // RetireShared: no reader can be inside, and no foreign reader holds the epoch.
  void Retire(std::function<void()> reclaim);
  void RetireShared(std::function<void()> reclaim);
  void RetirePinned(std::function<void()> reclaim);
  // Destroys all callbacks that wait, and does not run them: for a process that leaves objects to foreign readers.
  void Abandon();

  // For readers in other processes, "foreign readers", which hold objects that were retired with RetireShared or RetirePinned.
  // From now on *mirror has the epoch, or one before it. A foreign reader exchanges the value of *mirror into its slot, and only
  // then loads pointers to objects. `min_epoch` returns the smallest epoch in the slots, UINT64_MAX if there is none. It reads
  // the slots by read-modify-writes, does not throw, and is called without locks of the manager. Synchronize does not wait for
  // foreign readers. REQUIRES: called once, before other threads use this object. The mirror, and what `min_epoch` uses, outlive
  // it.
  void Share(std::atomic<uint64_t>* mirror, std::function<uint64_t()> min_epoch);

  // Advances the epoch and runs all callbacks that are safe. Returns the number of callbacks that still wait.
  size_t Reclaim();
  // Waits until every reader that is inside now has left. Does not wait for pins.
  void Synchronize();

 private:
  static constexpr uint64_t kIdle = UINT64_MAX;
  static constexpr uint64_t kNew = UINT64_MAX - 1;  // idle, and no reader has ever used the slot
  static constexpr size_t kOwnPins = 15;
  // `pins`: the epochs of the slot's pins, 0 if free; set by the slot's thread only, inside a guard.
  struct Slot {
    std::atomic<uint64_t> epoch{kNew};
    std::atomic<uint64_t> pins[kOwnPins] = {};
  };
  struct Retired {
    uint64_t epoch;
    std::function<void()> reclaim;
  };
  // In epoch order, because the epoch is read under the mutex. A list, so that reclaiming needs no memory.
  using RetiredQueue = std::list<Retired>;

  void EnterWithFence(std::atomic<uint64_t>* slot) noexcept;
  std::atomic<uint64_t>* EnterOverflow();
  void RetireTo(RetiredQueue* queue, std::function<void()> reclaim);
  uint64_t Advance();
  void FenceBeforeScan() const;
  static uint64_t Observe(Slot* slot);
  static void WaitUntilLeft(Slot* slot, uint64_t epoch);
  // The smallest epoch of the readers inside; *pinned: the smallest epoch of pins in slots.
  uint64_t MinActive(uint64_t* pinned);
  static void TakeBefore(uint64_t epoch, RetiredQueue* queue, RetiredQueue* taken);

  alignas(128) std::atomic<uint64_t> epoch_{1};  // changed under the mutex only, except that a first-time reader adds 0
  const bool asymmetric_;
  PerThread<Slot> slots_;
  Slot overflow_;
  std::atomic<uint64_t>* mirror_ = nullptr;
  std::function<uint64_t()> min_foreign_epoch_;  // empty: no foreign readers
  std::mutex mutex_;
  std::map<uint64_t, uint32_t> pins_;  // epoch → number of pins that are in no slot
  RetiredQueue retired_;
  RetiredQueue retired_shared_;
  RetiredQueue retired_pinned_;
};

}  // namespace braiddb
