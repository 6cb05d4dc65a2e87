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
  const uint64_t filter = uses_filter_ && !filter_given_up_ ? dram_.filter : 0;
  return dram_.cached - std::min(dram_.cached, filter + NodeBytes());
}

bool DBImpl::FilterHasRoom() const { return !dram_.is_set() || NodeBytes() <= dram_.cached - dram_.filter; }

// A skiplist's index has a share of its own.
uint64_t DBImpl::NodeBytes() const { return options_.l1 == L1Kind::kNvTree ? last_level_->DramBytes() : 0; }

void DBImpl::KeepDramBudget() {
  if (lookup_cache_ == nullptr || !dram_.is_set()) return;
  uint64_t room = RoomForCache();
  if (lookup_cache_->bytes() <= room) return;
  room -= std::min(room, dram_.cached / kParts);
  Log(Format("dram_budget: the lookup cache gives %llu bytes", static_cast<unsigned long long>(lookup_cache_->bytes() - room)));
  lookup_cache_->Shrink(room);
  try {
    epochs_.Retire([this] { lookup_cache_->ReleaseGivenUp(); });
  } catch (const std::bad_alloc&) {
    epochs_.Synchronize();
    lookup_cache_->ReleaseGivenUp();
  }
  epochs_.Reclaim();
}

// Of what stays; not of the work that is going on.
uint64_t DBImpl::DramBytes() const {
  std::shared_ptr<const ReadView> view;
  {
    std::lock_guard lock(view_mutex_);
    view = current_view_;
  }
  uint64_t bytes = view->active->DramBytes() + last_level_->DramBytes();
  for (const auto& memtable : view->immutables) bytes += memtable->DramBytes();
  std::unordered_set<const L0Index*> indexes;
  for (const ReadView::TableGroup& group : view->groups) {
    if (group.index != nullptr && indexes.insert(group.index).second) bytes += group.index->bytes();
  }
  if (lookup_cache_ != nullptr) bytes += lookup_cache_->bytes();
  const auto guard = epochs_.Enter();
  const KeyFilter* const filter = filter_.load(std::memory_order_acquire);
  return bytes + (filter == nullptr ? 0 : filter->bytes());
}

}  // namespace braiddb
