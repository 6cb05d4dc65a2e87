// OrderedItem: an entry among others in order, as what is in DRAM knows it.
#pragma once

#include <cstdint>

#include "pmem/pm_ptr.h"

namespace braiddb {

struct OrderedItem {
  // Entries are 8-byte aligned.
  static constexpr uint64_t kOlder = 1;
  static constexpr uint64_t kWhole = 2;
  uint64_t prefix;  // KeyOrder::Prefix of its key
  uint64_t word;

  PmPtr Entry() const { return PmPtr(word & ~(kOlder | kWhole)); }
  // The prefix says all of the key (KeyOrder::PrefixIsWhole), and its older versions come after it, whatever table they are in.
  // False: not known.
  bool IsWhole() const { return (word & kWhole) != 0; }
  // Than the one before it in the array, of the same key.
  bool IsOlder() const { return (word & kOlder) != 0; }
  void SetOlder(bool is_older) { word = (word & ~kOlder) | uint64_t{is_older}; }
};

static_assert(sizeof(OrderedItem) == 16);

}  // namespace braiddb
