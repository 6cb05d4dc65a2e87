// Options::dram_budget, as the data grows.
#include <algorithm>
#include <unordered_set>

#include "db/db_impl.h"
#include "util/format.h"

namespace braiddb {
namespace {

// The cache gives a part of its memory at a time, so that it seldom has to.
constexpr uint64_t kParts = 16;

}  // namespace

uint64_t DBImpl::RoomForCache() const {
  if (!dram_.is_set()) return UINT64_MAX;
  return dram_.cached - std::min(dram_.cached, (HasFilter() ? dram_.filter : 0) + NodeBytes());
}

// Or will have.
bool DBImpl::HasFilter() const {
  return filter_.load(std::memory_order_relaxed) != nullptr || (uses_filter_ && !filter_given_up_);
}

// A skiplist's index has a share of its own.
uint64_t DBImpl::NodeBytes() const {
  uint64_t bytes = 0;
  for (uint32_t id = 0; id < kMaxFamilies; ++id) {
    const Family* const family = FindFamily(id);
    if (family != nullptr && family->last_level != nullptr && family->options.l1 == L1Kind::kNvTree)
      bytes += family->last_level->DramBytes();
  }
  return bytes;
}

void DBImpl::KeepDramBudget() {
  if (!dram_.is_set()) return;
  if (HasFilter() && NodeBytes() > dram_.cached - dram_.filter) filter_must_go_.store(true, std::memory_order_relaxed);
  uint64_t room = RoomForCache();
  if (lookup_cache_ == nullptr || lookup_cache_->bytes() <= room) return;
  room -= std::min(room, dram_.cached / kParts);
  lookup_cache_->Shrink(room);
  try {
    epochs_.Retire([this, room] { lookup_cache_->ReleaseGivenUp(room); });
  } catch (const std::bad_alloc&) {
    epochs_.Synchronize();
    lookup_cache_->ReleaseGivenUp(room);
  }
  epochs_.Reclaim();
  Log(Format("dram_budget: inner nodes take %llu bytes, the lookup cache %llu", static_cast<unsigned long long>(NodeBytes()),
             static_cast<unsigned long long>(room)));
}

// Of all families'.
uint64_t DBImpl::MemtableBytes(const Memtable& memtable) {
  uint64_t bytes = memtable.DramBytes();
  memtable.ForEachSibling([&bytes](uint32_t, const Memtable* sibling) { bytes += sibling->DramBytes(); });
  return bytes;
}

// Of what stays; not of the work that is going on.
uint64_t DBImpl::DramBytes() const {
  std::shared_ptr<const ReadView> view;
  std::vector<std::shared_ptr<const LastLevel>> last_levels;
  {
    std::lock_guard lock(view_mutex_);
    view = current_view_;
    // Under the lock: a family that leaves the view loses its entry in by_id_ later, under the same lock.
    view->ForEach([&](uint32_t id, const FamilyView&) { last_levels.push_back(FindFamily(id)->last_level); });
  }
  uint64_t bytes = MemtableBytes(*view->active);
  for (const auto& level : last_levels) bytes += level == nullptr ? 0 : level->DramBytes();
  for (const auto& memtable : view->immutables) bytes += MemtableBytes(*memtable);
  std::unordered_set<const L0Index*> indexes;
  view->ForEach([&](uint32_t, const FamilyView& levels) {
    for (const FamilyView::Ordered& ordered : levels.orders) bytes += ordered.order == nullptr ? 0 : ordered.order->bytes();
    for (const FamilyView::TableGroup& group : levels.groups) {
      if (group.index != nullptr && indexes.insert(group.index).second) bytes += group.index->bytes();
    }
  });
  if (lookup_cache_ != nullptr) bytes += lookup_cache_->bytes();
  const auto guard = epochs_.Enter();
  const KeyFilter* const filter = filter_.load(std::memory_order_acquire);
  return bytes + (filter == nullptr ? 0 : filter->bytes());
}

}  // namespace braiddb
