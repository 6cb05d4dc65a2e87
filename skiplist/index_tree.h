// IndexTree: nodes of one list in key order in DRAM, as an immutable search tree whose versions share what is alike.
//
// STRUCTURE  Nodes lie in blocks of 8: their prefixes in one cache line, their words in the next. Up to 128 blocks are a piece.
//            A piece is one range of memory: for each 16 blocks a group, which has the last prefix of each; a root, which has
//            the last prefix of each group; the blocks. A piece has as many groups and blocks as it needs. The top of a tree
//            has a PieceRef for each piece, and levels of groups over the last prefixes of the pieces.
// VERSIONS   A piece never changes. A merge makes a new tree: it writes the pieces that have changed nodes, and maybe one more
//            behind each where that gets small, and shares all others with the tree before. Pieces are counted (PieceHeap): the
//            last tree that has a piece frees it. The top is written for each version: 26 bytes for each piece.
// PLACES     A place is the piece's number times kPieceNodes, and the node's number in the piece. Places grow in key order,
//            with holes where pieces are not full: Next, Prev and Normalize know the holes. Building packs pieces, so a tree
//            that was built without another has no holes.
// COST       A search touches two cache lines on each level of the top, which stay in the CPU's caches; a PieceRef; the line of
//            the root; two lines of a group; one line of a block, and one more for the word. The root and the levels of the
//            top take the place of the upper levels that a tree of groups of 16 alone would have: the number of levels is the
//            same or one less, and the lines are as many. Of a list of 2,000,000 nodes: 6 lines of the top, 1 + 1 + 2 + 2.
//            A node takes 17.1 bytes where pieces are full, about 17.5 after many small merges, and at most 18.4, as every piece
//            but the last has at least kMinNodes nodes.
// Thread safety: immutable after construction. Trees that share pieces may be used and destroyed by different threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "index/count_less.h"
#include "skiplist/index_node.h"
#include "util/huge_array.h"
#include "util/piece_heap.h"
#include "util/prefetch.h"

namespace braiddb {

class IndexTree {
 public:
  static constexpr uint64_t kBlockNodes = 8;
  static constexpr uint64_t kFanout = 16;
  static constexpr uint64_t kPieceGroups = 8;
  static constexpr uint64_t kPieceBlocks = kPieceGroups * kFanout;
  static constexpr uint64_t kPieceNodes = kPieceBlocks * kBlockNodes;
  static constexpr uint64_t kMinNodes = kPieceNodes / 4;

  class Builder;
  class Iterator;

  IndexTree() = default;
  IndexTree(IndexTree&& other) noexcept { *this = std::move(other); }
  IndexTree& operator=(IndexTree&& other) noexcept;
  ~IndexTree();

  // How many nodes fit into so many bytes where pieces are full, as Builder makes them of nodes alone.
  static uint64_t MaxNodes(uint64_t bytes) { return bytes <= kTopBytes ? 0 : (bytes - kTopBytes) / kBlockBytes * kBlockNodes; }

  uint64_t nodes() const { return nodes_; }
  uint64_t pieces() const { return pieces_.size(); }
  uint64_t bytes() const { return bytes_; }
  // Null if the tree is empty.
  const std::shared_ptr<PieceHeap>& heap() const { return heap_; }

  // ---- Places

  static uint64_t PieceOf(uint64_t place) { return place / kPieceNodes; }
  // Behind the last node.
  uint64_t End() const { return end_; }
  // REQUIRES: of a node.
  uint64_t Next(uint64_t place) const { return Normalize(place + 1); }
  // REQUIRES: of a node that is not the first, or End() of a tree that has nodes.
  uint64_t Prev(uint64_t place) const {
    if (place % kPieceNodes != 0) return place - 1;
    const uint64_t piece = PieceOf(place) - 1;
    return piece * kPieceNodes + pieces_[piece].nodes - 1;
  }
  // The place of the first node that is not before `place`, which may be in a hole; End() if there is none.
  uint64_t Normalize(uint64_t place) const {
    if (place >= end_) return end_;
    const uint64_t piece = PieceOf(place);
    return place % kPieceNodes < pieces_[piece].nodes ? place : (piece + 1) * kPieceNodes;
  }
  uint64_t PrefixAt(uint64_t place) const { return BlockAt(place).prefix[place % kBlockNodes]; }
  uint64_t WordAt(uint64_t place) const { return BlockAt(place).word[place % kBlockNodes]; }
  const LogEntry* EntryAt(uint64_t place) const { return IndexNode::EntryOf(WordAt(place)); }

  // ---- Searches. The place of the first node whose prefix is not less; End() if there is none.

  uint64_t FirstNotLess(uint64_t prefix) const { return FirstInBlock(BlockOf(GroupOf(prefix), prefix), prefix); }
  // The same in three parts. Each prefetches what the next one reads.
  uint64_t GroupOf(uint64_t prefix) const;
  uint64_t BlockOf(uint64_t group, uint64_t prefix) const;
  uint64_t FirstInBlock(uint64_t block, uint64_t prefix) const;
  // The same of a caller that knows that it is not before `from`. Without a search if it is near.
  uint64_t FirstNotLessNear(uint64_t from, uint64_t prefix) const;

  // Prefetches `count` nodes from `place` on, or those before it.
  void FetchForward(uint64_t place, uint64_t count) const;
  void FetchBackward(uint64_t place, uint64_t count) const;

 private:
  // Missing nodes have the largest prefix and no entry.
  struct alignas(64) Block {
    uint64_t prefix[kBlockNodes];
    uint64_t word[kBlockNodes];  // of an IndexNode
  };
  struct alignas(64) Group {
    uint64_t last[kFanout];
  };
  struct alignas(64) Root {
    uint64_t last[kPieceGroups];
  };
  // The root is before the first block, and before it are the groups, the first one last.
  struct PieceRef {
    const Block* blocks;
    uint32_t nodes;
    uint32_t id;  // in the heap

    const Root& root() const { return reinterpret_cast<const Root*>(blocks)[-1]; }
    const Group& group(uint64_t i) const {
      return reinterpret_cast<const Group*>(reinterpret_cast<const char*>(blocks) - sizeof(Root))[-1 - static_cast<int64_t>(i)];
    }
  };
  static_assert(sizeof(PieceRef) == 16);
  static constexpr uint64_t BlocksOf(uint64_t nodes) { return (nodes + kBlockNodes - 1) / kBlockNodes; }
  static constexpr uint64_t GroupsOf(uint64_t blocks) { return (blocks + kFanout - 1) / kFanout; }
  static constexpr uint64_t PieceBytes(uint64_t nodes) {
    return GroupsOf(BlocksOf(nodes)) * sizeof(Group) + sizeof(Root) + BlocksOf(nodes) * sizeof(Block);
  }
  // A block of a full piece, with its part of the group, of the root and of the top.
  static constexpr uint64_t kBlockBytes =
      sizeof(Block) + sizeof(Group) / kFanout + (sizeof(Root) + sizeof(PieceRef) + 9) / kPieceBlocks + 1;
  // The groups that are not full, of the top and of the last piece, and that piece's root and ref.
  static constexpr uint64_t kTopBytes = 2 * sizeof(Group) + sizeof(Root) + sizeof(PieceRef);

  const Block& BlockAt(uint64_t place) const { return pieces_[PieceOf(place)].blocks[place % kPieceNodes / kBlockNodes]; }

  std::shared_ptr<PieceHeap> heap_;
  std::vector<PieceRef> pieces_;
  std::vector<HugeArray<Group>> levels_;  // the lowest, over pieces, first; the highest is one group
  uint64_t nodes_ = 0;
  uint64_t end_ = 0;
  uint64_t bytes_ = 0;
};

// Makes a tree from its first node to its last: of new nodes, and of pieces of another tree.
class IndexTree::Builder {
 public:
  // With new pieces in the heap.
  explicit Builder(std::shared_ptr<PieceHeap> heap);

  // So many nodes will be added, and no pieces shared. 0: nobody knows how many.
  void Expect(uint64_t nodes);
  void Add(const IndexNode& node) {
    pending_[count_++] = node;
    if (count_ == pending_.size()) Emit(kPieceNodes);
  }
  // The pieces [begin, end) of a tree in the same heap. Nodes that were added before become pieces of their own.
  void Share(const IndexTree& tree, uint64_t begin, uint64_t end);
  // Whether the nodes that were added last are too few for a piece.
  bool wants_more() const { return count_ > 0 && count_ < kMinNodes; }
  // Nodes that were written into new pieces.
  uint64_t written() const { return written_; }
  // False if there was no memory.
  bool ok() const { return ok_; }
  // Empty if there was no memory. The last call.
  IndexTree Finish();

 private:
  // The first `nodes` of those that wait become a piece.
  void Emit(uint64_t nodes);
  void EmitEvenly();
  bool BuildTop();

  IndexTree tree_;
  std::vector<uint64_t> lasts_;     // the last prefix of each piece
  std::vector<IndexNode> pending_;  // room for two pieces
  uint64_t count_ = 0;              // of those that wait
  uint64_t written_ = 0;
  bool ok_ = true;
};

// Goes along a tree, which must outlive it.
class IndexTree::Iterator {
 public:
  explicit Iterator(const IndexTree* tree) : tree_(tree) {}

  // At the end, or before the first node.
  bool is_out() const { return end_ == 0; }
  uint64_t place() const { return place_; }
  // REQUIRES: of a node, or End(), or kBeforeFirst.
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
  const LogEntry* entry() const { return IndexNode::EntryOf(word()); }
  // Whether there is a node.
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
  // Nodes of the piece from this one on, and before this one.
  uint64_t left_forward() const { return end_ - place_; }
  uint64_t left_backward() const { return place_ - begin_; }
  // REQUIRES: it is in the piece.
  uint64_t PrefixAt(uint64_t place) const { return BlockOfPlace(place).prefix[place % kBlockNodes]; }
  uint64_t WordAt(uint64_t place) const { return BlockOfPlace(place).word[place % kBlockNodes]; }

 private:
  const Block& BlockOfPlace(uint64_t place) const {
    return *reinterpret_cast<const Block*>(base_ + place / kBlockNodes * sizeof(Block));
  }

  const IndexTree* tree_;
  uintptr_t base_ = 0;  // where the block of place 0 would be if the piece's blocks followed it
  uint64_t place_ = kBeforeFirst;
  uint64_t begin_ = 0;  // the place of the piece's first node
  uint64_t end_ = 0;    // behind its last; 0: out
};

}  // namespace braiddb
