// MergeOperator: what DB::Merge means: how operands, updates that were written without a look at the key, make its value.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "braiddb/slice.h"

#pragma GCC visibility push(default)
namespace braiddb {

// The user's. A merge is written as it is, at the price of a put; reads apply the operands of a key, and background work puts
// the result in their place. Whatever was applied when, the value must be the same.
// Thread safety: every method may be called by any number of threads at once, the database's own among them. None may call the
// database. What one throws counts as false; std::bad_alloc is out of memory.
class MergeOperator {
 public:
  virtual ~MergeOperator() = default;

  // For messages. A database does not remember it: who opens it again must give an operator that understands its operands.
  virtual const char* Name() const = 0;

  // The value of `key` after `operands`, the oldest first, on top of `existing`; null if the key was not there. *value is empty.
  // False: they cannot be applied. Reads of the key are Corruption then, and nothing is lost.
  virtual bool FullMerge(Slice key, const Slice* existing, std::span<const Slice> operands, std::string* value) const = 0;

  // One operand that does what `left` and then `right` do, whatever they come upon. *operand is empty. False: there is none;
  // they stay two. It may never be called (LIMITATIONS.md). Default: false.
  virtual bool PartialMerge(Slice key, Slice left, Slice right, std::string* operand) const;
  // The same of two or more, the oldest first. Default: one after the other by PartialMerge.
  virtual bool PartialMergeMulti(Slice key, std::span<const Slice> operands, std::string* operand) const;
};

// Adds 64-bit numbers, eight bytes little-endian; what is not eight bytes long counts as 0. As RocksDB's "uint64add".
std::shared_ptr<const MergeOperator> UInt64AddOperator();

}  // namespace braiddb
#pragma GCC visibility pop
