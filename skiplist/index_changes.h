// IndexChanges: records the changes that one merge makes to a braided list, so that the next TallIndex can be built from the
// last.
#pragma once

#include <algorithm>
#include <cstdint>
#include <new>
#include <vector>

#include "index/key_order.h"
#include "log/log_entry.h"
#include "skiplist/index_node.h"

namespace braiddb {

// CONTENT  For each region, the added, replaced and removed nodes that reach the indexed layer. The predecessor of an added
//          node tells its position, so building the index compares no keys.
// USE      1 before the merge, TallIndex::NewChanges makes a record that knows the indexed layers  2 the merge calls Add,
//          Replace and Remove for each node that it changes; nodes below the indexed layer are ignored  3 after the merge, the
//          next TallIndex is built from the last one and the record (tall_index_change.cc).
// ORDER    A merge works from the largest key to the smallest, and the lists here have that order. A sweep works the other way
//          around, and calls SortRemoved at its end.
// MEMORY   If an allocation fails, all changes are forgotten, and the next index is built by a walk along the list.
// Thread safety: one thread at a time.
class IndexChanges {
 public:
  struct Added {
    IndexNode node;
    const LogEntry* before;  // the predecessor on the indexed layer among the nodes of before the merge; null: the head
  };
  struct Replaced {
    const LogEntry* from;
    PmPtr to;  // the new node, with the same key and height
  };
  struct Region {
    uint32_t layer = kMaxHeight;  // the indexed layer; kMaxHeight: the changes are unknown
    std::vector<Added> added;
    std::vector<Replaced> replaced;
    std::vector<const LogEntry*> removed;

    // Returns true if the changes of this region were recorded completely.
    bool is_known() const { return layer < kMaxHeight; }
  };

  // Knows nothing of any region before Know is called.
  explicit IndexChanges(uint32_t regions) : regions_(regions) {}

  // Begins to record the changes of a region whose index has the nodes that reach `layer`. Call before the merge.
  void Know(uint32_t region, uint32_t layer) { regions_[region].layer = layer; }
  // The recorded changes of a region.
  const Region& Of(uint32_t region) const { return regions_[region]; }

  // Records a new node. `region`: the region in whose lists it is linked. `place`: of the entry. `is_whole`:
  // KeyOrder::PrefixIsWhole. `before(layer)` returns the predecessor on that layer, null for the head.
  template <class Before>
  void Add(uint32_t region, const LogEntry* entry, PmPtr place, uint64_t prefix, bool is_whole, const Before& before) noexcept {
    Region& changes = regions_[region];
    if (entry->height() > changes.layer)
      Note(&changes.added, {IndexNode(prefix, place, entry->height(), is_whole), before(changes.layer)});
  }
  // Records that a copy, which lies at `to`, has replaced a node.
  void Replace(uint32_t region, const LogEntry* from, PmPtr to) noexcept {
    Region& changes = regions_[region];
    if (from->height() > changes.layer) Note(&changes.replaced, {from, to});
  }
  // Records that a node was unlinked.
  void Remove(uint32_t region, const LogEntry* entry) noexcept {
    Region& changes = regions_[region];
    if (entry->height() > changes.layer) Note(&changes.removed, entry);
  }

  // Sorts the removed nodes, if they were recorded in another order. REQUIRES: nothing was added or replaced.
  void SortRemoved(const KeyOrder& order) {
    const auto is_behind = [&order](const LogEntry* a, const LogEntry* b) { return CompareEntries(order, *a, *b) > 0; };
    for (Region& region : regions_) std::sort(region.removed.begin(), region.removed.end(), is_behind);
  }

 private:
  // Appends a change. Without memory, forgets the changes of all regions.
  template <class Change>
  void Note(std::vector<Change>* changes, const Change& change) noexcept {
    try {
      changes->push_back(change);
    } catch (const std::bad_alloc&) {
      for (Region& region : regions_) region = Region();
    }
  }

  std::vector<Region> regions_;
};

}  // namespace braiddb
