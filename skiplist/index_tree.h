// IndexTree: an immutable search tree in DRAM over nodes of one list, in key order. Versions of a tree share equal parts.
//
// STRUCTURE  Nodes lie in blocks of 8: their prefixes in one cache line, their words in the next. Up to 128 blocks form a
//            piece. A piece is one range of memory with its groups, its root and its blocks. A group has the last prefix of
//            each of 16 blocks; the root has the last prefix of each group. A piece has only as many groups and blocks as it
//            needs. The top of a tree has a PieceRef for each piece, and levels of groups over the last prefixes of the pieces.
//
//              top levels ──► PieceRef[i] ──► │ groups, last one first … first │ root │ block 0 │ block 1 │ …
//
// ALIKE      Neighbors with equal prefixes are compared by their keys. A piece with such neighbors ends with an array: for each
//            node, the bit position in which its key differs from the one before (index/bit_tree.h). So a search among them reads
//            one key.
// VERSIONS   A piece never changes. A merge makes a new tree: it writes the pieces with changed nodes, and perhaps the piece
//            behind one that would get small, and shares the other pieces. PieceHeap counts references; the last tree that has
//            a piece frees it. Each version has a top of its own, 26 bytes for each piece.
// SHARED     If the heap is over a SharedHeap, the top levels are there too, and behind them a SharedPiece for each piece. So
//            another process can attach to the tree. It makes its own PieceRefs, whose addresses it has checked.
// PLACES     A place is the number of a piece times kPieceNodes, plus the number of a node in the piece. Places ascend in key
//            order, with holes where pieces are not full; Next, Prev and Normalize skip the holes. A tree that was built
//            without another one has no holes.
// COST       A search touches two cache lines on each level of the top, which stay in the CPU's caches; a PieceRef; one line of
//            the root; two lines of a group; one line of a block, and one more for the word. A list of 2,000,000 nodes has 6
//            lines of the top, then 1 + 1 + 2 + 2. A node takes 17.1 bytes if pieces are full, and at most 18.4 bytes, since
//            every piece except the last has at least kMinNodes nodes. In a piece with bit positions it takes two bytes more.
// LIFETIME   The heap lives as long as a tree that has pieces in it.
// Thread safety: immutable after construction. Trees that share pieces may be used and destroyed by different threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "index/bit_tree.h"
#include "index/count_less.h"
#include "log/foreign_entry.h"
#include "pmem/region_set.h"
#include "skiplist/index_node.h"
#include "util/block_file.h"
#include "util/huge_array.h"
#include "util/piece_heap.h"
#include "util/prefetch.h"

namespace braiddb {

class IndexTree {
 public:
  static constexpr uint64_t kBlockNodes = 8;   // prefixes in one cache line
  static constexpr uint64_t kFanout = 16;      // blocks of a group, and groups of a group in the top
  static constexpr uint64_t kPieceGroups = 8;  // groups of a full piece, whose last prefixes fill one line
  static constexpr uint64_t kPieceBlocks = kPieceGroups * kFanout;
  static constexpr uint64_t kPieceNodes = kPieceBlocks * kBlockNodes;
  static constexpr uint64_t kMinNodes = kPieceNodes / 4;  // nodes of a piece that is not the last one, at least

  // Builder makes trees, Iterator moves along one.
  class Builder;
  class Iterator;

  IndexTree() = default;
  IndexTree(IndexTree&& other) noexcept { *this = std::move(other); }
  IndexTree& operator=(IndexTree&& other) noexcept;
  ~IndexTree();

  // Returns the number of nodes that fit into `bytes` bytes if pieces are full, as in a tree that was built without another
  // one; with bit positions in all pieces if `has_bits`.
  static uint64_t MaxNodes(uint64_t bytes, bool has_bits = false) {
    const uint64_t block_bytes = kBlockBytes + (has_bits ? kBlockNodes * sizeof(uint16_t) + 1 : 0);
    return bytes <= kTopBytes ? 0 : (bytes - kTopBytes) / block_bytes * kBlockNodes;
  }

  // The number of nodes, of pieces, and of bytes, including pieces that are shared with other trees.
  uint64_t nodes() const { return nodes_; }
  uint64_t pieces() const { return pieces_.size(); }
  uint64_t bytes() const { return bytes_; }
  // Returns true if a piece has bit positions.
  bool has_bits() const { return has_bits_; }
  // Returns the heap of the pieces; null if the tree is empty, or another process' tree.
  const std::shared_ptr<PieceHeap>& heap() const { return heap_; }
  // ---- Other processes

  // What another process needs to attach to a tree.
  struct Shared {
    uint64_t top = 0;  // offset of the top levels in the SharedHeap; 0: the tree is empty or private
    uint64_t pieces = 0;
  };
  Shared shared() const { return {is_shared_ ? top_.heap_offset() : 0, pieces_.size()}; }
  // Returns true if other processes can attach to the tree, or if it is empty.
  bool is_shared() const { return is_shared_ || pieces_.empty(); }
  // The tree of another process, whose SharedHeap `memory` maps; it and `regions` must outlive the tree. Empty if `shared` is not
  // that of a tree, or not of one any more. May throw std::bad_alloc. Costs a look at each SharedPiece.
  static IndexTree Attach(const SharedMemory& memory, const RegionSet& regions, const Shared& shared);
  // A copy of all pieces in another heap. Empty if an allocation has failed. May throw std::bad_alloc.
  IndexTree CopyTo(std::shared_ptr<PieceHeap> heap) const;

  // ---- In a file

  // A piece in a file.
  struct StoredPiece {
    uint32_t nodes;
    uint32_t has_bits;
    uint64_t checksum;  // XXH3 of its bytes
  };
  // Writes the pieces, one after the other. `stored` gets their descriptions. May throw std::bad_alloc.
  void Store(BlockFileWriter* file, std::vector<StoredPiece>* stored) const;

  // ---- Places

  static uint64_t PieceOf(uint64_t place) { return place / kPieceNodes; }
  // The place behind the last node.
  uint64_t End() const { return end_; }
  // The place of the next node; End() behind the last one. REQUIRES: `place` is that of a node.
  uint64_t Next(uint64_t place) const { return Normalize(place + 1); }
  // The place of the previous node. REQUIRES: `place` is that of a node other than the first, or End() of a tree with nodes.
  uint64_t Prev(uint64_t place) const {
    if (place % kPieceNodes != 0) return place - 1;
    const uint64_t piece = PieceOf(place) - 1;
    return piece * kPieceNodes + pieces_[piece].nodes - 1;
  }
  // Returns the place of the first node at or behind `place`, which may lie in a hole; End() if there is none.
  uint64_t Normalize(uint64_t place) const {
    if (place >= end_) return end_;
    const uint64_t piece = PieceOf(place);
    return place % kPieceNodes < pieces_[piece].nodes ? place : (piece + 1) * kPieceNodes;
  }
  // The words and the entry of a node. REQUIRES: `place` is that of a node.
  uint64_t PrefixAt(uint64_t place) const { return BlockAt(place).prefix[place % kBlockNodes]; }
  uint64_t WordAt(uint64_t place) const { return BlockAt(place).word[place % kBlockNodes]; }
  const LogEntry* EntryAt(uint64_t place) const { return EntryOf(WordAt(place)); }
  // The entry of a word of the tree.
  const LogEntry* EntryOf(uint64_t word) const {
    return __builtin_expect(distance_ != 0, 1) ? Near(word, distance_) : Find(IndexNode::EntryOf(word));
  }
  // All entries lie in one region of this process.
  bool is_near() const { return distance_ != 0; }
  // The place behind the last node of the node's piece.
  uint64_t EndOfPiece(uint64_t place) const {
    const uint64_t piece = PieceOf(place);
    return piece * kPieceNodes + pieces_[piece].nodes;
  }
  // The bit positions of the nodes from `place` to the end of its piece, as BitTree reads them; null if the piece has none.
  // Positions are defined for neighbors with equal prefixes only.
  const uint16_t* BitsAt(uint64_t place) const {
    const PieceRef& piece = pieces_[PieceOf(place)];
    return piece.has_bits ? piece.bits() + place % kPieceNodes : nullptr;
  }

  // ---- Searches

  // Returns the place of the first node whose prefix is not less than `prefix`; End() if there is none.

  uint64_t FirstNotLess(uint64_t prefix) const { return FirstInBlock(BlockOf(GroupOf(prefix), prefix), prefix); }
  // FirstNotLess in three steps. Each step prefetches the lines that the next one reads, so a caller can interleave searches.
  uint64_t GroupOf(uint64_t prefix) const;
  uint64_t BlockOf(uint64_t group, uint64_t prefix) const;
  uint64_t FirstInBlock(uint64_t block, uint64_t prefix) const;
  // As FirstNotLess. Scans a few blocks from `from` on before it searches. REQUIRES: the result is not before `from`.
  uint64_t FirstNotLessNear(uint64_t from, uint64_t prefix) const;

  // Returns the place of the first node at or behind `from` of which `is_before(place)` is false; End() if there is none. Looks
  // at neighbors first, then in steps that double, then by halves. REQUIRES: behind a node that is not before, none is.
  template <class IsBefore>
  uint64_t Gallop(uint64_t from, const IsBefore& is_before) const {
    const auto is_node_before = [&](uint64_t place) {  // a place in a hole stands for the node behind the hole
      place = Normalize(place);
      return place < end_ && is_before(place);
    };
    uint64_t low = from;  // all nodes before `low` are before
    uint64_t step = 1;
    for (; is_node_before(low + step - 1); step *= 2) low += step;
    for (uint64_t high = low + step - 1; low < high;) {
      const uint64_t middle = low + (high - low) / 2;
      if (is_node_before(middle)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return Normalize(low);
  }

  // Prefetches `count` nodes from `place` on, or the `count` nodes before it.
  void FetchForward(uint64_t place, uint64_t count) const;
  void FetchBackward(uint64_t place, uint64_t count) const;

 private:
  // Eight nodes. A missing node has the largest prefix and no entry.
  struct alignas(64) Block {
    uint64_t prefix[kBlockNodes];
    uint64_t word[kBlockNodes];  // IndexNode::word
  };
  // The last prefixes of 16 blocks, or of 16 pieces or groups in the top. Missing ones have the largest prefix.
  struct alignas(64) Group {
    uint64_t last[kFanout];
  };
  // The last prefixes of the groups of a piece.
  struct alignas(64) Root {
    uint64_t last[kPieceGroups];
  };
  // Return the number of blocks of so many nodes, and of groups of so many blocks.
  static constexpr uint64_t BlocksOf(uint64_t nodes) { return (nodes + kBlockNodes - 1) / kBlockNodes; }
  static constexpr uint64_t GroupsOf(uint64_t blocks) { return (blocks + kFanout - 1) / kFanout; }
  // A piece of a tree. In memory the root lies before the first block, and the groups lie before the root, in descending order.
  // Bit positions lie behind the last block.
  struct PieceRef {
    const Block* blocks;
    uint16_t nodes;
    bool has_bits;
    uint32_t id;  // PieceHeap's id of the piece

    const Root& root() const { return reinterpret_cast<const Root*>(blocks)[-1]; }
    const Group& group(uint64_t i) const {
      return reinterpret_cast<const Group*>(reinterpret_cast<const char*>(blocks) - sizeof(Root))[-1 - static_cast<int64_t>(i)];
    }
    const uint16_t* bits() const { return reinterpret_cast<const uint16_t*>(blocks + BlocksOf(nodes)); }
  };
  static_assert(sizeof(PieceRef) == 16 && kPieceNodes <= UINT16_MAX);
  // The same for other processes.
  struct SharedPiece {
    uint64_t blocks;  // offset in the SharedHeap
    uint32_t nodes;
    uint32_t has_bits;
  };
  static constexpr uint64_t kSharedOfGroup = sizeof(Group) / sizeof(SharedPiece);
  // Returns the bytes of a piece of so many nodes.
  static constexpr uint64_t PieceBytes(uint64_t nodes, bool has_bits) {
    return GroupsOf(BlocksOf(nodes)) * sizeof(Group) + sizeof(Root) + BlocksOf(nodes) * sizeof(Block) +
           (has_bits ? (nodes + BitTree::kPerStep) * sizeof(uint16_t) : 0);
  }
  // Bytes of a block in a full piece, with its share of the group, the root and the top.
  static constexpr uint64_t kBlockBytes =
      sizeof(Block) + sizeof(Group) / kFanout + (sizeof(Root) + sizeof(PieceRef) + 9) / kPieceBlocks + 1;
  // Bytes of parts that are not full: groups of the top and of the last piece, and that piece's root and PieceRef.
  static constexpr uint64_t kTopBytes = 2 * sizeof(Group) + sizeof(Root) + sizeof(PieceRef);

  // Allocates top_ for pieces_, with the SharedPieces if other processes can attach to the tree. Returns false if there is no
  // memory.
  bool AllocateTop();
  // Points levels_ to the levels over so many pieces, which lie in top_ one after the other.
  void FindLevels(uint64_t pieces);
  // Returns the number of groups of all top levels over so many pieces.
  static uint64_t TopGroups(uint64_t pieces);
  // Sets what follows from pieces_.
  void CountNodes();

  // The entry of a word, in a tree with is_near().
  static const LogEntry* Near(uint64_t word, uint64_t distance) {
    return reinterpret_cast<const LogEntry*>(IndexNode::EntryOf(word).raw() + distance);
  }
  // The entry of a word, in any tree. Another process' words are not trusted.
  const LogEntry* Find(PmPtr entry) const {
    return is_foreign_ ? ForeignEntry(*regions_, entry) : regions_->Resolve<LogEntry>(entry);
  }

  const Block& BlockAt(uint64_t place) const { return pieces_[PieceOf(place)].blocks[place % kPieceNodes / kBlockNodes]; }

  std::shared_ptr<PieceHeap> heap_;
  const RegionSet* regions_ = nullptr;
  uint64_t distance_ = 0;    // from a PmPtr to its address; 0: not is_near()
  bool is_foreign_ = false;  // another process' tree
  bool is_shared_ = false;   // other processes can attach to the tree
  std::vector<PieceRef> pieces_;
  HugeArray<Group> top_;                        // the levels, then the SharedPieces, if other processes can attach to the tree
  std::vector<std::span<const Group>> levels_;  // the level over the pieces first; the last level has one group
  uint64_t nodes_ = 0;
  uint64_t end_ = 0;
  uint64_t bytes_ = 0;
  bool has_bits_ = false;
};

// Builds a tree from its first node to its last, from new nodes and from pieces of another tree.
// USE  Expect or Share and Add in key order, then Finish. REQUIRES: prefixes never descend. Thread safety: one thread at a
//      time.
class IndexTree::Builder {
 public:
  // New pieces are allocated in `heap`. `regions`: must outlive the tree. `region`: the one in which all entries lie, or
  // kSeveral. `makes_bits`: new pieces get bit positions where prefixes are equal. The keys must then be in the order of their
  // bytes, or in the reverse.
  static constexpr uint32_t kSeveral = UINT32_MAX;
  Builder(const RegionSet* regions, uint32_t region, std::shared_ptr<PieceHeap> heap, bool makes_bits);

  // Reserves memory for `nodes` nodes, without shared pieces. 0: the number is unknown. `has_bits`: many have bit positions.
  void Expect(uint64_t nodes, bool has_bits = false);
  // Appends a node. `bit`: BitTree::Differ of the key of the node before and of this one, or kTooFar; kUnknown: Add reads the
  // keys if they are needed. It is of no meaning if the prefixes differ.
  static constexpr uint32_t kUnknown = UINT32_MAX;
  static constexpr uint32_t kTooFar = BitTree::kMostPosition;  // they differ too far behind; no bit has this position
  void Add(const IndexNode& node, uint32_t bit = kUnknown) {
    pending_bits_[count_] = 0;
    if (makes_bits_ && count_ > 0 && pending_[count_ - 1].prefix() == node.prefix())
      pending_bits_[count_] = bit != kUnknown ? static_cast<uint16_t>(bit) : BitOf(*tree_.regions_, pending_[count_ - 1], node);
    pending_[count_++] = node;
    if (count_ == pending_.size()) Emit(kPieceNodes);
  }
  // The `bit` of two neighbors with equal prefixes.
  static uint16_t BitOf(const RegionSet& regions, const IndexNode& before, const IndexNode& node);
  // Appends the pieces [begin, end) of a tree in the same heap. Pending nodes become pieces of their own first.
  void Share(const IndexTree& tree, uint64_t begin, uint64_t end);
  // Appends the pieces that Store wrote at `offset`, on so many threads. False: a piece is damaged, or there is no memory; then
  // no other call may follow. REQUIRES: no other call came before.
  bool AddStored(const BlockFileReader& file, uint64_t offset, std::span<const StoredPiece> stored, uint32_t threads);
  // Returns true if there are pending nodes, but too few for a piece. Then the caller should add the next piece's nodes one by
  // one.
  bool wants_more() const { return count_ > 0 && count_ < kMinNodes; }
  // Returns the number of nodes that were written into new pieces.
  uint64_t written() const { return written_; }
  // Returns false if an allocation has failed.
  bool ok() const { return ok_; }
  // Returns the tree; an empty one if an allocation has failed. The last call.
  IndexTree Finish();

 private:
  // Makes a piece of the first `nodes` pending nodes.
  void Emit(uint64_t nodes);
  // Makes pieces of all pending nodes: one, or two of about the same size.
  void EmitEvenly();
  // Builds the levels over the pieces. Returns false if an allocation has failed.
  bool BuildTop();

  IndexTree tree_;
  std::vector<uint64_t> lasts_;  // the last prefix of each piece
  const bool makes_bits_;
  std::vector<IndexNode> pending_;      // nodes that are in no piece yet; room for two pieces
  std::vector<uint16_t> pending_bits_;  // of each, BitTree::Differ with the one before; 0 if their prefixes differ
  uint64_t count_ = 0;                  // number of pending nodes
  uint64_t written_ = 0;
  bool ok_ = true;
};

// Moves along a tree, which must outlive the iterator. Steps within a piece read no PieceRef.
class IndexTree::Iterator {
 public:
  explicit Iterator(const IndexTree* tree) : tree_(tree), distance_(tree->distance_) {}

  // Returns true at the end and before the first node.
  bool is_out() const { return end_ == 0; }
  uint64_t place() const { return place_; }
  // Moves to `place`, which is that of a node, End(), or kBeforeFirst.
  static constexpr uint64_t kBeforeFirst = UINT64_MAX;
  void Set(uint64_t place) {
    place_ = place;
    begin_ = end_ = 0;
    if (place >= tree_->end_) return;
    const uint64_t piece = PieceOf(place);
    begin_ = piece * kPieceNodes;
    end_ = begin_ + tree_->pieces_[piece].nodes;
    base_ = reinterpret_cast<uintptr_t>(tree_->pieces_[piece].blocks) - piece * kPieceBlocks * sizeof(Block);
  }
  // REQUIRES: !is_out().
  uint64_t prefix() const { return PrefixAt(place_); }
  uint64_t word() const { return WordAt(place_); }
  const LogEntry* entry() const { return tree_->EntryOf(word()); }
  // The same, faster. REQUIRES: is_near().
  const LogEntry* near_entry() const { return Near(word(), distance_); }
  // Move to the next or previous node. Return false if there is none; then is_out(). REQUIRES: !is_out().
  bool Next() {
    if (__builtin_expect(++place_ != end_, 1)) return true;
    Set(tree_->Normalize(place_));
    return !is_out();
  }
  bool Prev() {
    if (__builtin_expect(place_ != begin_, 1)) {
      --place_;
      return true;
    }
    Set(place_ == 0 ? kBeforeFirst : tree_->Prev(place_));
    return !is_out();
  }
  // Returns the number of nodes in the piece from the present one on, and before the present one.
  uint64_t left_forward() const { return end_ - place_; }
  uint64_t left_backward() const { return place_ - begin_; }
  // The words of another node. REQUIRES: `place` lies in the present piece.
  uint64_t PrefixAt(uint64_t place) const { return BlockOfPlace(place).prefix[place % kBlockNodes]; }
  uint64_t WordAt(uint64_t place) const { return BlockOfPlace(place).word[place % kBlockNodes]; }

 private:
  const Block& BlockOfPlace(uint64_t place) const {
    return *reinterpret_cast<const Block*>(base_ + place / kBlockNodes * sizeof(Block));
  }

  const IndexTree* tree_;
  uint64_t distance_;   // IndexTree::distance_
  uintptr_t base_ = 0;  // address that block 0 of the tree would have if all blocks before the piece preceded it in memory
  uint64_t place_ = kBeforeFirst;
  uint64_t begin_ = 0;  // the place of the piece's first node
  uint64_t end_ = 0;    // the place behind the piece's last node; 0: is_out()
};

}  // namespace braiddb
