// TallIndex: a DRAM shortcut into a braided skiplist: its tall nodes in order, so that a search starts near its key.
//
// From: ListDB's second-level lookup cache (section 3.5), as a sorted array instead of a skiplist: rebuilt after every merge by a
// walk along one upper layer, never changed. Its size is bounded: when the list grows, only taller nodes are taken.
#pragma once

#include <cstdint>
#include <vector>

#include "skiplist/braided_list.h"

namespace braiddb {

// WHY A STALE INDEX IS SAFE  An index belongs to one read view and was built before the view was installed. Nodes that were
//                            merged since are
// in tables that the view still holds, or in newer levels. A node that was unlinked since keeps its pointers, which lead to
// everything that was behind it then; what was linked there later is, again, in tables of the view. Its memory is not reused
// while a reader of the view lives. Thread safety: immutable after construction.
class TallIndex {
 public:
  // At most this many nodes per region: 8 MiB and 1/16 of that.
  static constexpr uint64_t kMaxNodes = 512 * 1024;

  // Empty: every search starts at the head.
  explicit TallIndex(const BraidedList& list) : order_(&list.order()), regions_(list.regions().count()) {}
  // REQUIRES: no merge is running. `entries`: an estimate of how many the list has.
  TallIndex(const BraidedList& list, uint64_t entries);

  // Where to begin a search for target: the last indexed node of home.region before it, or `home` if there is none.
  BraidedList::Start Start(const BraidedList::Start& home, const SearchKey& target) const;

  uint64_t bytes() const;

 private:
  struct Node {
    uint64_t prefix;
    const LogEntry* entry;
  };
  struct Nodes {
    std::vector<Node> nodes;      // in entry order
    std::vector<uint64_t> steps;  // the prefix of every kStep-th
  };
  // Two cache lines of nodes: found by its first prefix, scanned.
  static constexpr size_t kStep = 8;

  void Collect(const BraidedList& list, uint32_t region, std::vector<Node>* nodes) const;
  size_t BeforeAmongEqual(const std::vector<Node>& nodes, size_t first, const SearchKey& target) const;

  const KeyOrder* order_;
  uint32_t layer_ = 1;  // nodes that reach this layer are indexed
  std::vector<Nodes> regions_;
};

}  // namespace braiddb
