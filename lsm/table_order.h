// TableOrder: what tables of L0 have, in order, in DRAM: so that iterators find and fetch their entries, of which a list knows
// one after the other only.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "index/prefix_steps.h"
#include "lsm/array_cursor.h"
#include "lsm/ordered_item.h"
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
  // For about so many entries.
  explicit TableOrder(uint64_t entries) : items_(entries == 0 ? 1 : entries) {}
  TableOrder(const TableOrder&) = delete;
  TableOrder& operator=(const TableOrder&) = delete;

  // In entry order. `is_older`: than the one before it, of the same key.
  void Append(uint64_t prefix, PmPtr entry, bool is_older) {
    if (__builtin_expect(size_ == items_.size(), 0) && !Grow()) return;
    items_[size_++] = {prefix, entry.raw() | uint64_t{is_older}};
  }
  // False: there was no memory, and it must not be used.
  bool Finish(const RegionSet& regions);

  // The order of several together, given with the newest first. Null if there is no memory, or if the prefixes say too little:
  // then keys would have to be compared, which are far. May throw std::bad_alloc.
  static std::shared_ptr<const TableOrder> Merge(const std::vector<std::shared_ptr<const TableOrder>>& orders,
                                                 const RegionSet& regions, const KeyOrder& order);

  // The tables must outlive it.
  std::unique_ptr<EntryCursor> NewCursor(const RegionSet* regions, const KeyOrder* order) const {
    return std::make_unique<ArrayCursor<Item>>(regions, order, &items_[0], size_, &steps_, fetch_bytes_, nullptr);
  }
  uint64_t entries() const { return size_; }
  // The i-th: KeyOrder::Prefix of its key, where it lies, and whether the one before it is a newer version of its key.
  uint64_t PrefixAt(uint64_t i) const { return items_[i].prefix; }
  PmPtr EntryAt(uint64_t i) const { return items_[i].Entry(); }
  bool IsOlderAt(uint64_t i) const { return items_[i].IsOlder(); }
  // An attempt to merge it with its neighbours was in vain, and would be again.
  bool stays_apart() const { return stays_apart_.load(std::memory_order_relaxed); }
  void StayApart() const { stays_apart_.store(true, std::memory_order_relaxed); }
  uint64_t bytes() const { return size_ * sizeof(Item) + steps_.bytes(); }

 private:
  using Item = OrderedItem;
  // So many neighbours with one prefix are put in order by their keys.
  static constexpr size_t kMostAlike = 64;

  bool Grow();
  // By prefix; of equal ones those of `a` first. `to` may be `b` and what lies before it, as much as `a` has.
  static void MergeTwo(const Item* a, size_t a_size, const Item* b, size_t b_size, Item* to);
  static void MergeAll(const std::vector<std::shared_ptr<const TableOrder>>& orders, size_t begin, size_t end, Item* scratch,
                       Item* to);
  // Of items that are in order by prefix. False: too many are alike.
  static bool OrderAlike(Item* items, size_t size, const RegionSet& regions, const KeyOrder& order);

  HugeArray<Item> items_;  // size_ of them are used; empty: there is no memory
  uint64_t size_ = 0;
  PrefixSteps steps_;
  uint64_t fetch_bytes_ = 0;  // of an entry, for cursors
  mutable std::atomic<bool> stays_apart_{false};
};

}  // namespace braiddb
