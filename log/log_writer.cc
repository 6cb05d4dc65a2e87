#include "log/log_writer.h"

#include <algorithm>

#include "util/check.h"

namespace braiddb {

uint32_t RandomHeight(uint64_t random) {
  uint32_t height = 1;
  // 64 random bits as a fraction in base kBranching: each leading zero digit is one more layer.
  while (height < kMaxHeight) {
    const auto product = static_cast<unsigned __int128>(random) * kBranching;
    if (static_cast<uint64_t>(product >> 64) != 0) break;
    random = static_cast<uint64_t>(product);
    ++height;
  }
  return height;
}

Status LogWriter::Seal(SegmentAllocator* segments) {
  if (segment_ == nullptr) return Status::OK();
  Segment* full = segment_;
  segment_ = nullptr;
  return segments->Seal(full, tail_, full->last_sequence.load(std::memory_order_relaxed));
}

Status LogWriter::Reserve(SegmentAllocator* segments, uint32_t region, uint64_t bytes, LogSlot* slot) {
  if (segment_ != nullptr) {
    const uint64_t offset = NextEntryOffset(tail_);
    if (offset + bytes <= segment_->capacity()) {
      *slot = LogSlot{segment_, offset, bytes, false};
      return Status::OK();
    }
  }
  Segment* fresh = nullptr;
  if (segment_ != nullptr && bytes > segment_->capacity() / 4) {
    Status status = segments->Allocate(region, bytes, &fresh);
    if (status.ok()) *slot = LogSlot{fresh, 0, bytes, true};
    return status;
  }
  // The new segment comes first: when there is no space for it, the old one stays open.
  Status status = segments->Allocate(region, bytes, &fresh);
  if (!status.ok()) return status;
  status = Seal(segments);
  segment_ = fresh;
  tail_ = 0;
  *slot = LogSlot{segment_, 0, bytes, false};
  return status;
}

uint64_t LogWriter::WriteEntry(const LogSlot& slot, uint64_t offset, uint64_t sequence, uint64_t flags, const LogUpdate& update) {
  auto* entry = reinterpret_cast<LogEntry*>(slot.segment->data() + offset);
  const auto key_size = static_cast<uint32_t>(update.key.size());
  const auto value_size = static_cast<uint32_t>(update.value.size());
  entry->tag = LogEntry::MakeTag(sequence, update.type, flags);
  entry->value_size = value_size;
  entry->shape = LogEntry::MakeShape(key_size, update.height);
  for (uint32_t layer = 0; layer < update.height; ++layer) StoreRelaxed(&entry->next[layer], 0);
  char* key = reinterpret_cast<char*>(entry->next + update.height);
  memcpy(key, update.key.data(), key_size);
  if (value_size != 0) memcpy(key + key_size, update.value.data(), value_size);
  entry->checksum = entry->ComputeChecksum(slot.segment->generation());
  return offset + LogEntrySize(update.height, key_size, value_size);
}

Status LogWriter::Commit(SegmentAllocator* segments, const LogSlot& slot, uint32_t entries, uint64_t last_sequence) {
  Segment* segment = slot.segment;
  // Only this thread writes these; others read them as bounds and hints.
  segment->entries.store(segment->entries.load(std::memory_order_relaxed) + entries, std::memory_order_relaxed);
  segment->last_sequence.store(last_sequence, std::memory_order_relaxed);
  segment->used_bytes.store(slot.offset + slot.bytes, std::memory_order_release);  // pairs with the acquire in checkpoints
  if (slot.dedicated) return segments->Seal(segment, slot.bytes, last_sequence);
  BRAIDDB_DCHECK(segment == segment_);
  tail_ = slot.offset + slot.bytes;
  return Status::OK();
}

}  // namespace braiddb
