// ReadView: an immutable list of the levels of a database at one moment.
#pragma once

#include <memory>
#include <vector>

#include "index/ordered_level.h"
#include "lsm/memtable.h"
#include "lsm/pm_table.h"
#include "lsm/table_order.h"

namespace braiddb {

// The levels of a column family below the memtables. Immutable once an installed view contains it.
struct FamilyView {
  std::vector<std::shared_ptr<PmTable>> l0;
  std::shared_ptr<const OrderedLevel> l1;

  // Newest first: one sorted array over `tables` neighbours in l0; or null for one table that is only a list.
  struct Ordered {
    std::shared_ptr<const TableOrder> order;
    size_t tables;
  };
  std::vector<Ordered> orders;

  // Adds the newest table. `order`: null for a restored table until SetOrder, or if there was no memory.
  void AddTable(std::shared_ptr<PmTable> table, std::shared_ptr<const TableOrder> order = nullptr);
  // Adds a table of copies, which is older than all others.
  void AddOldest(std::shared_ptr<PmTable> table, std::shared_ptr<const TableOrder> order = nullptr);
  // Removes the oldest tables. A sorted array that also covers removed tables is dropped.
  void RemoveOldest(size_t tables);
  // Sets the sorted array of a table that has none.
  void SetOrder(const PmTable& table, std::shared_ptr<const TableOrder> order);
  // Index in `orders` of the first of these arrays if they stand there side by side; else orders.size().
  size_t FindOrders(const std::vector<std::shared_ptr<const TableOrder>>& of) const;
  // The sorted arrays that together cover exactly the `tables` oldest tables, newest first; empty if there are none.
  std::vector<std::shared_ptr<const TableOrder>> OldestOrders(size_t tables) const;
  // The largest number <= `tables` of oldest tables that no sorted array splits; `tables` if that number is 0.
  size_t AlignToOrders(size_t tables) const;
  // Number of tables older than those of this sorted array. REQUIRES: `orders` contains it.
  size_t TablesBehind(const TableOrder& order) const;
  // Replaces the sorted arrays `of` with `together`. REQUIRES: `orders` contains them side by side.
  void MergeOrders(const std::vector<std::shared_ptr<const TableOrder>>& of, std::shared_ptr<const TableOrder> together);

  // Newest first. A group is a range of neighbours in l0 that share an index and in_filter, or one table without an index.
  // GroupTables derives the groups from l0.
  struct TableGroup {
    const L0Index* index;  // null: search the table's list
    uint32_t columns;      // bit c: column c of the index is a table of this view
    const PmTable* table;  // the newest table of the group
    bool in_filter;        // PmTable::in_filter, equal in all tables of the group
  };
  std::vector<TableGroup> groups;

  void GroupTables() {
    groups.clear();
    for (const auto& table : l0) {
      const L0Index* index = table->index();
      const bool goes_on =
          index != nullptr && !groups.empty() && groups.back().index == index && groups.back().in_filter == table->in_filter;
      if (!goes_on) groups.push_back({index, 0, table.get(), table->in_filter});
      // column() is set before index() returns the index; another thread may set both now.
      if (index != nullptr) groups.back().columns |= 1u << table->column();
    }
  }

  // The newest entry of target.key in l0 that is not dead and has a sequence number <= target.sequence; null if there is none.
  // `hash`: KeyHash of target.key in this family. `may_contain()`: the key filter's answer for the key. `note(group)` is called
  // before a group is searched. Groups are searched from the newest on, and a newer table never holds an older version, so the
  // first entry found is the newest.
  template <class MayContain, class Note>
  const LogEntry* FindInTables(const SearchKey& target, uint64_t hash, const MayContain& may_contain, const Note& note,
                               LookupTrace* trace) const {
    for (const TableGroup& group : groups) {
      if (group.index != nullptr) group.index->Prefetch(hash);  // the cache misses of all groups overlap
    }
    for (const TableGroup& group : groups) {
      if (group.in_filter && !may_contain()) continue;
      note(group);
      const LogEntry* entry =
          group.index != nullptr ? group.index->Find(target, hash, group.columns, trace) : group.table->list.Find(target, trace);
      if (entry != nullptr) return entry;
    }
    return nullptr;
  }
};

// Immutable. Readers load the current view inside an epoch guard; long-lived readers keep a shared_ptr.
// READ ORDER  active, immutables, l0 (each newest first), l1. A newer level never holds an older version of a key, so a lookup
//             ends at the first level that has the key.
// FAMILIES    The memtables are the default family's, and lead to those of other families (Memtable::Of). The view itself is the
//             default family's FamilyView.
struct ReadView : FamilyView, std::enable_shared_from_this<ReadView> {
  std::shared_ptr<Memtable> active;
  std::vector<std::shared_ptr<Memtable>> immutables;
  std::vector<std::shared_ptr<const FamilyView>> others;  // index: family id; null: no such family

  // The view of a family; null if there is none.
  const FamilyView* Of(uint32_t family) const {
    if (__builtin_expect(family == 0, 1)) return this;
    return family < others.size() ? others[family].get() : nullptr;
  }
  // Calls `visit(uint32_t family, const FamilyView&)` for each family.
  template <class Visit>
  void ForEach(const Visit& visit) const {
    visit(uint32_t{0}, static_cast<const FamilyView&>(*this));
    for (uint32_t family = 1; family < others.size(); ++family) {
      if (others[family] != nullptr) visit(family, *others[family]);
    }
  }
  // For a new view that was copied from an installed one: calls `change(FamilyView*)` with a copy of the family's view, then
  // regroups its tables.
  template <class Change>
  void Alter(uint32_t family, const Change& change) {
    if (family == 0) {
      change(static_cast<FamilyView*>(this));
      GroupTables();
      return;
    }
    if (family >= others.size()) others.resize(family + 1);
    auto altered = others[family] == nullptr ? std::make_shared<FamilyView>() : std::make_shared<FamilyView>(*others[family]);
    change(altered.get());
    altered->GroupTables();
    others[family] = std::move(altered);
  }
};

}  // namespace braiddb
