// LogReader: reads the entries of one segment from front to back, and verifies them.
//
// TRUST       The bytes may be damaged, or stale bytes of an earlier use. NextValid and ValidAt verify checksums; NextTrusted
//             verifies sizes only. No method reads behind `limit`.
// END OF LOG  NextValid ends at the first entry that is not valid: an entry whose write a crash has cut short, unwritten space,
//             or damage. FindWholeWrite tells damage from a crash: a crash leaves no complete write behind the end. Exception:
//             writes without a sync in PersistMode::kPage, which may be lost in any order.
// COST        A valid entry is read once. A search behind the end may read bytes several times, up to LimitHashing.
#pragma once

#include <cstdint>

#include "log/log_entry.h"
#include "pmem/segment_allocator.h"

namespace braiddb {

// Thread safety: one thread at a time. The segment must stay in use while the reader exists.
class LogReader {
 public:
  // A limit for LimitHashing, as bytes per searched byte. A search among intact entries reads each of them once.
  static constexpr uint64_t kHashedPerByte = 4;

  // Reads at most `limit` bytes of the segment.
  LogReader(const Segment& segment, uint64_t limit) : LogReader(segment.data(), segment.entry_seed(), limit) {}
  // Reads a segment without a handle. `data`: its first byte, aligned to a line. `start`: offset of the first entry to read.
  LogReader(uint8_t* data, uint64_t entry_seed, uint64_t limit, uint64_t start = 0)
      : data_(data), entry_seed_(entry_seed), limit_(limit), end_(start), batch_end_(start) {}

  // Returns the next entry if its sizes fit and its checksum matches, or null at the end of the valid prefix. The entries of an
  // incomplete batch are invalid.
  const LogEntry* NextValid();
  // Returns the next entry by its sizes alone; null at the limit, or if the sizes are impossible. For entries that are known to
  // be valid.
  LogEntry* NextTrusted();

  // Returns true if the entry at `offset` has sizes that fit and a checksum that matches. Its batch is not checked.
  // REQUIRES: `offset` is a multiple of 8.
  bool ValidAt(uint64_t offset) const;
  // Later searches (FindValid, FindWholeWrite) ignore entries with larger sequence numbers. Words of values often look like the
  // header of an entry. A bound close to the numbers in use avoids nearly all useless checksums.
  void LimitSequence(uint64_t max_sequence) { max_sequence_ = max_sequence; }
  // Later searches read at most this many bytes for checksums; at the limit they find nothing more. Without a limit, a value
  // that is made of headers, each of which claims the rest of the segment, would cost the square of the segment's size.
  void LimitHashing(uint64_t bytes) { hashing_limit_ = bytes; }
  // Returns the bytes that searches have read for checksums.
  uint64_t hashed_bytes() const { return hashed_bytes_; }
  // Returns true if a search has reached the limit.
  bool hashing_ended() const { return hashing_ended_; }
  // Returns the first offset in [from, until) at which a valid entry begins; UINT64_MAX if there is none. Finds entries behind
  // damage. REQUIRES: `from` is a multiple of 8.
  uint64_t FindValid(uint64_t from, uint64_t until = UINT64_MAX) const;
  // Returns the first offset in [from, until) that proves a complete write: a single entry, or an entry behind the last entry
  // of a batch. UINT64_MAX if there is none. Such a write behind the valid prefix proves that the end of the prefix is damage:
  // the writer commits in order, so a crash leaves parts of one write only.
  uint64_t FindWholeWrite(uint64_t from, uint64_t until = UINT64_MAX) const;

  // Returns the entry at the reader's start if its sizes fit, valid or not; else null.
  LogEntry* entry_at_start() const { return At(end_); }

  // Returns the offset of the entry that was returned last.
  uint64_t entry_offset() const { return entry_offset_; }
  // Returns the end of the entry that was returned last; at first the start.
  uint64_t end() const { return end_; }

 private:
  // Returns the entry at `offset` if its sizes are possible and it ends below the limit; else null.
  LogEntry* At(uint64_t offset) const;
  // Returns true if tag and sequence number can be those of an entry. Cheap; avoids checksums in searches.
  bool MayBeEntry(const LogEntry& entry) const;
  // As ValidAt, within the limit of LimitHashing. False, and hashing_ended_, at the limit.
  bool ValidWithinLimit(uint64_t offset, const LogEntry& entry) const;
  // Returns true if a complete batch, or a single entry, begins at `offset`. Sets *batch_end to the end of its last valid
  // entry.
  bool ValidBatchAt(uint64_t offset, uint64_t* batch_end) const;

  uint8_t* const data_;
  const uint64_t entry_seed_;
  const uint64_t limit_;
  uint64_t entry_offset_ = 0;
  uint64_t end_;
  uint64_t max_sequence_ = kMaxSequence;
  uint64_t hashing_limit_ = UINT64_MAX;
  mutable uint64_t hashed_bytes_ = 0;
  mutable bool hashing_ended_ = false;
  uint64_t batch_end_;  // entries before this offset were verified together with their batch
};

}  // namespace braiddb
