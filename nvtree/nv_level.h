// NvLevel: the last level as an NV-Tree whose elements name log entries.
//
// An element is the first eight bytes of a key and the PmPtr of an entry, one for each version that the level has. Entries stay
// where they were written; their `next` words mean nothing here but for the mark of a dead entry.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "index/ordered_level.h"
#include "log/log_entry.h"
#include "nvtree/nv_tree.h"
#include "util/prefetch.h"

namespace braiddb {

// Elements as log entries.
class EntryKeys final : public ElementKeys {
 public:
  EntryKeys(const RegionSet* regions, const KeyOrder* order) : regions_(regions), order_(order) {}

  // Null if the address is outside the regions, or what is there has another key word: RegionSet::damage_seen then says so.
  LogEntry* EntryOf(const Element& element) const {
    const PmPtr place(element.value);
    if (__builtin_expect(regions_->Holds(place), 1)) {
      auto* const entry = regions_->Resolve<LogEntry>(place);
      if (__builtin_expect(order_->Prefix(entry->key()) == element.key, 1)) return entry;
    }
    regions_->NoteDamage();
    return nullptr;
  }
  SearchKey KeyOf(const Element& element) const override {
    const LogEntry* const entry = EntryOf(element);
    return entry == nullptr ? SearchKey(element.key, Slice(), 0) : SearchKey(element.key, entry->key(), entry->sequence());
  }
  // The same for who reads the value, too; `bytes`: of the entry, about.
  void PrefetchWhole(const Element& element, uint32_t bytes) const {
    if (!regions_->Holds(PmPtr(element.value))) return;
    PrefetchAll(regions_->Resolve(PmPtr(element.value)), bytes);
  }
  // What entries of late had: for cursors that have seen none yet. Up to kMostFetched.
  static constexpr uint32_t kMostFetched = 512;
  uint32_t usual_bytes() const { return usual_bytes_.load(std::memory_order_relaxed); }
  void NoteUsualBytes(uint32_t bytes) const {
    if (bytes / kCacheLine != usual_bytes() / kCacheLine) usual_bytes_.store(bytes, std::memory_order_relaxed);
  }
  // Two lines: small entries lie in one or two, of larger ones the key and where the value begins.
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
  // Cursors store it, and every lookup reads what is above.
  alignas(kCacheLine) mutable std::atomic<uint32_t> usual_bytes_{2 * kCacheLine};
};

// Its cursors enter epoch guards of their own; their users hold a pin and no guard.
class NvLevel final : public OrderedLevel {
 public:
  // As NvTree::Open, but that segments of others stay.
  static Status Open(RegionSet* regions, SegmentAllocator* segments, EpochManager* epochs, const KeyOrder* order,
                     const LevelPlace& place, uint32_t threads, std::shared_ptr<NvLevel>* result);

  const LogEntry* Find(const SearchKey& target, LookupTrace* trace) const override;
  std::unique_ptr<EntryCursor> NewCursor() const override;

  NvTree* tree() const { return tree_.get(); }
  const EntryKeys& keys() const { return keys_; }

 private:
  NvLevel(const RegionSet* regions, const KeyOrder* order) : keys_(regions, order), order_(order) {}

  const EntryKeys keys_;
  const KeyOrder* const order_;
  std::unique_ptr<NvTree> tree_;
};

}  // namespace braiddb
