#include "log/log_reader.h"

#include <algorithm>

#include "braiddb/db.h"
#include "util/mutant.h"
#include "util/prefetch.h"

namespace braiddb {
namespace {

// The CPU does not read ahead from one page into the next.
constexpr uint64_t kBytesAhead = 2048;
constexpr uint64_t kMostFetched = 4 * kCacheLine;

}  // namespace

LogEntry* LogReader::At(uint64_t offset) const {
  if (offset + sizeof(LogEntry) > limit_) return nullptr;
  auto* entry = reinterpret_cast<LogEntry*>(data_ + offset);
  const uint32_t height = entry->height();
  if (height == 0 || height > kMaxHeight) return nullptr;
  if (entry->key_size() > kMaxKeySize || entry->value_size > kMaxValueSize) return nullptr;
  if (offset + LogEntrySize(*entry) > limit_) return nullptr;
  return entry;
}

bool LogReader::ValidAt(uint64_t offset) const {
  const LogEntry* entry = At(offset);
  return entry != nullptr && entry->checksum != 0 &&
         (entry->checksum == entry->ComputeChecksum(entry_seed_) || BRAIDDB_MUTANT("torn-entry-trusted"));
}

bool LogReader::MayBeEntry(const LogEntry& entry) const {
  constexpr uint64_t kKnownBits =
      LogEntry::kCopy | LogEntry::kByFilter | LogEntry::kBatchMember | LogEntry::kMoreFollows | LogEntry::kTypeMask;
  return (entry.tag & 0xff & ~kKnownBits) == 0 && entry.type() <= kLastEntryType &&
         (entry.is_batch_member() || !entry.more_follows()) && entry.sequence() != 0 && entry.sequence() <= max_sequence_;
}

bool LogReader::ValidWithinLimit(uint64_t offset, const LogEntry& entry) const {
  const uint64_t bytes = LogEntrySize(entry);
  hashing_ended_ = hashing_ended_ || bytes > hashing_limit_ - hashed_bytes_;
  if (hashing_ended_) return false;
  hashed_bytes_ += bytes;
  return ValidAt(offset);
}

uint64_t LogReader::FindValid(uint64_t from, uint64_t until) const {
  for (uint64_t offset = from; offset < until && offset + sizeof(LogEntry) <= limit_; offset += 8) {
    if (offset % kCacheLine > kLastStart) continue;
    if (reinterpret_cast<const LogEntry*>(data_ + offset)->shape == 0) continue;  // most often nothing was written here
    const LogEntry* entry = At(offset);
    if (entry != nullptr && MayBeEntry(*entry) && ValidWithinLimit(offset, *entry)) return offset;
    if (hashing_ended_) break;
  }
  return UINT64_MAX;
}

uint64_t LogReader::FindWholeWrite(uint64_t from, uint64_t until) const {
  bool after_batch = false;
  for (uint64_t at = FindValid(from, until); at != UINT64_MAX; at = FindValid(at, until)) {
    const LogEntry& entry = *At(at);
    if (!entry.is_batch_member() || after_batch) return at;
    after_batch = !entry.more_follows();
    at += LogEntrySize(entry);
  }
  return UINT64_MAX;
}

bool LogReader::ValidBatchAt(uint64_t offset, uint64_t* batch_end) const {
  for (;;) {
    if (!ValidAt(offset)) return false;
    const LogEntry* entry = At(offset);
    *batch_end = offset + LogEntrySize(*entry);
    if (!entry->more_follows() || BRAIDDB_MUTANT("cut-batch-trusted")) return true;
    offset = NextEntryOffset(*batch_end);
  }
}

const LogEntry* LogReader::NextValid() {
  const uint64_t offset = NextEntryOffset(end_);
  if (offset >= batch_end_ && !ValidBatchAt(offset, &batch_end_)) return nullptr;
  return NextTrusted();
}

LogEntry* LogReader::NextTrusted() {
  const uint64_t offset = NextEntryOffset(end_);
  LogEntry* entry = At(offset);
  if (entry == nullptr) return nullptr;
  const uint64_t size = LogEntrySize(*entry);
  // Entries differ in height, so where one begins that is some further on is not known.
  PrefetchAll(data_ + offset + kBytesAhead, std::min(size, kMostFetched));
  entry_offset_ = offset;
  end_ = offset + size;
  return entry;
}

}  // namespace braiddb
