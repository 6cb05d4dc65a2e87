#include "levels/sorted_runs/run_writer.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "log/log_reader.h"
#include "log/log_writer.h"
#include "util/mutant.h"

namespace braiddb {

RunWriter::RunWriter(RegionSet* regions, SegmentAllocator* segments, const KeyOrder* order, const LevelPlace& place)
    : regions_(regions),
      allocator_(segments),
      place_(place),
      table_(0, 0, regions, order, place.family),
      builder_(regions, &table_),
      tails_(regions->count()) {}

RunWriter::~RunWriter() {
  try {
    for (Segment* segment : segments_) {
      const Status ignored = allocator_->Release(segment);  // after a failure the next open releases it
      (void)ignored;
    }
  } catch (const std::bad_alloc&) {
  }
}

// Ensures room for `bytes` bytes at `offset` of the region's tail. If the tail lacks room, allocates a new segment and makes it
// the tail.
Status RunWriter::Reserve(uint32_t region, uint64_t bytes, uint64_t offset) {
  Tail& tail = tails_[region];
  if (tail.segment != SIZE_MAX && offset + bytes <= segments_[tail.segment]->capacity()) return Status::OK();
  segments_.reserve(segments_.size() + 1);
  used_.reserve(used_.size() + 1);
  Segment* segment = nullptr;
  if (Status status = allocator_->AllocateIndex(region, bytes, &segment); !status.ok()) return status;
  tail = {segments_.size(), 0};
  segments_.push_back(segment);
  used_.push_back(0);
  return Status::OK();
}

// 1. Verify the original's checksum.
// 2. Reserve space behind the last copy of the same region.
// 3. Write the copy, with the original's sequence number and height.
// 4. Link the copy into the run's list.
Status RunWriter::Append(const LogEntry& entry, PmPtr at, PmPtr* copy) {
  const Segment* const home = allocator_->Find(at);
  if (home == nullptr || !LogReader(*home, home->capacity()).ValidAt(home->OffsetOf(at))) return RegionSet::DamagedList();
  const uint32_t region = at.region();
  const uint64_t size = LogEntrySize(entry);
  Tail& tail = tails_[region];
  if (Status status = Reserve(region, size, NextEntryOffset(tail.end)); !status.ok()) return status;
  Segment* const segment = segments_[tail.segment];
  const uint64_t offset = NextEntryOffset(tail.end);
  const LogUpdate update{entry.type(), entry.key(), entry.value(), entry.height(), entry.family()};
  tail.end = LogWriter::WriteEntry({segment, offset, size, false}, offset, entry.sequence(),
                                   entry.tag & (LogEntry::kCopy | LogEntry::kByFilter), update);
  used_[tail.segment] = tail.end;
  bytes_ += LogSpace(offset, size);
  *copy = segment->ptr(offset);
  builder_.Append(regions_->Resolve<LogEntry>(*copy), *copy);
  return Status::OK();
}

// 1. Terminate the list, and find space for the record.
// 2. Write the record: heads, segments with their generations, and a checksum. The generations prevent that a stale record
// matches reused segments.
// 3. Flush all segments and the record. The order of these flushes does not matter, since no link leads to the record before the
// next fence.
Status RunWriter::Finish(RunRecord** result) {
  builder_.Finish();
  // The record goes into the segment with the most free space. If the record does not fit, it gets a new segment, which the
  // record lists too.
  const auto room = [this](const Tail& tail) {
    return tail.segment == SIZE_MAX ? 0 : segments_[tail.segment]->capacity() - tail.end;
  };
  const auto roomiest =
      std::max_element(tails_.begin(), tails_.end(), [&](const Tail& a, const Tail& b) { return room(a) < room(b); });
  const auto region = static_cast<uint32_t>(roomiest - tails_.begin());
  const uint64_t most_bytes = RunRecordBytes(regions_->count(), static_cast<uint32_t>(segments_.size()) + 1);
  const uint64_t aligned = (roomiest->end + kCacheLine - 1) & ~(kCacheLine - 1);
  if (Status status = Reserve(region, most_bytes, aligned); !status.ok()) return status;
  const Tail& tail = tails_[region];
  const uint64_t offset = used_[tail.segment] == 0 ? 0 : aligned;
  Segment* const home = segments_[tail.segment];

  auto* const record = reinterpret_cast<RunRecord*>(home->data() + offset);
  *record = RunRecord{0,
                      0,
                      RunRecord::kMagic,
                      place_.number,
                      home->ptr(offset).raw(),
                      home->generation(),
                      table_.entries,
                      regions_->count(),
                      static_cast<uint32_t>(segments_.size())};
  std::memcpy(HeadsOf(record), table_.heads().data(), 8 * table_.heads().size());
  for (size_t i = 0; i < segments_.size(); ++i)
    SegmentsOf(record)[i] = {segments_[i]->ptr(0).raw(), segments_[i]->generation(), used_[i]};
  record->checksum = RecordChecksum(*record);

  Persistence* const persistence = regions_->persistence();
  const uint64_t record_bytes = RunRecordBytes(record->regions, record->segments);
  for (size_t i = 0; i < segments_.size(); ++i) {
    if (!BRAIDDB_MUTANT("run-not-flushed")) persistence->Flush(segments_[i]->data(), used_[i]);
    flushed_lines_ += (used_[i] + kCacheLine - 1) / kCacheLine;
  }
  if (!BRAIDDB_MUTANT("run-record-not-flushed")) persistence->Flush(record, record_bytes);
  flushed_lines_ += (record_bytes + kCacheLine - 1) / kCacheLine;
  *result = record;
  return Status::OK();
}

}  // namespace braiddb
