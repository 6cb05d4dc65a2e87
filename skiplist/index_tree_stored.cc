// The part of IndexTree that keeps a tree in a file.
#include <xxhash.h>

#include <atomic>

#include "skiplist/index_tree.h"
#include "util/run_parallel.h"

namespace braiddb {

void IndexTree::Store(BlockFileWriter* file, std::vector<StoredPiece>* stored) const {
  stored->reserve(pieces_.size());
  for (const PieceRef& piece : pieces_) {
    const uint64_t before = GroupsOf(BlocksOf(piece.nodes)) * sizeof(Group) + sizeof(Root);
    const void* const memory = reinterpret_cast<const uint8_t*>(piece.blocks) - before;
    const uint64_t bytes = PieceBytes(piece.nodes, piece.has_bits);
    stored->push_back({piece.nodes, piece.has_bits, XXH3_64bits(memory, bytes)});
    file->Append(memory, bytes);
  }
}

// STEPS  1 allocate all pieces  2 read them in parallel, each thread a consecutive part  3 take the last prefix of each.
bool IndexTree::Builder::AddStored(const BlockFileReader& file, uint64_t offset, std::span<const StoredPiece> stored,
                                   uint32_t threads) {
  uint64_t bytes = 0;
  for (const StoredPiece& piece : stored) {
    if (piece.nodes == 0 || piece.nodes > kPieceNodes) return false;
    bytes += PieceBytes(piece.nodes, piece.has_bits != 0);
  }
  if (offset > file.bytes() || bytes > file.bytes() - offset) return false;
  tree_.heap_->Expect(bytes);
  tree_.pieces_.reserve(stored.size());
  std::vector<uint64_t> offsets;
  offsets.reserve(stored.size());
  for (const StoredPiece& piece : stored) {
    const uint64_t size = PieceBytes(piece.nodes, piece.has_bits != 0);
    const PieceHeap::Piece fresh = tree_.heap_->Allocate(size);
    if (fresh.memory == nullptr) return false;
    const uint64_t before = GroupsOf(BlocksOf(piece.nodes)) * sizeof(Group) + sizeof(Root);
    tree_.pieces_.push_back({reinterpret_cast<const Block*>(static_cast<uint8_t*>(fresh.memory) + before),
                             static_cast<uint16_t>(piece.nodes), piece.has_bits != 0, fresh.id});
    offsets.push_back(offset);
    offset += size;
  }
  std::atomic<bool> is_right{true};
  const uint64_t share = (stored.size() + threads - 1) / threads;
  RunParallel(threads, [&](uint32_t thread) {
    const uint64_t end = std::min(stored.size(), (thread + 1) * share);
    for (uint64_t i = thread * share; i < end && is_right.load(std::memory_order_relaxed); ++i) {
      const PieceRef& piece = tree_.pieces_[i];
      const uint64_t before = GroupsOf(BlocksOf(piece.nodes)) * sizeof(Group) + sizeof(Root);
      auto* const memory = const_cast<uint8_t*>(reinterpret_cast<const uint8_t*>(piece.blocks) - before);
      const uint64_t size = PieceBytes(piece.nodes, piece.has_bits);
      if (!file.Read(offsets[i], memory, size) || XXH3_64bits(memory, size) != stored[i].checksum) is_right = false;
    }
  });
  if (!is_right) return false;
  lasts_.reserve(stored.size());
  for (const PieceRef& piece : tree_.pieces_)
    lasts_.push_back(piece.blocks[(piece.nodes - 1) / kBlockNodes].prefix[(piece.nodes - 1) % kBlockNodes]);
  return true;
}

}  // namespace braiddb
