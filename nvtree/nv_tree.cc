#include "nvtree/nv_tree.h"

#include <algorithm>

#include "util/mutant.h"

namespace braiddb {
namespace {

// A leaf that would have more appended elements is replaced by a sorted one, because each search scans the appended elements.
constexpr size_t kMostAppended = kCrashTest ? 8 : 32;

}  // namespace

bool IsNvTreeRoot(const LeafTreeRoot& root, uint64_t database_id, uint64_t number) {
  return IsLeafTreeRoot(root, kNvTreeMagic, database_id, number) && IsLeafSize(static_cast<uint32_t>(root.leaf_bytes));
}

// ---- Life

NvTree::NvTree(const LeafTreeParts& parts, LeafTreeRoot* root)
    : LeafTree(parts, root, BlockStart::kAtLeafSize, "NV-Tree"),
      orders_(std::make_shared<LeafOrders>(parts.regions->count(), leaf_bytes_)) {}

Status NvTree::Create(RegionSet* regions, SegmentAllocator* segments, uint32_t leaf_bytes, const LevelPlace& place) {
  if (!IsLeafSize(leaf_bytes)) return Status::InvalidArgument("the leaves of an NV-Tree have 512, 1024, 2048 or 4096 bytes");
  LeafTreeRoot* root = nullptr;
  PmPtr first;
  Status status = CreateRoot(regions, segments, kNvTreeMagic, leaf_bytes, BlockStart::kAtLeafSize, place, &root, &first);
  if (!status.ok()) return status;
  MakeLeaf(regions->persistence(), regions->Resolve<Leaf>(first), root->tree_id, first, leaf_bytes, {}, PmPtr());
  return LinkFirst(regions, root, first);
}

Status NvTree::Open(const LeafTreeParts& parts, uint32_t threads, bool verify, std::unique_ptr<NvTree>* result) {
  auto* root = static_cast<LeafTreeRoot*>(parts.place.Find(*parts.regions, 0, sizeof(LeafTreeRoot)));
  if (root == nullptr || !IsNvTreeRoot(*root, parts.regions->database_id(), parts.place.number)) {
    return Status::Corruption("the root of the NV-Tree is missing or damaged; restore the database from a copy");
  }
  std::unique_ptr<NvTree> tree(new NvTree(parts, root));
  Status status = tree->Load(threads, verify);
  if (status.ok()) *result = std::move(tree);
  return status;
}

// ---- Leaves

uint32_t NvTree::WriteLeaf(PmPtr place, const Separator&, const Separator*, std::span<const Element> elements, PmPtr next) {
  MakeLeaf(persistence(), At(place), root_->tree_id, place, leaf_bytes_, elements, next);
  return static_cast<uint32_t>(elements.size());
}

bool NvTree::HasRoom(const InnerNodes::Range& range, std::span<const LeafChange> changes) const {
  const Leaf& leaf = *At(range.leaf);
  const size_t elements = leaf.count() + changes.size();
  return elements <= Capacity() && elements - std::min<size_t>(elements, leaf.sorted()) <= kMostAppended;
}

bool NvTree::Change(const InnerNodes::Range& range, std::span<const LeafChange> changes) {
  Leaf* const leaf = At(range.leaf);
  // The elements may begin in the middle of a line; the header is one line more.
  CountLines(changes.size() * sizeof(Element) / kCacheLine + 2);
  const uint32_t covered = leaf->count();
  if (!AppendToLeaf(persistence(), leaf, changes)) return false;
  UpdateOrder(range.leaf, covered, changes);
  return true;
}

// Readers of the old leaf made its order, so they probably want the new ones. Readers may make them too.
void NvTree::OnReplaced(PmPtr old, std::span<const InnerNodes::Child> children) {
  const LeafOrder* const order = orders_->Find(old);
  if (order == nullptr || order->is_declined()) return;
  for (const InnerNodes::Child& child : children) MakeOrder(child.leaf, nullptr);
}

std::function<void()> NvTree::Reclaimer(PmPtr leaf) const {
  return [space = space_, orders = orders_, leaf] {
    orders->Drop(leaf);  // before the block may be another leaf
    space->Free(leaf);
  };
}

void NvTree::Scan(PmPtr place, Scanned* found) const {
  const Leaf& leaf = *At(place);
  if (!IsValidLeaf(leaf, root_->tree_id, place, leaf_bytes_)) return;
  thread_local std::vector<Element> live;
  live.clear();
  CollectLive(leaf, leaf_bytes_, &live);
  found->valid = true;
  found->next = LoadAcquire(&leaf.next);
  found->hint = leaf.sorted();
  found->empty = live.empty();
  found->elements = static_cast<uint32_t>(live.size());
  if (live.empty()) return;
  const auto [least, greatest] =
      std::minmax_element(live.begin(), live.end(), [](const Element& a, const Element& b) { return a.key < b.key; });
  found->least = least->key;
  found->greatest = greatest->key;
}

void NvTree::CollectSorted(PmPtr leaf, std::vector<Element>* elements) const {
  const size_t begin = elements->size();
  const LeafOrder* const order = orders_->Find(leaf);
  if (order != nullptr && !order->is_declined() && order->covered() == At(leaf)->CountWithin(leaf_bytes_)) {
    const RankView ranks = order->ranks();
    elements->reserve(begin + ranks.live);
    for (uint32_t i = 0; i < ranks.live; ++i) elements->push_back(At(leaf)->elements[ranks.slot[i]]);
    return;
  }
  const size_t sorted = CollectLive(*At(leaf), leaf_bytes_, elements);
  SortCollected(begin, sorted, elements);
}

void NvTree::SortCollected(size_t begin, size_t sorted, std::vector<Element>* elements) const {
  const auto first = elements->begin() + static_cast<std::ptrdiff_t>(begin);
  const auto middle = first + static_cast<std::ptrdiff_t>(sorted);
  const auto less = [this](const Element& a, const Element& b) { return Less(a, b); };
  std::sort(middle, elements->end(), less);
  std::inplace_merge(first, middle, elements->end(), less);
}

}  // namespace braiddb
