// Merges sorted runs (TableOrder) of neighbouring tables in L0, so that iterators need few cursors over L0.
#include <new>
#include <set>

#include "db/db_impl.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// kFanIn neighbouring runs of the same number of tables become one run, up to kMaxTablesOfRun. So each entry is merged twice.
// Larger runs are not merged, because a flush would wait for the merge.
constexpr size_t kFanIn = 4;
constexpr size_t kMaxTablesOfRun = 16;
constexpr uint64_t kMaxEntries = 4ull << 20;
// Limits of further merges for future iterators, made when a CPU is idle or writers pause.
constexpr size_t kFanInIdle = 2;
constexpr size_t kMaxTablesOfIdleMerge = 32;
// The limit of entries for a merge into the last level, and for a merge of all runs if tables are not merged automatically.
constexpr uint64_t kMaxEntriesOfMerge = 16ull << 20;
// The newest runs are joined with an older run that has at most this number of times as many entries as they have.
constexpr uint64_t kMaxSizeRatio = 2;

using Orders = TableOrder::Orders;

// The tables that leave the view when the merge of a family's oldest tables ends. `are_chosen`: whether their runs may be merged.
struct Leaving {
  size_t tables;
  bool are_chosen;
};

// The oldest runs that are to become one, with at most this number of tables and entries, newest first. Empty if there are none.
Orders ChooseOrders(const FamilyView& levels, const Leaving& leaving, size_t most_tables, uint64_t most_entries) {
  Orders chosen;
  size_t each = 0;      // the number of tables of each chosen run
  bool leaves = false;  // the chosen runs belong to tables that leave
  size_t older = 0;     // the number of older tables
  uint64_t entries = 0;
  for (auto ordered = levels.orders.rbegin(); ordered != levels.orders.rend(); ++ordered) {
    const bool is_leaving = older + ordered->tables <= leaving.tables;
    const bool may_be_chosen = is_leaving ? leaving.are_chosen : older >= leaving.tables;
    const bool fits =
        may_be_chosen && ordered->order != nullptr && !ordered->order->stays_apart() && ordered->tables < most_tables;
    older += ordered->tables;
    if (!fits || ordered->tables != each || is_leaving != leaves) {
      chosen.clear();
      entries = 0;
    }
    if (!fits) continue;
    each = ordered->tables;
    leaves = is_leaving;
    entries += ordered->order->entries();
    chosen.insert(chosen.begin(), ordered->order);
    if (chosen.size() < (each < kMaxTablesOfRun ? kFanIn : kFanInIdle)) continue;
    if (entries <= most_entries) return chosen;
    chosen.clear();
    entries = 0;
  }
  return {};
}

// The newest runs that are to become one if no merge of their tables is to come, newest first; empty if there are none. Runs of
// single flushes are all joined. Later an entry is merged again whenever the number of entries has grown by half. A merge takes
// at most `most_tables` tables.
Orders ChooseNewest(const FamilyView& levels, size_t most_tables, uint64_t most_entries) {
  Orders chosen, candidates;
  size_t tables = 0;
  uint64_t entries = 0;
  for (const auto& [order, of] : levels.orders) {
    if (order == nullptr || order->stays_apart() || order->stays_apart_at_pauses()) break;
    tables += of;
    if (tables > most_tables || entries + order->entries() > most_entries) break;
    const bool small = order->entries() <= kMaxSizeRatio * entries;
    entries += order->entries();
    candidates.push_back(order);
    if (small && candidates.size() > 1) chosen = candidates;
  }
  return chosen;
}

}  // namespace

// Whether merges into the family's last level follow a sorted run of all their tables.
bool DBImpl::GoesByOrder(const Family& family) const { return family.kind->indexes_all_nodes && regions_->count() == 1; }

// With a DRAM budget, the number that the budget allows for.
uint64_t DBImpl::MostEntriesOfOrder() const {
  return dram_.is_set() ? kMaxTablesOfRun * options_.memtable_max_entries : kMaxEntriesOfMerge;
}

// Puts `together` in the place of the runs `of` in the view. Does nothing if a merge has removed the tables, will remove some of
// them only, or creates one run of all its tables. In the last case only the merge itself (`of_merge`) replaces runs.
void DBImpl::InstallOrder(const Family& family, const Orders& of, const std::shared_ptr<const TableOrder>& together,
                          bool of_merge) {
  std::lock_guard lock(view_mutex_);
  const FamilyView* const now = current_view_->Of(family.id);
  if (now == nullptr) return;
  const size_t first = now->FindOrders(of);
  if (first == now->orders.size()) return;
  size_t tables = 0;
  for (size_t i = 0; i < of.size(); ++i) tables += now->orders[first + i].tables;
  const size_t older = now->TablesBehind(*of.back());
  if (!of_merge && older < family.merging_tables && (family.merges_orders || older + tables > family.merging_tables)) return;
  auto view = std::make_shared<ReadView>(*current_view_);
  view->Alter(family.id, [&](FamilyView* levels) { levels->MergeOrders(of, together); });
  InstallView(view);
}

bool DBImpl::IteratorsCome() {
  bool came = iterator_came_.exchange(false, std::memory_order_relaxed);
  came |= live_readers_.IteratorsCame();
  BRAIDDB_SYNC_POINT_ARG("DBImpl::IteratorsCome", &came);
  if (came) flushes_since_iterator_ = 0;
  if (flushes_since_iterator_ == kFlushesPerIterator) return false;
  ++flushes_since_iterator_;
  return true;
}

// Copies the arrays that were made before the first live reader came to the heap that it reads. Called by the flush thread. If a
// memtable waits, the next call goes on.
void DBImpl::ShareOrders() {
  SharedHeap* const heap = live_heap_.load(std::memory_order_acquire);
  if (heap == nullptr || orders_are_shared_) return;
  std::set<uint64_t> tried;
  const auto stop = [this] {
    return stopping_.load(std::memory_order_acquire) || immutable_count_.load(std::memory_order_acquire) > 0;
  };
  for (;;) {
    const Family* family = nullptr;
    std::shared_ptr<const TableOrder> order;
    std::shared_ptr<const TableOrder> copy;
    {
      const PinnedView pinned(this);  // keeps entries that a concurrent merge drops, while their keys are compared
      pinned.view().ForEach([&](uint32_t id, const FamilyView& levels) {
        for (const auto& [each, tables] : levels.orders) {
          if (order != nullptr || each == nullptr || each->entries() == 0 || each->shared().offset != 0) continue;
          if (!tried.insert(each->id()).second) continue;
          family = FindFamily(id);
          order = each;
        }
      });
      orders_are_shared_ = order == nullptr;
      if (orders_are_shared_) return;
      if (family == nullptr) continue;
      BRAIDDB_SYNC_POINT("DBImpl::ShareOrders:Chosen");
      copy = TableOrder::Merge({order}, *regions_, family->order, stop, heap);
      BRAIDDB_SYNC_POINT("DBImpl::ShareOrders:Copied");
    }
    if (copy != nullptr) {
      InstallOrder(*family, {order}, copy, false);
    } else if (stop()) {
      return;
    }
  }
}

// Merges runs in the flush thread, while no memtable waits: if iterators are created, if a CPU is idle, or if writers pause. If
// tables are not merged automatically, a pause joins all runs. Runs that cannot be merged stay as they are: there is no memory,
// or a merge has removed their tables meanwhile. Families with a merge operator are left out,
// because each of their tables remembers the operands of keys itself (OperandRuns). manifest_mutex_ is not taken: a checkpoint
// flushes lines under it, and a flush would have to wait.
bool DBImpl::MergeTableOrders(OrdersFor whom) try {
  ShareOrders();
  const auto wait = [this](uint32_t memtables) {
    return immutable_count_.load(std::memory_order_acquire) >= memtables || stopping_.load(std::memory_order_acquire);
  };
  const size_t most_tables = whom == OrdersFor::kIterators ? kMaxTablesOfRun : kMaxTablesOfIdleMerge;
  const uint64_t most_entries = std::min(kMaxEntries, MostEntriesOfOrder());
  bool may_take_all = whom == OrdersFor::kPause && !changing_.MergesByItself();
  BRAIDDB_SYNC_POINT_ARG("DBImpl::MergeTableOrders:All", &may_take_all);
  while (!wait(1)) {
    const Family* family = nullptr;
    Orders chosen;
    bool takes_all = false;
    bool is_stopped = false;
    std::shared_ptr<const TableOrder> together;
    {
      const PinnedView pinned(this);  // keeps entries that a concurrent merge drops, while their keys are compared
      {
        std::lock_guard lock(view_mutex_);
        pinned.view().ForEach([&](uint32_t id, const FamilyView& levels) {
          const Family* const of = FindFamily(id);
          if (!chosen.empty() || of == nullptr || of->options.merge_operator != nullptr) return;
          family = of;
          chosen = ChooseOrders(levels, {of->merging_tables, !of->merges_orders}, most_tables, most_entries);
          if (!chosen.empty() || !may_take_all || of->merging_tables > 0) return;
          chosen = ChooseNewest(levels, kMaxMergedTables, MostEntriesOfOrder());
          takes_all = !chosen.empty();
        });
      }
      if (chosen.empty()) return true;
      BRAIDDB_SYNC_POINT("DBImpl::MergeTableOrders:Chosen");
      // If iterators are created, merges of few runs are not interrupted: the next flush would only add runs.
      const auto stop = [&] { return takes_all ? wait(1) : whom == OrdersFor::kIdleCpu && wait(2); };
      together = TableOrder::Merge(
          chosen, *regions_, family->order, [&] { return is_stopped = is_stopped || stop(); },
          live_heap_.load(std::memory_order_acquire));
    }
    if (together != nullptr) {
      InstallOrder(*family, chosen, together, false);
    } else if (is_stopped) {
      return false;
    } else {
      for (const auto& order : chosen) takes_all ? order->StayApartAtPauses() : order->StayApart();
    }
  }
  return true;
} catch (const std::bad_alloc&) {
  return true;
}

// Merges all runs of the tables of a merge. The tables stay in the view until the merge ends, so the joined run also saves
// readers cursors meanwhile. The old runs are freed when this returns, or when their last reader ends.
std::shared_ptr<const TableOrder> DBImpl::MergeOrdersOf(const Family& family, Orders orders) try {
  if (orders.size() < 2) return orders.empty() ? nullptr : orders.front();
  uint64_t entries = 0;
  for (const auto& order : orders) {
    if (order->stays_apart()) return nullptr;
    entries += order->entries();
  }
  if (entries > MostEntriesOfOrder()) return nullptr;
  const auto stop = [this] { return stopping_.load(std::memory_order_acquire); };
  std::shared_ptr<const TableOrder> together =
      TableOrder::Merge(orders, *regions_, family.order, stop, live_heap_.load(std::memory_order_acquire));
  if (together != nullptr && family.options.merge_operator == nullptr) InstallOrder(family, orders, together, true);
  return together;
} catch (const std::bad_alloc&) {
  return nullptr;
}

}  // namespace braiddb
