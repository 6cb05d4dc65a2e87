// TreeCheck: follows the leaves of an NV-Tree.
#pragma once

#include "check/level_media.h"
#include "nvtree/nv_tree.h"

namespace braiddb {

// GOAL   Finds every violation of these rules. The headers of segments of leaves, and all leaves in the list, are valid; no
//        leaf is in the list twice. Each element names a valid entry of the family below the log boundary, and has the prefix
//        of its key. Entries ascend along the list. No entry is marked; during a merge or sweep, versions that a newer one
//        hides may be marked, and newest tombstones that hide no other version. An image of the inner nodes has exactly these
//        leaves, and its borders lie between them.
// STEPS  One walk along the list of leaves, then the image.
// COST   One visit of each leaf and of each entry; one bit of DRAM per block.
// Adds the entries that are not marked to *check.reached.
LevelCounts CheckTree(const LevelCheck& check, const NvTreeRoot& root);

}  // namespace braiddb
