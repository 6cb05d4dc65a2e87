// OrderedIndex: the entries of a hybrid level in key order, in DRAM: HiKV's B+-tree (ATC '17, 3.1), as an OrderedNodes.
//
// VERSIONS  An index never changes. After a merge or sweep the next one is built from the last one and the changes. It shares the
//           pieces without changes.
// RECOVERY  The index is in DRAM only, and is built from the hash index.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hash_index/hash_index.h"
#include "index/key_order.h"
#include "skiplist/ordered_nodes.h"

namespace braiddb {

// Thread safety: immutable.
class OrderedIndex {
 public:
  // An entry that a job has added to the level or removed from it.
  struct Change {
    uint64_t prefix;  // KeyOrder::Prefix of the key
    PmPtr entry;
    bool is_added;
  };

  // Builds the index from all entries of the hash index, on `threads` threads. Null if `stop`, which may be null, became true.
  // May throw std::bad_alloc. If writers change the hash index meanwhile, the result has at least the entries that are never
  // removed.
  // COST  One cache miss for each entry, prefetched; a sort.
  static std::shared_ptr<const OrderedIndex> Build(const HashIndex& hash, const RegionSet& regions, const KeyOrder& order,
                                                   uint32_t threads, const std::atomic<bool>* stop);
  // Builds the index from an earlier one. `changes`: in entry order. Null if they do not fit. May throw std::bad_alloc.
  // COST  A search for each change; a pass over each piece with changes.
  static std::shared_ptr<const OrderedIndex> Apply(const OrderedIndex& before, std::span<const Change> changes,
                                                   const RegionSet& regions, const KeyOrder& order);

  const OrderedNodes& nodes() const { return nodes_; }
  uint64_t bytes() const { return nodes_.bytes(); }

 private:
  class ChangePass;

  OrderedNodes nodes_;
  uint64_t changed_ = 0;  // entries added or removed since OrderedNodes::alike was built, or was found to be empty
};

}  // namespace braiddb
