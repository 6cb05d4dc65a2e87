// OrderedItem: an entry in a sorted array in DRAM: its key prefix, its address and two flags.
#pragma once

#include <cstdint>

#include "pmem/pm_ptr.h"

namespace braiddb {

struct OrderedItem {
  // Entries are 8-byte aligned, so the low bits of the address hold the flags.
  static constexpr uint64_t kOlder = 1;
  static constexpr uint64_t kWhole = 2;
  uint64_t prefix;  // KeyOrder::Prefix of its key
  uint64_t word;

  PmPtr Entry() const { return PmPtr(word & ~(kOlder | kWhole)); }
  // True: the key fits in its 8-byte prefix (KeyOrder::PrefixIsWhole), and versions of the key in older tables are older. False:
  // unknown.
  bool IsWhole() const { return (word & kWhole) != 0; }
  // True: an older version of the key of the item before it in the array.
  bool IsOlder() const { return (word & kOlder) != 0; }
  void SetOlder(bool is_older) { word = (word & ~kOlder) | uint64_t{is_older}; }
};

static_assert(sizeof(OrderedItem) == 16);

}  // namespace braiddb
