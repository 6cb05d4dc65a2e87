// Statistics: counters since open, all monotone, summed over threads when asked for.
#pragma once

#include <cstdint>
#include <string>

namespace braiddb {

struct Statistics {
  // Foreground
  uint64_t writes = 0;     // acknowledged updates (each update of a batch counts)
  uint64_t batches = 0;    // acknowledged write calls
  uint64_t log_bytes = 0;  // log space taken by entries, padding included
  uint64_t gets = 0;       // point lookups
  uint64_t gets_found = 0;
  uint64_t lookup_cache_hits = 0;  // of the gets, those that the lookup cache answered
  uint64_t filter_negatives = 0;   // of the gets, those of keys that were found to be nowhere by the filter
  uint64_t local_visits = 0;       // nodes of persistent lists visited in the reader's own region
  uint64_t remote_visits = 0;      // … in another region
  uint64_t write_delays = 0;       // writes that were slowed down because flushes or merges were behind
  uint64_t write_delay_us = 0;     // and the time they lost, microseconds
  // Background
  uint64_t rotations = 0;
  uint64_t flushes = 0;
  uint64_t flushed_entries = 0;
  uint64_t checkpoints = 0;
  uint64_t compactions = 0;
  uint64_t merged_entries = 0;     // entries linked into the last level
  uint64_t dropped_entries = 0;    // obsolete versions and tombstones unlinked or never linked
  uint64_t relocated_entries = 0;  // entries that were copied out of sparse segments
  uint64_t relocated_bytes = 0;    // the log space that the copies took
  uint64_t collapsed_keys = 0;     // keys whose operands became a put
  uint64_t segments_allocated = 0;
  uint64_t segments_recycled = 0;
  // Persistence
  uint64_t flushed_lines = 0;  // background cache-line flushes; foreground ones follow from log_bytes
  // Recovery, of the open that made this handle
  uint64_t replayed_entries = 0;
  uint64_t recovery_us = 0;  // microseconds from the call of Open to serving

  std::string ToString() const;
};

}  // namespace braiddb
