// SortEntries: puts references to entries into entry order.
#pragma once

#include <algorithm>
#include <boost/sort/pdqsort/pdqsort.hpp>

#include "log/log_entry.h"

namespace braiddb {

// Items have a `prefix` (KeyOrder::Prefix of the key) and an `entry`. Most prefixes differ, so they are sorted as numbers,
// without a branch that depends on them and without a look at the entries; only runs of equal ones are compared in full.
template <class Iterator>
void SortEntries(const KeyOrder& order, Iterator begin, Iterator end) {
  boost::sort::pdqsort_branchless(begin, end, [](const auto& a, const auto& b) { return a.prefix < b.prefix; });
  for (Iterator run = begin; run != end;) {
    Iterator next = run + 1;
    while (next != end && next->prefix == run->prefix) ++next;
    if (next - run > 1)
      std::sort(run, next, [&order](const auto& a, const auto& b) { return CompareEntries(order, *a.entry, *b.entry) < 0; });
    run = next;
  }
}

}  // namespace braiddb
