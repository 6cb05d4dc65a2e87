// TreeCheck: follows the leaves of an NV-Tree.
#pragma once

#include <cstdint>
#include <vector>

#include "check/findings.h"
#include "check/media.h"
#include "check/segment_check.h"
#include "index/key_order.h"

namespace braiddb {

// Counts of one tree.
struct TreeCounts {
  uint64_t entries = 0;
  uint64_t obsolete_entries = 0;
};

// The running merge or sweep of the tree.
struct TreeMerge {
  bool is_running;
  bool has_tables;
  // The entries of the merging tables, in entry order. They are in `reached` already, and may be in the tree as well.
  const std::vector<const LogEntry*>& entries;
};

// GOAL   Finds every violation of these rules. The headers of segments of leaves, and all leaves in the list, are valid; no
//        leaf is in the list twice. Each element names a valid entry of the family below the log boundary, and has the prefix
//        of its key. Entries ascend along the list. No entry is marked; during a merge or sweep, versions that a newer one
//        hides may be marked, and newest tombstones that hide no other version. An image of the inner nodes has exactly these
//        leaves, and its borders lie between them.
// STEPS  One walk along the list of leaves, then the image.
// COST   One visit of each leaf and of each entry; one bit of DRAM per block.
// Adds the entries that are not marked to *reached. REQUIRES: the family's last level is an NV-Tree with a sound root.
TreeCounts CheckTree(const Media& media, const MediaFamily& family, const KeyOrder& order, const TreeMerge& merge,
                     std::vector<EntrySet>* reached, Findings* findings);

}  // namespace braiddb
