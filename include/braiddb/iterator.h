// Iterator: an ordered cursor over one consistent view of a database.
#pragma once

#include "braiddb/slice.h"
#include "braiddb/status.h"

#pragma GCC visibility push(default)
namespace braiddb {

// An iterator shows the state of the database at its creation, or of ReadOptions::snapshot: each visible key once, in comparator
// order. It pins the space of entries that it may reach, so destroy it soon.
// Thread safety: one thread at a time. Must be destroyed before its DB.
class Iterator {
 public:
  virtual ~Iterator() = default;
  Iterator(const Iterator&) = delete;
  Iterator& operator=(const Iterator&) = delete;

  virtual bool Valid() const = 0;
  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  // Moves to the first key >= target.
  virtual void Seek(Slice target) = 0;
  // Moves to the last key <= target.
  virtual void SeekForPrev(Slice target) = 0;
  // REQUIRES: Valid().
  virtual void Next() = 0;
  virtual void Prev() = 0;
  // The current key and value, valid until the iterator moves. They point into persistent memory (zero copy), or to the result of
  // a merge operator. REQUIRES: Valid().
  virtual Slice key() const = 0;
  virtual Slice value() const = 0;
  // OK at both ends of the data. After an error the iterator is not valid.
  virtual Status status() const = 0;
  // The timestamp of the current version. Empty in a family without timestamps. REQUIRES: Valid().
  virtual Slice timestamp() const { return {}; }

 protected:
  Iterator() = default;
};

}  // namespace braiddb
#pragma GCC visibility pop
