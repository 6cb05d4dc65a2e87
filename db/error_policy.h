// Error policy: one table gives the consequence of an error, by the work that failed and by the cause. All code in db/ asks this
// table; no other place decides which error ends writing.
#pragma once

#include <cstdint>

#include "braiddb/status.h"

namespace braiddb {

// What the database did when the error came.
enum class Work : uint8_t {
  kReserveLog,    // takes log space for a write; a region may grow for it
  kAppend,        // makes an entry durable and visible
  kSeal,          // seals or takes over an open segment
  kRelease,       // frees a segment, or returns it to its pool
  kFlushCopies,   // copies a memtable's entries (index_unified_logging false)
  kCheckpoint,    // lists flushed tables in the MANIFEST
  kMerge,         // merges tables into the last level, or sweeps it
  kMakeCopies,    // relocates or collapses entries, up to the MANIFEST that lists the copies
  kInstall,       // background work as a whole; a part may be done in the MANIFEST but not in DRAM
  kCreateFamily,  // up to the MANIFEST that lists the family
  kDropFamily,    // up to the MANIFEST that lists the family as dropped
  kPurgeFamily,   // frees the space of a dropped family
  kOptionsFile,   // writes the options file
  kCount
};

// The cause of the failure.
enum class Cause : uint8_t {
  kPersist,     // a sync failed: the content of media is unknown
  kCorruption,  // media hold bytes that the database did not write
  kNoSpace,     // persistent memory is full
  kRefused,     // the system refused a call (EMFILE, ENFILE, ENOMEM, EIO, …), or a resource is in use; nothing was written
  kNoMemory,    // no DRAM
  kStopped,     // stopped by a close
  kCaller,      // an argument, or a state that the caller knows (ReadOnly)
  kCount
};

enum class Outcome : uint8_t {
  kNone,         // there is no error
  kReport,       // the call returns the error; all other work continues
  kLater,        // the database repeats the work later, or continues without it
  kEndsWriting,  // the database takes no more writes until it is opened again
};

// `persist_failed`: a persist of this database has failed. REQUIRES: not OK.
Cause CauseOf(const Status& status, bool persist_failed) noexcept;
Outcome OutcomeOf(Work work, Cause cause) noexcept;

}  // namespace braiddb
