// OrderedItem: an entry in an array that has entries in order.
#pragma once

#include <cstdint>

#include "pmem/pm_ptr.h"

namespace braiddb {

struct OrderedItem {
  static constexpr uint64_t kOlder = 1;  // entries are 8-byte aligned
  uint64_t prefix;                       // KeyOrder::Prefix of its key
  uint64_t word;

  PmPtr Entry() const { return PmPtr(word & ~kOlder); }
  // Than the one before it in the array, of the same key.
  bool IsOlder() const { return (word & kOlder) != 0; }
  void SetOlder(bool is_older) { word = (word & ~kOlder) | uint64_t{is_older}; }
};

static_assert(sizeof(OrderedItem) == 16);

}  // namespace braiddb
