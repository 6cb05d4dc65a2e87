#include "db/log_iterator.h"

#include <algorithm>
#include <utility>

#include "db/db_impl.h"
#include "db/no_memory.h"
#include "log/range_record.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

Status IsGone(uint64_t next, uint64_t floor) {
  return Status::NotFound("the log does not have sequence number " + std::to_string(next) + " any more: writes up to number " +
                          std::to_string(floor) + " may have been reclaimed");
}

// Adds the deletion of a range as the user wrote it. The deletion of the record itself is not shown.
void AddRange(const LogEntry& record, WriteBatch* updates) {
  RangeTombstone range;
  uint32_t family = 0;
  if (record.type() == EntryType::kPut && RangeRecord::Parse(record.key(), record.value(), record.sequence(), &family, &range))
    updates->DeleteRangeCF(family, range.begin, range.end);
}

void Add(const LogEntry& entry, WriteBatch* updates) {
  switch (entry.type()) {
    case EntryType::kDelete:
      return updates->DeleteCF(entry.family(), entry.key());
    case EntryType::kPut:
      return updates->PutCF(entry.family(), entry.key(), entry.value());
    case EntryType::kMerge:
      return updates->MergeCF(entry.family(), entry.key(), entry.value());
  }
}

}  // namespace

// ---- The database

Status DBImpl::GetUpdatesSince(uint64_t sequence, std::unique_ptr<TransactionLogIterator>* iterator) try {
  iterator->reset();
  if (sequence > GetLatestSequenceNumber()) return Status::NotFound("Requested sequence not yet written in the db");
  auto result = std::make_unique<LogIterator>(this, std::max<uint64_t>(1, sequence));
  result->Next();
  if (!result->status().ok()) return result->status();
  *iterator = std::move(result);
  return Status::OK();
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// ORDER: called before the segment is retired. seq_cst: a thread that pins later sees the new floor; see log_iterator.h.
void DBImpl::RaiseLogFloor(uint64_t sequence) {
  if (log_floor_.load(std::memory_order_relaxed) < sequence) log_floor_.store(sequence, std::memory_order_seq_cst);
}

// ---- The iterator

LogIterator::~LogIterator() { Unpin(); }

void LogIterator::Unpin() {
  if (std::exchange(is_pinned_, false)) db_->epochs_.Unpin(pin_);
}

LoggedBatch LogIterator::GetBatch() { return std::exchange(batch_, LoggedBatch()); }

// Of the hidden families, users see only the ranges that they deleted.
bool LogIterator::IsShown(const LogEntry& entry) const {
  if (!db_->IsHidden(entry.family())) return true;
  const Family* const ranges = db_->range_family_.load(std::memory_order_acquire);
  return ranges != nullptr && entry.family() == ranges->id && entry.type() == EntryType::kPut;
}

bool LogIterator::Damaged(const Segment& segment, uint64_t offset) {
  status_ = Status::Corruption("region " + std::to_string(segment.region()) + ": the log is damaged at byte " +
                               std::to_string(offset) + " of a segment");
  return false;
}

void LogIterator::Next() try {
  do {
    NextWrite();
  } while (is_valid_ && batch_.updates->Count() == 0);
} catch (const std::bad_alloc&) {
  // The next call fills a new window, from the successor of the last batch on.
  is_valid_ = false;
  batch_ = LoggedBatch();
  runs_.clear();
  bound_ = 0;
  status_ = NoMemory();
}

void LogIterator::NextWrite() {
  is_valid_ = false;
  batch_ = LoggedBatch();
  if (status_.IsMemoryLimit()) status_ = Status::OK();
  if (!status_.ok()) return;
  while (runs_.empty() || runs_.front().first > bound_) {
    if (bound_ != 0) next_ = bound_ + 1;
    if (!FillWindow()) return;
  }
  uint64_t end = 0;
  if (!ReadBatch(runs_.front(), &end)) return;
  std::pop_heap(runs_.begin(), runs_.end());
  Run run = runs_.back();
  runs_.pop_back();
  if (FindBatch(&run, end)) {
    runs_.push_back(run);
    std::push_heap(runs_.begin(), runs_.end());
  }
}

// Sets up the next window. False if there is nothing to read, or after an error.
// STEPS   1 pin  2 load the floor  3 choose a bound up to which all writes are published  4 collect the segments.
// ORDER   1 before 2, and 3 before 4; see log_iterator.h. The old pin ends when the new one exists. If segments with the next
//         update were retired since the old pin, that pin stays, and with it these segments.
bool LogIterator::FillWindow() {
  runs_.clear();
  bound_ = 0;
  const uint64_t pin = db_->epochs_.Pin();
  const uint64_t floor = db_->log_floor_.load(std::memory_order_seq_cst);
  BRAIDDB_SYNC_POINT("LogIterator:Pinned");
  if (next_ > floor) {
    Unpin();
    pin_ = pin;
    floor_ = floor;
    is_pinned_ = true;
  } else {
    db_->epochs_.Unpin(pin);
    if (!is_pinned_ || next_ <= floor_) {
      status_ = IsGone(next_, floor);
      Unpin();
      return false;
    }
  }
  if (db_->LastDrawn() < next_) return false;  // the end of the log at this time; the pin stays
  const uint64_t bound = db_->ChooseLogBound();
  db_->segments_->ForEachLog([this](const Segment* segment) {
    if (status_.ok()) AddRun(segment);
  });
  std::make_heap(runs_.begin(), runs_.end());
  bound_ = bound;
  return status_.ok();
}

// Adds the segment's entries to the window. A segment that is released and reused concurrently has none: its old entries are
// below the floor, and its new ones above the bound. Reuse changes the generation before the counters that are loaded below start
// again.
bool LogIterator::AddRun(const Segment* segment) {
  const uint64_t generation = segment->generation();
  const SegmentState state = segment->state();
  const uint64_t last = segment->last_sequence.load(std::memory_order_acquire);
  const uint64_t used = segment->used_bytes.load(std::memory_order_acquire);
  const bool holds_log = state == SegmentState::kOpen || state == SegmentState::kSealed;
  if (!holds_log || last < next_ || used == 0 || segment->holds_copies.load(std::memory_order_relaxed) ||
      segment->generation() != generation) {
    return true;
  }
  Run run{segment, used, 0, 0};
  if (!FindBatch(&run, 0)) return status_.ok();
  runs_.push_back(run);
  return true;
}

// Moves *run to the first batch at or after `from` that has a visible update with the number next_ or a larger one. False if
// there is none, or after an error. A batch may end with records that users do not see. A follower that has all visible updates
// of such a batch does not get the batch again.
bool LogIterator::FindBatch(Run* run, uint64_t from) {
  LogReader reader(run->segment->data(), run->segment->entry_seed(), run->limit, from);
  while (reader.end() < run->limit) {
    const LogEntry* entry = reader.NextTrusted();
    if (entry == nullptr) return Damaged(*run->segment, reader.end());
    run->offset = reader.entry_offset();
    run->first = entry->sequence();
    uint64_t last_shown = IsShown(*entry) ? entry->sequence() : 0;
    while (entry->more_follows()) {
      entry = reader.NextTrusted();
      if (entry == nullptr) return Damaged(*run->segment, reader.end());
      if (IsShown(*entry)) last_shown = entry->sequence();
    }
    if (last_shown >= next_) return true;
  }
  return false;
}

// *end: the end of the batch in its segment.
bool LogIterator::ReadBatch(const Run& run, uint64_t* end) {
  LogReader reader(run.segment->data(), run.segment->entry_seed(), run.limit, run.offset);
  auto updates = std::make_unique<WriteBatch>();
  uint64_t sequence = run.first;
  for (bool more = true; more; ++sequence) {
    const LogEntry* const entry = reader.NextTrusted();
    if (entry == nullptr || !reader.ValidAt(reader.entry_offset()) || entry->sequence() != sequence)
      return Damaged(*run.segment, reader.end());
    if (!db_->IsHidden(entry->family())) {
      Add(*entry, updates.get());
    } else if (IsShown(*entry)) {
      AddRange(*entry, updates.get());
    }
    more = entry->more_follows();
  }
  *end = reader.end();
  batch_ = {run.first, std::move(updates)};
  next_ = sequence;
  is_valid_ = true;
  return true;
}

}  // namespace braiddb
