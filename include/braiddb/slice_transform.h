// SliceTransform: what the prefix of a key is.
#pragma once

#include <cstddef>
#include <memory>

#include "braiddb/iterator.h"
#include "braiddb/slice.h"

#pragma GCC visibility push(default)
namespace braiddb {

// For Options::prefix_extractor. The order of keys must keep those of one prefix together, as BytewiseComparator() does with
// prefixes that are the beginnings of keys. Implementations must be thread-safe, and must not throw.
class SliceTransform {
 public:
  virtual ~SliceTransform() = default;

  // Noted in the options file. The built-in ones have the names that RocksDB knows them by.
  virtual const char* Name() const = 0;
  // Whether the key has a prefix.
  virtual bool InDomain(Slice key) const = 0;
  // The prefix. It points into the key, or to memory that lives as long as the object. REQUIRES: InDomain(key).
  virtual Slice Transform(Slice key) const = 0;
};

// The first `length` bytes; shorter keys have no prefix. "rocksdb.FixedPrefix.<length>".
std::shared_ptr<const SliceTransform> NewFixedPrefixTransform(size_t length);
// The first `length` bytes, or all there are. "rocksdb.CappedPrefix.<length>".
std::shared_ptr<const SliceTransform> NewCappedPrefixTransform(size_t length);
// All of the key. "rocksdb.Noop".
std::shared_ptr<const SliceTransform> NewNoopTransform();

// Goes through `base`, and ends with the prefix: after Seek and SeekForPrev, of the target; after SeekToFirst and SeekToLast, of
// the key that they come to. A target without a prefix is no limit. What ReadOptions::prefix_same_as_start makes of an iterator.
std::unique_ptr<Iterator> NewPrefixIterator(std::unique_ptr<Iterator> base, std::shared_ptr<const SliceTransform> extractor);

}  // namespace braiddb
#pragma GCC visibility pop
