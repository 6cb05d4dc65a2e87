// Comparator: the total order of a database's keys.
#pragma once

#include "braiddb/slice.h"

#pragma GCC visibility push(default)
namespace braiddb {

// Thread safety: any number of threads may call every method at once. The order must never change while a database with it
// exists, and the object must outlive the open database.
class Comparator {
 public:
  virtual ~Comparator() = default;

  // < 0 if a is before b, 0 if they are equal, > 0 if a is after b. Must not throw.
  virtual int Compare(Slice a, Slice b) const = 0;

  // Stored in the database: an open with a comparator of another name is an error. Names may have any length.
  virtual const char* Name() const = 0;
};

// Unsigned bytes; a prefix of a key is before the key. The default, and the only order that compares 8 bytes at a time.
const Comparator* BytewiseComparator();

// The exact reverse of BytewiseComparator().
const Comparator* ReverseBytewiseComparator();

}  // namespace braiddb
#pragma GCC visibility pop
