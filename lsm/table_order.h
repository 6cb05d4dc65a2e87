// TableOrder: a sorted array in DRAM of the entries of one or more tables of L0. An iterator finds and prefetches entries through
// it; the tables' lists give only one entry after another.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "index/cursor.h"
#include "index/ordered_item.h"
#include "index/prefix_steps.h"
#include "lsm/ordered_array.h"
#include "util/huge_array.h"
#include "util/shared_memory.h"

namespace braiddb {

// The array of one table, filled while the flush links it; or of neighbouring tables in L0, so that an iterator has fewer
// cursors.
//
// WHY IT IS RIGHT  An entry stays at its address for as long as a reader has its table in a view, as for the hash index
//                  (lsm/l0_index.h). A view has an array only together with all of its tables. A merge may already have linked an
//                  entry into the last level; the reader then meets the entry there again. Or a merge may have marked it dead,
//                  the hiding entry last; readers check the mark (DBIterator::Counts).
// MEMORY           About 16.5 bytes per entry until the tables have been merged, and AlikeSteps if keys begin alike. Without the
//                  memory, readers use the lists.
// LIVE READERS     An array in a SharedHeap is also read by other processes. When its first iterator comes, each makes the search
//                  steps for itself, which takes a pass over each 16th item and half a byte per item, and attaches to the
//                  AlikeSteps, which lie in the heap too.
// CONCURRENCY      Immutable once finished, except for the atomic members.
class TableOrder {
 public:
  using Orders = std::vector<std::shared_ptr<const TableOrder>>;
  // Returns true if a merge should give up.
  using Stop = std::function<bool()>;

  // Sized for about `entries` entries. `heap`: where the array lies, so that other processes can read it; it must outlive the
  // array. Null, or without room: private memory.
  explicit TableOrder(uint64_t entries, SharedHeap* heap = nullptr);
  TableOrder(const TableOrder&) = delete;
  TableOrder& operator=(const TableOrder&) = delete;

  // Appends in entry order. `is_older`: an older version of the key of the entry before. `is_whole`: KeyOrder::PrefixIsWhole, and
  // all versions of the key in older tables are older; otherwise false.
  void Append(uint64_t prefix, PmPtr entry, bool is_older, bool is_whole) {
    if (__builtin_expect(size_ == items_.size(), 0) && !Grow()) return;
    items_[size_++] = {prefix, entry.raw() | (is_whole ? Item::kWhole : 0) | (is_older ? Item::kOlder : 0)};
  }
  // Builds the search steps. False: there was no memory, or `stop` returned true; the array must not be used.
  bool Finish(
      const RegionSet& regions, const KeyOrder& order, const Stop& stop = [] { return false; });

  // Merges several arrays, given newest first. Null if there is no memory, or if `stop` returns true; `stop` is called at
  // intervals. May throw std::bad_alloc.
  static std::shared_ptr<const TableOrder> Merge(const Orders& orders, const RegionSet& regions, const KeyOrder& order,
                                                 const Stop& stop, SharedHeap* heap = nullptr);

  // What another process needs to attach to an array.
  struct Shared {
    uint64_t id = 0;      // unique in the owner's process
    uint64_t offset = 0;  // in the heap; 0: the array is in private memory, or empty
    uint64_t entries = 0;
    uint64_t fetch_bytes = 0;
    AlikeSteps::Shared alike{};
  };
  Shared shared() const { return {id_, size_ == 0 ? 0 : items_.heap_offset(), size_, fetch_bytes_, alike_.shared()}; }
  // The array of another process, whose heap `memory` maps. Null if the range is not in the heap, or empty. May throw
  // std::bad_alloc.
  static std::shared_ptr<const TableOrder> Attach(const SharedMemory& memory, const Shared& shared);
  uint64_t id() const { return id_; }

  // For cursors. This object and the tables must outlive them. Of an attached array, may throw std::bad_alloc.
  OrderedArray array() const {
    if (__builtin_expect(is_attached_, 0)) MakeSteps();
    return {&items_[0], size_, &steps_, &alike_, fetch_bytes_, nullptr, is_attached_};
  }
  std::unique_ptr<EntryCursor> NewCursor(const RegionSet* regions, const KeyOrder* order) const;
  uint64_t entries() const { return size_; }
  // Of the i-th entry: KeyOrder::Prefix of its key, its address, and whether the entry before is a newer version of its key.
  uint64_t PrefixAt(uint64_t i) const { return items_[i].prefix; }
  PmPtr EntryAt(uint64_t i) const { return items_[i].Entry(); }
  bool IsOlderAt(uint64_t i) const { return items_[i].IsOlder(); }
  // True if a merge with its neighbours failed for want of memory.
  bool stays_apart() const { return stays_apart_.load(std::memory_order_relaxed); }
  void StayApart() const { stays_apart_.store(true, std::memory_order_relaxed); }
  // The same for a merge of all arrays during a pause of the writers; a merge with fewer neighbours may still succeed.
  bool stays_apart_at_pauses() const { return stays_apart_at_pauses_.load(std::memory_order_relaxed); }
  void StayApartAtPauses() const { stays_apart_at_pauses_.store(true, std::memory_order_relaxed); }
  // DRAM of this process.
  uint64_t bytes() const { return (is_attached_ ? 0 : size_ * sizeof(Item)) + steps_.bytes() + alike_.bytes(); }

 private:
  using Item = OrderedItem;
  class Stopper;
  class Alike;
  // More neighbours with one prefix are merged by their keys from the arrays, not sorted in place.
  static constexpr size_t kMostFewAlike = 64;
  // Items between two calls of `stop`, some tenths of a millisecond.
  static constexpr size_t kItemsPerStop = 64 << 10;
  // Items per batch: merged, then post-processed while they are in the CPU's caches.
  static constexpr size_t kItemsAtOnce = 4096;

  TableOrder(const SharedMemory* memory, HugeArray<Item> items, const Shared& shared)
      : id_(shared.id),
        is_attached_(true),
        items_(std::move(items)),
        size_(shared.entries),
        memory_(memory),
        shared_alike_(shared.alike),
        fetch_bytes_(shared.fetch_bytes) {}
  static HugeArray<Item> Allocate(uint64_t entries, SharedHeap* heap);
  bool Grow();
  // Of an attached array: makes the search steps and attaches to the AlikeSteps, unless they are there.
  void MakeSteps() const;

  const uint64_t id_;
  const bool is_attached_ = false;
  SharedHeap* const heap_ = nullptr;
  HugeArray<Item> items_;  // the first size_ are in use; empty: there was no memory
  uint64_t size_ = 0;
  const SharedMemory* const memory_ = nullptr;  // this and the next two members: of an attached array
  const AlikeSteps::Shared shared_alike_;
  mutable std::once_flag steps_are_made_;
  mutable PrefixSteps steps_;
  mutable AlikeSteps alike_;
  uint64_t fetch_bytes_ = 0;  // typical bytes of an entry
  mutable std::atomic<bool> stays_apart_{false};
  mutable std::atomic<bool> stays_apart_at_pauses_{false};
};

}  // namespace braiddb
