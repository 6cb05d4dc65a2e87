// The writers' side of LbTree: inserts, updates, deletes, splits, and the removal of empty leaves.
#include <algorithm>
#include <new>
#include <numeric>

#include "lb_tree/lb_tree.h"
#include "util/mutant.h"

namespace braiddb {

LbInnerNodes::LeafAt LbTree::LockLeaf(uint64_t key, int* position) const {
  for (;;) {
    const LbInnerNodes::LeafAt at = inner_.Find(key);
    if (!LockOf(at.leaf)->TryLock(at.version)) continue;
    *position = At(at.leaf).Find(key);
    return at;
  }
}

// STEPS  1. Lock the leaf of the key.  2. If the key is there, replace the value in place; if there is a free slot, insert.
//        3. Otherwise unlock, split, and start over, unless the split has put the entry into the new leaf.
Status LbTree::Put(uint64_t key, uint64_t value) try {
  for (;;) {
    if (persistence()->failed()) return persistence()->error();
    int position = -1;
    const LbInnerNodes::LeafAt at = LockLeaf(key, &position);
    const LbLeaf leaf = At(at.leaf);
    if (position < 0 && leaf.IsFull()) {
      LockOf(at.leaf)->UnlockUnchanged();
      bool has_entry = false;
      Status status = Split(at, {key, value}, &has_entry);
      if (!status.ok() || has_entry) return status;
      continue;
    }
    const bool durable = position >= 0 ? leaf.Update(persistence(), static_cast<uint32_t>(position), value)
                                       : leaf.Insert(persistence(), {key, value}, parts_.move_entries);
    LockOf(at.leaf)->Unlock();
    return durable ? Status::OK() : persistence()->error();
  }
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status LbTree::LockEntry(uint64_t key, LbInnerNodes::LeafAt* at, int* position) const {
  if (persistence()->failed()) return persistence()->error();
  *at = LockLeaf(key, position);
  if (*position >= 0) return Status::OK();
  LockOf(at->leaf)->UnlockUnchanged();
  return Status::NotFound("no such key");
}

Status LbTree::Update(uint64_t key, uint64_t value) {
  LbInnerNodes::LeafAt at;
  int position = -1;
  if (Status status = LockEntry(key, &at, &position); !status.ok()) return status;
  const bool durable = At(at.leaf).Update(persistence(), static_cast<uint32_t>(position), value);
  LockOf(at.leaf)->Unlock();
  return durable ? Status::OK() : persistence()->error();
}

Status LbTree::Remove(uint64_t key) try {
  LbInnerNodes::LeafAt at;
  int position = -1;
  if (Status status = LockEntry(key, &at, &position); !status.ok()) return status;
  const LbLeaf leaf = At(at.leaf);
  const bool durable = leaf.Remove(persistence(), static_cast<uint32_t>(position));
  const bool is_empty = leaf.Count() == 0;
  LockOf(at.leaf)->Unlock();
  if (!durable) return persistence()->error();
  return is_empty ? RemoveEmptyLeaf(key) : Status::OK();
} catch (const std::bad_alloc&) {
  return Status::OK();  // the key is removed; the leaf stays in the list, empty
}

// ---- Splits

// The new leaf is allocated before the locks are taken, because an allocation may add a segment.
Status LbTree::Split(const LbInnerNodes::LeafAt& at, const LbEntry& entry, bool* has_entry) {
  PmPtr right;
  Status status = space_.Allocate(&right);
  if (!status.ok()) return status;
  LbInnerNodes::Node* parent = nullptr;
  try {
    parent = inner_.LockForSplit(entry.key, at);
  } catch (const std::bad_alloc&) {
    space_.Free(right);
    throw;
  }
  if (parent == nullptr) {  // the leaf has changed
    space_.Free(right);
    return Status::OK();
  }
  uint64_t low = 0;
  bool is_split = false;
  status = SplitLocked(at.leaf, right, entry, &low, has_entry, &is_split);
  if (is_split) {  // also after a failed persist: readers go on
    // Before the leaf is unlocked: until then, threads that need the new leaf wait for the leaf's lock.
    LbInnerNodes::AddChild(parent, entry.key, low, right);
    splits_.fetch_add(1, std::memory_order_relaxed);
  } else {
    LbInnerNodes::UnlockUnchanged(parent);
  }
  LockOf(at.leaf)->Unlock();
  return status;
}

// GOAL   The leaf keeps its smaller half, a new leaf has the larger half; no log.
// STEPS  1. Write the new leaf, with a link to the leaf's successor. Write the leaf's other link and the other bitmaps. P1 fence.
//        2. P2 the commit word switches to the other link and the other bitmaps.
// CRASH  Before 2 the new leaf is a free block, and what step 1 stored into the leaf does not count. After 2 the split is done.
// COST   Two fences; the used lines of the new leaf, and two lines and one for each further block of the leaf.
// If the key is larger than all others of the last leaf, keys probably arrive in order: the leaf stays full.
Status LbTree::SplitLocked(PmPtr place, PmPtr right, const LbEntry& entry, uint64_t* low, bool* has_entry, bool* is_split) {
  const LbLeaf leaf = At(place);
  LbEntry entries[LbLeaf::kMaxEntries + 1];
  uint8_t positions[LbLeaf::kMaxEntries];
  uint8_t order[LbLeaf::kMaxEntries];
  const uint32_t count = leaf.Collect(entries, positions);
  std::iota(order, order + count, uint8_t{0});
  std::sort(order, order + count, [&](uint8_t a, uint8_t b) { return entries[a].key < entries[b].key; });
  const PmPtr successor = LinkTarget(leaf.link());
  const bool in_order = !successor && entry.key > entries[order[count - 1]].key;
  const uint32_t half = in_order ? count : count / 2;
  *low = in_order ? entry.key : entries[order[half]].key;
  *has_entry = entry.key >= *low;

  LbEntry moved[LbLeaf::kMaxEntries + 1];
  uint32_t moving = 0, kept[LbLeaf::kMaxBlocks] = {};
  for (uint32_t i = half; i < count; ++i) moved[moving++] = entries[order[i]];
  if (*has_entry) moved[moving++] = entry;
  for (uint32_t i = 0; i < half; ++i) kept[positions[order[i]] / LbLeaf::kSlots] |= 1u << positions[order[i]] % LbLeaf::kSlots;

  At(right).Make(persistence(), {moved, moving}, LinkFrom(right, successor));
  leaf.PrepareSplit(persistence(), kept, LinkFrom(place, right));
  // ORDER: the new leaf, the other link and the other bitmaps before the word that switches to them. [CC-72]
  if (!BRAIDDB_MUTANT("lb-split-not-fenced") && !persistence()->Drain()) return persistence()->error();
  *is_split = true;
  return leaf.CommitSplit(persistence(), kept[0]) ? Status::OK() : persistence()->error();
}

// ---- Empty leaves

// GOAL   The leaf of the key, if it is empty and not the only one, is in no list.
// STEPS  1. Lock it, its left neighbor, and the inner nodes above both.  2. P1 persist the link around it.
//        3. Remove it from the inner nodes; free its block.
// CRASH  After P1 the block is free, before it the leaf is an empty one, which the next open removes.
Status LbTree::RemoveEmptyLeaf(uint64_t key) {
  for (SpinWait wait;; wait.Once()) {
    LbInnerNodes::Removal removal(&inner_);
    const auto locked = removal.Lock(key);
    if (locked == LbInnerNodes::Removal::Locked::kOnlyLeaf) return Status::OK();
    if (locked == LbInnerNodes::Removal::Locked::kBusy) continue;
    const PmPtr place = removal.leaf(), left = removal.left();
    const LbLeaf leaf = At(place);
    if (leaf.Count() > 0) return Status::OK();
    const uint64_t link = left ? At(left).link() : LoadAcquire(&root_->first);
    if (link != (left ? LinkFrom(left, place) : MakeLink(root_->tree_id, place)))
      return Status::Corruption("a link of the LB+-Tree is damaged; restore the database from a copy");
    // ORDER: the link before the block is used again. [CC-73]
    if (!Relink(left, LinkTarget(leaf.link()))) return persistence()->error();
    removal.Commit();
    space_.Free(place);
    removals_.fetch_add(1, std::memory_order_relaxed);
    return Status::OK();
  }
}

bool LbTree::Relink(PmPtr left, PmPtr to) {
  if (left) return At(left).Relink(persistence(), LinkFrom(left, to));
  StoreWord(&root_->first, MakeLink(root_->tree_id, to));
  return BRAIDDB_MUTANT("lb-link-not-persisted") || persistence()->Persist(&root_->first, sizeof(root_->first));
}

}  // namespace braiddb
