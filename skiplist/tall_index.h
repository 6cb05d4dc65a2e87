// TallIndex: a DRAM shortcut into a braided skiplist: its tall nodes in order, so that a search starts near its key.
//
// From: ListDB's second-level lookup cache (section 3.5), as a search tree (IndexTree) instead of a skiplist. It never changes.
// After a merge there is another one, made of the one before and of what the merge noted, or by a walk along one layer. Its size
// is bounded: all nodes of a list that is small enough, and only taller ones when it grows.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "index/alike_steps.h"
#include "skiplist/braided_list.h"
#include "skiplist/index_changes.h"
#include "skiplist/index_node.h"
#include "skiplist/index_tree.h"

namespace braiddb {

// WHY A STALE INDEX IS SAFE  An index belongs to one read view and was built before the view was installed. Nodes that were
//                            merged since are in tables that the view still holds, or in newer levels. A node that was unlinked
//                            since keeps its pointers, which lead to everything that was behind it then; what was linked there
//                            later is, again, in tables of the view. Its memory is not reused while a reader of the view lives.
// COST  A search in the tree costs what IndexTree says. Where all nodes are in the index, it then looks at the one before the
//       target and at the one behind, else at some more. An index that is made of the one before shares with it the pieces
//       that have no changed node: a merge of m entries writes at most 2 m pieces, and the top of the tree.
// Thread safety: immutable after construction.
class TallIndex {
 public:
  // Empty: every search starts at the head.
  explicit TallIndex(const BraidedList& list);
  // REQUIRES: no merge is running. `entries`: an estimate of how many the list has. `max_bytes`: of the whole index as a walk
  // makes it; small merges may add 7 %. `stop`: read now and then; once it is true nobody wants the index. May be null.
  // Empty as well if there is no memory, or if it was stopped.
  TallIndex(const BraidedList& list, uint64_t entries, uint64_t max_bytes, const std::atomic<bool>* stop = nullptr)
      : TallIndex(list, entries, max_bytes, nullptr, nullptr, stop) {}
  // The same: of the index that the list had before a merge, and of what that noted in its NewChanges(). It costs a pass over
  // the pieces that change, where the walk costs a cache miss for each node, and is left for the walk where nothing is known,
  // the list wants another layer, or the two do not fit together.
  TallIndex(const TallIndex& before, const IndexChanges& changes, uint64_t entries, uint64_t max_bytes,
            const std::atomic<bool>* stop = nullptr)
      : TallIndex(before.list_, entries, max_bytes, &before, &changes, stop) {}
  // For one merge, which begins now.
  IndexChanges NewChanges() const;

  // Where a reader begins a search for target: the last indexed node before it, or the head if there is none; bounded by the
  // indexed node behind that. The nodes are those of the reader's region, unless it has next to none.
  BraidedList::Start Start(uint32_t reader, const SearchKey& target) const { return StartBefore(reader, Find(reader, target)); }

  // The indexed nodes that readers of one region use, by their places in key order (IndexTree).
  const IndexTree& NodesOf(uint32_t reader) const { return TreeOf(reader).nodes; }
  // How many these are.
  uint64_t size(uint32_t reader) const { return NodesOf(reader).nodes(); }
  // The place of the first one at or after target; NodesOf(reader).End() if there is none.
  uint64_t Find(uint32_t reader, const SearchKey& target) const {
    return FindFrom(reader, FindPrefix(reader, target.prefix), target);
  }
  // The first place whose prefix is not less: what of Find looks at no entry.
  uint64_t FindPrefix(uint32_t reader, uint64_t prefix) const { return NodesOf(reader).FirstNotLess(prefix); }
  // The rest of it, from that place on: it looks at entries whose prefix is the target's.
  uint64_t FindFrom(uint32_t reader, uint64_t place, const SearchKey& target) const {
    return FindFrom(TreeOf(reader), place, target);
  }
  // As Start, for every target behind the node before `place` and not behind the one there.
  BraidedList::Start StartBefore(uint32_t reader, uint64_t place) const;
  // As FindPrefix, for who knows that it is not before `from`; without a search if it is near.
  uint64_t FindPrefixNear(uint32_t reader, uint64_t from, uint64_t prefix) const {
    return NodesOf(reader).FirstNotLessNear(from, prefix);
  }
  // Whether every node that the list had is among them, and not the taller ones alone.
  bool HasEveryNode(uint32_t reader) const { return TreeOf(reader).layer == 0 && TreeOf(reader).is_whole; }
  // How many entries apart they are, about.
  uint64_t Distance(uint32_t reader) const { return NodesApart(TreeOf(reader).layer); }
  const LogEntry* At(uint32_t reader, uint64_t place) const { return NodesOf(reader).EntryAt(place); }
  uint64_t PrefixOf(uint32_t reader, uint64_t place) const { return NodesOf(reader).PrefixAt(place); }
  // TypicalEntryBytes of the nodes.
  uint64_t FetchBytes(uint32_t reader) const { return TreeOf(reader).fetch_bytes; }
  uint32_t HeightAt(uint32_t reader, uint64_t place) const { return IndexNode::HeightOf(NodesOf(reader).WordAt(place)); }

  // Of this index alone, also what others share with it.
  uint64_t bytes() const;
  // Nodes that were copied or found for it: those of pieces that it does not share with the index before.
  uint64_t written_nodes() const;

 private:
  struct Tree {
    IndexTree nodes;
    AlikeSteps alike;       // over the places of nodes
    bool is_whole = false;  // all of the layer is here
    uint32_t layer = 1;     // nodes that reach it are here
    uint64_t fetch_bytes = 0;
    uint64_t written = 0;  // nodes in new pieces
    uint32_t region = 0;   // whose tree its readers use: its own, or the largest
  };
  class ChangePass;

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
  // Empty, and not whole, if it was stopped.
  Tree Walk(const BraidedList& list, uint32_t region, uint32_t layer, uint64_t max_nodes, Stop stop) const;
  // Empty if it does not come out, or was stopped.
  Tree Change(const Tree& before, const IndexChanges::Region& changes, uint64_t max_nodes, Stop stop) const;
  // Empty if there is no memory.
  Tree Finish(IndexTree::Builder* builder, uint32_t layer) const;
  // Without the memory, or beyond max_tree_bytes_, there are none.
  void BuildAlike(Tree* tree) const;
  uint64_t FindFrom(const Tree& tree, uint64_t place, const SearchKey& target) const {
    return place < tree.nodes.End() && tree.nodes.PrefixAt(place) == target.prefix ? FirstAmongEqual(tree, place, target) : place;
  }
  uint64_t FirstAmongEqual(const Tree& tree, uint64_t first, const SearchKey& target) const;

  const BraidedList list_;
  uint64_t max_tree_bytes_ = 0;
  std::vector<Tree> regions_;
};

}  // namespace braiddb
