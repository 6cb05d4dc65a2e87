// TallIndex: a DRAM shortcut into a braided skiplist: its tall nodes in order, so that a search starts near its key.
//
// From: ListDB's second-level lookup cache (section 3.5), as a static search tree instead of a skiplist: made anew after every
// merge, of the one before and of what the merge noted, or by a walk along one layer; never changed. Its size is bounded: all
// nodes of a list that is small enough, and only taller ones when it grows.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "skiplist/braided_list.h"
#include "skiplist/index_changes.h"
#include "skiplist/index_node.h"
#include "util/huge_array.h"
#include "util/prefetch.h"

namespace braiddb {

// WHY A STALE INDEX IS SAFE  An index belongs to one read view and was built before the view was installed. Nodes that were
//                            merged since are in tables that the view still holds, or in newer levels. A node that was unlinked
//                            since keeps its pointers, which lead to everything that was behind it then; what was linked there
//                            later is, again, in tables of the view. Its memory is not reused while a reader of the view lives.
// COST  A search touches two cache lines on each of a few levels, of which all but the last two stay in the CPU's caches. Where
//       all nodes are in the index, it then looks at the one before the target and at the one behind, else at some more.
// Thread safety: immutable after construction.
class TallIndex {
 public:
  // Empty: every search starts at the head.
  explicit TallIndex(const BraidedList& list);
  // REQUIRES: no merge is running. `entries`: an estimate of how many the list has. `max_bytes`: of the whole index. `stop`:
  // looked at now and then; once it is true nobody wants the index. May be null.
  // Empty as well if there is no memory, or if it was stopped.
  TallIndex(const BraidedList& list, uint64_t entries, uint64_t max_bytes, const std::atomic<bool>* stop = nullptr)
      : TallIndex(list, entries, max_bytes, nullptr, nullptr, stop) {}
  // The same: of the index that the list had before a merge, and of what that noted in its NewChanges(). It costs a pass over
  // DRAM where the walk costs a cache miss for each node, and is left for the walk where nothing is known, the list wants
  // another layer, or the two do not fit together.
  TallIndex(const TallIndex& before, const IndexChanges& changes, uint64_t entries, uint64_t max_bytes,
            const std::atomic<bool>* stop = nullptr)
      : TallIndex(before.list_, entries, max_bytes, &before, &changes, stop) {}
  // For one merge, which begins now.
  IndexChanges NewChanges() const;

  class Nodes;

  // Where a reader begins a search for target: the last indexed node before it, or the head if there is none; bounded by the
  // indexed node behind that. The nodes are those of the reader's region, unless it has next to none.
  BraidedList::Start Start(uint32_t reader, const SearchKey& target) const { return StartBefore(reader, Find(reader, target)); }

  // The indexed nodes that readers of one region use, by their places in key order.
  uint64_t size(uint32_t reader) const { return TreeOf(reader).nodes; }
  // The place of the first one at or after target; size() if there is none.
  uint64_t Find(uint32_t reader, const SearchKey& target) const {
    return FindFrom(reader, FindPrefix(reader, target.prefix), target);
  }
  // The first place whose prefix is not less: what of Find looks at no entry.
  uint64_t FindPrefix(uint32_t reader, uint64_t prefix) const { return FirstNotLess(TreeOf(reader), prefix); }
  // The same in three parts, for who makes several searches side by side: each fetches what the next one looks at.
  uint64_t FindGroup(uint32_t reader, uint64_t prefix) const { return GroupOf(TreeOf(reader), prefix); }
  uint64_t FindBlock(uint32_t reader, uint64_t group, uint64_t prefix) const { return BlockOf(TreeOf(reader), group, prefix); }
  uint64_t FindInBlock(uint32_t reader, uint64_t block, uint64_t prefix) const {
    return FirstInBlock(TreeOf(reader), block, prefix);
  }
  // The rest of it, from that place on: it looks at entries whose prefix is the target's.
  uint64_t FindFrom(uint32_t reader, uint64_t place, const SearchKey& target) const {
    const Tree& tree = TreeOf(reader);
    return place < tree.nodes && PrefixAt(tree, place) == target.prefix ? BeforeAmongEqual(tree, place, target) : place;
  }
  // As Start, for every target behind the node before `place` and not behind the one there.
  BraidedList::Start StartBefore(uint32_t reader, uint64_t place) const;
  // As FindPrefix, for who knows that it is not before `from`; without a search if it is near.
  uint64_t FindPrefixNear(uint32_t reader, uint64_t from, uint64_t prefix) const;
  // Whether every node that the list had is among them, and not the taller ones alone.
  bool HasEveryNode(uint32_t reader) const { return TreeOf(reader).layer == 0 && TreeOf(reader).is_whole; }
  // How many entries apart they are, about.
  uint64_t Distance(uint32_t reader) const { return NodesApart(TreeOf(reader).layer); }
  const LogEntry* At(uint32_t reader, uint64_t place) const { return EntryAt(TreeOf(reader), place); }
  uint64_t PrefixOf(uint32_t reader, uint64_t place) const { return PrefixAt(TreeOf(reader), place); }
  // All of them, for who looks at many.
  Nodes NodesOf(uint32_t reader) const;
  // TypicalEntryBytes of the nodes.
  uint64_t FetchBytes(uint32_t reader) const { return TreeOf(reader).fetch_bytes; }
  uint32_t HeightAt(uint32_t reader, uint64_t place) const { return IndexNode::HeightOf(WordAt(TreeOf(reader), place)); }

  uint64_t bytes() const;

 private:
  static constexpr uint64_t kBlockNodes = 8;
  static constexpr uint64_t kFanout = 16;
  // Nodes of one region in order, in blocks; missing ones have the largest prefix and no entry.
  struct alignas(64) Block {
    uint64_t prefix[kBlockNodes];
    uint64_t word[kBlockNodes];  // of an IndexNode
  };
  // Prefixes over a level of blocks or groups: the last of each.
  struct alignas(64) Group {
    uint64_t last[kFanout];
  };
  struct Tree {
    HugeArray<Block> blocks;
    std::vector<HugeArray<Group>> levels;  // the lowest first; the highest is one group
    uint64_t nodes = 0;
    bool is_whole = false;  // all of the layer is here
    uint32_t layer = 1;     // nodes that reach it are here
    uint64_t fetch_bytes = 0;
    uint32_t region = 0;  // whose tree its readers use: its own, or the largest
  };
  static constexpr uint64_t kBytesPerBlock = sizeof(Block) + sizeof(Group) / kFanout * 17 / 16;

  // `before` and `changes`: both null, or neither.
  TallIndex(const BraidedList& list, uint64_t entries, uint64_t max_bytes, const TallIndex* before, const IndexChanges* changes,
            const std::atomic<bool>* stop);
  // Whether nobody wants what is being made.
  using Stop = const std::atomic<bool>*;
  static bool IsStopped(Stop stop) { return stop != nullptr && stop->load(std::memory_order_acquire); }
  // How many lists an upper layer has.
  uint64_t Lists() const { return list_.regions().lists_are_braided() ? regions_.size() : 1; }
  // The bottom is one list for all regions: with several, each has an index over tall nodes of its own, which are near.
  uint32_t LowestLayer() const { return regions_.size() == 1 ? 0 : 1; }
  uint64_t NodesApart(uint32_t layer) const;
  const Tree& TreeOf(uint32_t reader) const { return regions_[regions_[reader].region]; }
  // Stretches of one layer that follow each other.
  using Shares = std::vector<std::vector<IndexNode>>;
  static uint64_t Collect(const BraidedList& list, uint32_t region, uint32_t layer, uint64_t enough, Stop stop, Shares* found);
  static uint64_t PrefixIn(const Block* blocks, uint64_t at) { return blocks[at / kBlockNodes].prefix[at % kBlockNodes]; }
  static uint64_t WordIn(const Block* blocks, uint64_t at) { return blocks[at / kBlockNodes].word[at % kBlockNodes]; }
  static uint64_t PrefixAt(const Tree& tree, uint64_t at) { return PrefixIn(&tree.blocks[0], at); }
  static uint64_t WordAt(const Tree& tree, uint64_t at) { return WordIn(&tree.blocks[0], at); }
  static const LogEntry* EntryAt(const Tree& tree, uint64_t at) { return IndexNode::EntryOf(WordAt(tree, at)); }
  // Empty, and not whole, if it was stopped.
  static Tree Walk(const BraidedList& list, uint32_t region, uint32_t layer, uint64_t max_nodes, Stop stop);
  // Empty if it does not come out, or was stopped.
  static Tree Change(const Tree& before, const IndexChanges::Region& changes, uint64_t max_nodes, Stop stop);
  // `visit(add)` calls add(IndexNode) for `count` nodes in order; an empty tree if for others, or if there is no memory.
  template <class Visit>
  static Tree Build(uint64_t count, uint32_t layer, const Visit& visit);
  // The first node whose prefix is not less; tree.nodes if there is none. Found by way of a group of the lowest level of groups,
  // and of a block; what is behind the last one is none.
  static uint64_t FirstNotLess(const Tree& tree, uint64_t prefix) {
    return FirstInBlock(tree, BlockOf(tree, GroupOf(tree, prefix), prefix), prefix);
  }
  static uint64_t GroupOf(const Tree& tree, uint64_t prefix);
  static uint64_t BlockOf(const Tree& tree, uint64_t group, uint64_t prefix);
  static uint64_t FirstInBlock(const Tree& tree, uint64_t block, uint64_t prefix);
  uint64_t BeforeAmongEqual(const Tree& tree, uint64_t first, const SearchKey& target) const;

  const BraidedList list_;
  std::vector<Tree> regions_;
};

// The index must outlive it.
class TallIndex::Nodes {
 public:
  uint64_t size() const { return size_; }
  uint64_t PrefixAt(uint64_t place) const { return PrefixIn(blocks_, place); }
  const LogEntry* EntryAt(uint64_t place) const { return IndexNode::EntryOf(WordIn(blocks_, place)); }
  // `region`: that the entries are in.
  OrderedItem ItemAt(uint64_t place, const RegionSet& regions, uint32_t region) const {
    const uint64_t word = WordIn(blocks_, place);
    return {PrefixAt(place), regions.ToPmPtr(region, IndexNode::EntryOf(word)).raw() | IndexNode::ItemBitsOf(word)};
  }
  // What ItemAt will look at, of so many.
  void FetchItems(uint64_t place, uint64_t count) const {
    const uint64_t end = std::min(place + count, size_);
    for (uint64_t block = place / kBlockNodes; block * kBlockNodes < end; ++block) PrefetchAll(&blocks_[block], sizeof(Block));
  }

 private:
  friend class TallIndex;
  Nodes(const Block* blocks, uint64_t size) : blocks_(blocks), size_(size) {}

  const Block* blocks_;  // null if there are none
  uint64_t size_;
};

inline TallIndex::Nodes TallIndex::NodesOf(uint32_t reader) const {
  const Tree& tree = TreeOf(reader);
  return {tree.nodes == 0 ? nullptr : &tree.blocks[0], tree.nodes};
}

}  // namespace braiddb
