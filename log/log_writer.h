// LogWriter: appends index-unified log entries to segments that one thread owns.
#pragma once

#include <atomic>
#include <cstdint>

#include "braiddb/slice.h"
#include "braiddb/status.h"
#include "log/log_entry.h"
#include "pmem/segment_allocator.h"
#include "util/check.h"

namespace braiddb {

// One update as it goes into the log.
struct LogUpdate {
  EntryType type;
  Slice key;
  Slice value;
  uint32_t height;      // drawn when it is written (RandomHeight): room for next[] is part of the record
  uint32_t family = 0;  // column family
};

// Log space that Reserve found; used by Append, or given up by not calling it.
struct LogSlot {
  Segment* segment = nullptr;
  uint64_t offset = 0;  // of the first entry in the segment
  uint64_t bytes = 0;   // to the end of the last entry
  bool dedicated = false;
};

// Write protocol: Reserve → WriteEntry for each update → Flush (one pass) → caller's Drain (one fence) → Commit.
// Until Commit the entries are invisible and the writer has not moved.
//
// HANDING OVER  Another thread may take the open segment away (Disown). The owner must not use a slot of a segment that was
//               taken. The two exclude each other as in Dekker's algorithm: the owner announces its write and then asks Owns;
//               the other one disowns, and then waits until no write that was announced before is under way
//               (db/open_segments.cc). `Segment::used_bytes` says where the entries end for whoever has the segment next.
// Thread safety: one thread at a time, which is the owner; any thread may call segment() and Disown.
class LogWriter {
 public:
  LogWriter() = default;
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Finds room for `bytes` contiguous bytes (EntriesSize), sealing the full segment and opening another if it must. A write that
  // has no room, and is more than a quarter of the open segment and of the next one, gets a segment of its own. NoSpace: nothing
  // changed.
  Status Reserve(SegmentAllocator* segments, uint32_t region, uint64_t bytes, LogSlot* slot,
                 SpaceUse use = SpaceUse::kBackground);
  // The same in the segment that is open; false if there is none, or no room in it.
  bool ReserveHere(uint64_t bytes, LogSlot* slot) const {
    Segment* const open = segment();
    if (open == nullptr) return false;
    const uint64_t offset = NextEntryOffset(tail_);
    if (offset + bytes > open->capacity()) return false;
    *slot = LogSlot{open, offset, bytes, false};
    return true;
  }
  // Whether the slot's segment is still this writer's, or the slot's own. To be asked after the write was announced.
  bool Owns(const LogSlot& slot) const { return segment_.load(std::memory_order_seq_cst) == slot.segment || slot.dedicated; }

  // Writes one entry at `offset` of the slot's segment; returns the offset after it. Plain stores, nothing flushed.
  static uint64_t WriteEntry(const LogSlot& slot, uint64_t offset, uint64_t sequence, uint64_t flags, const LogUpdate& update);
  // The same at another place, from where it will be copied to a segment with this entry_seed; returns its size.
  static uint64_t WriteEntryAt(LogEntry* entry, uint64_t entry_seed, uint64_t sequence, uint64_t flags, const LogUpdate& update);

  // Makes the slot's entries part of the log in DRAM terms. REQUIRES: they are durable (or the mode defers that).
  // Seals a dedicated segment.
  Status Commit(SegmentAllocator* segments, const LogSlot& slot, uint32_t entries, uint64_t last_sequence) {
    Segment* const segment = slot.segment;
    // Only this thread writes these; others read them as bounds and hints.
    segment->entries.store(segment->entries.load(std::memory_order_relaxed) + entries, std::memory_order_relaxed);
    segment->last_sequence.store(last_sequence, std::memory_order_relaxed);
    segment->used_bytes.store(slot.offset + slot.bytes, std::memory_order_release);  // pairs with the acquire in checkpoints
    if (__builtin_expect(slot.dedicated, 0)) return segments->Seal(segment, slot.bytes, last_sequence);
    tail_ = slot.offset + slot.bytes;
    return Status::OK();
  }

  // Seals the open segment, if any; the next Reserve opens another.
  Status Seal(SegmentAllocator* segments);
  // The first step of that (SegmentAllocator::PrepareSeal). Returns what SealPrepared takes; null: there is no open segment.
  Segment* PrepareSeal(SegmentAllocator* segments);

  // Goes on in an open segment that another writer was disowned of, and seals the one of before. REQUIRES: that writer's last
  // write to it is durable and committed.
  Status Adopt(SegmentAllocator* segments, Segment* segment);
  // Makes the segment nobody's, if it is this writer's.
  bool Disown(Segment* segment) { return segment_.compare_exchange_strong(segment, nullptr, std::memory_order_seq_cst); }

  // The open segment; null if there is none. acquire: another thread reads fields that were set when the handle was made.
  Segment* segment() const { return segment_.load(std::memory_order_acquire); }

 private:
  void Open(Segment* segment, uint64_t tail) {
    tail_ = tail;
    segment_.store(segment, std::memory_order_release);
  }

  std::atomic<Segment*> segment_{nullptr};
  uint64_t tail_ = 0;  // end of the last entry in segment_
};

// Draws a height in [1, kMaxHeight]: geometric, one in kBranching goes on. `random`: 64 uniform bits.
inline uint32_t RandomHeight(uint64_t random) {
  // They are a fraction in base kBranching: each leading zero digit is one more layer.
  __extension__ using Wide = unsigned __int128;
  uint32_t height = 1;
  while (height < kMaxHeight) {
    const auto product = static_cast<Wide>(random) * kBranching;
    if (static_cast<uint64_t>(product >> 64) != 0) break;
    random = static_cast<uint64_t>(product);
    ++height;
  }
  return height;
}

}  // namespace braiddb
