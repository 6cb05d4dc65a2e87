#include "leaf_tree/leaf_tree.h"

#include <xxhash.h>

#include <algorithm>
#include <new>

#include "leaf_tree/inner_image.h"
#include "util/mutant.h"

namespace braiddb {
namespace {

uint64_t ComputeChecksum(const LeafTreeRoot& root) { return XXH3_64bits(&root, offsetof(LeafTreeRoot, checksum)); }

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

uint64_t TreeIdOf(uint64_t magic, uint64_t database_id, uint64_t number) {
  return Mix64(database_id ^ magic ^ number * 0x9e3779b97f4a7c15ull);
}

}  // namespace

bool IsLeafTreeRoot(const LeafTreeRoot& root, uint64_t magic, uint64_t database_id, uint64_t number) {
  return root.magic == magic && root.checksum == ComputeChecksum(root) && root.tree_id == TreeIdOf(magic, database_id, number);
}

// ---- Life

LeafTree::LeafTree(const LeafTreeParts& parts, LeafTreeRoot* root, BlockStart start, const char* name)
    : parts_(parts),
      root_(root),
      leaf_bytes_(static_cast<uint32_t>(root->leaf_bytes)),
      space_(std::make_shared<LeafSpace>(parts.regions, parts.segments, root->tree_id, leaf_bytes_, start)),
      inner_(parts.order, parts.epochs),
      name_(name) {}

LeafTree::~LeafTree() = default;

// A crash in the creation of a tree is a crash in the creation of the database or family, which starts over.
Status LeafTree::CreateRoot(RegionSet* regions, SegmentAllocator* segments, uint64_t magic, uint32_t leaf_bytes, BlockStart start,
                            const LevelPlace& place, LeafTreeRoot** root, PmPtr* first) {
  void* object = nullptr;
  Status status = place.Take(regions, 0, sizeof(LeafTreeRoot), &object);
  if (!status.ok()) return status;
  *root = static_cast<LeafTreeRoot*>(object);
  (*root)->magic = magic;
  (*root)->tree_id = TreeIdOf(magic, regions->database_id(), place.number);
  (*root)->leaf_bytes = leaf_bytes;
  (*root)->checksum = ComputeChecksum(**root);
  Persistence* const persistence = regions->persistence();
  if (!persistence->Persist(*root, sizeof(**root))) return persistence->error();
  return LeafSpace(regions, segments, (*root)->tree_id, leaf_bytes, start).Allocate(first);
}

Status LeafTree::LinkFirst(RegionSet* regions, LeafTreeRoot* root, PmPtr first) {
  Persistence* const persistence = regions->persistence();
  if (!persistence->Drain()) return persistence->error();
  StoreRelease(&root->first, MakeLink(root->tree_id, first));
  return persistence->Persist(&root->first, sizeof(root->first)) ? Status::OK() : persistence->error();
}

// STEPS  1. Find the segments of leaves and of the image.  2. Load the image, if it is valid.  3. Remove the link to the image.
//        4. Without an image, rebuild.  5. Release segments that no structure uses.
// CRASH  Before 3 nothing has changed except released images that were not linked. After 3 the next open rebuilds.
Status LeafTree::Load(uint32_t threads, bool verify) try {
  if (!space_->FindSegments()) return persistence()->error();
  Status status = FindImageSegment();
  if (!status.ok()) return status;
  from_image_ = !verify && LoadImage();
  // ORDER: the image is forgotten before a rebuild, which may change links. [CC-44]
  status = ForgetImage();
  if (status.ok() && !from_image_) status = Rebuild(threads);
  if (status.ok() && parts_.is_alone) status = ReleaseUnowned();
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status LeafTree::ReleaseSegments() {
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
Status LeafTree::Close() try {
  std::lock_guard lock(structure_mutex_);
  if (failed_.load(std::memory_order_relaxed)) return Failure();
  // A rebuild removes empty leaves; an image would prevent it.
  uint64_t empty = 0;
  const std::vector<InnerNodes::Child> children = inner_.Children();
  for (const InnerNodes::Child& child : children) empty += UsedIn(child.leaf) == 0;
  if (empty > children.size() / kEmptyShare + 1) return Status::OK();
  Status status = WriteImage(parts_.regions, parts_.segments, root_->tree_id, children, elements(), &image_segment_);
  if (status.IsNoSpace()) return Status::OK();
  if (!status.ok()) return Fail(status);
  StoreRelease(&root_->image, MakeLink(ImageOwner(*root_), image_segment_->ptr(0)));
  Persistence* const persistence = parts_.regions->persistence();
  return persistence->Persist(&root_->image, sizeof(root_->image)) ? Status::OK() : Fail(persistence->error());
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// A damaged image is no error: the leaves are the truth.
bool LeafTree::LoadImage() {
  const uint64_t link = LoadRelaxed(&root_->image);
  if (link == 0 || !IsLink(ImageOwner(*root_), link)) return false;
  InnerNodes::NewChildren children;
  if (image_segment_ == nullptr || image_segment_->ptr(0) != LinkTarget(link)) return false;
  std::optional<uint64_t> elements;
  if (!ReadImage(image_segment_->data(), image_segment_->capacity(), image_segment_->generation(), root_->tree_id, &children,
                 &elements))
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
  elements_.store(elements.value_or(0), std::memory_order_relaxed);
  knows_elements_ = elements.has_value();
  return true;
}

Status LeafTree::ForgetImage() {
  if (BRAIDDB_MUTANT("image-not-forgotten")) return Status::OK();
  Persistence* const persistence = parts_.regions->persistence();
  StoreRelease(&root_->image, 0);
  // ORDER: the image link is gone and the link to the first leaf is durable before any leaf changes. A process that was killed
  // may have stored either without a persist. [CC-44, CC-46]
  return persistence->Persist(root_, sizeof(*root_)) ? Status::OK() : persistence->error();
}

// There are several images if a crash interrupted the replacement of a small one. Keeps the linked one and releases the others.
Status LeafTree::FindImageSegment() {
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
Status LeafTree::ReleaseUnowned() {
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

int LeafTree::Compare(const Element& element, const SearchKey& target) const {
  if (element.key != target.prefix) return element.key < target.prefix ? -1 : 1;
  return CompareKeys(*parts_.order, parts_.keys->KeyOf(element), target);
}

bool LeafTree::Less(const Element& a, const Element& b) const {
  if (a.key != b.key) return a.key < b.key;
  return CompareKeys(*parts_.order, parts_.keys->KeyOf(a), parts_.keys->KeyOf(b)) < 0;
}

bool LeafTree::SameKey(const Element& a, const Element& b) const {
  return a.key == b.key && parts_.order->Compare(parts_.keys->KeyOf(a).key, parts_.keys->KeyOf(b).key) == 0;
}

// The start of the range of the leaf that begins with `right`. All versions of a key are in one range, unless `left` and `right`
// have one key.
Separator LeafTree::Between(const Element& left, const Element& right) const {
  if (left.key != right.key) return {right.key, nullptr};
  const SearchKey before = parts_.keys->KeyOf(left);
  const SearchKey key = parts_.keys->KeyOf(right);
  const bool same_key = parts_.order->Compare(before.key, key.key) == 0;
  return {right.key, NewSeparatorRest(key.key, same_key ? key.sequence : kMaxSequence)};
}

// ---- Errors

Status LeafTree::NoMemory() const {
  return Status::MemoryLimit(std::string("the inner nodes of the ") + name_ + " have no memory; reopen the database");
}

// REQUIRES: structure_mutex_ is held.
Status LeafTree::Fail(Status status) {
  // release: pairs with the acquire in ApplyToOneLeaf. This store comes first, since the next one needs memory.
  failed_.store(true, std::memory_order_release);
  if (failure_.ok()) failure_ = status;
  return status;
}

Status LeafTree::Failure() const { return failure_.ok() ? NoMemory() : failure_; }

LeafTree::Stats LeafTree::GetStats() const {
  std::lock_guard lock(structure_mutex_);
  Stats stats{inner_.GetStats(), space_->free_blocks(), splits_, replaces_, merges_, from_image_};
  stats.inner.bytes += ExtraBytes();
  return stats;
}

}  // namespace braiddb
