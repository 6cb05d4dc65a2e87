// What follows from an error: one table, by what the database did and by what failed. Every place of db/ that meets an error asks
// it; no place decides by itself what ends writing.
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
  kInstall,       // background work as a whole, of which a part may be done in the MANIFEST and not in DRAM
  kCreateFamily,  // up to the MANIFEST that lists the family
  kDropFamily,    // up to the MANIFEST that says so
  kPurgeFamily,   // frees what a dropped family had
  kOptionsFile,   // writes the options file
  kCount
};

// What failed.
enum class Cause : uint8_t {
  kPersist,     // a sync: what is on media is unknown
  kCorruption,  // media hold what nobody wrote
  kNoSpace,     // persistent memory is full
  kRefused,     // the system refused a call (EMFILE, ENFILE, ENOMEM, EIO, …), or a resource is in use; nothing was written
  kNoMemory,    // DRAM
  kStopped,     // by a close
  kCaller,      // an argument, or a state that the caller knows (ReadOnly)
  kCount
};

enum class Outcome : uint8_t {
  kNone,         // there is no error
  kReport,       // the call returns the error, and all else goes on
  kLater,        // the database does the work again, or goes on without it
  kEndsWriting,  // the database takes no more writes until it is opened again
};

// `persist_failed`: a persist of this database has failed. REQUIRES: not OK.
Cause CauseOf(const Status& status, bool persist_failed) noexcept;
Outcome OutcomeOf(Work work, Cause cause) noexcept;

}  // namespace braiddb
