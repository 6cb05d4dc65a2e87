// What writers do: appends, and the splits, replaces and merges of leaves (NV-Tree, FAST '15, 3.2.3 and 3.2.4).
#include <algorithm>

#include "nvtree/nv_tree.h"
#include "util/mutant.h"
#include "util/spin.h"

namespace braiddb {
namespace {

// Of a leaf's elements, what new leaves are filled with at most, unless keys arrive in order.
constexpr uint32_t Fill(uint32_t capacity) { return capacity * 2 / 3; }
// The same of a leaf of whose elements some were taken back: those that are left may be all that will ever be there.
constexpr uint32_t UpdatedFill(uint32_t capacity) { return capacity * 3 / 4; }
// The same of a leaf that is not full, but has many appended elements.
constexpr uint32_t ReplaceFill(uint32_t capacity) { return capacity * 7 / 8; }
constexpr uint32_t OrderedFill(uint32_t capacity) { return capacity * 15 / 16; }
// At most so many elements as a leaf and its right sibling have together become one leaf; any number that it has room for, if
// nothing is left of the leaf itself.
constexpr uint32_t MergeFill(uint32_t capacity) { return capacity * 3 / 4; }
// The most changes that are made at once; what is behind them waits for the new leaves.
constexpr size_t kMostChanges = 1 << 16;
// A leaf that would have more appended elements is replaced: a search scans all of them.
constexpr size_t kMostAppended = kCrashTest ? 8 : 32;
// So many wait for their readers before they are reclaimed.
constexpr uint32_t kRetiredLeaves = 64;

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

// ---- Changes

Status NvTree::Apply(std::span<const LeafChange> changes) try {
  while (!changes.empty()) {
    size_t applied = 0;
    Status status = ApplyToOneLeaf(changes, &applied);
    if (status.IsNoSpace()) {
      parts_.epochs->Synchronize();  // leaves that wait for their readers are space
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

// STEPS  1. Find the leaf, latch it, and see that it still is the leaf: who replaces a leaf holds its latch.
//        2. Append if there is room, and not too much was appended; else make new leaves.
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
  const size_t elements = leaf->count() + count;
  if (elements > Leaf::Capacity(leaf_bytes_) || elements - std::min<size_t>(elements, leaf->sorted()) > kMostAppended) {
    return Reorganize(at, range, changes);
  }
  Persistence* const persistence = parts_.regions->persistence();
  // Of the elements, which may begin inside a line, and of the header.
  flushed_lines_.fetch_add(count * sizeof(Element) / kCacheLine + 2, std::memory_order_relaxed);
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
  bool is_full = false;           // the old leaf has no room for the changes
  bool is_updated = false;        // something in it was taken back
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
  if (!IsValid(range.leaf)) return Fail(Status::Corruption("a leaf of the NV-Tree is damaged; restore the database from a copy"));
  step.next = LinkTarget(LoadAcquire(&At(range.leaf)->next));
  step.is_full = At(range.leaf)->count() + changes.size() > capacity;
  CollectSorted(range.leaf, &step.elements);
  MakeChanges(changes, &step);
  step.is_updated = step.elements.size() < At(range.leaf)->count() + changes.size();
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
  step.children.Reserve(step.begins.size());
  step.children.AddKnown({range.low, PmPtr(), 0});
  for (size_t i = 1; i < step.begins.size(); ++i) {
    step.children.Add({Between(step.elements[step.begins[i] - 1], step.elements[step.begins[i]]), PmPtr(), 0});
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
  const uint32_t if_full = step->is_updated ? UpdatedFill(capacity) : Fill(capacity);
  if (step->old.size() == 2 || count <= (step->is_full ? if_full : ReplaceFill(capacity))) return;
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

// From the link on nothing needs memory until the inner nodes know of the new leaves: else who writes on would append to an old
// one.
Status NvTree::Link(const SearchKey& at, Step* step, InnerNodes::Replacement* replacement) {
  Persistence* const persistence = parts_.regions->persistence();
  const PmPtr left = inner_.LeftOf(at);
  uint64_t* const link = left ? &At(left)->next : &root_->first;
  step->made.clear();
  StoreRelease(link, MakeLink(left ? left.raw() : root_->tree_id, step->children.all().front().leaf));
  // ORDER: the link before the old leaves are used again. [CC-43]
  if (!BRAIDDB_MUTANT("leaf-link-not-persisted") && !persistence->Persist(link, sizeof(*link))) return Fail(persistence->error());
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

}  // namespace braiddb
