// TableOrder: what tables of L0 have, in order, in DRAM: so that iterators find and fetch their entries, of which a list knows
// one after the other only.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "index/cursor.h"
#include "index/ordered_item.h"
#include "index/prefix_steps.h"
#include "lsm/ordered_array.h"
#include "util/huge_array.h"

namespace braiddb {

// Of one table, as its flush linked it; or of neighbours in L0 together, so that an iterator has fewer cursors.
//
// WHY IT IS RIGHT  An entry lies where a table has it for as long as a reader has the table in its view, as for the hash index
//                  (lsm/l0_index.h); a view has an order only beside all of its tables. A merge may have linked an entry into the
//                  last level meanwhile, where a reader of this view comes upon it again; or marked it dead, what hides it last,
//                  which readers look at (DBIterator::Counts).
// MEMORY           Some 16.5 bytes an entry, until the tables have been merged. Without it there are the lists.
// Thread safety: immutable once finished, but for what is atomic.
class TableOrder {
 public:
  using Orders = std::vector<std::shared_ptr<const TableOrder>>;
  // Whether to give up.
  using Stop = std::function<bool()>;

  // For about so many entries.
  explicit TableOrder(uint64_t entries) : items_(entries == 0 ? 1 : entries) { items_.Populate(); }
  TableOrder(const TableOrder&) = delete;
  TableOrder& operator=(const TableOrder&) = delete;

  // In entry order. `is_older`: than the one before it, of the same key. `is_whole`: KeyOrder::PrefixIsWhole, if all versions
  // that older tables have of the key are older; otherwise false.
  void Append(uint64_t prefix, PmPtr entry, bool is_older, bool is_whole) {
    if (__builtin_expect(size_ == items_.size(), 0) && !Grow()) return;
    items_[size_++] = {prefix, entry.raw() | (is_whole ? Item::kWhole : 0) | (is_older ? Item::kOlder : 0)};
  }
  // False: there was no memory, and it must not be used.
  bool Finish(const RegionSet& regions);

  // The order of several together, given with the newest first. Null if there is no memory, or if the prefixes say too little:
  // then keys would have to be compared, which are far; or if `stop` says so, which is asked now and then. May throw
  // std::bad_alloc.
  static std::shared_ptr<const TableOrder> Merge(const Orders& orders, const RegionSet& regions, const KeyOrder& order,
                                                 const Stop& stop);

  // For cursors, which this must outlive, and the tables.
  OrderedArray array() const { return {&items_[0], size_, &steps_, fetch_bytes_}; }
  std::unique_ptr<EntryCursor> NewCursor(const RegionSet* regions, const KeyOrder* order) const;
  uint64_t entries() const { return size_; }
  // The i-th: KeyOrder::Prefix of its key, where it lies, and whether the one before it is a newer version of its key.
  uint64_t PrefixAt(uint64_t i) const { return items_[i].prefix; }
  PmPtr EntryAt(uint64_t i) const { return items_[i].Entry(); }
  bool IsOlderAt(uint64_t i) const { return items_[i].IsOlder(); }
  // An attempt to merge it with its neighbours was in vain, and would be again.
  bool stays_apart() const { return stays_apart_.load(std::memory_order_relaxed); }
  void StayApart() const { stays_apart_.store(true, std::memory_order_relaxed); }
  // The same of an attempt with all that were there when writers paused; with few neighbours it may be merged nevertheless.
  bool stays_apart_at_pauses() const { return stays_apart_at_pauses_.load(std::memory_order_relaxed); }
  void StayApartAtPauses() const { stays_apart_at_pauses_.store(true, std::memory_order_relaxed); }
  uint64_t bytes() const { return size_ * sizeof(Item) + steps_.bytes(); }

 private:
  using Item = OrderedItem;
  class Stopper;
  class Alike;
  // So many neighbours with one prefix are put in order by their keys.
  static constexpr size_t kMostAlike = 64;
  // Between two questions whether to stop, some tenths of a millisecond.
  static constexpr size_t kItemsPerStop = 64 << 10;
  // So many are merged, and then looked at, while they are in the CPU's caches.
  static constexpr size_t kItemsAtOnce = 4096;

  bool Grow();
  HugeArray<Item> items_;  // size_ of them are used; empty: there is no memory
  uint64_t size_ = 0;
  PrefixSteps steps_;
  uint64_t fetch_bytes_ = 0;  // of an entry, for cursors
  mutable std::atomic<bool> stays_apart_{false};
  mutable std::atomic<bool> stays_apart_at_pauses_{false};
};

}  // namespace braiddb
