// Comparator: the total order of a database's keys.
#pragma once

#include "braiddb/slice.h"

#pragma GCC visibility push(default)
namespace braiddb {

// Implementations must be thread-safe, must not change while a database written with them exists, and must outlive it.
class Comparator {
 public:
  virtual ~Comparator() = default;

  // < 0, 0, > 0 as a is before, equal to, after b. Must not throw.
  virtual int Compare(Slice a, Slice b) const = 0;

  // Stored in the database; opening it with a comparator of another name is an error. Names of any length are told apart.
  virtual const char* Name() const = 0;
};

// Unsigned bytes, shorter first on equal prefixes. The default, and the only order that compares 8 bytes at a time.
const Comparator* BytewiseComparator();

// The exact reverse of BytewiseComparator().
const Comparator* ReverseBytewiseComparator();

}  // namespace braiddb
#pragma GCC visibility pop
