// The part of TallIndex that keeps an index in a file.
#include "skiplist/tall_index.h"

namespace braiddb {
namespace {

// What the file says of an index, before its trees.
struct StoredIndex {
  uint64_t max_bytes;
  uint64_t trees;
};
struct StoredTree {
  uint64_t pieces;
  uint64_t piece_bytes;  // of all pieces, which follow
  uint64_t changed;
  uint64_t fetch_bytes;
  uint32_t layer;
  uint32_t region;
  uint64_t is_whole;
};

}  // namespace

// LAYOUT  A block StoredIndex. Then of each region: a block StoredTree, the pieces, a block with their descriptions, and the
//         blocks of AlikeSteps. StoredTree comes before the pieces, and their size is known afterwards: it is replaced.
void TallIndex::Store(BlockFileWriter* file) const {
  const StoredIndex head{max_tree_bytes_, regions_.size()};
  file->AppendBlock(&head, sizeof head);
  for (const Tree& tree : regions_) {
    StoredTree stored{tree.nodes.pieces(), 0, tree.changed, tree.fetch_bytes, tree.layer, tree.region, tree.is_whole};
    const uint64_t begin = file->offset();
    file->AppendBlock(&stored, sizeof stored);
    std::vector<IndexTree::StoredPiece> pieces;
    const uint64_t first = file->offset();
    tree.nodes.Store(file, &pieces);
    stored.piece_bytes = file->offset() - first;
    file->ReplaceBlock(begin, &stored, sizeof stored);
    file->AppendBlock(pieces);
    tree.alike.Store(file);
  }
}

std::optional<TallIndex> TallIndex::Load(const BraidedList& list, const BlockFileReader& file, uint64_t offset,
                                         uint64_t max_bytes, uint32_t threads, SharedHeap* heap) {
  TallIndex index(list, heap);
  index.max_tree_bytes_ = max_bytes / index.Lists();
  StoredIndex head;
  if (!file.ReadBlock(&offset, &head, sizeof head)) return std::nullopt;
  if (head.max_bytes != index.max_tree_bytes_ || head.trees != index.regions_.size()) return std::nullopt;
  for (uint32_t region = 0; region < index.regions_.size(); ++region) {
    StoredTree stored;
    if (!file.ReadBlock(&offset, &stored, sizeof stored) || stored.piece_bytes > file.bytes()) return std::nullopt;
    if (stored.layer >= kMaxHeight || stored.region >= index.regions_.size()) return std::nullopt;
    uint64_t behind = offset + stored.piece_bytes;
    std::vector<IndexTree::StoredPiece> pieces;
    if (!file.ReadBlock(&behind, &pieces) || pieces.size() != stored.pieces) return std::nullopt;
    Tree tree;
    if (!pieces.empty()) {
      IndexTree::Builder builder(&list.regions(), index.RegionOfAll(region), std::make_shared<PieceHeap>(heap), false);
      if (!builder.AddStored(file, offset, pieces, threads)) return std::nullopt;
      tree.nodes = builder.Finish();
      if (tree.nodes.nodes() == 0) return std::nullopt;
    }
    if (!AlikeSteps::Load(file, &behind, heap, &tree.alike)) return std::nullopt;
    tree.changed = stored.changed;
    tree.fetch_bytes = stored.fetch_bytes;
    tree.layer = stored.layer;
    tree.region = stored.region;
    tree.is_whole = stored.is_whole != 0;
    index.regions_[region] = std::move(tree);
    offset = behind;
  }
  return index;
}

}  // namespace braiddb
