// OrderedArray: a sorted array in DRAM of entries' key prefixes and addresses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "index/alike_steps.h"
#include "index/ordered_item.h"
#include "index/prefix_steps.h"
#include "log/fetch_entry.h"
#include "pmem/region_set.h"
#include "util/prefetch.h"

namespace braiddb {

struct OrderedArray {
  const OrderedItem* items = nullptr;
  size_t size = 0;
  const PrefixSteps* steps = nullptr;   // built over the items
  const AlikeSteps* alike = nullptr;    // the same
  uint64_t fetch_bytes = 0;             // TypicalEntryBytes of the items
  std::shared_ptr<const void> owner{};  // keeps items, steps and alike alive; null if the array's user does
  bool is_foreign = false;              // another process' array: its items are not trusted (ForeignEntry)

  // True if many neighbours, or all items, have one prefix.
  bool IsAlike() const { return size > 1 && (!alike->empty() || items[0].prefix == items[size - 1].prefix); }
  // A search in three steps, for callers that search several arrays side by side: FindAbove, FindGroup, FindAlike. Each step
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
  // The last step, if no AlikeSteps::Top has the prefix: the first item at or after the target is in [*at, *end], and the items
  // of [*at, *end) have the target's prefix.
  void FindAlike(size_t group, uint64_t prefix, size_t* at, size_t* end) const {
    *at = FindPrefix(group, prefix);
    *end = FindAlikeEnd(group, *at, prefix);
  }

 private:
  // End of the items that have the prefix. `at`: the result of FindPrefix for `group`.
  size_t FindAlikeEnd(size_t group, size_t at, uint64_t prefix) const {
    const size_t end = std::min(group + PrefixSteps::kFanout, size);
    while (at != end && items[at].prefix == prefix) ++at;
    if (at != end || end == size || items[end].prefix != prefix) return at;
    if (prefix == UINT64_MAX) return size;
    return std::max(at, FindPrefix(steps->Find(prefix + 1), prefix + 1));  // items of a foreign array may change meanwhile
  }
};

// The items as AlikeSteps::Build reads them. The result refers to both arguments.
inline AlikeSteps::Array ArrayOf(const OrderedItem* items, size_t size, const RegionSet& regions) {
  const auto at = [items, &regions](size_t i) { return regions.Resolve<LogEntry>(items[i].Entry()); };
  return {size, [items](size_t i) { return items[i].prefix; }, [at](size_t i) { return at(i)->key(); },
          [at](size_t i) { FetchEntry(at(i)); }};
}

}  // namespace braiddb
