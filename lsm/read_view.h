// ReadView: the levels of a database at one moment.
#pragma once

#include <memory>
#include <vector>

#include "index/ordered_level.h"
#include "lsm/memtable.h"
#include "lsm/pm_table.h"
#include "lsm/table_order.h"

namespace braiddb {

// What a column family has below the memtables. Immutable once it is in a view that is installed.
struct FamilyView {
  std::vector<std::shared_ptr<PmTable>> l0;
  std::shared_ptr<const OrderedLevel> l1;

  // Newest first: the order of so many neighbours in l0, or null, of one that is a list only.
  struct Ordered {
    std::shared_ptr<const TableOrder> order;
    size_t tables;
  };
  std::vector<Ordered> orders;

  // `order`: null for a restored table, until SetOrder, or if there was no memory.
  void AddTable(std::shared_ptr<PmTable> table, std::shared_ptr<const TableOrder> order = nullptr);
  // Of copies, which go below what is there.
  void AddOldest(std::shared_ptr<PmTable> table, std::shared_ptr<const TableOrder> order = nullptr);
  void RemoveOldest(size_t tables);
  // Of a table that is here and has no order.
  void SetOrder(const PmTable& table, std::shared_ptr<const TableOrder> order);
  // The place in `orders` of the first of these, if they are there, side by side; orders.size() if they are not.
  size_t FindOrders(const std::vector<std::shared_ptr<const TableOrder>>& of) const;
  // All that the oldest tables have, so many of them, the newest first; none if that is not known.
  std::vector<std::shared_ptr<const TableOrder>> OldestOrders(size_t tables) const;
  // So many of the oldest tables, or less, that no order is of these and of others; unless that leaves none.
  size_t AlignToOrders(size_t tables) const;
  // How many tables are older than those of this order. REQUIRES: it is there.
  size_t TablesBehind(const TableOrder& order) const;
  // Puts their order together in their place. REQUIRES: they are there.
  void MergeOrders(const std::vector<std::shared_ptr<const TableOrder>>& of, std::shared_ptr<const TableOrder> together);

  // Newest first: neighbours in l0 that share an index, and are in the filter or not, or one table that has no index. Derived
  // from l0 by GroupTables.
  struct TableGroup {
    const L0Index* index;  // may be null
    uint32_t columns;      // of the index that are tables of this view
    const PmTable* table;  // the group's first
    bool in_filter;        // PmTable::in_filter of all of them
  };
  std::vector<TableGroup> groups;

  void GroupTables() {
    groups.clear();
    for (const auto& table : l0) {
      const L0Index* index = table->index();
      const bool goes_on =
          index != nullptr && !groups.empty() && groups.back().index == index && groups.back().in_filter == table->in_filter;
      if (!goes_on) groups.push_back({index, 0, table.get(), table->in_filter});
      groups.back().columns |= 1u << table->column();
    }
  }

  // The newest entry of target.key in l0 that is not dead and has a sequence number <= target.sequence; null if there is none.
  // `hash`: KeyHash of target.key in this family. `may_contain()`: the filter's answer for it.
  template <class MayContain>
  const LogEntry* FindInTables(const SearchKey& target, uint64_t hash, const MayContain& may_contain, LookupTrace* trace) const {
    for (const TableGroup& group : groups) {
      if (group.index != nullptr) group.index->Prefetch(hash);  // their buckets come together
    }
    for (const TableGroup& group : groups) {
      if (group.in_filter && !may_contain()) continue;
      const LogEntry* entry =
          group.index != nullptr ? group.index->Find(target, hash, group.columns, trace) : group.table->list.Find(target, trace);
      if (entry != nullptr) return entry;
    }
    return nullptr;
  }
};

// Immutable. Readers load the current one inside an epoch guard; long-lived readers keep a shared_ptr.
// Order of reading: active, immutables, l0 (each newest first), l1. A key found in one level need not be looked for below.
// The memtables are those of the default family, and lead to the others' (Memtable::Of); so does the view itself.
struct ReadView : FamilyView, std::enable_shared_from_this<ReadView> {
  std::shared_ptr<Memtable> active;
  std::vector<std::shared_ptr<Memtable>> immutables;
  std::vector<std::shared_ptr<const FamilyView>> others;  // by id; null: there is none

  // Null if there is none.
  const FamilyView* Of(uint32_t family) const {
    if (__builtin_expect(family == 0, 1)) return this;
    return family < others.size() ? others[family].get() : nullptr;
  }
  // `visit(uint32_t family, const FamilyView&)` for each.
  template <class Visit>
  void ForEach(const Visit& visit) const {
    visit(uint32_t{0}, static_cast<const FamilyView&>(*this));
    for (uint32_t family = 1; family < others.size(); ++family) {
      if (others[family] != nullptr) visit(family, *others[family]);
    }
  }
  // For a view that is being made, a copy of one that was installed: what it is to have for this family. Groups the tables anew
  // when `change(FamilyView*)` has returned.
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
