// RunMerge: merges L0 tables into the sorted runs of the last level by copying, as LSM trees do (docs/design/0017).
#pragma once

#include <vector>

#include "braiddb/status.h"
#include "compaction/last_level.h"
#include "compaction/merge_stats.h"
#include "lsm/pm_table.h"
#include "skiplist/sorted_runs.h"

namespace braiddb {

struct RunSizes {
  uint64_t run_bytes;    // a run ends at the first key boundary after this many bytes of entries
  uint64_t index_bytes;  // DRAM for the tall indexes of all runs, bytes
};

// GOAL   The runs have a copy of every entry of `tables` that a reader or snapshot can see, and no other entry of the tables. All
//        entries of the tables are marked moved, also the dropped ones.
// STEPS  For the key range of each run, if the tables have keys in that range (small runs directly behind are included):
//        R1 Write new runs: the visible versions of the tables and of the old runs in the range.
//        R2 SortedRuns::Exchange replaces the old runs by the new runs, durably.
//        R3 Mark the tables' entries moved. Mark dead, in memory only, the versions that the old runs have and the new runs have
//           not. Report the copies to the lookup cache.
//        R4 Retire the segments of the old runs.
// CRASH AFTER EACH STEP  There is no journal. Until the MANIFEST forgets the tables they are complete: the merge stores nothing
//                        to their pointers, and a moved mark hides no entry from readers. So recovery runs the merge again from
//                        its beginning. [CC-52]
//        R1: no link leads to the new segments. The next open releases them.
//        R2 to R4: the new runs are in place. The repeated merge finds versions both in a table and in a run. It copies the
//           table's version again and drops the run's version.
// WHAT A READER SEES  The tables stay in the reader's view until the merge ends. A reader of the old run list finds the old runs
//                     and the tables. A reader of the new run list finds the new runs, and the needed entries of the tables a
//                     second time.
// SPACE  New runs need space before the old runs free theirs. The merge exchanges range by range, so at most the runs of one
//        range exist twice, apart from old runs that readers still hold. If only table entries are left for a range, each
//        finished run is exchanged at once.
// COST   Per run: two fences and the run's cache lines. Per entry of the tables: one line.
//
// Returns Aborted if stopped, NoSpace, or Corruption. Then the ranges that were not exchanged are unchanged.
Status MergeIntoRuns(const LastLevel::Parts& parts, SortedRuns* level, const RunSizes& sizes, const MergeJob& job,
                     const std::vector<const PmTable*>& tables, MergeStats* stats);

// Drops the versions in `ranges` that no reader or snapshot can see. A run that has such a version is rewritten, by steps R1 to
// R4 without tables. A run without such versions stays.
Status SweepRuns(const LastLevel::Parts& parts, SortedRuns* level, const RunSizes& sizes, const MergeJob& job,
                 const KeyRanges& ranges, MergeStats* stats);

}  // namespace braiddb
