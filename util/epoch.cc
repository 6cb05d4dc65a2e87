// WHY IT IS SAFE. Let an object be unlinked, then retired in epoch r, and let Reclaim advance the epoch from e >= r, scan the
// slots, and find none with an epoch <= r. No reader can then reach the object:
//
//   A reader whose slot shows an epoch > r read that epoch (acquire) from an Advance that came after Retire: both hold the
//   mutex, so unlink → Retire → Advance → the reader's loads. It sees the object unlinked.
//
//   A reader that the scan finds idle and that enters afterwards. With asymmetric fences: it stores the epoch, then loads, with a
//   light fence between; Reclaim has a heavy one between the unlink and the scan. The heavy fence is a full one at some point of
//   the reader's program. If that is behind the reader's store, the scan sees the store; if it is before, the reader's loads come
//   after it and see the unlink. The same goes for a slot whose block is being made: the block's address is stored before.
//
//   Without them: scan and entry are both read-modify-writes of the slot, so the exchange reads what the scan's wrote
//   (release → acquire), and unlink → scan → the reader's loads. A plain load in the scan would not do: it orders nothing for a
//   reader that comes later. A reader whose slot the scan does not find because its block is being made: a first-time reader
//   touches epoch_ with a read-modify-write after the exchange. Either that comes before Advance in the order of epoch_, and the
//   scan sees the block; or after, and the reader sees the unlink.
//
// What a reader pays: without asymmetric fences one locked instruction, across which its CPU begins no load. Lookups that follow
// each other then wait for memory one after the other; with them, the next one's first load is under way while the last one
// waits for its entry.
//
// Pins: a pin carries the epoch of its guard. Reclaim reads the pins after the scan, so a reader that pins and leaves in
// between is found among the pins if its slot was found idle.
#include "util/epoch.h"

#include <algorithm>
#include <utility>

#include "util/spin.h"

namespace braiddb {

EpochManager::~EpochManager() {
  BRAIDDB_CHECK(pins_.empty());
  while (Reclaim() != 0) {  // a callback may retire more
  }
}

EpochManager::Guard EpochManager::EnterWithFence(Slot* slot) {
  if (slot == nullptr) return EnterOverflow();
  // acquire: pairs with the release in Advance. The exchange pairs with Observe, in both directions.
  const uint64_t epoch = epoch_.load(std::memory_order_acquire);
  const uint64_t before = slot->epoch.exchange(epoch, std::memory_order_acq_rel);
  BRAIDDB_DCHECK(before >= kNew);  // not re-entrant
  if (__builtin_expect(before == kNew, 0)) epoch_.fetch_add(0, std::memory_order_acq_rel);
  return Guard(&slot->epoch);
}

EpochManager::Guard EpochManager::EnterOverflow() {
  SpinWait wait;
  for (;;) {
    const uint64_t epoch = epoch_.load(std::memory_order_acquire);
    uint64_t seen = overflow_.epoch.load(std::memory_order_relaxed);
    // acq_rel: as the exchange in EnterWithFence.
    if (seen >= kNew && overflow_.epoch.compare_exchange_strong(seen, epoch, std::memory_order_acq_rel)) {
      return Guard(&overflow_.epoch);
    }
    wait.Once();
  }
}

uint64_t EpochManager::Pin() {
  Slot* slot = slots_.Get();
  // The thread's own store, or in the shared slot perhaps another's, which is older than now and so holds more than needed.
  const uint64_t entered = (slot != nullptr ? slot : &overflow_)->epoch.load(std::memory_order_relaxed);
  std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t pin = std::min(entered, epoch_.load(std::memory_order_relaxed));
  ++pins_[pin];
  return pin;
}

void EpochManager::Unpin(uint64_t pin) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = pins_.find(pin);
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

void EpochManager::RetirePinned(std::function<void()> reclaim) { RetireTo(&retired_pinned_, std::move(reclaim)); }

// Everything retired so far was retired in the returned epoch or before.
uint64_t EpochManager::Advance() {
  std::lock_guard<std::mutex> lock(mutex_);
  // release: pairs with the acquire load in Enter; acquire: with the first-time reader's fetch_add.
  return epoch_.fetch_add(1, std::memory_order_acq_rel);
}

void EpochManager::FenceBeforeScan() const {
  if (asymmetric_) AsymmetricFenceHeavy();
}

// A read-modify-write that changes nothing; why not a load: see the head of this file.
uint64_t EpochManager::Observe(Slot* slot) { return slot->epoch.fetch_or(0, std::memory_order_acq_rel); }

uint64_t EpochManager::MinActive() {
  FenceBeforeScan();
  uint64_t min = Observe(&overflow_);
  slots_.ForEach([&min](Slot& slot) { min = std::min(min, Observe(&slot)); });
  return min;
}

void EpochManager::TakeBefore(uint64_t epoch, RetiredQueue* queue, RetiredQueue* taken) {
  while (!queue->empty() && queue->front().epoch < epoch) {
    taken->splice(taken->end(), *queue, queue->begin());
  }
}

size_t EpochManager::Reclaim() {
  const uint64_t advanced_from = Advance();
  // Not beyond advanced_from: what is retired during the scan has not been scanned for.
  const uint64_t safe = std::min(MinActive(), advanced_from + 1);
  RetiredQueue taken;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t pinned = pins_.empty() ? kIdle : pins_.begin()->first;
    TakeBefore(safe, &retired_, &taken);
    TakeBefore(std::min(safe, pinned), &retired_pinned_, &taken);
  }
  // Outside the mutex: a callback may retire, pin, or take long.
  for (Retired& retired : taken) retired.reclaim();
  std::lock_guard<std::mutex> lock(mutex_);
  return retired_.size() + retired_pinned_.size();
}

// Waits on plain loads, so as not to take the reader's line again and again, but believes only Observe.
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
