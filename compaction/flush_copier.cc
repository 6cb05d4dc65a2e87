#include "compaction/flush_copier.h"

#include <algorithm>
#include <new>

#include "compaction/list_builder.h"
#include "log/log_reader.h"
#include "log/log_writer.h"
#include "util/mutant.h"

namespace braiddb {

FlushCopier::FlushCopier(const RegionSet* regions, SegmentAllocator* segments)
    : regions_(regions), segments_(segments), writers_(regions->count()) {}

FlushCopier::~FlushCopier() {
  try {
    for (Segment* segment : copies_) {
      Status ignored = segments_->Discard(segment);  // after a failure the next open discards it
      (void)ignored;
    }
  } catch (const std::bad_alloc&) {
  }
}

// A copy keeps type, key, value, height, family, and sequence number, so the table of the copies equals the table of the
// originals. It stays in the original's region, so upper layers link the same entries. If a segment is full, the next segment of
// the region is allocated; an entry never spans two segments.
bool FlushCopier::Copy(LogEntry** entry, PmPtr* pointer) {
  if (!status_.ok()) return false;
  const LogEntry& original = **entry;
  const uint32_t region = pointer->region();
  const uint64_t size = LogEntrySize(original);
  Writer& writer = writers_[region];
  uint64_t offset = NextEntryOffset(writer.tail);
  if (writer.segment == nullptr || offset + size > writer.segment->capacity()) {
    writer.segment = nullptr;
    copies_.reserve(copies_.size() + 1);
    status_ = segments_->AllocateFlushed(region, size, &writer.segment);
    if (!status_.ok()) return false;
    copies_.push_back(writer.segment);
    offset = 0;
  }
  Segment* const segment = writer.segment;
  const LogUpdate update{original.type(), original.key(), original.value(), original.height(), original.family()};
  const uint64_t flags = LogEntry::kCopy | (original.tag & LogEntry::kByFilter);
  writer.tail = LogWriter::WriteEntry({segment, offset, size, false}, offset, original.sequence(), flags, update);
  segment->entries.fetch_add(1, std::memory_order_relaxed);
  segment->used_bytes.store(writer.tail, std::memory_order_relaxed);
  segment->last_sequence.store(std::max(segment->last_sequence.load(std::memory_order_relaxed), original.sequence()),
                               std::memory_order_relaxed);
  *pointer = segment->ptr(offset);
  *entry = regions_->Resolve<LogEntry>(*pointer);
  return true;
}

// Step F2 covers the pointers too: ListBuilder has stored them into the copies before this call. One fence serves all segments,
// and only then are the segments sealed.
Status FlushCopier::Finish(uint64_t* flushed_lines) {
  if (!status_.ok() || copies_.empty()) return status_;
  if (BRAIDDB_MUTANT("flushed-copies-sealed-first")) return SealCopies();
  Persistence* const persistence = regions_->persistence();
  for (Segment* segment : copies_) {
    const uint64_t bytes = segment->used_bytes.load(std::memory_order_relaxed);
    // A segment that is at least half full counts as packed. Otherwise relocation would copy the last segment of every flush
    // again.
    if (2 * bytes >= segment->capacity()) segment->packed.store(true, std::memory_order_relaxed);
    if (!BRAIDDB_MUTANT("flushed-copies-not-flushed")) persistence->Flush(segment->data(), bytes);
    *flushed_lines += bytes / kCacheLine + 1;
  }
  // ORDER: copies and their pointers before the state that lets them count, and the MANIFEST that lists their table. [CC-53]
  if (!persistence->Drain()) return status_ = persistence->error();
  return SealCopies();
}

// Seals one segment after the other. After an error the remaining segments stay in copies_, and the destructor discards them.
Status FlushCopier::SealCopies() {
  while (!copies_.empty()) {
    Segment* const segment = copies_.back();
    status_ = segments_->Seal(segment, segment->used_bytes.load(std::memory_order_relaxed),
                              segment->last_sequence.load(std::memory_order_relaxed));
    if (!status_.ok()) return status_;
    copies_.pop_back();
  }
  return Status::OK();
}

// The list is walked in entry order, so ListBuilder receives the copies in entry order.
Status CopyTable(const PmTable& from, FlushCopier* copier, PmTable* to) {
  const RegionSet& regions = from.list.regions();
  ListBuilder builder(&regions, to);
  for (LogEntry* original = from.list.First(); original != nullptr; original = from.list.Next(original)) {
    LogEntry* entry = original;
    PmPtr pointer = regions.Find(original);
    if (!copier->Copy(&entry, &pointer)) return copier->status();
    builder.Append(entry, pointer);
  }
  builder.Finish();
  return Status::OK();
}

namespace {

// Whether a sealed segment holds copies or log entries. The first intact entry decides, so that damage cannot turn the answer: a
// segment of the wrong kind is released. If no entry is intact, the answer is the kind that nobody releases: copies below the
// boundary, log above it. The replay then reports a damaged log.
bool HasCopies(const Segment& segment, uint64_t log_boundary) {
  const uint64_t first = LogReader(segment, segment.sealed_bytes()).FindValid(0);
  if (first != UINT64_MAX) return reinterpret_cast<const LogEntry*>(segment.data() + first)->is_copy();
  return segment.sealed_bytes() != 0 && segment.sealed_last_sequence() < log_boundary;
}

}  // namespace

// 1. Discard the kFlushed segments: their flush did not finish.
// 2. Find out which sealed segments hold copies.
// 3. Release the sealed segments of copies at or above the log boundary. Their table is not in the MANIFEST, because listing a
// table moves the boundary past its entries.
Status FinishFlushes(SegmentAllocator* segments, uint64_t log_boundary) {
  std::vector<Segment*> unlisted;
  segments->ForEachFlushed([&unlisted](Segment* segment) { unlisted.push_back(segment); });
  for (Segment* segment : unlisted) {
    if (Status status = segments->Discard(segment); !status.ok()) return status;
  }
  unlisted.clear();
  segments->ForEachLog([&](Segment* segment) {
    if (segment->state() != SegmentState::kSealed) return;
    const bool is_copy = HasCopies(*segment, log_boundary);
    segment->holds_copies.store(is_copy, std::memory_order_relaxed);
    if (is_copy && segment->sealed_last_sequence() >= log_boundary) unlisted.push_back(segment);
  });
  for (Segment* segment : unlisted) {
    if (Status status = segments->Release(segment); !status.ok()) return status;
  }
  return Status::OK();
}

}  // namespace braiddb
