// PmdkSync: sends PMDK's calls of msync through Persistence, so that a failed sync becomes an error and does not end the
// process.
//
// HOW     PMDK calls pmem_msync for pools on ordinary file systems, and aborts if the call fails. This library replaces
//         pmem_msync for libpmemobj, once in the process (pmdk_imports.h). Without a PmdkSyncScope on the calling thread, the
//         replacement calls pmem_msync, so other pools of the program behave as before.
//
// GOAL    After a failed sync, media are as if the process had been killed at that point.
// STEPS   1 the sync fails  2 Persistence fails for good: no later Drain syncs or succeeds  3 the parts of the region are
//         mapped privately, at the same addresses  4 the replacement reports success, and PMDK ends its operation in memory
// CRASH   Between 1 and 3 PMDK stores nothing. After 3 its stores stay in the process. So media hold what PMDK had stored
//         before the failed sync. PMDK's next open recovers from this state, as after a kill.
// WHAT A READER SEES  The same bytes before and after step 3: a private mapping begins with the bytes of the shared one.
// CONCURRENCY  Another thread that stores into the region meanwhile gets no success from Persistence, since 2 comes before 3.
//
// OPEN AND CLOSE  PMDK's open syncs its run id, which marks locks on media as stale, and PMDK's close syncs the count of
//         allocated bytes. BraidDB uses neither. So an open that has nothing to finish defers its syncs to the next Drain of
//         the thread (kPutsOff), and a close leaves them to the operating system (kNothing).
// LIMIT   A libpmemobj that is linked statically does not call the replacement. It aborts when a sync fails.
#pragma once

#include <cstdint>
#include <string>

#include "pmem/persistence.h"

namespace braiddb {

// Lives around each call of PMDK that may store, on the thread that calls. Has an effect in PersistMode::kPage only. Scopes of
// one thread nest: the innermost one counts.
class PmdkSyncScope {
 public:
  // What a call of pmem_msync does. kSyncs: the sync, with the steps above if it fails. kPutsOff: the pages are remembered for
  // the next Drain of the thread. kNothing: no effect.
  enum class Kind : uint8_t { kSyncs, kPutsOff, kNothing };
  // `directory`: the directory with the parts of the pool. `persistence` and `directory` must outlive the scope.
  PmdkSyncScope(Persistence* persistence, const std::string& directory, Kind kind = Kind::kSyncs);
  ~PmdkSyncScope();
  PmdkSyncScope(const PmdkSyncScope&) = delete;
  PmdkSyncScope& operator=(const PmdkSyncScope&) = delete;

 private:
  friend class PmdkSync;

  Persistence* const persistence_;
  const std::string& directory_;
  const Kind kind_;
  const PmdkSyncScope* const outer_;
};

}  // namespace braiddb
