// LogReader: walks the entries of one segment, front to back.
#pragma once

#include <cstdint>

#include "log/log_entry.h"
#include "pmem/segment_allocator.h"

namespace braiddb {

// Thread safety: one thread at a time. The segment must not be released meanwhile.
class LogReader {
 public:
  // A limit for LimitHashing, for each byte that is searched. A search among intact entries reads each of them once.
  static constexpr uint64_t kHashedPerByte = 4;

  // Reads at most `limit` bytes of the segment.
  LogReader(const Segment& segment, uint64_t limit) : LogReader(segment.data(), segment.entry_seed(), limit) {}
  // The same of a segment that is known by where its data is and by its entry_seed. `start`: of an entry, bytes from `data`.
  LogReader(uint8_t* data, uint64_t entry_seed, uint64_t limit, uint64_t start = 0)
      : data_(data), entry_seed_(entry_seed), limit_(limit), end_(start), batch_end_(start) {}

  // The next entry whose sizes fit and whose checksum matches, or null. Entries of a batch that is cut off count as invalid.
  const LogEntry* NextValid();
  // The next entry by its sizes alone, or null at the limit or where they make no sense. For walking what is known to be valid.
  LogEntry* NextTrusted();

  // Whether the entry at `offset`, a multiple of 8, has sizes that fit and a checksum that matches. Batches are not looked at.
  bool ValidAt(uint64_t offset) const;
  // No entry with a larger sequence number is looked for by what follows. Words of values often look like sizes: with a bound
  // that is not far above the numbers in use, hardly a checksum is computed in vain.
  void LimitSequence(uint64_t max_sequence) { max_sequence_ = max_sequence; }
  // At most this many bytes are read for checksums by what follows. Bytes of values may look like the beginnings of entries
  // everywhere, each of which says that it reaches to the end of the segment: then the bytes read would grow with the square of
  // the segment. Where the limit is reached nothing more is found.
  void LimitHashing(uint64_t bytes) { hashing_limit_ = bytes; }
  // Bytes that were read for checksums of what might be an entry.
  uint64_t hashed_bytes() const { return hashed_bytes_; }
  // Whether the limit was reached.
  bool hashing_ended() const { return hashing_ended_; }
  // The first offset in [from, until) at which an entry is valid, UINT64_MAX if there is none: to look behind damage.
  uint64_t FindValid(uint64_t from, uint64_t until = UINT64_MAX) const;
  // The first offset in [from, until) at which a write is whole: an entry of its own, or the last of a batch and a valid entry
  // behind it. Found behind the end of the valid prefix, it shows that this end is damage: a crash leaves at most parts of the
  // one write that was under way. (Unless writes were not synced, in PersistMode::kPage.)
  uint64_t FindWholeWrite(uint64_t from, uint64_t until = UINT64_MAX) const;

  // The entry that the reader would begin with, if its sizes fit; valid or not.
  LogEntry* entry_at_start() const { return At(end_); }

  // Where the entry that was returned last begins.
  uint64_t entry_offset() const { return entry_offset_; }
  // End of what was returned so far.
  uint64_t end() const { return end_; }

 private:
  // The entry at `offset` if its sizes fit below the limit.
  LogEntry* At(uint64_t offset) const;
  // Whether the words that say little about sizes are as an entry has them.
  bool MayBeEntry(const LogEntry& entry) const;
  // ValidAt, within LimitHashing.
  bool ValidWithinLimit(uint64_t offset, const LogEntry& entry) const;
  // Whether a whole batch begins at `offset`; sets where it ends.
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
  uint64_t batch_end_;  // entries before this were validated as part of a batch
};

}  // namespace braiddb
