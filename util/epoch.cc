// WHY IT IS SAFE  Let an object be unlinked, then retired in epoch r. Let Reclaim advance the epoch from e >= r, scan the slots,
//                 and find none with an epoch <= r. Then no reader can reach the object:
//
// - A reader whose slot shows an epoch > r read that epoch (acquire) from an Advance after Retire. Both hold the mutex, so unlink
//   → Retire → Advance → the reader's loads. The reader sees the object unlinked.
//
// - A reader that the scan finds idle enters later. With asymmetric fences, the reader stores the epoch, then loads, with a light
//   fence between; Reclaim has a heavy fence between the unlink and the scan. The heavy fence acts as a full fence at some point
//   of the reader's program. If that point is after the reader's store, the scan sees the store. If it is before, the reader's
//   loads come after it and see the unlink. The same holds for a slot whose block is being created: the block's address is stored
//   before.
//
// - Without asymmetric fences, scan and entry are both read-modify-writes of the slot. The reader's exchange reads the value that
//   the scan wrote (release → acquire), so unlink → scan → the reader's loads. A plain load in the scan would not order a later
//   reader. The scan may not find the slot of a first-time reader, because its block is being created. Such a reader does a
//   read-modify-write of epoch_ after the exchange. Either that comes before Advance in the order of epoch_, and the scan sees
//   the block; or it comes after, and the reader sees the unlink.
//
// COST  Without asymmetric fences a reader runs one locked instruction, across which its CPU starts no load. Successive lookups
//       then wait for memory one after another. With asymmetric fences, the next lookup's first load overlaps with the last
//       lookup's wait for its entry.
//
// PINS  A pin carries the epoch of its guard. It is stored (release) before the guard's slot becomes idle or is entered again.
//       Reclaim reads the pins of a slot after it has observed the slot's epoch (acquire). If it finds the slot without the
//       guard, it therefore finds the pin. The loads of a pin's holder happen before Unpin (release), and Unpin before Reclaim
//       misses the pin. If Reclaim sees the next pin in the same place instead, that pin was stored with release after a load
//       with acquire. A pin taken outside of a guard has no such slot and uses the mutex; so do pins for which the slot has no
//       room.
//
// FOREIGN READERS  A reader in another process enters as without asymmetric fences, with the mirrored epoch, and min_epoch reads
//       the slot of the reader by a read-modify-write. The mirror is behind by at most one epoch, which only holds more. The slot
//       exists before the reader can load any pointer.
#include "util/epoch.h"

#include <algorithm>
#include <utility>

#include "util/spin.h"

namespace braiddb {

namespace {

// A pin in a slot is its address; other pins are twice the epoch plus one.
constexpr bool IsCounted(uint64_t pin) { return pin % 2 != 0; }

}  // namespace

EpochManager::~EpochManager() {
  uint64_t pinned = kIdle;
  MinActive(&pinned);
  BRAIDDB_CHECK(pins_.empty() && pinned == kIdle);
  while (Reclaim() != 0) {  // a callback may retire more
  }
}

void EpochManager::EnterWithFence(std::atomic<uint64_t>* slot) noexcept {
  // acquire: pairs with the release in Advance. The exchange pairs with Observe, in both directions.
  const uint64_t epoch = epoch_.load(std::memory_order_acquire);
  const uint64_t before = slot->exchange(epoch, std::memory_order_acq_rel);
  BRAIDDB_DCHECK(before >= kNew);  // not re-entrant
  if (__builtin_expect(before == kNew, 0)) epoch_.fetch_add(0, std::memory_order_acq_rel);
}

std::atomic<uint64_t>* EpochManager::EnterOverflow() {
  SpinWait wait;
  for (;;) {
    const uint64_t epoch = epoch_.load(std::memory_order_acquire);
    uint64_t seen = overflow_.epoch.load(std::memory_order_relaxed);
    // acq_rel: as the exchange in EnterWithFence.
    if (seen >= kNew && overflow_.epoch.compare_exchange_strong(seen, epoch, std::memory_order_acq_rel)) {
      return &overflow_.epoch;
    }
    wait.Once();
  }
}

uint64_t EpochManager::Pin() {
  Slot* const slot = slots_.Get();
  // The thread's own store; in the shared slot perhaps another thread's, which is older and so holds more than needed.
  const uint64_t entered = (slot != nullptr ? slot : &overflow_)->epoch.load(std::memory_order_relaxed);
  if (slot != nullptr && entered < kNew) {
    for (std::atomic<uint64_t>& pin : slot->pins) {
      if (pin.load(std::memory_order_acquire) != 0) continue;
      pin.store(entered, std::memory_order_release);
      return reinterpret_cast<uintptr_t>(&pin);
    }
  }
  std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t epoch = std::min(entered, epoch_.load(std::memory_order_relaxed));
  ++pins_[epoch];
  return 2 * epoch + 1;
}

void EpochManager::Unpin(uint64_t pin) {
  if (!IsCounted(pin)) {
    auto* const own = reinterpret_cast<std::atomic<uint64_t>*>(static_cast<uintptr_t>(pin));
    BRAIDDB_CHECK(own != nullptr && own->load(std::memory_order_relaxed) != 0);
    own->store(0, std::memory_order_release);
    return;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = pins_.find(pin / 2);
  BRAIDDB_CHECK(it != pins_.end());
  if (--it->second == 0) pins_.erase(it);
}

void EpochManager::RetireTo(RetiredQueue* queue, std::function<void()> reclaim) {
  RetiredQueue retired;
  retired.push_back({0, std::move(reclaim)});
  std::lock_guard<std::mutex> lock(mutex_);
  retired.front().epoch = epoch_.load(std::memory_order_relaxed);
  queue->splice(queue->end(), retired);
}

void EpochManager::Retire(std::function<void()> reclaim) { RetireTo(&retired_, std::move(reclaim)); }

void EpochManager::RetireShared(std::function<void()> reclaim) { RetireTo(&retired_shared_, std::move(reclaim)); }

void EpochManager::RetirePinned(std::function<void()> reclaim) { RetireTo(&retired_pinned_, std::move(reclaim)); }

void EpochManager::Share(std::atomic<uint64_t>* mirror, std::function<uint64_t()> min_epoch) {
  std::lock_guard<std::mutex> lock(mutex_);
  mirror_ = mirror;
  mirror->store(epoch_.load(std::memory_order_relaxed), std::memory_order_release);
  min_foreign_epoch_ = std::move(min_epoch);
}

// All objects retired so far were retired in the returned epoch or before.
uint64_t EpochManager::Advance() {
  std::lock_guard<std::mutex> lock(mutex_);
  // release: pairs with the acquire load in Enter. acquire: pairs with the first-time reader's fetch_add.
  const uint64_t before = epoch_.fetch_add(1, std::memory_order_acq_rel);
  if (mirror_ != nullptr) mirror_->store(before + 1, std::memory_order_release);
  return before;
}

void EpochManager::FenceBeforeScan() const {
  if (asymmetric_) AsymmetricFenceHeavy();
}

// A read-modify-write without a change. A plain load is not enough; see WHY IT IS SAFE.
uint64_t EpochManager::Observe(Slot* slot) { return slot->epoch.fetch_or(0, std::memory_order_acq_rel); }

uint64_t EpochManager::MinActive(uint64_t* pinned) {
  FenceBeforeScan();
  uint64_t min = Observe(&overflow_);
  *pinned = kIdle;
  slots_.ForEach([&min, pinned](Slot& slot) {
    min = std::min(min, Observe(&slot));
    for (const std::atomic<uint64_t>& pin : slot.pins) {
      const uint64_t epoch = pin.load(std::memory_order_acquire);
      if (epoch != 0) *pinned = std::min(*pinned, epoch);
    }
  });
  return min;
}

void EpochManager::TakeBefore(uint64_t epoch, RetiredQueue* queue, RetiredQueue* taken) {
  while (!queue->empty() && queue->front().epoch < epoch) {
    taken->splice(taken->end(), *queue, queue->begin());
  }
}

size_t EpochManager::Reclaim() {
  const uint64_t advanced_from = Advance();
  // At most advanced_from: the scan proves nothing about objects that are retired during it.
  uint64_t pinned = kIdle;
  const uint64_t safe = std::min(MinActive(&pinned), advanced_from + 1);
  const uint64_t shared = min_foreign_epoch_ ? std::min(safe, min_foreign_epoch_()) : safe;
  RetiredQueue taken;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!pins_.empty()) pinned = std::min(pinned, pins_.begin()->first);
    TakeBefore(safe, &retired_, &taken);
    TakeBefore(shared, &retired_shared_, &taken);
    TakeBefore(std::min(shared, pinned), &retired_pinned_, &taken);
  }
  // Outside the mutex: a callback may retire, pin, or take long.
  for (Retired& retired : taken) retired.reclaim();
  std::lock_guard<std::mutex> lock(mutex_);
  return retired_.size() + retired_shared_.size() + retired_pinned_.size();
}

void EpochManager::Abandon() {
  RetiredQueue taken;
  std::lock_guard<std::mutex> lock(mutex_);
  taken.splice(taken.end(), retired_);
  taken.splice(taken.end(), retired_shared_);
  taken.splice(taken.end(), retired_pinned_);
}

// Polls with plain loads, which leave the line with the reader, but trusts only Observe.
void EpochManager::WaitUntilLeft(Slot* slot, uint64_t epoch) {
  SpinWait wait;
  for (uint64_t seen = Observe(slot); seen <= epoch; seen = Observe(slot)) {
    while (slot->epoch.load(std::memory_order_relaxed) == seen) wait.Once();
  }
}

void EpochManager::Synchronize() {
  const uint64_t epoch = Advance();
  FenceBeforeScan();
  WaitUntilLeft(&overflow_, epoch);
  slots_.ForEach([epoch](Slot& slot) { WaitUntilLeft(&slot, epoch); });
}

}  // namespace braiddb
