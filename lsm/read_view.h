// ReadView: the levels of a database at one moment.
#pragma once

#include <memory>
#include <vector>

#include "index/ordered_level.h"
#include "lsm/memtable.h"
#include "lsm/pm_table.h"

namespace braiddb {

// Immutable. Readers load the current one inside an epoch guard; long-lived readers keep a shared_ptr.
// Order of reading: active, immutables, l0 (each newest first), l1. A key found in one level need not be looked for below.
struct ReadView : std::enable_shared_from_this<ReadView> {
  std::shared_ptr<Memtable> active;
  std::vector<std::shared_ptr<Memtable>> immutables;
  std::vector<std::shared_ptr<PmTable>> l0;
  std::shared_ptr<const OrderedLevel> l1;

  // Newest first: neighbours in l0 that share an index, or one table that has none. Derived from l0 by GroupTables.
  struct TableGroup {
    const L0Index* index;  // may be null
    uint32_t columns;      // of the index that are tables of this view
    const PmTable* table;  // the group's first
  };
  std::vector<TableGroup> groups;

  void GroupTables() {
    groups.clear();
    for (const auto& table : l0) {
      const L0Index* index = table->indexed.index.get();
      if (index == nullptr || groups.empty() || groups.back().index != index) groups.push_back({index, 0, table.get()});
      groups.back().columns |= 1u << table->indexed.column;
    }
  }

  // The newest entry of target.key in l0 that is not dead and has a sequence number <= target.sequence; null if there is none.
  // `hash`: KeyHash of target.key.
  const LogEntry* FindInTables(const SearchKey& target, uint64_t hash, LookupTrace* trace) const {
    for (const TableGroup& group : groups) {
      if (group.index != nullptr) group.index->Prefetch(hash);  // their buckets come together
    }
    for (const TableGroup& group : groups) {
      const LogEntry* entry =
          group.index != nullptr ? group.index->Find(target, hash, group.columns, trace) : group.table->list.Find(target, trace);
      if (entry != nullptr) return entry;
    }
    return nullptr;
  }
};

}  // namespace braiddb
