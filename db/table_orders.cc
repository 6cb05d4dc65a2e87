// The orders of L0's tables, merged a few at a time, so that iterators have few cursors over L0.
#include <new>

#include "db/db_impl.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// So many neighbours that are orders of as many tables become one, up to kMostTables: each entry is merged twice, unless they are
// larger than usual, as a flush should not wait for that long.
constexpr size_t kFanIn = 4;
constexpr size_t kMostTables = 16;
constexpr uint64_t kMostEntries = 4ull << 20;
// So many of these for iterators that may come: where a CPU is idle, or writers pause.
constexpr size_t kFanInAbove = 2;
constexpr size_t kMostTablesAbove = 32;
// Of a merge, and where nothing merges tables.
constexpr uint64_t kMostEntriesOfMerge = 16ull << 20;
// The newest ones become one with an older one that has at most so many times as many entries as they have.
constexpr uint64_t kTimesAsMany = 2;

using Orders = TableOrder::Orders;

// What leaves the view with the merge of a family's oldest tables, `tables` of them; its orders become one where `are_chosen`.
struct Leaving {
  size_t tables;
  bool are_chosen;
};

// The oldest ones that are to become one, of at most so many tables and entries, the newest of them first; none if there are
// none.
Orders ChooseOrders(const FamilyView& levels, const Leaving& leaving, size_t most_tables, uint64_t most_entries) {
  Orders chosen;
  size_t each = 0;      // tables of each of the chosen ones
  bool leaves = false;  // the chosen ones leave
  size_t older = 0;     // tables
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
    if (chosen.size() < (each < kMostTables ? kFanIn : kFanInAbove)) continue;
    if (entries <= most_entries) return chosen;
    chosen.clear();
    entries = 0;
  }
  return {};
}

// As many of the newest ones as should become one where no merge of their tables is to come, the newest of them first; none if
// there are none. All of what many flushes left behind do, and each entry is merged as often as the number of entries grows by
// half. Not more than one merge takes.
Orders ChooseNewest(const FamilyView& levels, size_t most_tables, uint64_t most_entries) {
  Orders chosen, candidates;
  size_t tables = 0;
  uint64_t entries = 0;
  for (const auto& [order, of] : levels.orders) {
    if (order == nullptr || order->stays_apart() || order->stays_apart_at_pauses()) break;
    tables += of;
    if (tables > most_tables || entries + order->entries() > most_entries) break;
    const bool small = order->entries() <= kTimesAsMany * entries;
    entries += order->entries();
    candidates.push_back(order);
    if (small && candidates.size() > 1) chosen = candidates;
  }
  return chosen;
}

}  // namespace

// What a merge goes by, an index that has every node, is for one region. It makes one of all orders of its tables then.
bool DBImpl::GoesByOrder(const Family& family) const {
  return family.options.l1 == L1Kind::kBraidedSkipList && regions_->count() == 1;
}

// With a budget for DRAM, as many as that has in mind.
uint64_t DBImpl::MostEntriesOfOrder() const {
  return dram_.is_set() ? kMostTables * options_.memtable_max_entries : kMostEntriesOfMerge;
}

// A merge may have taken the tables away, or is about to take some of them, or makes one of the orders of all that it takes: then
// only who merges them (`of_merge`) may do this.
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
  if (iterator_came_.exchange(false, std::memory_order_relaxed)) flushes_since_iterator_ = 0;
  if (flushes_since_iterator_ == kFlushesPerIterator) return false;
  ++flushes_since_iterator_;
  return true;
}

// By the flush thread, while no memtable waits for it, if iterators come, a CPU is idle or writers pause, and, where nothing
// merges tables by itself, all of them when writers pause. What cannot be merged stays as it is: for want of memory, or because
// keys begin alike, or because a merge has taken the tables away meanwhile. Not where tables remember what they have of a key's
// operands (OperandRuns), each for itself. It does not take manifest_mutex_, under which a checkpoint flushes lines, for which a
// flush would wait.
bool DBImpl::MergeTableOrders(OrdersFor whom) try {
  const auto wait = [this](uint32_t memtables) {
    return immutable_count_.load(std::memory_order_acquire) >= memtables || stopping_.load(std::memory_order_acquire);
  };
  const size_t most_tables = whom == OrdersFor::kIterators ? kMostTables : kMostTablesAbove;
  const uint64_t most_entries = std::min(kMostEntries, MostEntriesOfOrder());
  bool may_take_all = whom == OrdersFor::kPause && !changing_.MergesByItself();
  BRAIDDB_SYNC_POINT_ARG("DBImpl::MergeTableOrders:All", &may_take_all);
  while (!wait(1)) {
    const Family* family = nullptr;
    Orders chosen;
    bool takes_all = false;
    bool is_stopped = false;
    std::shared_ptr<const TableOrder> together;
    {
      const PinnedView pinned(this);  // entries are looked at, and what a merge drops meanwhile stays until then
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
      // A few flushes' are not given up where iterators come: the next ones would make them more.
      const auto stop = [&] { return takes_all ? wait(1) : whom == OrdersFor::kIdleCpu && wait(2); };
      together = TableOrder::Merge(chosen, *regions_, family->order, [&] { return is_stopped = is_stopped || stop(); });
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

// The tables are in the view until the merge is done: so readers have fewer cursors meanwhile, too. Those of before go when this
// returns, unless a reader has them.
std::shared_ptr<const TableOrder> DBImpl::MergeOrdersOf(const Family& family, Orders orders) try {
  if (orders.size() < 2) return orders.empty() ? nullptr : orders.front();
  uint64_t entries = 0;
  for (const auto& order : orders) {
    if (order->stays_apart()) return nullptr;
    entries += order->entries();
  }
  if (entries > MostEntriesOfOrder()) return nullptr;
  const auto stop = [this] { return stopping_.load(std::memory_order_acquire); };
  std::shared_ptr<const TableOrder> together = TableOrder::Merge(orders, *regions_, family.order, stop);
  if (together != nullptr && family.options.merge_operator == nullptr) InstallOrder(family, orders, together, true);
  return together;
} catch (const std::bad_alloc&) {
  return nullptr;
}

}  // namespace braiddb
