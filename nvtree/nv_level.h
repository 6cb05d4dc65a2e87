// NvLevel: the last level of a column family as an NV-Tree. Its elements refer to log entries.
//
// LAYOUT  One element per version in the level: the first eight bytes of the key and the PmPtr of the entry. Entries stay where
//         they were written. Of their `next` words only the dead mark is used.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "index/ordered_level.h"
#include "log/log_entry.h"
#include "nvtree/nv_tree.h"
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

// Cursors enter epoch guards of their own. Their users hold a pin and no guard.
class NvLevel final : public OrderedLevel {
 public:
  // Like NvTree::Open, but keeps the segments of other trees.
  static Status Open(RegionSet* regions, SegmentAllocator* segments, EpochManager* epochs, const KeyOrder* order,
                     const LevelPlace& place, uint32_t threads, std::shared_ptr<NvLevel>* result);

  // As OrderedLevel::Find. Reads every version of the key with a number at most the target's.
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
