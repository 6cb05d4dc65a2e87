#include "lsm/memtable.h"

#include "pmem/region_set.h"
#include "util/spin.h"
#include "util/sync_point.h"

namespace braiddb {

Memtable::~Memtable() {
  ForEachSibling([](uint32_t, Memtable* sibling) { delete sibling; });
  delete siblings_.load(std::memory_order_relaxed);
  if (heap_ != nullptr) heap_->Free(shared_siblings_, kSiblingsBytes);
}

// release: pairs with the acquire loads in Of, which take no mutex. The mutex only excludes other calls of Adopt.
Memtable* Memtable::Adopt(uint32_t family, std::unique_ptr<Memtable> sibling) {
  std::lock_guard lock(extents_mutex_);
  Siblings* siblings = siblings_.load(std::memory_order_relaxed);
  if (siblings == nullptr) {
    siblings = new Siblings{};
    siblings_.store(siblings, std::memory_order_release);
  }
  if (Memtable* const there = (*siblings)[family].load(std::memory_order_relaxed)) return there;
  // ORDER: other processes find the memtable before a thread of this process can write to it.
  if (arena() != nullptr && arena()->heap() != nullptr && !Share(family, *sibling)) return nullptr;
  Memtable* const adopted = sibling.release();
  (*siblings)[family].store(adopted, std::memory_order_release);
  return adopted;
}

bool Memtable::Share(uint32_t family, const Memtable& sibling) {
  if (heap_ == nullptr) {
    shared_siblings_ = arena()->heap()->Allocate(kSiblingsBytes);
    if (shared_siblings_ == 0) return false;
    heap_ = arena()->heap();
    arena()->OwnersWord(kSiblingsWord)->store(shared_siblings_, std::memory_order_release);
  }
  auto* const shared = reinterpret_cast<SharedSibling*>(heap_->At(shared_siblings_)) + family;
  shared->first_bytes.store(sibling.arena()->first_bytes(), std::memory_order_relaxed);
  shared->heap_offset.store(sibling.arena()->heap_offset(), std::memory_order_release);
  return true;
}

Memtable* Memtable::FindShared(uint32_t family) const {
  const uint64_t offset = arena()->OwnersWord(kSiblingsWord)->load(std::memory_order_acquire);
  if (offset == 0) return nullptr;
  const auto* const shared = reinterpret_cast<const SharedSibling*>(shared_memory_->base() + offset) + family;
  const uint64_t heap_offset = shared->heap_offset.load(std::memory_order_acquire);
  if (heap_offset == 0) return nullptr;
  std::unique_ptr<Memtable> sibling = attach_(family, heap_offset, shared->first_bytes.load(std::memory_order_relaxed));
  return sibling == nullptr ? nullptr : const_cast<Memtable*>(this)->Adopt(family, std::move(sibling));
}

std::shared_ptr<LogExtent> Memtable::AddExtent(Segment* segment, uint64_t begin) {
  auto extent = std::make_shared<LogExtent>();
  extent->segment = segment;
  extent->begin = begin;
  std::lock_guard lock(extents_mutex_);
  extents_.push_back(extent);
  return extent;
}

std::vector<std::shared_ptr<LogExtent>> Memtable::TakeExtents() {
  std::lock_guard lock(extents_mutex_);
  return std::move(extents_);
}

// Waits for the boundary if the successor is published and the boundary is not drawn yet; rotation draws it at once.
Memtable* MemtableBehind(Memtable* active, uint64_t sequence) {
  BRAIDDB_SYNC_POINT("MemtableBehind");
  for (;;) {
    // seq_cst: as in MemtableFor.
    Memtable* successor = active->successor.load(std::memory_order_seq_cst);
    if (successor == nullptr) return active;
    uint64_t boundary = active->boundary.load(std::memory_order_acquire);
    for (SpinWait wait; boundary == 0; boundary = active->boundary.load(std::memory_order_acquire)) wait.Once();
    if (sequence < boundary) return active;
    active = successor;
  }
}

}  // namespace braiddb
