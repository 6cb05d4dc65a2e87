// ListCheck: follows the braided lists of all tables, and the last levels.
#pragma once

#include <cstdint>
#include <vector>

#include "check/findings.h"
#include "check/media.h"
#include "check/reached_entries.h"
#include "index/key_order.h"

namespace braiddb {

// Counts of one family.
struct ListCounts {
  uint64_t tables = 0;
  uint64_t l0_entries = 0;
  uint64_t l1_entries = 0;
  uint64_t obsolete_entries = 0;
};

// GOAL   Finds every violation of these rules. A list is sorted: keys ascend, and the newest version of a key is first. A
//        pointer leads to a valid entry in a segment in use. An upper layer links exactly the entries of its region that are
//        tall enough. A linked entry is not marked, its sequence number is below the log boundary, and it belongs to the list's
//        column family. A table has the sequence numbers and the number of entries that the MANIFEST says.
// STEPS  One walk along each bottom list. At each entry the upper layers of its region must have arrived as well. A table of a
//        running merge that relinks entries is walked up to the entry from which on it has been merged. With another last level
//        it is walked to its end, since a merged entry is also in that level, or marked dead.
// COST   One visit of each entry. No memory in proportion to the data, except for tables of a merge that does not relink entries.
// REQUIRES: the MANIFEST is sound. `orders`, *counts: one element for each of media.families(). A family whose last level is
// damaged is skipped. Adds to *reached, an object for media.segments(), the entries that a list has reached.
void CheckLists(const Media& media, const std::vector<KeyOrder>& orders, Findings* findings, ReachedEntries* reached,
                std::vector<ListCounts>* counts);

}  // namespace braiddb
