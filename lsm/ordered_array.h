// OrderedArray: entries whose key prefixes and addresses are in DRAM, in an array in entry order.
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
  const PrefixSteps* steps = nullptr;   // built of the items
  uint64_t fetch_bytes = 0;             // TypicalEntryBytes of them
  std::shared_ptr<const void> owner{};  // what keeps items and steps; null if the array's user does

  // A search in parts, for who makes several side by side: each part fetches what the next one looks at. A part is given what
  // the one before it returned.
  size_t FindAbove(uint64_t prefix) const { return steps->FindAbove(prefix); }
  size_t FindGroup(size_t above, uint64_t prefix) const {
    const size_t group = steps->FindBelow(above, prefix);
    PrefetchAll(items + group, PrefixSteps::kFanout * sizeof(OrderedItem));
    return group;
  }
  // The first one whose prefix is not less; the size if there is none.
  size_t FindPrefix(size_t group, uint64_t prefix) const {
    return group + PrefixSteps::CountLessOf(size, group, prefix, [this](size_t i) { return items[i].prefix; });
  }
  // The first one that is not before the target. `at`: what FindPrefix returned for `group`.
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
