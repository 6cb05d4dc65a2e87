// ListCheck: follows the braided lists of the tables, and the last levels.
#pragma once

#include <cstdint>
#include <vector>

#include "check/findings.h"
#include "check/media.h"
#include "check/segment_check.h"
#include "index/key_order.h"

namespace braiddb {

struct ListCounts {
  uint64_t tables = 0;
  uint64_t l0_entries = 0;
  uint64_t l1_entries = 0;
  uint64_t obsolete_entries = 0;
};

// GOAL   Every list is sorted: keys ascending, of a key the newest first. Every pointer leads to a valid entry in a segment in
//        use. The layers above the bottom link exactly those entries of their region that are tall enough. No linked entry is
//        marked dead, none is behind the log boundary, all are of the column family whose list it is. Tables hold the sequence
//        numbers and as many entries as the MANIFEST says.
// STEPS  One walk along each bottom list; at each entry the upper layers of its region must have arrived there too.
//        The tables of a running merge are followed up to the entry from which on they have been merged; where the last level is
//        an NV-Tree (tree_check.h), to their end: what has been merged is in the tree as well, or marked dead.
// COST   One visit of each entry; no memory in proportion to the data, but for the tables of such a merge.
// REQUIRES: the MANIFEST is sound. `orders`, *counts: of each of media.families(); one whose last level is not there is left out.
// The result has, for each of media.segments(), the entries that some list reached.
std::vector<EntrySet> CheckLists(const Media& media, const std::vector<KeyOrder>& orders, Findings* findings,
                                 std::vector<ListCounts>* counts);

}  // namespace braiddb
