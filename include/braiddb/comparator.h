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

  // ---- User-defined timestamps, as in RocksDB. A family whose comparator has a timestamp size keeps several versions of a key;
  // see DB::PutAt. Compare is then called with keys that are followed by their timestamps. It must order by the keys and, for one
  // key, put newer timestamps first. Timestamps of 0xff bytes must be the newest, timestamps of 0x00 bytes the oldest.

  // Length of each timestamp; bytes. Stored: an open with another size is an error. 0: no timestamps.
  virtual size_t timestamp_size() const { return 0; }
  // < 0 if the first timestamp is older, 0 if they are equal, > 0 if it is newer. Must not throw.
  virtual int CompareTimestamp(Slice a, Slice b) const { return a.compare(b); }
  // Compares keys without their timestamps. Each flag says whether its key is followed by a timestamp. Must not throw.
  virtual int CompareWithoutTimestamp(Slice a, bool /*a_has_timestamp*/, Slice b, bool /*b_has_timestamp*/) const {
    return Compare(a, b);
  }
};

// Unsigned bytes; a prefix of a key is before the key. The default, and the only order that compares 8 bytes at a time.
const Comparator* BytewiseComparator();

// The exact reverse of BytewiseComparator().
const Comparator* ReverseBytewiseComparator();

// The same with timestamps of eight bytes: unsigned integers, little-endian. Keys of the user's order, newer timestamps first.
const Comparator* BytewiseComparatorWithU64Ts();
const Comparator* ReverseBytewiseComparatorWithU64Ts();

}  // namespace braiddb
#pragma GCC visibility pop
