// LogWriter: appends log entries to the open segment of one thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "braiddb/slice.h"
#include "braiddb/status.h"
#include "log/log_entry.h"
#include "pmem/segment_allocator.h"
#include "util/check.h"

namespace braiddb {

// One update, as it is written into the log. Key and value are copied by WriteEntry.
struct LogUpdate {
  EntryType type;
  Slice key;
  Slice value;
  uint32_t height;      // height of the skiplist node, from RandomHeight: the record has room for next[height]
  uint32_t family = 0;  // id of the column family
};

// Log space that Reserve has found. The writer has not moved until Commit: without it the space is given up, and the next
// Reserve returns it again.
struct LogSlot {
  Segment* segment = nullptr;
  uint64_t offset = 0;     // offset of the first entry in the segment
  uint64_t bytes = 0;      // bytes from there to the end of the last entry
  bool dedicated = false;  // the segment belongs to this write alone, and is sealed by Commit
};

// GOAL          One fence makes a write of any number of entries durable.
// STEPS         1 Reserve  2 WriteEntry for each update  3 the caller flushes the entries  4 the caller drains (one fence)
//               5 Commit. The entries become visible to readers when the caller links them into a memtable, after 4. [CC-6]
// CRASH         before the fence: an entry may be torn, so it and its batch are invalid. After the fence: all entries are
//               valid. Commit stores in DRAM only, except for the seal of a dedicated segment.
// HANDING OVER  Another thread may take the open segment away (Disown). The owner must not use a slot of a segment that was
//               taken. The two threads exclude each other as in Dekker's algorithm: the owner announces its write and then
//               calls Owns; the other thread disowns, and then waits until no write that was announced earlier is under way
//               (db/open_segments.cc). Segment::used_bytes tells the next owner where the entries end.
// Thread safety: the owner, one thread at a time, calls all methods; any thread may call segment() and Disown.
class LogWriter {
 public:
  LogWriter() = default;
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Finds room for `bytes` contiguous bytes. If the open segment has no room, allocates another one in `region` and seals the
  // full one. A write that has no room, and is larger than a quarter of the open segment and of the new one, gets the new
  // segment for itself, and the open one stays open. NoSpace: nothing has changed. Other errors: a seal has failed, and writing
  // must stop.
  Status Reserve(SegmentAllocator* segments, uint32_t region, uint64_t bytes, LogSlot* slot,
                 SpaceUse use = SpaceUse::kBackground);
  // As Reserve, in the open segment only. Returns false if there is no open segment, or no room in it.
  bool ReserveHere(uint64_t bytes, LogSlot* slot) const {
    Segment* const open = segment();
    if (open == nullptr) return false;
    const uint64_t offset = NextEntryOffset(tail_);
    if (offset + bytes > open->capacity()) return false;
    *slot = LogSlot{open, offset, bytes, false};
    return true;
  }
  // Returns true if the slot's segment still belongs to this writer, or is dedicated to the slot. Call after the write has been
  // announced. seq_cst: pairs with Disown (HANDING OVER).
  bool Owns(const LogSlot& slot) const { return segment_.load(std::memory_order_seq_cst) == slot.segment || slot.dedicated; }

  // Lines of an entry that bypassed the caches. They need no Flush.
  struct Streamed {
    uint8_t* begin = nullptr;
    uint8_t* end = nullptr;
  };
  // Writes one entry at `offset` of the slot's segment, by plain stores without a flush. Returns the offset behind the entry.
  // `streamed`: if it is not null, the whole lines of a value of at least kStreamedValue bytes bypass the caches
  // (Persistence::streams_lines), and *streamed is set. Otherwise *streamed is left unchanged.
  static uint64_t WriteEntry(const LogSlot& slot, uint64_t offset, uint64_t sequence, uint64_t flags, const LogUpdate& update,
                             Streamed* streamed = nullptr);
  static constexpr size_t kStreamedValue = 2048;
  // Writes one entry to DRAM, from where the caller copies it to a segment with this entry_seed. Returns its size.
  static uint64_t WriteEntryAt(LogEntry* entry, uint64_t entry_seed, uint64_t sequence, uint64_t flags, const LogUpdate& update);

  // Advances the writer behind the slot's entries, and updates the segment's counts in DRAM. Seals a dedicated segment.
  // REQUIRES: the entries are durable, or the mode defers durability.
  Status Commit(SegmentAllocator* segments, const LogSlot& slot, uint32_t entries, uint64_t last_sequence) {
    Segment* const segment = slot.segment;
    BRAIDDB_DCHECK(slot.offset + slot.bytes <= segment->capacity());
    // Only this thread writes these fields; others read them as bounds and hints.
    segment->entries.store(segment->entries.load(std::memory_order_relaxed) + entries, std::memory_order_relaxed);
    segment->last_sequence.store(last_sequence, std::memory_order_relaxed);
    segment->used_bytes.store(slot.offset + slot.bytes, std::memory_order_release);  // pairs with the acquire in checkpoints
    if (__builtin_expect(slot.dedicated, 0)) return segments->Seal(segment, slot.bytes, last_sequence);
    tail_ = slot.offset + slot.bytes;
    return Status::OK();
  }

  // Seals the open segment, if any; the next Reserve opens another.
  Status Seal(SegmentAllocator* segments);
  // The first step of a seal (SegmentAllocator::PrepareSeal). Returns the segment for SealPrepared; null if none is open.
  Segment* PrepareSeal(SegmentAllocator* segments);

  // Continues in an open segment that Disown has taken from another writer; seals the present one. REQUIRES: the other writer's
  // last write to the segment is durable and committed.
  Status Adopt(SegmentAllocator* segments, Segment* segment);
  // Takes the segment from this writer. Returns false if the writer has another segment or none. seq_cst: pairs with Owns.
  bool Disown(Segment* segment) { return segment_.compare_exchange_strong(segment, nullptr, std::memory_order_seq_cst); }

  // Returns the open segment; null if there is none. acquire: pairs with the release in Open; the fields of the handle are set.
  Segment* segment() const { return segment_.load(std::memory_order_acquire); }

 private:
  // Makes `segment` the open one, with entries up to `tail`.
  void Open(Segment* segment, uint64_t tail) {
    BRAIDDB_DCHECK(tail <= segment->capacity());
    tail_ = tail;
    segment_.store(segment, std::memory_order_release);
  }

  std::atomic<Segment*> segment_{nullptr};
  uint64_t tail_ = 0;  // end of the last entry in segment_
};

// Draws a height in [1, kMaxHeight] from 64 uniform bits: a geometric distribution, in which one node in kBranching reaches
// each further layer.
inline uint32_t RandomHeight(uint64_t random) {
  // The bits are a fraction in base kBranching. Each leading zero digit adds a layer.
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
