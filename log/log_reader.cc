#include "log/log_reader.h"

#include <algorithm>

#include "braiddb/db.h"
#include "util/check.h"
#include "util/mutant.h"
#include "util/prefetch.h"

namespace braiddb {
namespace {

// Distance of prefetches. The hardware prefetcher stops at the end of a page, so the reader prefetches across it.
constexpr uint64_t kBytesAhead = 2048;
constexpr uint64_t kMostFetched = 4 * kCacheLine;

}  // namespace

LogEntry* LogReader::At(uint64_t offset) const {
  BRAIDDB_DCHECK(offset % 8 == 0);
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
    if (reinterpret_cast<const LogEntry*>(data_ + offset)->shape == 0) continue;  // unwritten space, the most frequent case
    const LogEntry* entry = At(offset);
    if (entry != nullptr && MayBeEntry(*entry) && ValidWithinLimit(offset, *entry)) return offset;
    if (hashing_ended_) break;
  }
  return UINT64_MAX;
}

// The first valid entry that is a batch member may belong to the write that a crash has cut short, or to a batch that it has
// torn. Behind the last member of a batch another write begins, which the writer has started after it committed the batch.
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

// An entry below batch_end_ was verified together with the first entry of its batch.
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
  // The offsets of later entries are unknown, so the lines at a fixed distance are prefetched, as many as this entry has.
  PrefetchAll(data_ + offset + kBytesAhead, std::min(size, kMostFetched));
  BRAIDDB_DCHECK(offset % 8 == 0 && offset + size <= limit_);
  entry_offset_ = offset;
  end_ = offset + size;
  return entry;
}

}  // namespace braiddb
