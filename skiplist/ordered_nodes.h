// OrderedNodes: an IndexTree with what a search among nodes with equal prefixes needs.
#pragma once

#include <atomic>
#include <cstdint>

#include "index/alike_steps.h"
#include "skiplist/index_tree.h"

namespace braiddb {

// COST  A search as in IndexTree. If nodes have the target's prefix, also a search among their keys: AlikeSteps narrow the range,
//       and bit positions leave one key to read. A place in a hole of the tree stands for the node behind the hole.
// Thread safety: immutable after the last call of a method that is not const.
struct OrderedNodes {
  IndexTree nodes;
  AlikeSteps alike;          // over the places of nodes
  uint64_t fetch_bytes = 0;  // TypicalEntryBytes of the nodes' entries

  // Returns the place of the first node at or after the target; nodes.End() if there is none.
  uint64_t Find(const KeyOrder& order, const SearchKey& target) const {
    return FindFrom(order, nodes.FirstNotLess(target.prefix), target);
  }
  // The second part of Find, from the first place whose prefix is not less than the target's. Reads only entries whose prefix
  // equals the target's.
  uint64_t FindFrom(const KeyOrder& order, uint64_t place, const SearchKey& target) const {
    return place < nodes.End() && nodes.PrefixAt(place) == target.prefix ? FirstAmongEqual(order, place, target) : place;
  }
  // The same in three steps, for callers that interleave searches. Each step prefetches what the next one reads. The search has
  // ended when low == high; both are then the place.
  struct Among {
    // The first node that is not before the target is in [low, high]. All nodes of [low, high) have the target's prefix.
    uint64_t low = 0;
    uint64_t high = 0;
    const uint16_t* bits = nullptr;  // of the nodes [low, high); null: there are none
    uint32_t candidate = 0;          // the bit tree's
  };
  // REQUIRES: the prefix of the node at `place` is the target's, and that of the node before is not.
  Among BeginAmong(const KeyOrder& order, uint64_t place, const SearchKey& target) const;
  void ChooseAmong(const KeyOrder& order, const SearchKey& target, Among* among) const;
  uint64_t EndAmong(const KeyOrder& order, const SearchKey& target, const Among& among) const;

  // Sets `nodes`, and `fetch_bytes` by a sample of their entries.
  void Take(IndexTree tree);
  // Builds `alike`. It stays empty if there is no memory, if the object would exceed `max_bytes`, or if `stop`, which may be
  // null, becomes true. `heap`: where it lies; null for private memory.
  void BuildAlike(const KeyOrder& order, SharedHeap* heap, uint64_t max_bytes, const std::atomic<bool>* stop);
  uint64_t bytes() const { return nodes.bytes() + alike.bytes(); }

 private:
  uint64_t FirstAmongEqual(const KeyOrder& order, uint64_t first, const SearchKey& target) const;
  bool IsBefore(const KeyOrder& order, uint64_t place, const SearchKey& target) const;
};

}  // namespace braiddb
