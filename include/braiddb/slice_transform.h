// SliceTransform: computes the prefix of a key.
#pragma once

#include <cstddef>
#include <memory>

#include "braiddb/iterator.h"
#include "braiddb/slice.h"

#pragma GCC visibility push(default)
namespace braiddb {

// For Options::prefix_extractor. Keys of one prefix must be adjacent in the order of keys, as with BytewiseComparator() if
// prefixes are the beginnings of keys. Must not throw.
// Thread safety: any number of threads may call every method at once.
class SliceTransform {
 public:
  virtual ~SliceTransform() = default;

  // Stored in the options file. The built-in ones have RocksDB's names.
  virtual const char* Name() const = 0;
  // Whether the key has a prefix.
  virtual bool InDomain(Slice key) const = 0;
  // The prefix. It points into the key, or to memory that is valid as long as the object. REQUIRES: InDomain(key).
  virtual Slice Transform(Slice key) const = 0;
};

// The first `length` bytes; shorter keys have no prefix. "rocksdb.FixedPrefix.<length>".
std::shared_ptr<const SliceTransform> NewFixedPrefixTransform(size_t length);
// The first `length` bytes, or the entire key if it is shorter. "rocksdb.CappedPrefix.<length>".
std::shared_ptr<const SliceTransform> NewCappedPrefixTransform(size_t length);
// The entire key. "rocksdb.Noop".
std::shared_ptr<const SliceTransform> NewNoopTransform();

// An iterator over the keys of `base` with one prefix. After Seek and SeekForPrev that is the prefix of the target, after
// SeekToFirst and SeekToLast the prefix of the key found. If the target has no prefix, the iterator is not limited.
// Iterators of transactions use it for ReadOptions::prefix_same_as_start. A database's own iterator differs in one case: after
// SeekToFirst with a lower bound, and SeekToLast with an upper one, the prefix is that of the bound.
std::unique_ptr<Iterator> NewPrefixIterator(std::unique_ptr<Iterator> base, std::shared_ptr<const SliceTransform> extractor);

}  // namespace braiddb
#pragma GCC visibility pop
