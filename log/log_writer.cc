#include "log/log_writer.h"

#include <algorithm>

#include "braiddb/db.h"
#include "util/check.h"
#include "util/short_bytes.h"

namespace braiddb {

Segment* LogWriter::PrepareSeal(SegmentAllocator* segments) {
  Segment* const full = segment_.exchange(nullptr, std::memory_order_seq_cst);
  if (full != nullptr) {
    segments->PrepareSeal(full, full->used_bytes.load(std::memory_order_relaxed),
                          full->last_sequence.load(std::memory_order_relaxed));
  }
  return full;
}

Status LogWriter::Seal(SegmentAllocator* segments) {
  Segment* const full = segment_.exchange(nullptr, std::memory_order_seq_cst);
  if (full == nullptr) return Status::OK();
  return segments->Seal(full, full->used_bytes.load(std::memory_order_relaxed),
                        full->last_sequence.load(std::memory_order_relaxed));
}

// acquire: pairs with the release in Commit of the writer that had the segment; its entries are there.
Status LogWriter::Adopt(SegmentAllocator* segments, Segment* segment) {
  Status status = Seal(segments);
  Open(segment, segment->used_bytes.load(std::memory_order_acquire));
  return status;
}

Status LogWriter::Reserve(SegmentAllocator* segments, uint32_t region, uint64_t bytes, LogSlot* slot, SpaceUse use) {
  if (ReserveHere(bytes, slot)) return Status::OK();
  Segment* fresh = nullptr;
  const Segment* const open = segment();
  // The new segment is allocated before the old one is sealed: without space the old one stays open.
  Status status = segments->Allocate(region, bytes, &fresh, use);
  if (!status.ok()) return status;
  // Segments of a small region are small, and later ones are larger. A write that is large for both gets a segment of its own,
  // so that the rest of the open one is not lost.
  if (open != nullptr && bytes > open->capacity() / 4 && bytes > fresh->capacity() / 4) {
    *slot = LogSlot{fresh, 0, bytes, true};
    return status;
  }
  status = Seal(segments);
  Open(fresh, 0);
  *slot = LogSlot{fresh, 0, bytes, false};
  return status;
}

uint64_t LogWriter::WriteEntry(const LogSlot& slot, uint64_t offset, uint64_t sequence, uint64_t flags, const LogUpdate& update) {
  BRAIDDB_DCHECK(offset >= slot.offset && offset % 8 == 0 && offset < slot.offset + slot.bytes);
  auto* const entry = reinterpret_cast<LogEntry*>(slot.segment->data() + offset);
  return offset + WriteEntryAt(entry, slot.segment->entry_seed(), sequence, flags, update);
}

// The checksum is computed last, over bytes in the cache. All stores are plain: no reader can reach the entry yet.
uint64_t LogWriter::WriteEntryAt(LogEntry* entry, uint64_t entry_seed, uint64_t sequence, uint64_t flags,
                                 const LogUpdate& update) {
  BRAIDDB_DCHECK(update.height >= 1 && update.height <= kMaxHeight && update.family < kMaxFamilies);
  BRAIDDB_DCHECK(update.key.size() <= kMaxKeySize && update.value.size() <= kMaxValueSize && sequence <= kMaxSequence);
  const auto key_size = static_cast<uint32_t>(update.key.size());
  const auto value_size = static_cast<uint32_t>(update.value.size());
  entry->tag = LogEntry::MakeTag(sequence, update.type, flags);
  entry->value_size = value_size;
  entry->shape = LogEntry::MakeShape(key_size, update.height, update.family);
  for (uint32_t layer = 0; layer < update.height; ++layer) StoreRelaxed(&entry->next[layer], 0);
  char* key = reinterpret_cast<char*>(entry->next + update.height);
  CopyBytes(key, update.key);
  CopyBytes(key + key_size, update.value);
  entry->checksum = entry->ComputeChecksum(entry_seed);
  return LogEntrySize(update.height, key_size, value_size);
}

}  // namespace braiddb
