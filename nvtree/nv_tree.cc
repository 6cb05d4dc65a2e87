#include "nvtree/nv_tree.h"

#include <xxhash.h>

#include <algorithm>

#include "nvtree/inner_image.h"
#include "util/check.h"
#include "util/spin.h"

namespace braiddb {
namespace {

// Of a leaf's elements, what new leaves are filled with at most, unless keys arrive in order.
constexpr uint32_t Fill(uint32_t capacity) { return capacity * 2 / 3; }
constexpr uint32_t OrderedFill(uint32_t capacity) { return capacity * 15 / 16; }
// At most so many elements as a leaf and its right sibling have together become one leaf.
constexpr uint32_t MergeFill(uint32_t capacity) { return capacity * 3 / 4; }
// The most changes that are made at once; what is behind them waits for the new leaves.
constexpr size_t kMostChanges = 1 << 16;
// So many wait for their readers before they are reclaimed.
constexpr uint32_t kRetiredLeaves = 64;

uint64_t ComputeChecksum(const NvTreeRoot& root) { return XXH3_64bits(&root, offsetof(NvTreeRoot, checksum)); }

int CompareKeys(const KeyOrder& order, const SearchKey& a, const SearchKey& b) {
  if (a.prefix != b.prefix) return a.prefix < b.prefix ? -1 : 1;
  const int by_key = order.Compare(a.key, b.key);
  if (by_key != 0) return by_key;
  if (a.sequence == b.sequence) return 0;
  return a.sequence > b.sequence ? -1 : 1;
}

// Tells the link to the image from that to the first leaf.
uint64_t ImageOwner(const NvTreeRoot& root) { return ~root.tree_id; }

Status NoMemory() { return Status::MemoryLimit("the inner nodes of the NV-Tree have no memory; reopen the database"); }

}  // namespace

// ---- Latches

void NvTree::Latch::Lock() {
  for (SpinWait wait; !TryLock(); wait.Once()) {
  }
}

class NvTree::LatchGuard {
 public:
  LatchGuard() = default;
  ~LatchGuard() { Release(); }
  LatchGuard(const LatchGuard&) = delete;
  LatchGuard& operator=(const LatchGuard&) = delete;
  void Lock(Latch* latch) {
    latch->Lock();
    latch_ = latch;
  }
  // `mine`: a latch that this thread holds already.
  bool TryLock(Latch* latch, const Latch* mine) {
    if (latch == mine) return true;
    if (!latch->TryLock()) return false;
    latch_ = latch;
    return true;
  }
  void Release() {
    if (latch_ != nullptr) latch_->Unlock();
    latch_ = nullptr;
  }

 private:
  Latch* latch_ = nullptr;
};

// ---- Life

NvTree::NvTree(const NvTreeParts& parts, NvTreeRoot* root)
    : parts_(parts),
      root_(root),
      leaf_bytes_(static_cast<uint32_t>(root->leaf_bytes)),
      space_(std::make_shared<LeafSpace>(parts.regions, parts.segments, root->tree_id, leaf_bytes_)),
      inner_(parts.order, parts.epochs) {}

// A crash in here is one in the creation of the database, which starts over.
Status NvTree::Create(RegionSet* regions, SegmentAllocator* segments, uint32_t leaf_bytes) {
  if (!IsLeafSize(leaf_bytes)) return Status::InvalidArgument("the leaves of an NV-Tree have 512, 1024, 2048 or 4096 bytes");
  void* object = nullptr;
  Status status = regions->AllocateMetadata(0, MetadataSlot::kL1, sizeof(NvTreeRoot), &object);
  if (!status.ok()) return status;
  auto* root = static_cast<NvTreeRoot*>(object);
  root->magic = NvTreeRoot::kMagic;
  root->tree_id = Mix64(regions->database_id() ^ NvTreeRoot::kMagic);
  root->leaf_bytes = leaf_bytes;
  root->checksum = ComputeChecksum(*root);
  Persistence* const persistence = regions->persistence();
  if (!persistence->Persist(root, sizeof(*root))) return persistence->error();
  LeafSpace space(regions, segments, root->tree_id, leaf_bytes);
  PmPtr first;
  status = space.Allocate(&first);
  if (!status.ok()) return status;
  MakeLeaf(persistence, regions->Resolve<Leaf>(first), root->tree_id, first, leaf_bytes, {}, PmPtr());
  // ORDER: the leaf before its link. [CC-43]
  if (!persistence->Drain()) return persistence->error();
  StoreRelease(&root->first, MakeLink(root->tree_id, first));
  return persistence->Persist(&root->first, sizeof(root->first)) ? Status::OK() : persistence->error();
}

Status NvTree::Open(const NvTreeParts& parts, uint32_t threads, bool verify, std::unique_ptr<NvTree>* result) try {
  uint64_t bytes = 0;
  auto* root = static_cast<NvTreeRoot*>(parts.regions->Metadata(0, MetadataSlot::kL1, &bytes));
  if (root == nullptr || bytes < sizeof(NvTreeRoot) || root->magic != NvTreeRoot::kMagic ||
      root->checksum != ComputeChecksum(*root) || !IsLeafSize(static_cast<uint32_t>(root->leaf_bytes))) {
    return Status::Corruption("the root of the NV-Tree is missing or damaged; restore the database from a copy");
  }
  std::unique_ptr<NvTree> tree(new NvTree(parts, root));
  tree->space_->FindSegments();
  Status status = tree->FindImageSegment();
  if (!status.ok()) return status;
  tree->from_image_ = !verify && tree->LoadImage();
  // ORDER: a rebuild may change links; the image is forgotten before. [CC-44]
  status = tree->ForgetImage();
  if (status.ok() && !tree->from_image_) status = tree->Rebuild(threads);
  if (status.ok()) *result = std::move(tree);
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status NvTree::Close() try {
  std::lock_guard lock(structure_mutex_);
  if (failed_.load(std::memory_order_relaxed)) return Failure();
  Status status = WriteImage(parts_.regions, parts_.segments, root_->tree_id, inner_.Children(), &image_segment_);
  if (status.IsNoSpace()) return Status::OK();
  if (!status.ok()) return Fail(status);
  StoreRelease(&root_->image, MakeLink(ImageOwner(*root_), image_segment_->ptr(0)));
  Persistence* const persistence = parts_.regions->persistence();
  return persistence->Persist(&root_->image, sizeof(root_->image)) ? Status::OK() : Fail(persistence->error());
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// What is wrong with an image is no error: the leaves are the truth.
bool NvTree::LoadImage() {
  const uint64_t link = LoadRelaxed(&root_->image);
  if (link == 0 || !IsLink(ImageOwner(*root_), link)) return false;
  InnerNodes::NewChildren children;
  if (image_segment_ == nullptr || image_segment_->ptr(0) != LinkTarget(link)) return false;
  if (!ReadImage(*image_segment_, root_->tree_id, &children)) return false;
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
  if (LoadRelaxed(&root_->image) == 0) return Status::OK();
  Persistence* const persistence = parts_.regions->persistence();
  StoreRelease(&root_->image, 0);
  // ORDER: the link is gone before any leaf changes. [CC-44]
  return persistence->Persist(&root_->image, sizeof(root_->image)) ? Status::OK() : persistence->error();
}

// There is more than one if a crash came while one that was too small was replaced.
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

// Where the range of the right one begins. All versions of a key are in one range, unless the two are of one key.
Separator NvTree::Between(const Element& left, const Element& right) const {
  if (left.key != right.key) return {right.key, nullptr};
  const SearchKey before = parts_.keys->KeyOf(left);
  const SearchKey key = parts_.keys->KeyOf(right);
  const bool same_key = parts_.order->Compare(before.key, key.key) == 0;
  return {right.key, NewSeparatorRest(key.key, same_key ? key.sequence : kMaxSequence)};
}

void NvTree::CollectSorted(PmPtr leaf, std::vector<Element>* elements) const {
  const auto begin = static_cast<std::ptrdiff_t>(elements->size());
  const auto sorted = static_cast<std::ptrdiff_t>(CollectLive(*At(leaf), elements));
  const auto less = [this](const Element& a, const Element& b) { return Less(a, b); };
  std::sort(elements->begin() + begin + sorted, elements->end(), less);
  std::inplace_merge(elements->begin() + begin, elements->begin() + begin + sorted, elements->end(), less);
}

// ---- Changes

Status NvTree::Apply(std::span<const LeafChange> changes) try {
  while (!changes.empty()) {
    size_t applied = 0;
    Status status = ApplyToOneLeaf(changes, &applied);
    if (status.IsNoSpace()) {
      parts_.epochs->Reclaim();  // leaves that wait for their readers are space
      status = ApplyToOneLeaf(changes, &applied);
    }
    if (!status.ok()) return status;
    changes = changes.subspan(applied);
    if (retired_.load(std::memory_order_relaxed) >= kRetiredLeaves) {
      retired_.store(0, std::memory_order_relaxed);
      parts_.epochs->Reclaim();
    }
  }
  return Status::OK();
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// STEPS  1. Find the leaf, latch it, and see that it still is the leaf: who replaces a leaf holds its latch.
//        2. Append if there is room; else make new leaves.
Status NvTree::ApplyToOneLeaf(std::span<const LeafChange> changes, size_t* applied) {
  const EpochManager::Guard guard = parts_.epochs->Enter();
  const SearchKey at = parts_.keys->KeyOf(changes.front().element);
  LatchGuard latch;
  InnerNodes::Range range;
  for (;;) {
    const PmPtr leaf = inner_.Find(at).leaf;
    latch.Lock(LatchOf(leaf));
    range = inner_.Find(at);
    if (range.leaf == leaf) break;
    latch.Release();
  }
  if (failed_.load(std::memory_order_acquire)) {
    std::lock_guard lock(structure_mutex_);
    return Failure();
  }
  const auto in_range = [&](const LeafChange& change) {
    if (range.is_last || change.element.key < range.high.prefix) return true;
    if (change.element.key > range.high.prefix || range.high.rest == nullptr) return false;
    return CompareToSeparator(*parts_.order, parts_.keys->KeyOf(change.element), range.high) < 0;
  };
  size_t count = static_cast<size_t>(std::partition_point(changes.begin(), changes.end(), in_range) - changes.begin());
  if (count > kMostChanges) {
    count = kMostChanges;
    while (count < changes.size() && in_range(changes[count]) && SameKey(changes[count].element, changes[count - 1].element))
      ++count;
  }
  *applied = count;
  changes = changes.first(count);
  Leaf* const leaf = At(range.leaf);
  if (leaf->count() + count > leaf->capacity()) return Reorganize(at, range, changes);
  Persistence* const persistence = parts_.regions->persistence();
  if (AppendToLeaf(persistence, leaf, changes)) return Status::OK();
  std::lock_guard lock(structure_mutex_);
  return Fail(persistence->error());
}

// What a split, replace or merge works on.
struct NvTree::Step {
  explicit Step(LeafSpace* leaf_space) : space(leaf_space) {}
  ~Step() {
    for (const PmPtr leaf : made) space->Free(leaf);
  }

  LeafSpace* const space;
  std::vector<PmPtr> made;        // new leaves that are not linked yet
  std::vector<Element> elements;  // of the new leaves together, in order
  bool in_order = false;          // all that is new is behind all that was there
  std::vector<size_t> begins;     // where the elements of each new leaf begin
  InnerNodes::NewChildren children;
  std::vector<PmPtr> old;
  PmPtr next;  // what the last new leaf links to
};

// GOAL   The elements of the leaf, with the changes made, are in new leaves.
// STEPS  1. If few are left of it and its right sibling has few, these two become one leaf (merge); else one new leaf if it has
//           room for more then (replace); else several (split).
//        2. P1 the new leaves, durable. 3. P2 the link to them, durable. 4. Inner nodes. 5. The old ones are retired.
// CRASH  Until 3 the new leaves are free space; from then on the old ones are.
// WHAT A READER SEES  Until 4 the old leaf, then the new ones.
// COST   Two fences.
Status NvTree::Reorganize(const SearchKey& at, const InnerNodes::Range& range, std::span<const LeafChange> changes) {
  std::lock_guard lock(structure_mutex_);
  if (failed_.load(std::memory_order_relaxed)) return Failure();
  const uint32_t capacity = Leaf::Capacity(leaf_bytes_);
  Step step(space_.get());
  step.old.push_back(range.leaf);
  step.next = LinkTarget(LoadAcquire(&At(range.leaf)->next));
  CollectSorted(range.leaf, &step.elements);
  MakeChanges(changes, &step);
  LatchGuard right_latch;
  if (step.elements.size() <= capacity / 2) {
    const auto neighbors = inner_.Neighbors(at, 2);
    if (neighbors.size() == 2 && right_latch.TryLock(LatchOf(neighbors[1].leaf), LatchOf(range.leaf)) &&
        step.elements.size() + At(neighbors[1].leaf)->count() <= MergeFill(capacity)) {
      if (neighbors[1].leaf != step.next) return Fail(Status::Corruption("a link of the NV-Tree was changed by someone else"));
      step.old.push_back(step.next);
      step.next = LinkTarget(LoadAcquire(&At(step.next)->next));
      CollectSorted(step.old.back(), &step.elements);
    }
  }
  PlanPieces(&step);
  step.children.Reserve(step.begins.size());
  step.children.AddKnown({range.low, PmPtr()});
  for (size_t i = 1; i < step.begins.size(); ++i) {
    step.children.Add({Between(step.elements[step.begins[i] - 1], step.elements[step.begins[i]]), PmPtr()});
  }
  Status status = MakeLeaves(&step);
  if (!status.ok()) return status;
  InnerNodes::Replacement replacement = inner_.Prepare(at, static_cast<uint32_t>(step.old.size()), step.children.all());
  return Link(at, &step, &replacement);
}

// Takes back what is NEGATIVE, and merges the others in.
void NvTree::MakeChanges(std::span<const LeafChange> changes, Step* step) const {
  std::vector<Element>& elements = step->elements;
  std::vector<Element> taken;
  std::vector<Element> added;
  for (const LeafChange& change : changes) {
    if (!change.negative) {
      added.push_back(change.element);
      continue;
    }
    // Mostly it was there; it may also have been added by a change before this one.
    auto found = added.rbegin();
    while (found != added.rend() && *found != change.element && SameKey(*found, change.element)) ++found;
    if (found != added.rend() && *found == change.element) {
      added.erase(std::next(found).base());
    } else {
      taken.push_back(change.element);
    }
  }
  if (!taken.empty()) {
    const auto less = [](const Element& a, const Element& b) { return a.key != b.key ? a.key < b.key : a.value < b.value; };
    std::sort(taken.begin(), taken.end(), less);
    std::erase_if(elements,
                  [&](const Element& element) { return std::binary_search(taken.begin(), taken.end(), element, less); });
  }
  step->in_order = !added.empty() && !elements.empty() && Less(elements.back(), added.front());
  const auto middle = static_cast<std::ptrdiff_t>(elements.size());
  elements.insert(elements.end(), added.begin(), added.end());
  std::inplace_merge(elements.begin(), elements.begin() + middle, elements.end(),
                     [this](const Element& a, const Element& b) { return Less(a, b); });
}

// Equal shares; if keys arrive in order, full leaves and what is left, since nothing comes to the full ones any more. All
// versions of a key are in one leaf, unless they are more than it has room for.
void NvTree::PlanPieces(Step* step) const {
  const uint32_t capacity = Leaf::Capacity(leaf_bytes_);
  const std::vector<Element>& elements = step->elements;
  const size_t count = elements.size();
  step->begins.push_back(0);
  if (step->old.size() == 2 || count <= Fill(capacity)) return;
  const size_t most = step->in_order ? OrderedFill(capacity) : Fill(capacity);
  const size_t pieces = std::max<size_t>(2, (count + most - 1) / most);
  const size_t share = step->in_order ? most : (count + pieces - 1) / pieces;
  const auto is_border = [&](size_t at) { return !SameKey(elements[at - 1], elements[at]); };
  for (size_t begin = 0; count - begin > share;) {
    size_t at = begin + share;
    while (at > begin && !is_border(at)) --at;
    if (at == begin) {  // one key takes the share: all of it, if there is room
      const size_t last = std::min<size_t>(begin + capacity, count);
      for (at = begin + share; at < last && !is_border(at);) ++at;
      if (at == count) return;
      if (!is_border(at)) at = begin + share;
    }
    step->begins.push_back(begin = at);
  }
}

Status NvTree::MakeLeaves(Step* step) {
  step->made.reserve(step->children.size());
  for (InnerNodes::Child& child : step->children.all()) {
    Status status = space_->Allocate(&child.leaf);
    if (!status.ok()) return status;
    step->made.push_back(child.leaf);
  }
  Persistence* const persistence = parts_.regions->persistence();
  PmPtr next = step->next;
  size_t end = step->elements.size();
  for (size_t i = step->children.size(); i-- > 0;) {
    const PmPtr place = step->children.all()[i].leaf;
    const std::span<const Element> elements(step->elements.data() + step->begins[i], end - step->begins[i]);
    MakeLeaf(persistence, At(place), root_->tree_id, place, leaf_bytes_, elements, next);
    next = place;
    end = step->begins[i];
  }
  // ORDER: the new leaves before the link to them. [CC-43]
  return persistence->Drain() ? Status::OK() : Fail(persistence->error());
}

// From the link on nothing needs memory until the inner nodes know of the new leaves: else who writes on would append to an old
// one.
Status NvTree::Link(const SearchKey& at, Step* step, InnerNodes::Replacement* replacement) {
  Persistence* const persistence = parts_.regions->persistence();
  const PmPtr left = inner_.LeftOf(at);
  uint64_t* const link = left ? &At(left)->next : &root_->first;
  step->made.clear();
  StoreRelease(link, MakeLink(left ? left.raw() : root_->tree_id, step->children.all().front().leaf));
  // ORDER: the link before the old leaves are used again. [CC-43]
  if (!persistence->Persist(link, sizeof(*link))) return Fail(persistence->error());
  inner_.Commit(replacement);
  step->children.Give();
  ++(step->old.size() == 2 ? merges_ : step->children.size() > 1 ? splits_ : replaces_);
  try {
    for (const PmPtr old : step->old) {
      parts_.epochs->Retire([space = space_, old] { space->Free(old); });
      retired_.fetch_add(1, std::memory_order_relaxed);
    }
    inner_.Shrink();
  } catch (const std::bad_alloc&) {  // the space comes back with the next open
  }
  return Status::OK();
}

// REQUIRES: the mutex of the structure.
Status NvTree::Fail(Status status) {
  // release: pairs with the acquire in ApplyToOneLeaf. First, since the rest needs memory.
  failed_.store(true, std::memory_order_release);
  if (failure_.ok()) failure_ = status;
  return status;
}

Status NvTree::Failure() const { return failure_.ok() ? NoMemory() : failure_; }

NvTree::Stats NvTree::GetStats() const {
  std::lock_guard lock(structure_mutex_);
  return {inner_.GetStats(), space_->free_blocks(), splits_, replaces_, merges_, from_image_};
}

}  // namespace braiddb
