// MergeOperator: defines DB::Merge. An operand is an update that is written without reading the key; the operator computes the
// key's value from its operands.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "braiddb/slice.h"

#pragma GCC visibility push(default)
namespace braiddb {

// Implemented by the user. A Merge is written as an operand, at the cost of a put. Reads apply the operands of a key, and
// background work replaces operands by their result. The value must be the same whenever operands are applied. A method must not
// call the database. If a method throws, that counts as false; std::bad_alloc is MemoryLimit.
// Thread safety: any number of threads may call every method at once, threads of the database included.
class MergeOperator {
 public:
  virtual ~MergeOperator() = default;

  // For messages. Not stored: each open must be given an operator that understands the existing operands.
  virtual const char* Name() const = 0;

  // Computes the value of `key` from `existing` (null if the key did not exist) and `operands`, the oldest first. *value is empty
  // at the call. Return false if the operands cannot be applied: reads of the key are Corruption then, and the operands stay.
  virtual bool FullMerge(Slice key, const Slice* existing, std::span<const Slice> operands, std::string* value) const = 0;

  // Combines two operands into one with the effect of `left` and then `right` on any value. *operand is empty at the call. Return
  // false if there is no such operand: both stay. Called by compactions, and by reads of many operands. Default: returns false.
  virtual bool PartialMerge(Slice key, Slice left, Slice right, std::string* operand) const;
  // The same for two or more operands, the oldest first. Default: calls PartialMerge for one after the other.
  virtual bool PartialMergeMulti(Slice key, std::span<const Slice> operands, std::string* operand) const;
};

// Adds 64-bit numbers of eight bytes, little-endian. Values of another length count as 0. As RocksDB's "uint64add".
std::shared_ptr<const MergeOperator> UInt64AddOperator();

}  // namespace braiddb
#pragma GCC visibility pop
