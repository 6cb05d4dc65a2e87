#include "log/log_writer.h"

#include <algorithm>
#include <cstring>

#include "braiddb/db.h"
#include "pmem/append_probe.h"
#include "util/check.h"
#include "util/long_hash.h"
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

namespace {

// A piece of this size is in the first-level cache when it is copied, since it was hashed just before.
constexpr size_t kStreamedPiece = 4096;

// Stores all fields but the checksum, and the key. Returns the place of the value.
char* WriteHead(LogEntry* entry, uint64_t sequence, uint64_t flags, const LogUpdate& update) {
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
  return key + key_size;
}

// Hashes and copies a value piece by piece. Its first and last bytes, which share lines with other bytes, stay in the caches.
void StreamValue(char* value, Slice from, LongHash* hash, LogWriter::Streamed* streamed) {
  const auto address = reinterpret_cast<uintptr_t>(value);
  const size_t head = (kCacheLine - address % kCacheLine) % kCacheLine;
  const size_t lines = (from.size() - head) / kCacheLine * kCacheLine;
  hash->Add(from.data(), head);
  std::memcpy(value, from.data(), head);
  for (size_t at = head; at < head + lines; at += kStreamedPiece) {
    const size_t bytes = std::min(kStreamedPiece, head + lines - at);
    hash->Add(from.data() + at, bytes);
    StreamLines(value + at, from.data() + at, bytes);
  }
  const size_t rest = head + lines;
  hash->Add(from.data() + rest, from.size() - rest);
  std::memcpy(value + rest, from.data() + rest, from.size() - rest);
  streamed->begin = reinterpret_cast<uint8_t*>(value) + head;
  streamed->end = streamed->begin + lines;
}

}  // namespace

uint64_t LogWriter::WriteEntry(const LogSlot& slot, uint64_t offset, uint64_t sequence, uint64_t flags, const LogUpdate& update,
                               Streamed* streamed) {
  BRAIDDB_DCHECK(offset >= slot.offset && offset % 8 == 0 && offset < slot.offset + slot.bytes);
  auto* const entry = reinterpret_cast<LogEntry*>(slot.segment->data() + offset);
  const uint64_t seed = slot.segment->entry_seed();
  if (streamed == nullptr || update.value.size() < kStreamedValue)
    return offset + WriteEntryAt(entry, seed, sequence, flags, update);
  char* const value = WriteHead(entry, sequence, flags, update);
  LongHash hash(entry->ChecksumSeed(seed));
  hash.Add(update.key.data(), update.key.size());
  StreamValue(value, update.value, &hash, streamed);
  entry->checksum = LogEntry::ChecksumOf(hash.Result());
  return offset + LogEntrySize(update.height, update.key.size(), update.value.size());
}

// The checksum is computed last, over bytes in the cache. All stores are plain: no reader can reach the entry yet.
uint64_t LogWriter::WriteEntryAt(LogEntry* entry, uint64_t entry_seed, uint64_t sequence, uint64_t flags,
                                 const LogUpdate& update) {
  CopyBytes(WriteHead(entry, sequence, flags, update), update.value);
  entry->checksum = entry->ComputeChecksum(entry_seed);
  return LogEntrySize(update.height, update.key.size(), update.value.size());
}

}  // namespace braiddb
