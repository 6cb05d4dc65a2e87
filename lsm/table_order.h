// TableOrder: what a table of L0 has, in order, in DRAM: so that iterators find and fetch its entries, of which a list knows one
// after the other only.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "index/prefix_steps.h"
#include "lsm/array_cursor.h"
#include "util/huge_array.h"

namespace braiddb {

// WHY IT IS RIGHT  An entry lies where the table has it for as long as a reader has the table in its view, as for the hash index
//                  (lsm/l0_index.h). A merge may have linked it into the last level meanwhile, where a reader of this view comes
//                  upon it again; or marked it dead, what hides it last, which readers look at (DBIterator::Counts).
// MEMORY           Some 16.5 bytes an entry, until the table has been merged. Without it there is the list.
// Thread safety: immutable once finished.
class TableOrder {
 public:
  // For about so many entries.
  explicit TableOrder(uint64_t entries) : items_(entries == 0 ? 1 : entries) {}
  TableOrder(const TableOrder&) = delete;
  TableOrder& operator=(const TableOrder&) = delete;

  // In entry order.
  void Append(uint64_t prefix, PmPtr entry) {
    if (__builtin_expect(size_ == items_.size(), 0) && !Grow()) return;
    items_[size_++] = {prefix, entry.raw()};
  }
  // False: there was no memory, and it must not be used.
  bool Finish() {
    if (items_.empty()) return false;
    try {
      steps_.Build(size_, [this](size_t i) { return items_[i].prefix; });
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }

  // The table must outlive it.
  std::unique_ptr<EntryCursor> NewCursor(const RegionSet* regions, const KeyOrder* order) const {
    return std::make_unique<ArrayCursor<Item>>(regions, order, &items_[0], size_, &steps_, nullptr);
  }
  uint64_t bytes() const { return size_ * sizeof(Item) + steps_.bytes(); }

 private:
  struct Item {
    uint64_t prefix;
    uint64_t entry;
  };

  bool Grow() {
    HugeArray<Item> larger(2 * items_.size());
    if (larger.empty()) {
      items_ = {};
      size_ = 0;
      return false;
    }
    std::memcpy(&larger[0], &items_[0], size_ * sizeof(Item));
    items_ = std::move(larger);
    return true;
  }

  HugeArray<Item> items_;  // size_ of them are used; empty: there is no memory
  uint64_t size_ = 0;
  PrefixSteps steps_;
};

}  // namespace braiddb
