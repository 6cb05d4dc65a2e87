// TreeCheck: follows the leaves of an NV-Tree.
#pragma once

#include <cstdint>
#include <vector>

#include "check/findings.h"
#include "check/media.h"
#include "check/segment_check.h"
#include "index/key_order.h"

namespace braiddb {

struct TreeCounts {
  uint64_t entries = 0;
  uint64_t obsolete_entries = 0;
};

// The merge or sweep of the tree that was running.
struct TreeMerge {
  bool is_running;
  bool has_tables;
  // Of its tables, in entry order. They are in `reached` already, and may be in the tree as well.
  const std::vector<const LogEntry*>& entries;
};

// GOAL   Root, headers of the segments of leaves, and every leaf that the list reaches are valid; no leaf twice. In order
//        along the list, each element has the key word of the entry it names, a valid one of the family below the log boundary.
//        No entry is marked dead; while a job was running, only versions that a newer one hides, and newest tombstones that hide
//        nothing else. An image of the inner nodes has exactly these leaves, and borders between them.
// STEPS  One walk along the list of leaves, then the image.
// COST   One visit of each leaf and of each entry; a bit per block.
// REQUIRES: the family's level is there, an NV-Tree. Adds the entries that are not marked dead to *reached.
TreeCounts CheckTree(const Media& media, const MediaFamily& family, const KeyOrder& order, const TreeMerge& merge,
                     std::vector<EntrySet>* reached, Findings* findings);

}  // namespace braiddb
