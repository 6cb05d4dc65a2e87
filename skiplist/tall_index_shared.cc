// The part of TallIndex that lets other processes read an index.
#include <algorithm>

#include "skiplist/tall_index.h"
#include "util/sync_point.h"

namespace braiddb {

uint64_t TallIndex::NextId() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

bool TallIndex::IsShared() const {
  return std::ranges::all_of(regions_, [](const Tree& tree) { return tree.nodes.is_shared(); });
}

std::optional<TallIndex> TallIndex::CopyTo(SharedHeap* heap) const {
  if (!heap->HasRoomToSpare(bytes())) return std::nullopt;
  TallIndex copy(list_, heap);
  copy.max_tree_bytes_ = max_tree_bytes_;
  for (uint32_t region = 0; region < regions_.size(); ++region) {
    const Tree& from = regions_[region];
    Tree& to = copy.regions_[region];
    to.region = from.region;
    if (from.nodes.nodes() > 0) to.nodes = from.nodes.CopyTo(std::make_shared<PieceHeap>(heap));
    if (to.nodes.nodes() != from.nodes.nodes() || !to.nodes.is_shared()) return std::nullopt;
    to.alike = from.alike.CopyTo(heap);
    to.changed = from.changed;
    to.is_whole = from.is_whole;
    to.layer = from.layer;
    to.fetch_bytes = from.fetch_bytes;
  }
  return copy;
}

// LAYOUT  The id, then of each region: top and pieces of IndexTree::Shared, the typical bytes of an entry, and one word: bit 0
//         is_whole, bits 8–15 the layer, bits 16–31 the region whose tree is used; then the six of AlikeSteps::Shared.
std::vector<uint64_t> TallIndex::Shared() const {
  std::vector<uint64_t> words{id_};
  bool has_tree = false;
  for (const Tree& tree : regions_) {
    const IndexTree::Shared nodes = tree.nodes.shared();
    const bool is_readable = nodes.top != 0 || (nodes.pieces == 0 && tree.is_whole);
    has_tree |= is_readable;
    const uint64_t layer = is_readable ? tree.layer : 1;
    words.insert(words.end(), {is_readable ? nodes.top : 0, is_readable ? nodes.pieces : 0, tree.fetch_bytes,
                               uint64_t{tree.region} << 16 | layer << 8 | uint64_t{is_readable && tree.is_whole}});
    const AlikeSteps::Shared alike = is_readable ? tree.alike.shared() : AlikeSteps::Shared();
    words.insert(words.end(), {alike.offset, alike.nodes, alike.tops, alike.words, alike.bits, alike.shared_bytes});
  }
  return has_tree ? words : std::vector<uint64_t>();
}

TallIndex TallIndex::Attach(const BraidedList& list, const SharedMemory& memory, std::span<const uint64_t> shared) {
  TallIndex index(list);
  if (shared.size() != 1 + kSharedWords * index.regions_.size()) return index;
  for (uint32_t region = 0; region < index.regions_.size(); ++region) {
    const std::span<const uint64_t> words = shared.subspan(1 + kSharedWords * region, kSharedWords);
    const auto layer = static_cast<uint32_t>(words[3] >> 8 & 0xff);
    const auto used = static_cast<uint32_t>(words[3] >> 16 & 0xffff);
    if (layer >= kMaxHeight || used >= index.regions_.size()) continue;
    Tree tree;
    if (words[1] != 0) tree.nodes = IndexTree::Attach(memory, list.regions(), {words[0], words[1]});
    if (words[1] != 0 && tree.nodes.nodes() == 0) continue;
    tree.is_whole = (words[3] & 1) != 0;
    tree.layer = layer;
    tree.region = used;
    tree.fetch_bytes = words[2];
    tree.alike = AlikeSteps::Attach(memory, {words[4], words[5], words[6], words[7], words[8], words[9]}, tree.nodes.End());
    index.regions_[region] = std::move(tree);
  }
  BRAIDDB_SYNC_POINT("TallIndex::Attach");
  return index;
}

}  // namespace braiddb
