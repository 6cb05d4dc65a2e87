// The part of TallIndex that builds an index from the one before and the changes recorded by a merge.
#include <algorithm>
#include <memory>
#include <new>

#include "skiplist/tall_index.h"

namespace braiddb {

// GOAL   A tree with the changes of one merge. Only pieces with changes are written.
// STEPS  The changes lie in three lists, in key order with the smallest key last.
//        1 for the next change of each list, a search finds its piece  2 share the pieces before the first of these  3 rewrite
//        that piece: copy its nodes and apply all changes that belong to them, by address  4 if the new piece would be small,
//        also rewrite the next piece  5 repeat until no change is left; share the rest.
// COST   For each changed piece, at most three searches, a pass over the piece, and a pass over the next one.
// FAULTS If a change's node is not in the piece that the search has found, the changes do not belong to this index: Run returns
//        false, and a walk builds the index.
class TallIndex::ChangePass {
 public:
  ChangePass(const TallIndex* index, uint32_t region, const Tree* before, const IndexChanges::Region* changes, bool makes_bits,
             Stop stop)
      : index_(*index),
        tree_(*before),
        before_(before->nodes),
        changes_(*changes),
        stop_(stop),
        added_(changes->added.size()),
        replaced_(changes->replaced.size()),
        removed_(changes->removed.size()),
        builder_(&index->list_.regions(), index->RegionOfAll(region),
                 before_.heap() != nullptr ? before_.heap() : std::make_shared<PieceHeap>(index->heap_), makes_bits) {}

  // Returns false if the changes do not fit, an allocation has failed, or the construction was stopped.
  // `done`: pieces of the old tree before this number are in the new one.
  bool Run() {
    builder_.Expect(0);
    if (before_.pieces() == 0) AddBehind(nullptr);
    for (uint64_t done = 0;;) {
      if (IsStopped(stop_) || !builder_.ok()) return false;
      uint64_t next = NextPiece();
      if (next < done) return false;  // a change's node was not in its piece
      if (builder_.wants_more()) next = std::min(next, done);
      builder_.Share(before_, done, std::min(next, before_.pieces()));
      if (next >= before_.pieces()) return added_ + replaced_ + removed_ == 0;
      WritePiece(next);
      done = next + 1;
    }
  }
  IndexTree::Builder* builder() { return &builder_; }

 private:
  static constexpr uint64_t kUnknown = UINT64_MAX;

  // Returns the first piece with a change that is left; before_.pieces() if no change is left. A known piece stays known until
  // one of its changes is applied.
  uint64_t NextPiece() {
    if (added_ == 0) {
      added_piece_ = before_.pieces();
    } else if (added_piece_ == kUnknown) {
      added_piece_ = PieceBefore(changes_.added[added_ - 1]);
    }
    if (replaced_ == 0) {
      replaced_piece_ = before_.pieces();
    } else if (replaced_piece_ == kUnknown) {
      replaced_piece_ = PieceOf(changes_.replaced[replaced_ - 1].from);
    }
    if (removed_ == 0) {
      removed_piece_ = before_.pieces();
    } else if (removed_piece_ == kUnknown) {
      removed_piece_ = PieceOf(changes_.removed[removed_ - 1]);
    }
    return std::min({added_piece_, replaced_piece_, removed_piece_});
  }
  // Returns the place of an entry. `prefix`: prefix of its key. An unlinked entry is still readable: a reader of the view may
  // be at it.
  uint64_t Find(uint64_t prefix, const LogEntry& entry) const {
    const SearchKey target(prefix, entry.key(), entry.sequence());
    return tree_.Find(index_.list_.order(), target);
  }
  uint64_t PieceOf(const LogEntry* entry) const {
    return IndexTree::PieceOf(Find(index_.list_.order().Prefix(entry->key()), *entry));
  }
  // Returns the piece of the predecessor of an added node; 0 for the head.
  uint64_t PieceBefore(const IndexChanges::Added& added) const {
    if (added.before == nullptr) return 0;
    const uint64_t place = Find(added.node.prefix(), *index_.list_.regions().Resolve<LogEntry>(added.node.entry()));
    return place == 0 ? 0 : IndexTree::PieceOf(before_.Prev(place));
  }

  // Adds the recorded nodes whose predecessor is `node`; null: the head.
  void AddBehind(const LogEntry* node) {
    for (; added_ > 0 && changes_.added[added_ - 1].before == node; --added_) builder_.Add(changes_.added[added_ - 1].node);
  }
  // Rewrites one piece. The change that was recorded last has the smallest key, so the lists are taken from their ends.
  void WritePiece(uint64_t piece) {
    const size_t added = added_;
    const size_t replaced = replaced_;
    const size_t removed = removed_;
    if (piece == 0) AddBehind(nullptr);
    IndexTree::Iterator at(&before_);
    at.Set(piece * IndexTree::kPieceNodes);
    // The bit position of a node is known if the node added last was its neighbor, or if only removed nodes were between them:
    // then it is the lowest one of theirs.
    const uint16_t* const bits = before_.BitsAt(at.place());
    bool is_known = false;
    uint32_t bit = IndexTree::Builder::kUnknown;
    for (uint64_t i = 0, nodes = at.left_forward(); i < nodes; ++i, at.Next()) {
      const IndexNode node = IndexNode::FromWord(at.prefix(), at.word());
      const LogEntry* const entry = at.entry();
      if (bits != nullptr && i > 0) bit = std::min<uint32_t>(bit, bits[i]);
      if (removed_ > 0 && changes_.removed[removed_ - 1] == entry) {
        --removed_;
      } else {
        const bool is_replaced = replaced_ > 0 && changes_.replaced[replaced_ - 1].from == entry;
        builder_.Add(is_replaced ? node.With(changes_.replaced[--replaced_].to) : node,
                     is_known ? bit : IndexTree::Builder::kUnknown);
        is_known = bits != nullptr;
        bit = IndexTree::Builder::kUnknown;
      }
      const size_t left = added_;
      AddBehind(entry);
      is_known &= left == added_;
    }
    if (added != added_) added_piece_ = kUnknown;
    if (replaced != replaced_) replaced_piece_ = kUnknown;
    if (removed != removed_) removed_piece_ = kUnknown;
  }

  const TallIndex& index_;
  const Tree& tree_;
  const IndexTree& before_;  // its nodes
  const IndexChanges::Region& changes_;
  const Stop stop_;
  // The number of changes that are left in each list, and the piece of the next change of each.
  size_t added_;
  size_t replaced_;
  size_t removed_;
  uint64_t added_piece_ = kUnknown;
  uint64_t replaced_piece_ = kUnknown;
  uint64_t removed_piece_ = kUnknown;
  IndexTree::Builder builder_;
};

// The number of nodes is known beforehand. A tree with another number proves that the changes did not fit, for example that a
// removed node was not in the index. If the bit positions of all pieces would no longer fit, a walk makes a tree without them.
// The tree gets positions again when it is much smaller, so that such walks are rare.
TallIndex::Tree TallIndex::Change(uint32_t region, const Tree& before, const IndexChanges::Region& changes, uint64_t max_nodes,
                                  Stop stop) const {
  const uint64_t kept = before.nodes.nodes() - std::min<uint64_t>(before.nodes.nodes(), changes.removed.size());
  const uint64_t count = kept + changes.added.size();
  if (count > max_nodes || (before.nodes.has_bits() && !MakesBits(count))) return {};
  const bool makes_bits = MakesBits(before.nodes.has_bits() ? count : count + count / kRoomForBits);
  try {
    ChangePass pass(this, region, &before, &changes, makes_bits, stop);
    if (!pass.Run()) return {};
    Tree tree = Finish(pass.builder(), before.layer);
    if (tree.nodes.nodes() != count) return {};
    tree.changed = before.changed + changes.removed.size() + changes.added.size();
    if (!before.alike.empty() || tree.changed >= count / kChangesPerSearch) {
      tree.BuildAlike(list_.order(), heap_, max_tree_bytes_, stop);
      tree.changed = 0;
    }
    tree.is_whole = count > 0;
    return tree;
  } catch (const std::bad_alloc&) {
    return {};
  }
}

}  // namespace braiddb
