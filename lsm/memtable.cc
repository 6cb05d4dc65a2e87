#include "lsm/memtable.h"

#include "util/spin.h"

namespace braiddb {

Memtable::~Memtable() {
  ForEachSibling([](uint32_t, Memtable* sibling) { delete sibling; });
  delete siblings_.load(std::memory_order_relaxed);
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
  Memtable* const adopted = sibling.release();
  (*siblings)[family].store(adopted, std::memory_order_release);
  return adopted;
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
