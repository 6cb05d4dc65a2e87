// Iterator: an ordered cursor over one consistent view of a database.
#pragma once

#include "braiddb/slice.h"
#include "braiddb/status.h"

#pragma GCC visibility push(default)
namespace braiddb {

// An iterator sees the database as it was when the iterator was made (or as ReadOptions::snapshot says), each visible key
// once, in comparator order. While it lives, memory that it may reach is not reused: keep it short-lived, or space does not
// come back.
// Thread safety: one thread at a time. Must be destroyed before its DB.
class Iterator {
 public:
  virtual ~Iterator() = default;
  Iterator(const Iterator&) = delete;
  Iterator& operator=(const Iterator&) = delete;

  virtual bool Valid() const = 0;
  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  // To the first key >= target.
  virtual void Seek(Slice target) = 0;
  // To the last key <= target.
  virtual void SeekForPrev(Slice target) = 0;
  // REQUIRES: Valid().
  virtual void Next() = 0;
  virtual void Prev() = 0;
  // The current key and value; they point into persistent memory (zero copy), or to what a merge operator has made, and stay
  // valid until the iterator moves.
  virtual Slice key() const = 0;
  virtual Slice value() const = 0;
  // OK also at the ends; an error makes the iterator invalid.
  virtual Status status() const = 0;

 protected:
  Iterator() = default;
};

}  // namespace braiddb
#pragma GCC visibility pop
