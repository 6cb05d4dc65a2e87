// PmdkSync: PMDK's calls of msync go through Persistence, so that a sync that fails is an error and does not end the process.
//
// PMDK calls pmem_msync for pools on ordinary file systems, and aborts if that fails. PmdkSyncScope makes libpmemobj call a
// function of ours in its place: its entry for pmem_msync in the table of imported functions is replaced, once for the process.
// Where no scope lives on the calling thread, ours calls pmem_msync: pools of the program's own are as they were.
//
// GOAL    After a failed sync of PMDK's, media are as if the process had been killed there.
// STEPS   1. the sync fails  2. Persistence has failed for good: it makes no sync any more, and reports success to nobody
//         3. the parts of the region are mapped anew at their places, privately  4. PMDK is told that the sync worked, and ends
//         its operation
// CRASH   Between 1 and 3 PMDK stores nothing. After 3 its stores stay in the process. So media have what PMDK had stored before
//         the sync that failed, which is a state that its next open recovers from.
// WHAT A READER SEES  The same bytes before and after 3.
// CONCURRENCY  Another thread that stores into the region meanwhile gets no success from Persistence (2 comes first).
//
// OPEN AND CLOSE  PMDK's open syncs the number of the open (run_id), by which it tells locks on media from those of earlier
//         opens, and PMDK's close syncs the count of allocated bytes. BraidDB uses neither. So the syncs of an open that has
//         nothing to finish are put off to the next sync of the thread, and those of a close are left to the system.
//
// A libpmemobj that is linked statically has no such table: its syncs are its own, and it aborts.
#pragma once

#include <cstdint>
#include <string>

#include "pmem/persistence.h"

namespace braiddb {

// Lives around each call of PMDK that may store, on the thread that calls. Does nothing but in PersistMode::kPage.
class PmdkSyncScope {
 public:
  // What a sync of PMDK's does; see OPEN AND CLOSE for the last two.
  enum class Kind : uint8_t { kSyncs, kPutsOff, kNothing };
  // `directory`: with the parts of the region whose pool it is. Both outlive the scope.
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
