// Test support: the order of several tables together, of what their lists have.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "lsm/table_order.h"
#include "tests/support/entry_store.h"

namespace braiddb::test {

// Oldest first, as merges take them. Null if their prefixes say too little.
inline std::shared_ptr<const TableOrder> OrderOfTables(const EntryStore& store, const std::vector<const PmTable*>& tables) {
  std::vector<std::shared_ptr<const TableOrder>> orders;
  for (const PmTable* table : tables) {
    auto order = std::make_shared<TableOrder>(0);
    const LogEntry* before = nullptr;
    for (const LogEntry* entry = table->list.First(); entry != nullptr; entry = table->list.Next(entry)) {
      const bool is_older = before != nullptr && store.order().Same(before->key(), entry->key());
      order->Append(store.order().Prefix(entry->key()), store.regions()->Find(entry), is_older,
                    store.order().PrefixIsWhole(entry->key()));
      before = entry;
    }
    EXPECT_TRUE(order->Finish(*store.regions(), store.order()));
    orders.insert(orders.begin(), order);
  }
  if (orders.size() == 1) return orders.front();
  return TableOrder::Merge(orders, *store.regions(), store.order(), [] { return false; });
}

}  // namespace braiddb::test
