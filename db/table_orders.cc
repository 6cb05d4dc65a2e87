// The orders of L0's tables, merged a few at a time, so that iterators have few cursors over L0.
#include <algorithm>

#include "db/db_impl.h"

namespace braiddb {
namespace {

// So many neighbours that are orders of as many tables become one, up to kMostTables: each entry is merged twice.
constexpr size_t kFanIn = 4;
constexpr size_t kMostTables = 16;
// After an attempt that was in vain: because keys begin alike, mostly.
constexpr uint32_t kFlushesBetween = 64;

using Orders = std::vector<std::shared_ptr<const TableOrder>>;

// The newest ones that are to become one; none if there are none. `merging`: so many tables, the oldest, leave the view together.
Orders ChooseOrders(const FamilyView& levels, size_t merging) {
  Orders chosen;
  size_t newer = 0, tables = 0, each = 0;  // newer than the chosen ones; of these, and of each of them
  for (const FamilyView::Ordered& ordered : levels.orders) {
    const bool fits = ordered.order != nullptr && ordered.tables < kMostTables;
    if (!fits || ordered.tables != each) {
      newer += tables;
      tables = 0;
      each = ordered.tables;
      chosen.clear();
    }
    if (!fits) {
      newer += ordered.tables;
      continue;
    }
    chosen.push_back(ordered.order);
    tables += ordered.tables;
    if (chosen.size() < kFanIn) continue;
    const size_t older = levels.l0.size() - newer - tables;
    if (merging <= older || merging >= older + tables) return chosen;
    newer += tables;
    tables = 0;
    chosen.clear();
  }
  return {};
}

}  // namespace

// By the flush thread. What cannot be merged stays as it is: for want of memory, or because keys begin alike, or because a merge
// has taken the tables away meanwhile. Not where tables remember what they have of a key's operands (OperandRuns), each for itself.
void DBImpl::MergeTableOrders(Family* of) {
  Family& family = *of;
  if (family.options.merge_operator != nullptr || family.is_gone.load(std::memory_order_relaxed)) return;
  if (family.flushes_until_orders > 0) {
    --family.flushes_until_orders;
    return;
  }
  for (;;) {
    Orders chosen;
    {
      std::lock_guard lock(manifest_mutex_);
      const size_t merging = manifest_state_.merging_family == family.id ? manifest_state_.merging_tables : 0;
      std::lock_guard view_lock(view_mutex_);
      if (const FamilyView* const levels = current_view_->Of(family.id)) chosen = ChooseOrders(*levels, merging);
    }
    if (chosen.empty()) return;
    std::shared_ptr<const TableOrder> together;
    try {
      together = TableOrder::Merge(chosen, *regions_, family.order);
    } catch (const std::bad_alloc&) {
    }
    if (together == nullptr) {
      family.flushes_until_orders = kFlushesBetween;
      return;
    }
    std::lock_guard lock(view_mutex_);
    const FamilyView* const now = current_view_->Of(family.id);
    if (now == nullptr || now->FindOrders(chosen) == now->orders.size()) return;
    auto view = std::make_shared<ReadView>(*current_view_);
    view->Alter(family.id, [&](FamilyView* levels) { levels->MergeOrders(chosen, together); });
    InstallView(view);
  }
}

}  // namespace braiddb
