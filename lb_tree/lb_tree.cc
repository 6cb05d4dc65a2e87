#include "lb_tree/lb_tree.h"

#include <xxhash.h>

#include <algorithm>
#include <new>
#include <numeric>

#include "util/mutant.h"
#include "util/run_parallel.h"

namespace braiddb {
namespace {

uint64_t ComputeChecksum(const LbTreeRoot& root) { return XXH3_64bits(&root, offsetof(LbTreeRoot, checksum)); }

uint64_t TreeIdOf(uint64_t database_id, uint64_t number) {
  return Mix64(database_id ^ LbTreeRoot::kMagic ^ number * 0x9e3779b97f4a7c15ull);
}

bool IsLbTreeRoot(const LbTreeRoot& root, uint64_t database_id, uint64_t number) {
  return root.magic == LbTreeRoot::kMagic && root.checksum == ComputeChecksum(root) &&
         root.tree_id == TreeIdOf(database_id, number) && IsLbLeafSize(root.leaf_bytes);
}

}  // namespace

// ---- Life

LbTree::LbTree(const LbTreeParts& parts, LbTreeRoot* root)
    : parts_(parts),
      root_(root),
      leaf_bytes_(static_cast<uint32_t>(root->leaf_bytes)),
      space_(parts.regions, parts.segments, root->tree_id, leaf_bytes_, BlockStart::kAtXpLine),
      inner_(parts.regions, locks_.get(), leaf_bytes_) {}

// A crash in Create is a crash in the creation of the database or family, which starts over.
Status LbTree::Create(RegionSet* regions, SegmentAllocator* segments, uint32_t leaf_bytes, const LevelPlace& place) {
  if (!IsLbLeafSize(leaf_bytes)) return Status::InvalidArgument("leaves of an LB+-Tree have a multiple of 256 bytes, up to 4096");
  void* object = nullptr;
  Status status = place.Take(regions, 0, sizeof(LbTreeRoot), &object);
  if (!status.ok()) return status;
  auto* root = static_cast<LbTreeRoot*>(object);
  root->magic = LbTreeRoot::kMagic;
  root->tree_id = TreeIdOf(regions->database_id(), place.number);
  root->leaf_bytes = leaf_bytes;
  root->checksum = ComputeChecksum(*root);
  Persistence* const persistence = regions->persistence();
  if (!persistence->Persist(root, sizeof(*root))) return persistence->error();
  LeafSpace space(regions, segments, root->tree_id, leaf_bytes, BlockStart::kAtXpLine);
  PmPtr first;
  status = space.Allocate(&first);
  if (!status.ok()) return status;
  const LbLeaf leaf(regions->Resolve<uint64_t>(first), leaf_bytes / kLbBlockBytes);
  leaf.Make(persistence, {}, MakeLink(first.raw() ^ root->tree_id, PmPtr()));
  // ORDER: the leaf before the link to it. [CC-72]
  if (!persistence->Drain()) return persistence->error();
  StoreWord(&root->first, MakeLink(root->tree_id, first));
  return persistence->Persist(&root->first, sizeof(root->first)) ? Status::OK() : persistence->error();
}

Status LbTree::Open(const LbTreeParts& parts, uint32_t threads, std::unique_ptr<LbTree>* result) try {
  auto* root = static_cast<LbTreeRoot*>(parts.place.Find(*parts.regions, 0, sizeof(LbTreeRoot)));
  if (root == nullptr || !IsLbTreeRoot(*root, parts.regions->database_id(), parts.place.number)) {
    return Status::Corruption("the root of the LB+-Tree is missing or damaged; restore the database from a copy");
  }
  std::unique_ptr<LbTree> tree(new LbTree(parts, root));
  if (!tree->space_.FindSegments()) return parts.regions->persistence()->error();
  Status status = tree->Rebuild(threads);
  if (status.ok()) *result = std::move(tree);
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// STEPS  1. Write all leaves, each with a link to the next one.  2. P1 fence  3. P2 the link in the root replaces the empty leaf.
// CRASH  Before 3 the list has the empty leaf only, and the new leaves are free.
Status LbTree::BulkLoad(std::span<const LbEntry> entries, double fill, uint32_t threads) try {
  LeafCopy copy;
  CopyLeaf(0, &copy);
  if (!copy.is_first || !copy.is_last || !copy.entries.empty()) return Status::InvalidArgument("the LB+-Tree is not empty");
  if (entries.empty()) return Status::OK();
  const uint32_t capacity = leaf_bytes_ / kLbBlockBytes * LbLeaf::kSlots;
  const auto per_leaf = std::clamp<size_t>(static_cast<size_t>(capacity * fill + 0.5), 1, capacity);
  const size_t count = (entries.size() + per_leaf - 1) / per_leaf;
  const PmPtr old = LinkTarget(LoadAcquire(&root_->first));
  std::vector<LbInnerNodes::Child> leaves(count);
  Status status;
  size_t taken = 0;
  for (; status.ok() && taken < count; taken += status.ok()) status = space_.Allocate(&leaves[taken].leaf);
  if (!status.ok()) {
    while (taken > 0) space_.Free(leaves[--taken].leaf);
    return status;
  }
  std::atomic<bool> is_durable{true};
  RunParallel(threads, [&](uint32_t thread) {
    for (size_t i = count * thread / threads; i < count * (thread + 1) / threads; ++i) {
      const auto part = entries.subspan(i * per_leaf, std::min(per_leaf, entries.size() - i * per_leaf));
      leaves[i].low = part.front().key;
      const PmPtr place = leaves[i].leaf;
      At(place).Make(persistence(), part, LinkFrom(place, i + 1 < count ? leaves[i + 1].leaf : PmPtr()));
    }
    // ORDER: each thread's leaves before the link to the first one. [CC-72]
    if (!persistence()->Drain()) is_durable = false;
  });
  if (!is_durable) return persistence()->error();
  inner_.Build(leaves, threads);
  StoreWord(&root_->first, MakeLink(root_->tree_id, leaves.front().leaf));
  if (!persistence()->Persist(&root_->first, sizeof(root_->first))) return persistence()->error();
  space_.Free(old);
  return Status::OK();
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// ---- Reads

bool LbTree::Get(uint64_t key, uint64_t* value) const {
  for (;;) {
    const LbInnerNodes::LeafAt at = inner_.Find(key);
    const LbLeaf leaf = At(at.leaf);
    const int position = leaf.Find(key);
    const uint64_t found = position < 0 ? 0 : leaf.At(static_cast<uint32_t>(position)).value;
    if (!LockOf(at.leaf)->IsCurrent(at.version)) continue;
    if (position >= 0) *value = found;
    return position >= 0;
  }
}

void LbTree::CopyRange(uint64_t key, bool before, LeafCopy* copy) const {
  LbEntry entries[LbLeaf::kMaxEntries];
  for (;;) {
    const LbInnerNodes::Range range = inner_.FindRange(key, before);
    const uint32_t count = At(range.leaf).Collect(entries);
    if (!LockOf(range.leaf)->IsCurrent(range.version)) continue;
    copy->entries.assign(entries, entries + count);
    copy->low = range.low;
    copy->high = range.high;
    copy->is_first = range.is_first;
    copy->is_last = range.is_last;
    break;
  }
  std::erase_if(copy->entries, [copy](const LbEntry& entry) {
    return (!copy->is_first && entry.key < copy->low) || (!copy->is_last && entry.key >= copy->high);
  });
  std::sort(copy->entries.begin(), copy->entries.end(), [](const LbEntry& a, const LbEntry& b) { return a.key < b.key; });
}

void LbTree::CopyLeafFrom(uint64_t key, LeafCopy* copy) const {
  CopyRange(key, false, copy);
  std::erase_if(copy->entries, [key](const LbEntry& entry) { return entry.key < key; });
}

void LbTree::CopyLeafBefore(uint64_t key, LeafCopy* copy) const {
  CopyRange(key, true, copy);
  std::erase_if(copy->entries, [key](const LbEntry& entry) { return entry.key >= key; });
}

LbTree::Stats LbTree::GetStats() const {
  return {inner_.GetStats(), space_.free_blocks(), splits_.load(std::memory_order_relaxed),
          removals_.load(std::memory_order_relaxed)};
}

Status LbTree::NoMemory() { return Status::MemoryLimit("the inner nodes of the LB+-Tree have no memory; nothing has changed"); }

}  // namespace braiddb
