// IndexChanges: what one merge changes of a braided list, for the index that the list has next.
#pragma once

#include <cstdint>
#include <new>
#include <vector>

#include "log/log_entry.h"
#include "skiplist/index_node.h"

namespace braiddb {

// Of each region's nodes that a TallIndex has: which came, where, and which went. A merge goes from the greatest key to the
// least, and so does what is noted here. Where a node came is said by the one before it, so that nobody compares keys again.
// Who has no memory for it forgets it all, and the index is made by a walk.
// Thread safety: one thread at a time.
class IndexChanges {
 public:
  struct Added {
    IndexNode node;
    const LogEntry* before;  // on the index's layer, of those that were there before the merge; null: the head
  };
  struct Replaced {
    const LogEntry* from;
    const LogEntry* to;  // with the same key and height
  };
  struct Region {
    uint32_t layer = kMaxHeight;  // nodes that reach it are in the index; kMaxHeight: it is not known what changed
    std::vector<Added> added;
    std::vector<Replaced> replaced;
    std::vector<const LogEntry*> removed;

    bool is_known() const { return layer < kMaxHeight; }
  };

  explicit IndexChanges(uint32_t regions) : regions_(regions) {}

  // Before the merge: what is known from here on.
  void Know(uint32_t region, uint32_t layer) { regions_[region].layer = layer; }
  const Region& Of(uint32_t region) const { return regions_[region]; }

  // `region`: in whose lists the entry is linked. `is_whole`: KeyOrder::PrefixIsWhole. `before(layer)`: what leads to its place
  // there, null for a head.
  template <class Before>
  void Add(uint32_t region, const LogEntry* entry, uint64_t prefix, bool is_whole, const Before& before) noexcept {
    Region& changes = regions_[region];
    if (entry->height() > changes.layer) Note(&changes.added, {IndexNode(prefix, entry, is_whole), before(changes.layer)});
  }
  void Replace(uint32_t region, const LogEntry* from, const LogEntry* to) noexcept {
    Region& changes = regions_[region];
    if (from->height() > changes.layer) Note(&changes.replaced, {from, to});
  }
  void Remove(uint32_t region, const LogEntry* entry) noexcept {
    Region& changes = regions_[region];
    if (entry->height() > changes.layer) Note(&changes.removed, entry);
  }

 private:
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
