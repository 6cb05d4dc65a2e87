// The part of IndexTree that lets other processes read a tree.
#include <algorithm>
#include <cstring>
#include <utility>

#include "skiplist/index_tree.h"

namespace braiddb {

// The SharedPieces are behind the levels. If a piece is in private memory, or the SharedHeap has no room, so is the whole top.
bool IndexTree::AllocateTop() {
  const uint64_t groups = TopGroups(pieces_.size());
  if (SharedHeap* const heap = heap_->shared(); heap != nullptr) {
    const uint8_t* const base = heap->At(0);
    const auto offset_of = [base](const PieceRef& piece) {
      return static_cast<uint64_t>(reinterpret_cast<const uint8_t*>(piece.blocks) - base);
    };
    const bool has_private =
        std::ranges::any_of(pieces_, [&](const PieceRef& piece) { return offset_of(piece) >= heap->memory().bytes(); });
    const uint64_t all = groups + (pieces_.size() + kSharedOfGroup - 1) / kSharedOfGroup;
    if (!has_private) top_ = HugeArray<Group>(all, heap, HugeArray<Group>::Sharing::kOptional);
    is_shared_ = top_.heap_offset() != 0;
    auto* shared = is_shared_ ? reinterpret_cast<SharedPiece*>(&top_[groups]) : nullptr;
    for (size_t i = 0; is_shared_ && i < pieces_.size(); ++i)
      shared[i] = {offset_of(pieces_[i]), pieces_[i].nodes, pieces_[i].has_bits};
  }
  if (top_.empty()) top_ = HugeArray<Group>(groups);
  return !top_.empty();
}

// TRUST  What the SharedPieces say is checked here, once, so no later read leaves the heap. Prefixes and words that are no longer
//        those of a tree give a wrong place, within the bounds of this object; then this reader has expired (db/live_reader.h).
IndexTree IndexTree::Attach(const SharedMemory& memory, const RegionSet& regions, const Shared& shared) {
  IndexTree tree;
  const uint64_t bytes = memory.bytes();
  if (shared.pieces == 0 || shared.pieces > bytes / sizeof(SharedPiece) || shared.top % alignof(Group) != 0) return tree;
  const uint64_t groups = TopGroups(shared.pieces);
  const uint64_t all = groups + (shared.pieces + kSharedOfGroup - 1) / kSharedOfGroup;
  if (shared.top == 0 || shared.top >= bytes || all > (bytes - shared.top) / sizeof(Group)) return tree;
  tree.top_ = HugeArray<Group>::Attach(memory, shared.top, all);
  const auto* const listed = reinterpret_cast<const SharedPiece*>(&tree.top_[groups]);
  tree.pieces_.reserve(shared.pieces);
  for (uint64_t i = 0; i < shared.pieces; ++i) {
    const SharedPiece piece = listed[i];
    if (piece.nodes == 0 || piece.nodes > kPieceNodes || piece.blocks % alignof(Block) != 0 || piece.blocks >= bytes) return {};
    const uint64_t before = GroupsOf(BlocksOf(piece.nodes)) * sizeof(Group) + sizeof(Root);
    if (piece.blocks < kPieceGroups * sizeof(Group) + sizeof(Root) ||
        PieceBytes(piece.nodes, piece.has_bits != 0) - before > bytes - piece.blocks)
      return {};
    tree.pieces_.push_back({reinterpret_cast<const Block*>(memory.base() + piece.blocks), static_cast<uint16_t>(piece.nodes),
                            piece.has_bits != 0, 0});
  }
  tree.regions_ = &regions;
  tree.is_foreign_ = true;
  tree.FindLevels(shared.pieces);
  tree.CountNodes();
  return tree;
}

IndexTree IndexTree::CopyTo(std::shared_ptr<PieceHeap> heap) const {
  IndexTree copy;
  copy.regions_ = regions_;
  copy.distance_ = distance_;
  copy.heap_ = std::move(heap);
  uint64_t bytes = 0;
  for (const PieceRef& piece : pieces_) bytes += PieceBytes(piece.nodes, piece.has_bits);
  copy.heap_->Expect(bytes);
  copy.pieces_.reserve(pieces_.size());
  for (const PieceRef& piece : pieces_) {
    const uint64_t before = GroupsOf(BlocksOf(piece.nodes)) * sizeof(Group) + sizeof(Root);
    const PieceHeap::Piece fresh = copy.heap_->Allocate(PieceBytes(piece.nodes, piece.has_bits));
    if (fresh.memory == nullptr) return {};
    auto* const memory = static_cast<uint8_t*>(fresh.memory);
    std::memcpy(memory, reinterpret_cast<const uint8_t*>(piece.blocks) - before, PieceBytes(piece.nodes, piece.has_bits));
    copy.pieces_.push_back({reinterpret_cast<const Block*>(memory + before), piece.nodes, piece.has_bits, fresh.id});
  }
  if (pieces_.empty() || !copy.AllocateTop()) return {};
  std::memcpy(&copy.top_[0], &top_[0], TopGroups(pieces_.size()) * sizeof(Group));
  copy.FindLevels(pieces_.size());
  copy.CountNodes();
  return copy;
}

}  // namespace braiddb
