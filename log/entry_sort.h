// SortEntries: sorts references to log entries into entry order: ascending keys, and of one key the newest version first.
#pragma once

#include <algorithm>
#include <boost/sort/pdqsort/pdqsort.hpp>

#include "log/log_entry.h"
#include "util/check.h"

namespace braiddb {

// Items have the members `prefix` (KeyOrder::Prefix of the key) and `entry` (a pointer to the LogEntry).
// STEPS  1 sort the items by prefix, as numbers, without unpredictable branches and without a read of an entry  2 sort each run
//        of equal prefixes by comparing the entries.
// COST   Most prefixes differ, so most entries are not read.
template <class Iterator>
void SortEntries(const KeyOrder& order, Iterator begin, Iterator end) {
  boost::sort::pdqsort_branchless(begin, end, [](const auto& a, const auto& b) { return a.prefix < b.prefix; });
  for (Iterator run = begin; run != end;) {
    Iterator next = run + 1;
    while (next != end && next->prefix == run->prefix) ++next;
    if (next - run > 1)
      std::sort(run, next, [&order](const auto& a, const auto& b) { return CompareEntries(order, *a.entry, *b.entry) < 0; });
    BRAIDDB_DCHECK(next == end || run->prefix < next->prefix);
    run = next;
  }
}

}  // namespace braiddb
