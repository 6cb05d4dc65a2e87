// The writers' side of NvTree: appends, and the splits, replaces and merges of leaves (NV-Tree, FAST '15, 3.2.3 and 3.2.4).
#include <algorithm>
#include <bit>
#include <iterator>

#include "nvtree/nv_tree.h"
#include "util/mutant.h"
#include "util/spin.h"

namespace braiddb {
namespace {

// Maximum of elements in a new leaf, unless keys arrive in order.
constexpr uint32_t Fill(uint32_t capacity) { return capacity * 2 / 3; }
// The same if elements of the old leaf were cancelled: an updated leaf may not grow any more, so it is filled more.
constexpr uint32_t UpdatedFill(uint32_t capacity) { return capacity * 3 / 4; }
// The same if the old leaf is not full but has many appended elements.
constexpr uint32_t ReplaceFill(uint32_t capacity) { return capacity * 7 / 8; }
constexpr uint32_t OrderedFill(uint32_t capacity) { return capacity * 15 / 16; }
// A leaf and its right sibling are merged if they have at most this number of elements together; or at most the capacity, if the
// leaf itself is empty.
constexpr uint32_t MergeFill(uint32_t capacity) { return capacity * 3 / 4; }
// Maximum of changes per step. The rest is applied to the new leaves.
constexpr size_t kMostChanges = 1 << 16;
// A leaf that would have more appended elements is replaced by a sorted one, because each search scans the appended elements.
constexpr size_t kMostAppended = kCrashTest ? 8 : 32;
// Number of retired leaves after which Apply reclaims.
constexpr uint32_t kRetiredLeaves = 64;

}  // namespace

// ---- Latches

// Spins: a latch is held for two fences, or longer during a reorganization.
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
  // `mine`: a latch that this thread already holds; two leaves may share a latch.
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

// ---- Changes

// If space runs out, waits for the readers of retired leaves and tries once more.
Status NvTree::Apply(std::span<const LeafChange> changes) try {
  while (!changes.empty()) {
    size_t applied = 0;
    Status status = ApplyToOneLeaf(changes, &applied);
    if (status.IsNoSpace()) {
      parts_.epochs->Synchronize();  // retired leaves become free space
      parts_.epochs->Reclaim();
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

// STEPS  1. Find the leaf, latch it, and check that it still is the leaf of the range: a writer replaces a leaf only under its
//        latch.
//        2. If the leaf has room and few appended elements, append. Otherwise reorganize.
// WHY IT IS RIGHT  The changes applied in one step are those within the leaf's range. The latch excludes other writers of the
//                  leaf and any change of its range.
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
  // Checked under the latch: after a failure no writer appends to a leaf that may have been replaced on media only.
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
  // Changes of one key stay together, so that readers see all of them or none.
  if (count > kMostChanges) {
    count = kMostChanges;
    while (count < changes.size() && in_range(changes[count]) && SameKey(changes[count].element, changes[count - 1].element))
      ++count;
  }
  *applied = count;
  changes = changes.first(count);
  Leaf* const leaf = At(range.leaf);
  const size_t elements = leaf->count() + count;
  if (elements > Leaf::Capacity(leaf_bytes_) || elements - std::min<size_t>(elements, leaf->sorted()) > kMostAppended) {
    return Reorganize(at, range, changes);
  }
  Persistence* const persistence = parts_.regions->persistence();
  // The elements may begin in the middle of a line; the header is one line more.
  flushed_lines_.fetch_add(count * sizeof(Element) / kCacheLine + 2, std::memory_order_relaxed);
  const uint32_t covered = leaf->count();
  if (AppendToLeaf(persistence, leaf, changes)) {
    UpdateOrder(range.leaf, covered, changes);
    return Status::OK();
  }
  std::lock_guard lock(structure_mutex_);
  return Fail(persistence->error());
}

// The state of one split, replace or merge. The destructor frees the new leaves that were not linked.
struct NvTree::Step {
  explicit Step(LeafSpace* leaf_space) : space(leaf_space) {}
  ~Step() {
    for (const PmPtr leaf : made) space->Free(leaf);
  }

  LeafSpace* const space;
  std::vector<PmPtr> made;        // new leaves that are not linked yet; freed if the step fails
  std::vector<Element> elements;  // elements of all new leaves, in order
  bool is_full = false;           // the old leaf has no room for the changes
  bool is_updated = false;        // an element of the old leaf was cancelled
  bool in_order = false;          // all new elements are larger than all old ones
  std::vector<size_t> begins;     // index of the first element of each new leaf
  InnerNodes::NewChildren children;
  std::vector<PmPtr> old;  // the leaf, and its right sibling in a merge
  PmPtr next;              // what the last new leaf links to
};

// GOAL   New leaves contain the elements of the leaf with the changes applied.
// STEPS  1. Choose: if few elements are left and the right sibling has few, merge both into one leaf; if one new leaf has room
//        for the elements, replace; otherwise split.
//        2. P1 make the new leaves durable.  3. P2 make the link to them durable.
//        4. Update the inner nodes.  5. Retire the old leaves.
// CRASH  Before 3 the new leaves are free space; after 3 the old leaves are.
// WHAT A READER SEES  Before 4 the old leaf, after 4 the new ones.
// COST   Two fences.
Status NvTree::Reorganize(const SearchKey& at, const InnerNodes::Range& range, std::span<const LeafChange> changes) {
  std::unique_lock lock(structure_mutex_);
  if (failed_.load(std::memory_order_relaxed)) return Failure();
  const uint32_t capacity = Leaf::Capacity(leaf_bytes_);
  Step step(space_.get());
  step.old.push_back(range.leaf);
  // A leaf is verified before it is copied, so that damage does not spread to new leaves with valid checksums.
  if (!IsValid(range.leaf)) return Fail(Status::Corruption("a leaf of the NV-Tree is damaged; restore the database from a copy"));
  step.next = LinkTarget(LoadAcquire(&At(range.leaf)->next));
  step.is_full = At(range.leaf)->count() + changes.size() > capacity;
  CollectSorted(range.leaf, &step.elements);
  MakeChanges(changes, &step);
  step.is_updated = step.elements.size() < At(range.leaf)->count() + changes.size();
  // 1. Choose between merge, replace and split.
  // TryLock only: waiting for a latch with the mutex held could deadlock with a writer that holds the latch and waits for the
  // mutex. Without the latch the leaf is not merged.
  LatchGuard right_latch;
  if (step.elements.size() <= capacity / 2) {
    const auto neighbors = inner_.Neighbors(at, 2);
    if (neighbors.size() == 2 && right_latch.TryLock(LatchOf(neighbors[1].leaf), LatchOf(range.leaf)) &&
        step.elements.size() + At(neighbors[1].leaf)->count() <= (step.elements.empty() ? capacity : MergeFill(capacity)) &&
        IsValid(neighbors[1].leaf)) {
      if (neighbors[1].leaf != step.next) return Fail(Status::Corruption("a link of the NV-Tree was changed by someone else"));
      step.old.push_back(step.next);
      step.next = LinkTarget(LoadAcquire(&At(step.next)->next));
      CollectSorted(step.old.back(), &step.elements);
    }
  }
  PlanPieces(&step);
  // The first child keeps the separator of the old leaf; the others get new ones.
  step.children.Reserve(step.begins.size());
  step.children.AddKnown({range.low, PmPtr(), 0});
  for (size_t i = 1; i < step.begins.size(); ++i) {
    step.children.Add({Between(step.elements[step.begins[i] - 1], step.elements[step.begins[i]]), PmPtr(), 0});
  }
  // 2. P1: write the leaves.
  Status status = MakeLeaves(&step);
  if (!status.ok()) return status;
  // Allocate all memory that step 4 needs, since nothing may fail after step 3.
  InnerNodes::Replacement replacement = inner_.Prepare(at, static_cast<uint32_t>(step.old.size()), step.children.all());
  status = Link(at, &step, &replacement);
  lock.unlock();
  // Readers of the old leaf made its order, so they probably want the new ones. Readers may make them too.
  const LeafOrder* const order = orders_->Find(range.leaf);
  if (!status.ok() || order == nullptr || order->is_declined()) return status;
  for (const InnerNodes::Child& child : step.children.all()) MakeOrder(child.leaf, nullptr);
  return status;
}

// Removes the cancelled elements from step->elements and merges the added ones in.
void NvTree::MakeChanges(std::span<const LeafChange> changes, Step* step) const {
  std::vector<Element>& elements = step->elements;
  // taken: elements of the leaf to cancel. added: new elements, in the order of the changes.
  std::vector<Element> taken;
  std::vector<Element> added;
  for (const LeafChange& change : changes) {
    if (!change.negative) {
      added.push_back(change.element);
      continue;
    }
    // A NEGATIVE change usually cancels an element of the leaf. It may also cancel one that an earlier change of this step added.
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
  const auto less = [this](const Element& a, const Element& b) { return Less(a, b); };
  std::vector<Element> merged;
  merged.reserve(elements.size() + added.size());
  if (added.size() * static_cast<size_t>(std::bit_width(elements.size())) < elements.size()) {
    // Binary searches read fewer keys than a merge does.
    auto from = elements.cbegin();
    for (const Element& element : added) {
      const auto to = std::upper_bound(from, elements.cend(), element, less);
      merged.insert(merged.end(), from, to);
      merged.push_back(element);
      from = to;
    }
    merged.insert(merged.end(), from, elements.cend());
  } else {
    std::merge(elements.begin(), elements.end(), added.begin(), added.end(), std::back_inserter(merged), less);
  }
  elements.swap(merged);
}

// Divides the elements into equal shares. If keys arrive in order, into full leaves and a rest, because the full leaves will get
// no more elements. All versions of a key go into one leaf, unless they exceed its capacity.
void NvTree::PlanPieces(Step* step) const {
  const uint32_t capacity = Leaf::Capacity(leaf_bytes_);
  const std::vector<Element>& elements = step->elements;
  const size_t count = elements.size();
  step->begins.push_back(0);
  const uint32_t if_full = step->is_updated ? UpdatedFill(capacity) : Fill(capacity);
  if (step->old.size() == 2 || count <= (step->is_full ? if_full : ReplaceFill(capacity))) return;
  const size_t most = step->in_order ? OrderedFill(capacity) : Fill(capacity);
  const size_t pieces = std::max<size_t>(2, (count + most - 1) / most);
  const size_t share = step->in_order ? most : (count + pieces - 1) / pieces;
  const auto is_border = [&](size_t at) { return !SameKey(elements[at - 1], elements[at]); };
  for (size_t begin = 0; count - begin > share;) {
    size_t at = begin + share;
    while (at > begin && !is_border(at)) --at;
    if (at == begin) {  // one key exceeds the share: put all of it into one leaf if it fits
      const size_t last = std::min<size_t>(begin + capacity, count);
      for (at = begin + share; at < last && !is_border(at);) ++at;
      if (at == count) return;
      if (!is_border(at)) at = begin + share;
    }
    step->begins.push_back(begin = at);
  }
}

// Allocates and writes the new leaves from the last to the first, so that each can link to its successor. The last one links to
// the successor of the old leaves.
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
    InnerNodes::Child& child = step->children.all()[i];
    const PmPtr place = child.leaf;
    const std::span<const Element> elements(step->elements.data() + step->begins[i], end - step->begins[i]);
    child.sorted = static_cast<uint32_t>(elements.size());
    MakeLeaf(persistence, At(place), root_->tree_id, place, leaf_bytes_, elements, next);
    flushed_lines_.fetch_add((elements.size_bytes() + kCacheLine - 1) / kCacheLine + 1, std::memory_order_relaxed);
    next = place;
    end = step->begins[i];
  }
  // ORDER: the new leaves before the link to them. [CC-43]
  return BRAIDDB_MUTANT("leaves-not-fenced") || persistence->Drain() ? Status::OK() : Fail(persistence->error());
}

// WHY IT IS RIGHT  Between the store of the link and inner_.Commit nothing may fail, or writers would append to an old leaf,
//                  which is no longer in the list. All memory is therefore allocated before (Prepare).
// CRASH  A crash between the store and its persist leaves either link; both lead to complete leaves.
Status NvTree::Link(const SearchKey& at, Step* step, InnerNodes::Replacement* replacement) {
  Persistence* const persistence = parts_.regions->persistence();
  const PmPtr left = inner_.LeftOf(at);
  uint64_t* const link = left ? &At(left)->next : &root_->first;
  step->made.clear();  // linked from here on: the destructor must not free them
  StoreRelease(link, MakeLink(left ? left.raw() : root_->tree_id, step->children.all().front().leaf));
  // ORDER: the link before the old leaves are used again. [CC-43]
  if (!BRAIDDB_MUTANT("leaf-link-not-persisted") && !persistence->Persist(link, sizeof(*link))) return Fail(persistence->error());
  inner_.Commit(replacement);
  step->children.Give();
  ++(step->old.size() == 2 ? merges_ : step->children.size() > 1 ? splits_ : replaces_);
  try {
    for (const PmPtr old : step->old) {
      parts_.epochs->Retire([space = space_, orders = orders_, old] {
        orders->Drop(old);  // before the block may be another leaf
        space->Free(old);
      });
      retired_.fetch_add(1, std::memory_order_relaxed);
    }
    inner_.Shrink();
  } catch (const std::bad_alloc&) {  // the next open recovers the space
  }
  return Status::OK();
}

}  // namespace braiddb
