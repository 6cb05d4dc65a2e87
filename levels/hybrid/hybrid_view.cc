#include "levels/hybrid/hybrid_view.h"

#include "skiplist/indexed_cursor.h"

namespace braiddb {

const LogEntry* HybridView::Find(const SearchKey& target, LookupTrace* trace) const {
  const RegionSet& regions = *parts_.regions;
  const uint32_t remote_regions = regions.RemoteRegions(regions.HomeRegion());
  uint64_t local = 0, remote = 0;
  const LogEntry* newest = nullptr;
  const auto visit = [&](const LogEntry* entry, PmPtr place) {
    ++(RegionSet::IsRemote(remote_regions, place.region()) ? remote : local);
    if (entry->sequence() > target.sequence) return;
    if (entry->is_dead()) {
      trace->met_dead = true;
    } else if (newest == nullptr || entry->sequence() > newest->sequence()) {
      newest = entry;
    }
  };
  if (is_hashed()) {
    if (!VisitVersions(nullptr, target, SignatureOf(target.key), visit)) trace->met_dead = true;
    ++local;  // the page
  } else {
    if (built_.load(std::memory_order_acquire) == nullptr) (void)BuildIndex(nullptr);
    VisitVersions(index_.get(), target, 0, visit);
  }
  // Versions are visited in no particular order. An older version may have been visited before a merge marked it dead, and the
  // tombstone that hides it after both were marked. The mark is therefore checked again. Versions that a registered snapshot sees
  // are never marked.
  if (newest != nullptr && trace->met_dead && newest->is_dead()) newest = nullptr;
  trace->Account(*regions.persistence(), local, remote);
  return newest;
}

std::unique_ptr<EntryCursor> HybridView::NewCursor() const {
  (void)BuildIndex(nullptr);
  return NewIndexedCursor(&index_->nodes(), parts_.order);
}

bool HybridView::BuildIndex(const std::atomic<bool>* stop) const {
  if (built_.load(std::memory_order_acquire) != nullptr) return true;
  const std::lock_guard lock(build_mutex_);
  if (index_ != nullptr) return true;
  std::shared_ptr<const OrderedIndex> index =
      OrderedIndex::Build(*parts_.hash, *parts_.regions, *parts_.order, parts_.threads, stop);
  if (index == nullptr) return false;
  index_ = std::move(index);
  built_.store(index_.get(), std::memory_order_release);
  return true;
}

}  // namespace braiddb
