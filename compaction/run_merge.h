// RunMerge: merges tables of L0 into the sorted runs of the last level by copying, as LSM trees do (docs/design/0017).
#pragma once

#include <vector>

#include "braiddb/status.h"
#include "compaction/last_level.h"
#include "compaction/merge_stats.h"
#include "lsm/pm_table.h"
#include "skiplist/sorted_runs.h"

namespace braiddb {

struct RunSizes {
  uint64_t run_bytes;    // a run ends at the next key when it has so many bytes of entries
  uint64_t index_bytes;  // of DRAM, for all runs
};

// GOAL   Every entry of `tables` that somebody can see is in the runs, as a copy; what nobody can see is not. The tables' entries
//        are marked moved, whatever became of them.
// STEPS  For each range of keys that a run has (small runs behind it are taken along), if the tables have keys in it:
//        R1 new runs are written: the range's versions of tables and old run, but for what nobody sees
//        R2 SortedRuns::Exchange: new runs in the place of the old, durable
//        R3 the tables' entries are marked; what the old run had and the new has not is marked dead, in memory only; copies are
//           told of
//        R4 the old run's segments are retired.
// CRASH  There is no journal: until the MANIFEST forgets the tables they are whole, since nothing stores to their pointers, and
//        "moved" hides nothing. After a crash anywhere the merge is run again from its beginning: of a version that is in a table
//        and, copied already, in a run, the table's is copied again, and the run's goes. [CC-52]
// WHAT A READER SEES  The tables are in its view until the merge has ended. With the runs of before R2 nothing has changed;
//        with those of after, it finds what it needs of the tables there, too.
// COST   Two fences and a run's lines per run; a line per entry of the tables. Space for the new runs of one range at a time.
//
// Aborted if stopped; NoSpace; Corruption. Then the ranges that were not exchanged are as before.
Status MergeIntoRuns(const LastLevel::Parts& parts, SortedRuns* level, const RunSizes& sizes, const MergeJob& job,
                     const std::vector<const PmTable*>& tables, MergeStats* stats);

// Takes what nobody can see of the user keys in the ranges out of the runs, which are written again if there is any. As a merge
// without tables.
Status SweepRuns(const LastLevel::Parts& parts, SortedRuns* level, const RunSizes& sizes, const MergeJob& job,
                 const KeyRanges& ranges, MergeStats* stats);

}  // namespace braiddb
