#include "skiplist/index_tree.h"

#include <span>
#include <utility>

namespace braiddb {
namespace {

template <size_t kCount>
uint64_t CountLessIn(const uint64_t (&keys)[kCount], uint64_t key) {
  return CountLess<kCount>(key, [&keys](size_t i) { return keys[i]; });
}

}  // namespace

IndexTree& IndexTree::operator=(IndexTree&& other) noexcept {
  std::swap(heap_, other.heap_);
  std::swap(regions_, other.regions_);
  std::swap(distance_, other.distance_);
  std::swap(is_foreign_, other.is_foreign_);
  std::swap(is_shared_, other.is_shared_);
  std::swap(top_, other.top_);
  std::swap(pieces_, other.pieces_);
  std::swap(levels_, other.levels_);
  std::swap(nodes_, other.nodes_);
  std::swap(end_, other.end_);
  std::swap(bytes_, other.bytes_);
  std::swap(has_bits_, other.has_bits_);
  return *this;
}

IndexTree::~IndexTree() {
  if (heap_ != nullptr) heap_->Release(pieces_.size(), [this](uint64_t i) { return pieces_[i].id; });
}

// ---- Searches

// Walks down the top levels by counting smaller last prefixes, then counts in the root of the piece. Returns the number of the
// group over all pieces; groups of holes are never returned, since missing last prefixes are the largest.
uint64_t IndexTree::GroupOf(uint64_t prefix) const {
  uint64_t at = 0;
  for (size_t level = levels_.size(); level-- > 0;) {
    if (at >= levels_[level].size()) break;  // the prefix is larger than all
    at = at * kFanout + CountLessIn(levels_[level][at].last, prefix);
    if (level == 0 && at < pieces_.size()) {
      const PieceRef& piece = pieces_[at];
      const uint64_t group = CountLessIn(piece.root().last, prefix);
      PrefetchAll(&piece.group(group), sizeof(Group));
      return at * kPieceGroups + group;
    }
  }
  return pieces_.size() * kPieceGroups;
}

// `group`: a result of GroupOf for the same prefix. Returns the number of the block over all pieces.
uint64_t IndexTree::BlockOf(uint64_t group, uint64_t prefix) const {
  const uint64_t at = group / kPieceGroups;
  if (at >= pieces_.size()) return pieces_.size() * kPieceBlocks;
  const PieceRef& piece = pieces_[at];
  const uint64_t block = group % kPieceGroups * kFanout + CountLessIn(piece.group(group % kPieceGroups).last, prefix);
  PrefetchAll(&piece.blocks[block], sizeof(Block));
  return at * kPieceBlocks + block;
}

// `block`: a result of BlockOf for the same prefix. Normalize turns a place behind the piece's last node into the next piece's
// first.
uint64_t IndexTree::FirstInBlock(uint64_t block, uint64_t prefix) const {
  const uint64_t at = block / kPieceBlocks;
  if (at >= pieces_.size() || block % kPieceBlocks * kBlockNodes >= pieces_[at].nodes) return Normalize(block * kBlockNodes);
  return Normalize(block * kBlockNodes + CountLessIn(pieces_[at].blocks[block % kPieceBlocks].prefix, prefix));
}

// Compares the last prefixes of a few blocks. The position in the block is counted without a branch.
uint64_t IndexTree::FirstNotLessNear(uint64_t from, uint64_t prefix) const {
  constexpr uint64_t kNearBlocks = 4;
  if (from >= end_) return end_;
  const PieceRef& piece = pieces_[PieceOf(from)];
  const uint64_t first = from % kPieceNodes / kBlockNodes;
  const uint64_t end = std::min(BlocksOf(piece.nodes), first + kNearBlocks);
  for (uint64_t block = first; block < end; ++block) {
    if (piece.blocks[block].prefix[kBlockNodes - 1] < prefix) continue;
    const uint64_t node = block * kBlockNodes + CountLessIn(piece.blocks[block].prefix, prefix);
    if (node >= piece.nodes) break;
    return PieceOf(from) * kPieceNodes + node;
  }
  return FirstNotLess(prefix);
}

// Blocks of a piece are contiguous, so each piece is one call of PrefetchAll.
void IndexTree::FetchForward(uint64_t place, uint64_t count) const {
  for (place = Normalize(place); count > 0 && place < end_; place = Normalize(place)) {
    const PieceRef& piece = pieces_[PieceOf(place)];
    const uint64_t first = place % kPieceNodes;
    const uint64_t nodes = std::min(count, piece.nodes - first);
    const Block* const begin = &piece.blocks[first / kBlockNodes];
    PrefetchAll(begin, static_cast<size_t>(&piece.blocks[BlocksOf(first + nodes)] - begin) * sizeof(Block));
    count -= nodes;
    place += nodes;
  }
}

void IndexTree::FetchBackward(uint64_t place, uint64_t count) const {
  while (count > 0 && place > 0) {
    place = Prev(place);  // the last node to prefetch
    const PieceRef& piece = pieces_[PieceOf(place)];
    const uint64_t last = place % kPieceNodes;
    const uint64_t nodes = std::min(count, last + 1);
    const Block* const begin = &piece.blocks[(last + 1 - nodes) / kBlockNodes];
    PrefetchAll(begin, static_cast<size_t>(&piece.blocks[BlocksOf(last + 1)] - begin) * sizeof(Block));
    count -= nodes;
    place -= nodes - 1;
  }
}

// ---- Building

IndexTree::Builder::Builder(const RegionSet* regions, uint32_t region, std::shared_ptr<PieceHeap> heap, bool makes_bits)
    : makes_bits_(makes_bits), pending_(2 * kPieceNodes), pending_bits_(2 * kPieceNodes) {
  tree_.regions_ = regions;
  if (region != kSeveral) tree_.distance_ = reinterpret_cast<uint64_t>(regions->base(region)) - PmPtr(region, 0).raw();
  tree_.heap_ = std::move(heap);
}

// Keys that fit in their prefixes are equal.
uint16_t IndexTree::Builder::BitOf(const RegionSet& regions, const IndexNode& before, const IndexNode& node) {
  if (before.is_whole() && node.is_whole()) return BitTree::kSame;
  uint16_t bit = 0;
  const auto key_of = [&regions](const IndexNode& of) { return regions.Resolve<LogEntry>(of.entry())->key(); };
  return BitTree::Differ(key_of(before), key_of(node), &bit) ? bit : static_cast<uint16_t>(kTooFar);
}

// Reserves whole pieces and the rest, so that the vectors and the heap grow once.
void IndexTree::Builder::Expect(uint64_t nodes, bool has_bits) {
  const uint64_t pieces = nodes / kPieceNodes;
  const uint64_t rest = nodes % kPieceNodes;
  tree_.heap_->Expect(pieces * PieceBytes(kPieceNodes, has_bits) + (rest == 0 ? 0 : PieceBytes(rest, has_bits)));
  tree_.pieces_.reserve(pieces + 1);
  lasts_.reserve(pieces + 1);
}

// The last prefixes of shared pieces are copied from the tree's top, so the pieces are not read.
void IndexTree::Builder::Share(const IndexTree& tree, uint64_t begin, uint64_t end) {
  if (begin == end) return;
  EmitEvenly();
  for (uint64_t i = begin; i < end; ++i) lasts_.push_back(tree.levels_[0][i / kFanout].last[i % kFanout]);
  const PieceRef* const first = tree.pieces_.data() + begin;
  tree_.pieces_.insert(tree_.pieces_.end(), first, first + (end - begin));
  tree_.heap_->AddReferences(end - begin, [first](uint64_t i) { return first[i].id; });
}

void IndexTree::Builder::EmitEvenly() {
  if (count_ > kPieceNodes) Emit(count_ / 2);
  if (count_ > 0) Emit(count_);
}

// STEPS  1 allocate the piece  2 write the blocks, filled up with missing nodes  3 write the groups, downward from the root  4
//        write the root, and the bit positions  5 move the other pending nodes to the front. The first node's bit position is of
//        no use, as the node before is in another piece. After a failed allocation nodes are dropped, and ok() is
//        false.
void IndexTree::Builder::Emit(uint64_t nodes) {
  static_assert(PieceBytes(kPieceNodes, true) <= PieceHeap::kMaxPieceBytes);
  const auto blocks = BlocksOf(nodes);
  const auto groups = GroupsOf(blocks);
  lasts_.push_back(pending_[nodes - 1].prefix());
  tree_.pieces_.push_back({});
  const std::span<uint16_t> bits(pending_bits_.data(), nodes);
  bits[0] = 0;
  const bool has_bits =
      std::ranges::any_of(bits, [](uint16_t bit) { return bit != 0; }) && std::ranges::count(bits, kTooFar) == 0;
  const PieceHeap::Piece piece = tree_.heap_->Allocate(PieceBytes(nodes, has_bits));
  if (piece.memory == nullptr) {
    tree_.pieces_.pop_back();
    lasts_.pop_back();
    ok_ = false;
  } else {
    auto* const groups_end = static_cast<Group*>(piece.memory) + groups;
    auto* const root = reinterpret_cast<Root*>(groups_end);
    auto* const written = reinterpret_cast<Block*>(root + 1);
    for (uint64_t i = 0; i < blocks * kBlockNodes; ++i) {
      const IndexNode node = i < nodes ? pending_[i] : IndexNode::FromWord(UINT64_MAX, 0);
      written[i / kBlockNodes].prefix[i % kBlockNodes] = node.prefix();
      written[i / kBlockNodes].word[i % kBlockNodes] = node.word();
    }
    for (uint64_t i = 0; i < groups * kFanout; ++i)
      groups_end[-1 - static_cast<int64_t>(i / kFanout)].last[i % kFanout] =
          i < blocks ? written[i].prefix[kBlockNodes - 1] : UINT64_MAX;
    for (uint64_t i = 0; i < kPieceGroups; ++i)
      root->last[i] = i < groups ? groups_end[-1 - static_cast<int64_t>(i)].last[kFanout - 1] : UINT64_MAX;
    if (has_bits) {
      auto* const behind = reinterpret_cast<uint16_t*>(written + blocks);
      std::fill_n(std::copy(bits.begin(), bits.end(), behind), BitTree::kPerStep, uint16_t{0});
    }
    tree_.pieces_.back() = {written, static_cast<uint16_t>(nodes), has_bits, piece.id};
    written_ += nodes;
  }
  const auto to_front = [&](auto* of) {
    std::copy(of->begin() + static_cast<std::ptrdiff_t>(nodes), of->begin() + static_cast<std::ptrdiff_t>(count_), of->begin());
  };
  to_front(&pending_);
  to_front(&pending_bits_);
  count_ -= nodes;
}

uint64_t IndexTree::TopGroups(uint64_t pieces) {
  uint64_t sum = 0;
  for (uint64_t below = pieces; sum == 0 || below > 1; sum += below) below = GroupsOf(below);
  return sum;
}

void IndexTree::FindLevels(uint64_t pieces) {
  const Group* at = &top_[0];
  for (uint64_t below = pieces; levels_.empty() || below > 1; at += below) {
    below = GroupsOf(below);
    levels_.emplace_back(at, below);
  }
}

void IndexTree::CountNodes() {
  for (const PieceRef& piece : pieces_) {
    nodes_ += piece.nodes;
    bytes_ += PieceBytes(piece.nodes, piece.has_bits) + sizeof(PieceRef);
    has_bits_ |= piece.has_bits;
  }
  bytes_ += top_.bytes();
  end_ = (pieces_.size() - 1) * kPieceNodes + pieces_.back().nodes;
}

// Builds groups over the last prefixes of the pieces, and then groups over groups, until a level has one group.
bool IndexTree::Builder::BuildTop() {
  if (!tree_.AllocateTop()) return false;
  tree_.FindLevels(tree_.pieces_.size());
  Group* group = &tree_.top_[0];
  uint64_t below = tree_.pieces_.size();
  for (size_t level = 0; level < tree_.levels_.size(); below = tree_.levels_[level++].size()) {
    for (uint64_t at = 0; at < tree_.levels_[level].size() * kFanout; ++at) {
      uint64_t last = UINT64_MAX;
      if (at < below) last = level == 0 ? lasts_[at] : tree_.levels_[level - 1][at].last[kFanout - 1];
      group[at / kFanout].last[at % kFanout] = last;
    }
    group += tree_.levels_[level].size();
  }
  return true;
}

// Empty without nodes, or after a failed allocation.
IndexTree IndexTree::Builder::Finish() {
  if (count_ > kPieceNodes) Emit(kPieceNodes);  // no piece follows that a small one could join, so the last one may be small
  EmitEvenly();
  if (!ok_ || tree_.pieces_.empty() || !BuildTop()) return {};
  tree_.CountNodes();
  return std::move(tree_);
}

}  // namespace braiddb
