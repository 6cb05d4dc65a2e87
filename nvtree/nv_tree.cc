#include "nvtree/nv_tree.h"

#include <xxhash.h>

#include <algorithm>

#include "nvtree/inner_image.h"
#include "util/mutant.h"

namespace braiddb {
namespace {

uint64_t ComputeChecksum(const NvTreeRoot& root) { return XXH3_64bits(&root, offsetof(NvTreeRoot, checksum)); }

// Entry order: key ascending, then sequence number descending.
int CompareKeys(const KeyOrder& order, const SearchKey& a, const SearchKey& b) {
  if (a.prefix != b.prefix) return a.prefix < b.prefix ? -1 : 1;
  const int by_key = order.Compare(a.key, b.key);
  if (by_key != 0) return by_key;
  if (a.sequence == b.sequence) return 0;
  return a.sequence > b.sequence ? -1 : 1;
}

// If more than 1 / kEmptyShare of the leaves are empty, Close stores no image, so that the next open rebuilds.
constexpr size_t kEmptyShare = 16;

uint64_t TreeIdOf(uint64_t database_id, uint64_t number) {
  return Mix64(database_id ^ NvTreeRoot::kMagic ^ number * 0x9e3779b97f4a7c15ull);
}

}  // namespace

bool IsNvTreeRoot(const NvTreeRoot& root, uint64_t database_id, uint64_t number) {
  return root.magic == NvTreeRoot::kMagic && root.checksum == ComputeChecksum(root) &&
         root.tree_id == TreeIdOf(database_id, number) && IsLeafSize(static_cast<uint32_t>(root.leaf_bytes));
}

// ---- Life

NvTree::NvTree(const NvTreeParts& parts, NvTreeRoot* root)
    : parts_(parts),
      root_(root),
      leaf_bytes_(static_cast<uint32_t>(root->leaf_bytes)),
      space_(std::make_shared<LeafSpace>(parts.regions, parts.segments, root->tree_id, leaf_bytes_)),
      orders_(std::make_shared<LeafOrders>(parts.regions->count(), leaf_bytes_)),
      inner_(parts.order, parts.epochs) {}

// A crash in Create is a crash in the creation of the database or family, which starts over.
Status NvTree::Create(RegionSet* regions, SegmentAllocator* segments, uint32_t leaf_bytes, const LevelPlace& place) {
  if (!IsLeafSize(leaf_bytes)) return Status::InvalidArgument("the leaves of an NV-Tree have 512, 1024, 2048 or 4096 bytes");
  void* object = nullptr;
  Status status = place.Take(regions, 0, sizeof(NvTreeRoot), &object);
  if (!status.ok()) return status;
  auto* root = static_cast<NvTreeRoot*>(object);
  root->magic = NvTreeRoot::kMagic;
  root->tree_id = TreeIdOf(regions->database_id(), place.number);
  root->leaf_bytes = leaf_bytes;
  root->checksum = ComputeChecksum(*root);
  Persistence* const persistence = regions->persistence();
  if (!persistence->Persist(root, sizeof(*root))) return persistence->error();
  LeafSpace space(regions, segments, root->tree_id, leaf_bytes);
  PmPtr first;
  status = space.Allocate(&first);
  if (!status.ok()) return status;
  MakeLeaf(persistence, regions->Resolve<Leaf>(first), root->tree_id, first, leaf_bytes, {}, PmPtr());
  // ORDER: the leaf before the link to it. [CC-43]
  if (!persistence->Drain()) return persistence->error();
  StoreRelease(&root->first, MakeLink(root->tree_id, first));
  return persistence->Persist(&root->first, sizeof(root->first)) ? Status::OK() : persistence->error();
}

// STEPS  1. Verify the root.  2. Find the segments of leaves and of the image.  3. Load the image, if it is valid.  4. Remove the
//        link to the image.  5. Without an image, rebuild.  6. Release segments that no structure uses.
// CRASH  Before 4 nothing has changed except released images that were not linked. After 4 the next open rebuilds.
Status NvTree::Open(const NvTreeParts& parts, uint32_t threads, bool verify, std::unique_ptr<NvTree>* result) try {
  auto* root = static_cast<NvTreeRoot*>(parts.place.Find(*parts.regions, 0, sizeof(NvTreeRoot)));
  if (root == nullptr || !IsNvTreeRoot(*root, parts.regions->database_id(), parts.place.number)) {
    return Status::Corruption("the root of the NV-Tree is missing or damaged; restore the database from a copy");
  }
  std::unique_ptr<NvTree> tree(new NvTree(parts, root));
  if (!tree->space_->FindSegments()) return parts.regions->persistence()->error();
  Status status = tree->FindImageSegment();
  if (!status.ok()) return status;
  tree->from_image_ = !verify && tree->LoadImage();
  // ORDER: the image is forgotten before a rebuild, which may change links. [CC-44]
  status = tree->ForgetImage();
  if (status.ok() && !tree->from_image_) status = tree->Rebuild(threads);
  if (status.ok() && parts.is_alone) status = tree->ReleaseUnowned();
  if (status.ok()) *result = std::move(tree);
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status NvTree::ReleaseSegments() {
  std::vector<Segment*> own = space_->segments();
  if (image_segment_ != nullptr) own.push_back(image_segment_);
  for (Segment* segment : own) {
    Status status = parts_.segments->Release(segment);
    if (!status.ok()) return status;
  }
  return Status::OK();
}

// STEPS  1. P1 write the image, durably.  2. P2 store and persist its link.
// CRASH  Before 2 there is no link, and the next open rebuilds. After 2 the image is valid, since no change follows.
Status NvTree::Close() try {
  std::lock_guard lock(structure_mutex_);
  if (failed_.load(std::memory_order_relaxed)) return Failure();
  // A rebuild removes empty leaves; an image would prevent it.
  uint64_t empty = 0;
  const std::vector<InnerNodes::Child> children = inner_.Children();
  for (const InnerNodes::Child& child : children) empty += At(child.leaf)->count() == 0;
  if (empty > children.size() / kEmptyShare + 1) return Status::OK();
  Status status = WriteImage(parts_.regions, parts_.segments, root_->tree_id, children, &image_segment_);
  if (status.IsNoSpace()) return Status::OK();
  if (!status.ok()) return Fail(status);
  StoreRelease(&root_->image, MakeLink(ImageOwner(*root_), image_segment_->ptr(0)));
  Persistence* const persistence = parts_.regions->persistence();
  return persistence->Persist(&root_->image, sizeof(root_->image)) ? Status::OK() : Fail(persistence->error());
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// A damaged image is no error: the leaves are the truth.
bool NvTree::LoadImage() {
  const uint64_t link = LoadRelaxed(&root_->image);
  if (link == 0 || !IsLink(ImageOwner(*root_), link)) return false;
  InnerNodes::NewChildren children;
  if (image_segment_ == nullptr || image_segment_->ptr(0) != LinkTarget(link)) return false;
  if (!ReadImage(image_segment_->data(), image_segment_->capacity(), image_segment_->generation(), root_->tree_id, &children))
    return false;
  // The checksums cover the image's bytes; these checks ensure that its leaves are distinct blocks and start at the root's first
  // leaf.
  std::vector<PmPtr> leaves;
  leaves.reserve(children.size());
  for (const InnerNodes::Child& child : children.all()) leaves.push_back(child.leaf);
  if (leaves.empty() || LinkTarget(LoadRelaxed(&root_->first)) != leaves.front() || !space_->FreeOthers(leaves)) return false;
  const EpochManager::Guard guard = parts_.epochs->Enter();
  inner_.Build(children.all());
  children.Give();
  return true;
}

Status NvTree::ForgetImage() {
  if (BRAIDDB_MUTANT("image-not-forgotten")) return Status::OK();
  Persistence* const persistence = parts_.regions->persistence();
  StoreRelease(&root_->image, 0);
  // ORDER: the image link is gone and the link to the first leaf is durable before any leaf changes. A process that was killed
  // may have stored either without a persist. [CC-44, CC-46]
  return persistence->Persist(root_, sizeof(*root_)) ? Status::OK() : persistence->error();
}

// There are several images if a crash interrupted the replacement of a small one. Keeps the linked one and releases the others.
Status NvTree::FindImageSegment() {
  for (Segment* segment : FindImages(*parts_.segments, root_->tree_id)) {
    if (image_segment_ == nullptr || segment->ptr(0) == LinkTarget(LoadRelaxed(&root_->image)))
      std::swap(segment, image_segment_);
    if (segment == nullptr) continue;
    Status status = parts_.segments->Release(segment);
    if (!status.ok()) return status;
  }
  return Status::OK();
}

// No link leads into these segments, or the open would have failed.
Status NvTree::ReleaseUnowned() {
  std::vector<Segment*> unowned;
  parts_.segments->ForEachIndex([&](Segment* segment) {
    if (segment != image_segment_ && !space_->Owns(segment)) unowned.push_back(segment);
  });
  Status status;
  for (Segment* segment : unowned) {
    if (status.ok()) status = parts_.segments->Release(segment);
  }
  return status;
}

// ---- Order

int NvTree::Compare(const Element& element, const SearchKey& target) const {
  if (element.key != target.prefix) return element.key < target.prefix ? -1 : 1;
  return CompareKeys(*parts_.order, parts_.keys->KeyOf(element), target);
}

bool NvTree::Less(const Element& a, const Element& b) const {
  if (a.key != b.key) return a.key < b.key;
  return CompareKeys(*parts_.order, parts_.keys->KeyOf(a), parts_.keys->KeyOf(b)) < 0;
}

bool NvTree::SameKey(const Element& a, const Element& b) const {
  return a.key == b.key && parts_.order->Compare(parts_.keys->KeyOf(a).key, parts_.keys->KeyOf(b).key) == 0;
}

// The start of the range of the leaf that begins with `right`. All versions of a key are in one range, unless `left` and `right`
// have one key.
Separator NvTree::Between(const Element& left, const Element& right) const {
  if (left.key != right.key) return {right.key, nullptr};
  const SearchKey before = parts_.keys->KeyOf(left);
  const SearchKey key = parts_.keys->KeyOf(right);
  const bool same_key = parts_.order->Compare(before.key, key.key) == 0;
  return {right.key, NewSeparatorRest(key.key, same_key ? key.sequence : kMaxSequence)};
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

// ---- Errors

Status NvTree::NoMemory() { return Status::MemoryLimit("the inner nodes of the NV-Tree have no memory; reopen the database"); }

// REQUIRES: structure_mutex_ is held.
Status NvTree::Fail(Status status) {
  // release: pairs with the acquire in ApplyToOneLeaf. This store comes first, since the next one needs memory.
  failed_.store(true, std::memory_order_release);
  if (failure_.ok()) failure_ = status;
  return status;
}

Status NvTree::Failure() const { return failure_.ok() ? NoMemory() : failure_; }

NvTree::Stats NvTree::GetStats() const {
  std::lock_guard lock(structure_mutex_);
  Stats stats{inner_.GetStats(), space_->free_blocks(), splits_, replaces_, merges_, from_image_};
  stats.inner.bytes += orders_->bytes();
  return stats;
}

}  // namespace braiddb
