// EntrySet: a set of entries that can be compared with another one.
#pragma once

#include <cstdint>

#include "pmem/pm_ptr.h"

namespace braiddb {

// A set of entries, reduced to two numbers. Different sets have equal numbers with a probability of about 2^-64.
struct EntrySet {
  uint64_t count = 0;
  uint64_t sum = 0;

  void Add(PmPtr entry) {
    uint64_t x = entry.raw() * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
    ++count;
    sum += x ^ x >> 32;
  }
  friend bool operator==(const EntrySet&, const EntrySet&) = default;
};

}  // namespace braiddb
