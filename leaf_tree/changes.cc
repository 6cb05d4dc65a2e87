// The writers' side of LeafTree: changes within leaves, and the splits, replaces and merges of leaves (NV-Tree, FAST '15, 3.2.3
// and 3.2.4; split in place: LB+-Trees, VLDB '20, 3.4).
#include <algorithm>
#include <bit>
#include <iterator>
#include <new>

#include "leaf_tree/leaf_tree.h"
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
// Number of retired leaves after which Apply reclaims.
constexpr uint32_t kRetiredLeaves = 64;

}  // namespace

// ---- Latches

// Spins: a latch is held for two fences, or longer during a reorganization.
void LeafTree::Latch::Lock() {
  for (SpinWait wait; !TryLock(); wait.Once()) {
  }
}

class LeafTree::LatchGuard {
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
Status LeafTree::Apply(std::span<const LeafChange> changes) try {
  while (!changes.empty()) {
    size_t applied = 0;
    Status status = ApplyToOneLeaf(changes, &applied);
    if (status.IsNoSpace()) {
      parts_.epochs->Synchronize();  // retired leaves become free space
      parts_.epochs->Reclaim();
      status = ApplyToOneLeaf(changes, &applied);
    }
    if (!status.ok()) return status;
    const auto removed = static_cast<uint64_t>(std::ranges::count_if(changes.first(applied), &LeafChange::negative));
    elements_.fetch_add(applied - 2 * removed, std::memory_order_relaxed);
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
//        2. If the leaf has room, change it. Otherwise reorganize.
// WHY IT IS RIGHT  The changes applied in one step are those within the leaf's range. The latch excludes other writers of the
//                  leaf and any change of its range.
Status LeafTree::ApplyToOneLeaf(std::span<const LeafChange> changes, size_t* applied) {
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
  if (!HasRoom(range, changes)) return Reorganize(at, range, changes);
  if (Change(range, changes)) return Status::OK();
  std::lock_guard lock(structure_mutex_);
  return Fail(persistence()->error());
}

// The state of one split, replace or merge. The destructor frees the new leaves that were not linked.
struct LeafTree::Step {
  explicit Step(LeafSpace* leaf_space) : space(leaf_space) {}
  ~Step() {
    for (const PmPtr leaf : made) space->Free(leaf);
  }

  LeafSpace* const space;
  std::vector<PmPtr> made;        // new leaves that are not linked yet; freed if the step fails
  std::vector<Element> before;    // elements of the old leaf, in order; only if the leaf may be split in place
  std::vector<Element> elements;  // elements of all new leaves, in order
  bool is_full = false;           // the old leaf has no room for the changes
  bool is_updated = false;        // an element of the old leaf was cancelled
  bool in_order = false;          // all new elements are larger than all old ones
  std::vector<size_t> begins;     // index of the first element of each new leaf
  InnerNodes::NewChildren children;
  std::vector<PmPtr> old;    // the leaf, and its right sibling in a merge
  PmPtr next;                // what the last new leaf links to
  Separator high;            // end of the last new leaf's range
  bool is_last = false;      // the range has no end
  bool is_in_place = false;  // the first of the new leaves is the old leaf
};

// GOAL   New leaves contain the elements of the leaf with the changes applied.
// STEPS  1. Choose: if few elements are left and the right sibling has few, merge both into one leaf; if one new leaf has room
//        for the elements, replace; otherwise split, in place if the kind of leaf can.
//        2. P1 make the new leaves durable.  3. P2 make the link to them durable.
//        4. Update the inner nodes.  5. Retire the old leaves.  6. After a split in place, apply the changes of the old leaf.
// CRASH  Before 3 the new leaves are free space; after 3 the old leaves are.
// WHAT A READER SEES  Before 4 the old leaf, after 4 the new ones.
// COST   Two fences.
Status LeafTree::Reorganize(const SearchKey& at, const InnerNodes::Range& range, std::span<const LeafChange> changes) {
  std::unique_lock lock(structure_mutex_);
  if (failed_.load(std::memory_order_relaxed)) return Failure();
  Step step(space_.get());
  step.old.push_back(range.leaf);
  step.high = range.high;
  step.is_last = range.is_last;
  // A leaf is verified before it is copied, so that damage does not spread to new leaves with valid checksums.
  if (!IsValid(range.leaf)) return Fail(Damaged("a leaf is damaged"));
  step.next = LinkTarget(LoadAcquire(LinkOf(range.leaf)));
  step.is_full = UsedIn(range.leaf) + changes.size() > Capacity();
  CollectSorted(range.leaf, &step.elements);
  step.is_in_place = SplitsInPlace(range, step.elements);
  if (step.is_in_place) step.before = step.elements;
  MakeChanges(changes, &step);
  step.is_updated = step.elements.size() < UsedIn(range.leaf) + changes.size();
  // 1. Choose between merge, replace and split.
  LatchGuard right_latch;
  if (step.elements.size() <= Capacity() / 2) TakeRightSibling(at, &right_latch, &step);
  if (failed_.load(std::memory_order_relaxed)) return Failure();
  PlanPieces(&step);
  step.is_in_place &= step.old.size() == 1 && step.begins.size() > 1;
  // The first child keeps the separator of the old leaf; the others get new ones.
  step.children.Reserve(step.begins.size());
  step.children.AddKnown({range.low, step.is_in_place ? range.leaf : PmPtr(), step.is_in_place ? range.hint : 0});
  for (size_t i = 1; i < step.begins.size(); ++i) {
    step.children.Add({Between(step.elements[step.begins[i] - 1], step.elements[step.begins[i]]), PmPtr(), 0});
  }
  // 2. P1: write the leaves.
  Status status = MakeLeaves(&step);
  if (!status.ok()) return status;
  // Allocate all memory that step 4 needs, since nothing may fail after step 3.
  InnerNodes::Replacement replacement = inner_.Prepare(at, static_cast<uint32_t>(step.old.size()), step.children.all());
  if (!step.is_in_place) {
    status = Link(at, &step, &replacement);
    lock.unlock();
    if (status.ok()) OnReplaced(range.leaf, step.children.all());
    return status;
  }
  status = Split(&step, &replacement);
  lock.unlock();
  // 6. The leaf has room, since the first piece has.
  const Element& border = step.elements[step.begins[1]];
  const auto is_left = [&](const LeafChange& change) { return Less(change.element, border); };
  const auto left = std::partition_point(changes.begin(), changes.end(), is_left) - changes.begin();
  if (!status.ok() || left == 0) return status;
  if (Change(inner_.Find(at), changes.first(static_cast<size_t>(left)))) return Status::OK();
  lock.lock();
  return Fail(persistence()->error());
}

// TryLock only: waiting for a latch with the mutex held could deadlock with a writer that holds the latch and waits for the
// mutex. Without the latch the leaf is not merged.
void LeafTree::TakeRightSibling(const SearchKey& at, LatchGuard* latch, Step* step) {
  const auto neighbors = inner_.Neighbors(at, 2);
  if (neighbors.size() != 2 || !latch->TryLock(LatchOf(neighbors[1].leaf), LatchOf(step->old.front()))) return;
  const PmPtr right = neighbors[1].leaf;
  const uint32_t most = step->elements.empty() ? Capacity() : MergeFill(Capacity());
  if (step->elements.size() + UsedIn(right) > most || !IsValid(right)) return;
  if (right != step->next) {
    (void)Fail(Status::Corruption(std::string("a link of the ") + name_ + " was changed by someone else"));
    return;
  }
  const InnerNodes::Range range = inner_.Find(neighbors[1].low);
  step->high = range.high;
  step->is_last = range.is_last;
  step->old.push_back(right);
  step->next = LinkTarget(LoadAcquire(LinkOf(right)));
  CollectSorted(right, &step->elements);
}

// Removes the cancelled elements from step->elements and merges the added ones in.
void LeafTree::MakeChanges(std::span<const LeafChange> changes, Step* step) const {
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
void LeafTree::PlanPieces(Step* step) const {
  const uint32_t capacity = Capacity();
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
Status LeafTree::MakeLeaves(Step* step) {
  const std::span<InnerNodes::Child> children = step->children.all();
  const size_t first = step->is_in_place ? 1 : 0;
  step->made.reserve(children.size());
  for (InnerNodes::Child& child : children.subspan(first)) {
    Status status = space_->Allocate(&child.leaf);
    if (!status.ok()) return status;
    step->made.push_back(child.leaf);
  }
  PmPtr next = step->next;
  const Separator* high = step->is_last ? nullptr : &step->high;
  size_t end = step->elements.size();
  for (size_t i = children.size(); i-- > first;) {
    const std::span<const Element> elements(step->elements.data() + step->begins[i], end - step->begins[i]);
    children[i].hint = WriteLeaf(children[i].leaf, children[i].low, high, elements, next);
    CountLines((elements.size_bytes() + kCacheLine - 1) / kCacheLine + 1);
    next = children[i].leaf;
    high = &children[i].low;
    end = step->begins[i];
  }
  if (step->is_in_place) {
    const Element& border = step->elements[step->begins[1]];
    const auto behind = std::partition_point(step->before.begin(), step->before.end(),
                                             [&](const Element& element) { return Less(element, border); });
    PrepareSplit(step->old.front(), {step->before.begin(), behind}, next);
  }
  // ORDER: the new leaves, and what a split in place has prepared, before the store that makes them count. [CC-43]
  return BRAIDDB_MUTANT("leaves-not-fenced") || persistence()->Drain() ? Status::OK() : Fail(persistence()->error());
}

// WHY IT IS RIGHT  Between the store of the link and inner_.Commit nothing may fail, or writers would change an old leaf, which
//                  is no longer in the list. All memory is therefore allocated before (Prepare).
// CRASH  A crash between the store and its persist leaves either link; both lead to complete leaves.
Status LeafTree::Link(const SearchKey& at, Step* step, InnerNodes::Replacement* replacement) {
  const PmPtr left = inner_.LeftOf(at);
  uint64_t* const link = left ? LinkOf(left) : &root_->first;
  step->made.clear();  // linked from here on: the destructor must not free them
  StoreRelease(link, MakeLink(left ? left.raw() : root_->tree_id, step->children.all().front().leaf));
  // ORDER: the link before the old leaves are used again. [CC-43]
  if (!BRAIDDB_MUTANT("leaf-link-not-persisted") && !persistence()->Persist(link, sizeof(*link)))
    return Fail(persistence()->error());
  inner_.Commit(replacement);
  inner_.Settle(*replacement);
  step->children.Give();
  ++(step->old.size() == 2 ? merges_ : step->children.size() > 1 ? splits_ : replaces_);
  Retire(*step);
  return Status::OK();
}

// The same for a split in place. A reader of the old leaf waits until the inner nodes have the new leaves. Readers see the split
// before it is durable. That is harmless: a crash takes back no entry, since the tables have the new ones.
Status LeafTree::Split(Step* step, InnerNodes::Replacement* replacement) {
  step->made.clear();
  CommitSplit(step->old.front());
  inner_.Commit(replacement);
  const bool is_durable = EndSplit(step->old.front());
  inner_.Settle(*replacement);
  step->children.Give();
  ++splits_;
  return is_durable ? Status::OK() : Fail(persistence()->error());
}

void LeafTree::Retire(const Step& step) try {
  for (const PmPtr old : step.old) {
    parts_.epochs->Retire(Reclaimer(old));
    retired_.fetch_add(1, std::memory_order_relaxed);
  }
  inner_.Shrink();
} catch (const std::bad_alloc&) {  // the next open recovers the space
}

std::function<void()> LeafTree::Reclaimer(PmPtr leaf) const {
  return [space = space_, leaf] { space->Free(leaf); };
}

}  // namespace braiddb
