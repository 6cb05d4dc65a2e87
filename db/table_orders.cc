// The orders of L0's tables, merged a few at a time, so that iterators have few cursors over L0.
#include <new>

#include "db/db_impl.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// So many neighbours that are orders of as many tables become one, up to kMostTables: each entry is merged twice.
constexpr size_t kFanIn = 4;
constexpr size_t kMostTables = 16;
// After an attempt that was in vain: because keys begin alike, mostly.
constexpr uint32_t kFlushesBetween = 64;

using Orders = std::vector<std::shared_ptr<const TableOrder>>;

// The oldest ones that are to become one, the newest of them first; none if there are none. `merging`: so many tables, the
// oldest, will leave the view.
Orders ChooseOrders(const FamilyView& levels, size_t merging) {
  Orders chosen;
  size_t each = 0;   // tables of each of the chosen ones
  size_t older = 0;  // tables
  for (auto ordered = levels.orders.rbegin(); ordered != levels.orders.rend(); ++ordered) {
    const bool fits = ordered->order != nullptr && ordered->tables < kMostTables && older >= merging;
    older += ordered->tables;
    if (!fits || ordered->tables != each) chosen.clear();
    if (!fits) continue;
    each = ordered->tables;
    chosen.insert(chosen.begin(), ordered->order);
    if (chosen.size() == kFanIn) return chosen;
  }
  return {};
}

}  // namespace

// By the flush thread, while no memtable waits for it. What cannot be merged stays as it is: for want of memory, or because keys
// begin alike, or because a merge has taken the tables away meanwhile. Not where tables remember what they have of a key's
// operands (OperandRuns), each for itself.
void DBImpl::MergeTableOrders(uint32_t id) try {
  Family* const family = FindFamily(id);
  if (family == nullptr || family->options.merge_operator != nullptr) return;
  if (family->flushes_until_orders > 0) {
    --family->flushes_until_orders;
    return;
  }
  while (immutable_count_.load(std::memory_order_acquire) == 0 && !stopping_.load(std::memory_order_acquire)) {
    Orders chosen;
    std::shared_ptr<const TableOrder> together;
    {
      const PinnedView pinned(this);  // entries are looked at, and what a merge drops meanwhile stays until then
      const FamilyView* const levels = pinned.view().Of(id);
      if (levels == nullptr) return;
      {
        std::lock_guard lock(manifest_mutex_);
        chosen = ChooseOrders(*levels, manifest_state_.merging_family == id ? manifest_state_.merging_tables : 0);
      }
      if (chosen.empty()) return;
      BRAIDDB_SYNC_POINT("DBImpl::MergeTableOrders:Chosen");
      together = TableOrder::Merge(chosen, *regions_, family->order);
    }
    if (together == nullptr) {
      family->flushes_until_orders = kFlushesBetween;
      return;
    }
    std::lock_guard lock(view_mutex_);
    const FamilyView* const now = current_view_->Of(id);
    if (now == nullptr || now->FindOrders(chosen) == now->orders.size()) return;
    auto view = std::make_shared<ReadView>(*current_view_);
    view->Alter(id, [&](FamilyView* levels) { levels->MergeOrders(chosen, together); });
    InstallView(view);
  }
} catch (const std::bad_alloc&) {
}

}  // namespace braiddb
