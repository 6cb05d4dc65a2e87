// LogReader: walks the entries of one segment, front to back.
#pragma once

#include <cstdint>

#include "log/log_entry.h"
#include "pmem/segment_allocator.h"

namespace braiddb {

// Thread safety: one thread at a time. The segment must not be released meanwhile.
class LogReader {
 public:
  // Reads at most `limit` bytes of the segment.
  LogReader(const Segment& segment, uint64_t limit) : segment_(segment), limit_(limit) {}

  // The next entry whose sizes fit and whose checksum matches, or null. Entries of a batch that is cut off count as invalid.
  const LogEntry* NextValid();
  // The next entry by its sizes alone, or null at the limit or where they make no sense. For walking what is known to be valid.
  LogEntry* NextTrusted();

  // Where the entry that was returned last begins.
  uint64_t entry_offset() const { return entry_offset_; }
  // End of what was returned so far.
  uint64_t end() const { return end_; }

 private:
  // The entry at `offset` if its sizes fit below the limit.
  LogEntry* At(uint64_t offset) const;
  bool ValidAt(uint64_t offset) const;
  // Whether a whole batch begins at `offset`; sets where it ends.
  bool ValidBatchAt(uint64_t offset, uint64_t* batch_end) const;

  const Segment& segment_;
  const uint64_t limit_;
  uint64_t entry_offset_ = 0;
  uint64_t end_ = 0;
  uint64_t batch_end_ = 0;  // entries before this were validated as part of a batch
};

}  // namespace braiddb
