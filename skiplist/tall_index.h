// TallIndex: an index in DRAM over the taller nodes of a braided list, from which a search starts near its key.
//
// ORIGIN   ListDB's second-level lookup cache (section 3.5), as a search tree (IndexTree) in place of a skiplist.
// CONTENT  For each region, the nodes that reach one layer, in key order. The layer is the lowest one whose nodes fit into the
//          bound of bytes. A small list with one region has all of its nodes in the index.
//
//            layer 2          N1 ─────────────► N2 ─────────────► N3      indexed: prefixes and addresses in DRAM
//            layer 1     a ─► N1 ──► b ──► c ─► N2 ──► d ───────► N3      a search for a key between N1 and N2 begins at N1 on
//            layer 0     …                                                layer 1, and knows that N2 is not before the key
//
// VERSIONS An index never changes. After a merge a new one is built from the last one and the changes that the merge has
//          recorded (IndexChanges), or by a walk along one layer of the list.
// RECOVERY The index is in DRAM only. An open serves without it, and in the background builds it, or reads what a close stored.
// LIVE READERS  Other processes attach to an index that lies in a SharedHeap.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "skiplist/braided_list.h"
#include "skiplist/index_changes.h"
#include "skiplist/index_node.h"
#include "skiplist/ordered_nodes.h"

namespace braiddb {

// WHY A STALE INDEX IS SAFE  An index belongs to one read view, and was built before the view was installed. Entries that a
//                            merge has linked later are also in tables of the view, or are newer than the view. A node that was
//                            unlinked later keeps its next words, from which all of its successors of that time can be reached.
//                            Entries that were linked behind it later are, again, in tables of the view. The memory of a node
//                            is not reused while a reader of the view lives.
// COST  A search in the tree as in IndexTree. With all nodes in the index the search then reads the nodes before and behind the
//       target; otherwise some more. A new index shares the pieces without changed nodes: a merge of m entries writes at most 2
//       m pieces, and the top of the tree. If many keys begin alike, a merge also builds AlikeSteps anew, and reads one key in
//       16.
// Thread safety: immutable after construction.
class TallIndex {
 public:
  // Makes an empty index: every search starts at the head. `heap`: where copies and new trees lie, so that other processes can
  // attach to them; it must outlive the index. Null: private memory.
  explicit TallIndex(const BraidedList& list, SharedHeap* heap = nullptr);
  // Builds the index by a walk. `entries`: estimated number of entries. `max_bytes`: bound of the index; small merges may later
  // add 7 %. `stop`: when it becomes true, the construction ends early; may be null. The index is empty if an allocation has
  // failed, or if the construction was stopped. REQUIRES: no merge is running.
  TallIndex(const BraidedList& list, uint64_t entries, uint64_t max_bytes, const std::atomic<bool>* stop = nullptr,
            SharedHeap* heap = nullptr)
      : TallIndex(list, entries, max_bytes, nullptr, nullptr, stop, heap) {}
  // Builds the index from the one before a merge and the changes recorded by the merge. Cost: a pass over the changed pieces; a
  // walk costs a cache miss for each node. A region is walked if its changes are unknown, if it needs another layer, or if the
  // changes do not fit `before`. `changes`: made by before.NewChanges(). `heap`: null for that of `before`; a tree made from one
  // in another heap stays there.
  TallIndex(const TallIndex& before, const IndexChanges& changes, uint64_t entries, uint64_t max_bytes,
            const std::atomic<bool>* stop = nullptr, SharedHeap* heap = nullptr)
      : TallIndex(before.list_, entries, max_bytes, &before, &changes, stop, heap == nullptr ? before.heap_ : heap) {}
  // Returns an empty record for the changes of one merge, which begins now.
  IndexChanges NewChanges() const;

  // ---- Other processes

  // Returns true if other processes can attach to all trees.
  bool IsShared() const;
  // Returns a copy in this heap; none if the heap has no room to spare for all trees. May throw std::bad_alloc.
  std::optional<TallIndex> CopyTo(SharedHeap* heap) const;
  // What another process needs to attach to the index: first a number that no other index of this process has. Empty if no tree
  // is shared. May throw std::bad_alloc.
  std::vector<uint64_t> Shared() const;
  // The index of another process, whose SharedHeap `memory` maps; it must outlive the index. `list`: the same list, in this
  // process. `shared`: the other index's Shared(); trees that do not fit it are empty. May throw std::bad_alloc.
  static TallIndex Attach(const BraidedList& list, const SharedMemory& memory, std::span<const uint64_t> shared);

  // ---- In a file (tall_index_stored.cc)

  // Returns true if all trees have all nodes of their layers.
  bool IsWhole() const {
    return std::ranges::all_of(regions_, [](const Tree& tree) { return tree.is_whole; });
  }
  // Writes the index. May throw std::bad_alloc.
  void Store(BlockFileWriter* file) const;
  // The index that Store wrote at `offset` for the same list with the same contents, read on so many threads. None if the file is
  // damaged, if the index was made with another bound `max_bytes`, or without memory. May throw std::bad_alloc.
  static std::optional<TallIndex> Load(const BraidedList& list, const BlockFileReader& file, uint64_t offset, uint64_t max_bytes,
                                       uint32_t threads, SharedHeap* heap);

  // ---- Searches

  // Returns the start of a reader's search: the last indexed node before the target, or the head if there is none; its bound is
  // the next indexed node. Uses the nodes of the reader's region, or those of the largest region if its own has few. `reader`:
  // the reader's home region.
  BraidedList::Start Start(uint32_t reader, const SearchKey& target) const { return StartBefore(reader, Find(reader, target)); }

  // Returns the indexed nodes that readers of a region use.
  const IndexTree& NodesOf(uint32_t reader) const { return TreeOf(reader).nodes; }
  // Returns the same nodes for searches by the order of keys.
  const OrderedNodes& OrderedNodesOf(uint32_t reader) const { return TreeOf(reader); }
  const KeyOrder& order() const { return list_.order(); }
  // Returns the number of these nodes.
  uint64_t size(uint32_t reader) const { return NodesOf(reader).nodes(); }
  // Returns the place of the first indexed node at or after the target; NodesOf(reader).End() if there is none.
  uint64_t Find(uint32_t reader, const SearchKey& target) const {
    return FindFrom(reader, FindPrefix(reader, target.prefix), target);
  }
  // The first part of Find, which reads no entry: the first place whose prefix is not less than `prefix`.
  uint64_t FindPrefix(uint32_t reader, uint64_t prefix) const { return NodesOf(reader).FirstNotLess(prefix); }
  // The second part of Find, from that place on. Reads only entries whose prefix equals the target's.
  uint64_t FindFrom(uint32_t reader, uint64_t place, const SearchKey& target) const {
    return TreeOf(reader).FindFrom(list_.order(), place, target);
  }
  // As Start, for every target that is after the node before `place` and not after the node at `place`.
  BraidedList::Start StartBefore(uint32_t reader, uint64_t place) const;
  // As FindPrefix; fast if the result is near `from`. REQUIRES: the result is not before `from`.
  uint64_t FindPrefixNear(uint32_t reader, uint64_t from, uint64_t prefix) const {
    return NodesOf(reader).FirstNotLessNear(from, prefix);
  }
  // Returns true if the index has every node of the list.
  bool HasEveryNode(uint32_t reader) const { return TreeOf(reader).layer == 0 && TreeOf(reader).is_whole; }
  // Returns the average distance of two indexed nodes, in entries.
  uint64_t Distance(uint32_t reader) const { return NodesApart(TreeOf(reader).layer); }
  const LogEntry* At(uint32_t reader, uint64_t place) const { return NodesOf(reader).EntryAt(place); }
  uint64_t PrefixOf(uint32_t reader, uint64_t place) const { return NodesOf(reader).PrefixAt(place); }
  // Returns TypicalEntryBytes of the indexed nodes' entries.
  uint64_t FetchBytes(uint32_t reader) const { return TreeOf(reader).fetch_bytes; }
  uint32_t HeightAt(uint32_t reader, uint64_t place) const { return IndexNode::HeightOf(NodesOf(reader).WordAt(place)); }

  // Returns the bytes of this index, including pieces that it shares with others.
  uint64_t bytes() const;
  // Returns the number of nodes in pieces that were written for this index.
  uint64_t written_nodes() const;

 private:
  struct Tree : OrderedNodes {
    uint64_t changed = 0;   // nodes that were added or removed since `alike` was built, or was found to be empty
    bool is_whole = false;  // has all nodes of the layer
    uint32_t layer = 1;     // has nodes that reach this layer
    uint64_t written = 0;   // nodes in new pieces
    uint32_t region = 0;    // the region whose tree the readers of this region use: itself, or the largest one
  };
  class ChangePass;
  // A tree without alike nodes is searched for alike nodes again after one in so many nodes has changed, so that small changes do
  // not pass over the whole tree.
  static constexpr uint64_t kChangesPerSearch = 64;
  // A tree without bit positions gets some only if this share of its nodes could be added to it.
  static constexpr uint64_t kRoomForBits = 4;

  // `before` and `changes`: both null, or neither.
  TallIndex(const BraidedList& list, uint64_t entries, uint64_t max_bytes, const TallIndex* before, const IndexChanges* changes,
            const std::atomic<bool>* stop, SharedHeap* heap);
  // The stop flag of a construction; may be null.
  using Stop = const std::atomic<bool>*;
  static bool IsStopped(Stop stop) { return stop != nullptr && stop->load(std::memory_order_acquire); }
  // Returns the number of lists of an upper layer.
  uint64_t Lists() const { return list_.regions().lists_are_braided() ? regions_.size() : 1; }
  // Returns the lowest layer that may be indexed. With several regions each has an index over its own nodes; the bottom list
  // links the nodes of all regions, so it is indexed only if there is one region.
  uint32_t LowestLayer() const { return regions_.size() == 1 ? 0 : 1; }
  // Returns the region of all nodes of a region's tree, as IndexTree::Builder takes it.
  uint32_t RegionOfAll(uint32_t region) const { return Lists() == regions_.size() ? region : IndexTree::Builder::kSeveral; }
  // Returns the average number of entries from one node of a layer to the next one.
  uint64_t NodesApart(uint32_t layer) const;
  const Tree& TreeOf(uint32_t reader) const { return regions_[regions_[reader].region]; }
  // A range of the nodes of one layer, and the bit position of each except the first, as IndexTree::Builder::Add takes it.
  struct Share {
    std::vector<IndexNode> nodes;
    std::vector<uint16_t> bits;
    bool has_bits = false;
  };
  // Consecutive ranges.
  using Shares = std::vector<Share>;
  static uint64_t Collect(const BraidedList& list, uint32_t region, uint32_t layer, uint64_t enough, Stop stop, Shares* found);
  // Builds a tree by a walk. Empty, and not whole, if it was stopped or an allocation has failed.
  Tree Walk(const BraidedList& list, uint32_t region, uint32_t layer, uint64_t max_nodes, Stop stop) const;
  // Builds a tree from the one before and the changes. Empty if the changes do not fit, or if it was stopped.
  Tree Change(uint32_t region, const Tree& before, const IndexChanges::Region& changes, uint64_t max_nodes, Stop stop) const;
  // Makes a tree of the builder's nodes. Empty if an allocation has failed.
  Tree Finish(IndexTree::Builder* builder, uint32_t layer) const;
  // Whether a tree of so many nodes may have bit positions.
  bool MakesBits(uint64_t nodes) const {
    return list_.order().equal_means_same() && nodes <= IndexTree::MaxNodes(max_tree_bytes_, true);
  }

  // A number that no other index of this process has.
  static uint64_t NextId();
  // Words of Shared for each region, behind the number.
  static constexpr size_t kSharedWords = 10;

  const BraidedList list_;
  SharedHeap* const heap_;
  uint64_t id_ = NextId();
  uint64_t max_tree_bytes_ = 0;
  std::vector<Tree> regions_;
};

}  // namespace braiddb
