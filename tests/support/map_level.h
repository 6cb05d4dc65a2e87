// Test support: a kind of last level that is no part of the library: a sorted map of entry addresses in DRAM, rebuilt at open.
//
// It shows what a new kind needs: this folder, and a registration at run time. The tests of LastLevel's contract and
// levels_registry_test run it.
//
// LAYOUT         MapRoot, at the family's place in region 0. The entries stay in the log.
// COMMIT POINT   The store of MapRoot::boundary. The level has every entry of the family in the log that has a smaller sequence
//                number and no mark.
// PERSIST ORDER  P1 the marks of versions that a newer version hides  P2 the marks of tombstones, of versions that the user's
//                filter drops, and of operands under a range tombstone  P3 the boundary. A sweep has no P3. [CC-45]
// RECOVERY       An open reads all segments of the log and fills the map by the rule above. Its time grows with the log.
// CRASH          Before P3 the entries of the tables are at or above the boundary, so only the tables have them; the job runs
//                again. Entries that an interrupted run has marked stay dropped. After P3 the job runs again and finds the
//                entries of the tables in the map.
// CONCURRENCY    A job builds a new map. Readers keep the map of their view, which never changes.
// LIMITS         Needs Options::max_space_amplification 0 and index_unified_logging: it takes no relocated or flushed copies.
#pragma once

#include "braiddb/options.h"

namespace braiddb::test {

inline constexpr auto kMapLevel = static_cast<L1Kind>(200);

// Registers the kind, at the first call. Returns kMapLevel.
L1Kind RegisterMapLevel();

}  // namespace braiddb::test
