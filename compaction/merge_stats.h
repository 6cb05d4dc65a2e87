// MergeStats: what a merge into the last level did.
#pragma once

#include <cstdint>

#include "compaction/moved_entries.h"

namespace braiddb {

struct MergeStats {
  uint64_t merged = 0;    // entries that are in the last level now
  uint64_t dropped = 0;   // L0 entries that are not, because nobody can see them
  uint64_t unlinked = 0;  // entries taken out of the last level
  MovedEntries moved;     // of the last level, whose copies took their place
  uint64_t flushed_lines = 0;
};

}  // namespace braiddb
