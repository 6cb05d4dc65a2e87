// OrderedArray: a sorted array in DRAM of entries' key prefixes and addresses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "index/key_order.h"
#include "index/ordered_item.h"
#include "index/prefix_steps.h"
#include "log/log_entry.h"
#include "pmem/region_set.h"
#include "util/prefetch.h"

namespace braiddb {

struct OrderedArray {
  const OrderedItem* items = nullptr;
  size_t size = 0;
  const PrefixSteps* steps = nullptr;   // built over the items
  uint64_t fetch_bytes = 0;             // TypicalEntryBytes of the items
  std::shared_ptr<const void> owner{};  // keeps items and steps alive; null if the array's user does

  // A search in three steps, for callers that search several arrays side by side: FindAbove, FindGroup, FindPrefix. Each step
  // prefetches the lines that the next step reads, and takes the result of the step before.
  size_t FindAbove(uint64_t prefix) const { return steps->FindAbove(prefix); }
  size_t FindGroup(size_t above, uint64_t prefix) const {
    const size_t group = steps->FindBelow(above, prefix);
    PrefetchAll(items + group, PrefixSteps::kFanout * sizeof(OrderedItem));
    return group;
  }
  // Index of the first item whose prefix is not less; `size` if there is none.
  size_t FindPrefix(size_t group, uint64_t prefix) const {
    return group + PrefixSteps::CountLessOf(size, group, prefix, [this](size_t i) { return items[i].prefix; });
  }
  // Index of the first item at or after the target in entry order. `at`: the result of FindPrefix for `group`. Entries are read
  // only if their prefix equals the target's, by a binary search over the items with this prefix.
  size_t FindEntry(size_t group, size_t at, const RegionSet& regions, const KeyOrder& order, const SearchKey& target) const {
    const size_t end = std::min(group + PrefixSteps::kFanout, size);
    if (at == end || items[at].prefix != target.prefix) return at;
    const auto before = [&](const OrderedItem& item, const SearchKey& of) {
      return item.prefix == of.prefix && CompareEntry(order, *regions.Resolve<LogEntry>(item.Entry()), of) < 0;
    };
    const size_t past = items[end - 1].prefix == target.prefix ? size : end;
    return static_cast<size_t>(std::lower_bound(items + at, items + past, target, before) - items);
  }
};

}  // namespace braiddb
