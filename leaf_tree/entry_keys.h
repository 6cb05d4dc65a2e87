// EntryKeys: the keys of elements whose values are addresses of log entries.
#pragma once

#include <atomic>
#include <cstdint>

#include "leaf_tree/element.h"
#include "log/log_entry.h"
#include "pmem/region_set.h"
#include "util/prefetch.h"

namespace braiddb {

// Resolves elements to log entries.
class EntryKeys final : public ElementKeys {
 public:
  EntryKeys(const RegionSet* regions, const KeyOrder* order) : regions_(regions), order_(order) {}

  // Null if the address is outside the regions or the entry has another prefix; RegionSet::damage_seen then returns true.
  LogEntry* EntryOf(const Element& element) const {
    const PmPtr place(element.value);
    if (__builtin_expect(regions_->Holds(place), 1)) {
      auto* const entry = regions_->Resolve<LogEntry>(place);
      if (__builtin_expect(order_->Prefix(entry->key()) == element.key, 1)) return entry;
    }
    regions_->NoteDamage();
    return nullptr;
  }
  // The same without a check of the prefix.
  LogEntry* EntryAt(PmPtr place) const {
    if (__builtin_expect(regions_->Holds(place), 1)) return regions_->Resolve<LogEntry>(place);
    regions_->NoteDamage();
    return nullptr;
  }
  SearchKey KeyOf(const Element& element) const override {
    const LogEntry* const entry = EntryOf(element);
    return entry == nullptr ? SearchKey(element.key, Slice(), 0) : SearchKey(element.key, entry->key(), entry->sequence());
  }
  // Prefetches the first `bytes` bytes of the entry, for callers that also read the value.
  void PrefetchWhole(const Element& element, uint32_t bytes) const {
    if (!regions_->Holds(PmPtr(element.value))) return;
    PrefetchAll(regions_->Resolve(PmPtr(element.value)), bytes);
  }
  // Recent entry size in bytes, at most kMostFetched: the first estimate of a new cursor.
  static constexpr uint32_t kMostFetched = 512;
  uint32_t usual_bytes() const { return usual_bytes_.load(std::memory_order_relaxed); }
  void NoteUsualBytes(uint32_t bytes) const {
    if (bytes / kCacheLine != usual_bytes() / kCacheLine) usual_bytes_.store(bytes, std::memory_order_relaxed);
  }
  // Prefetches two lines: all of a small entry; of a larger one the key and the start of the value.
  void Prefetch(const Element& element) const override {
    if (!regions_->Holds(PmPtr(element.value))) return;
    const uint8_t* const entry = regions_->Resolve(PmPtr(element.value));
    braiddb::Prefetch(entry);
    braiddb::Prefetch(entry + kCacheLine - 8);
  }

  const RegionSet& regions() const { return *regions_; }

 private:
  const RegionSet* const regions_;
  const KeyOrder* const order_;
  // On a line of its own: cursors write it, and every lookup reads the members above.
  alignas(kCacheLine) mutable std::atomic<uint32_t> usual_bytes_{2 * kCacheLine};
};

}  // namespace braiddb
