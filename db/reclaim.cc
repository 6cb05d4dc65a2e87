// Reclamation: segments in which nothing lives any more come back.
#include "db/db_impl.h"
#include "db/no_memory.h"
#include "log/log_reader.h"
#include "util/sync_point.h"

namespace braiddb {

bool DBImpl::AccountOneSegment() {
  while (!unaccounted_.empty()) {
    Segment* segment = unaccounted_.back();
    unaccounted_.pop_back();
    if (segment->state() != SegmentState::kSealed || IsFlushedByCopies(*segment)) continue;
    LogReader reader(*segment, segment->sealed_bytes());
    uint64_t entries = 0;
    uint64_t dead = 0;
    uint64_t dead_bytes = 0;
    std::map<uint32_t, std::vector<std::string>> operands;  // by family: keys that an earlier session has not collapsed
    while (const LogEntry* entry = reader.NextTrusted()) {
      ++entries;
      if (!entry->is_obsolete()) {
        if (entry->is_operand()) operands[entry->family()].emplace_back(entry->key());
        continue;
      }
      ++dead;
      dead_bytes += LogSpace(reader.entry_offset(), LogEntrySize(*entry));
    }
    if (reader.end() != segment->sealed_bytes()) ++entries;  // damaged: what is behind may live
    for (auto& [id, keys] : operands) {
      if (const Family* const family = FindFamily(id)) NoteOperandKeys(*family, std::move(keys));
    }
    segment->dead_bytes.store(dead_bytes, std::memory_order_relaxed);
    segment->dead_entries.store(dead, std::memory_order_relaxed);
    segment->entries.store(entries, std::memory_order_relaxed);
    return true;
  }
  return false;
}

// A segment whose entries are all marked is released when every reader that may be inside has left. The counters are hints; the
// marks, which became durable with the unlinking, decide. [CC-7]
// REQUIRES: compaction_mutex_
void DBImpl::ReclaimSegments() {
  // A merge that copies has marked entries of tables that are still there: what is marked counts until it is at its end. [CC-52]
  if (resume_merge_.load(std::memory_order_acquire)) return;
  uint64_t boundary = 0;
  {
    std::lock_guard lock(manifest_mutex_);
    boundary = manifest_state_.log_boundary;
  }
  segments_->ForEachLog([&](Segment* segment) {
    const uint64_t entries = segment->entries.load(std::memory_order_relaxed);
    if (segment->state() != SegmentState::kSealed || entries == 0 || segment->sealed_last_sequence() >= boundary) return;
    if (IsFlushedByCopies(*segment)) return;
    if (segment->dead_entries.load(std::memory_order_relaxed) < entries) return;
    LogReader reader(*segment, segment->sealed_bytes());
    while (const LogEntry* entry = reader.NextTrusted()) {
      if (!entry->is_obsolete()) {
        Log("reclaim: a segment's counters and marks disagree; it is kept");
        segment->dead_entries.store(0, std::memory_order_relaxed);
        return;
      }
    }
    if (reader.end() != segment->sealed_bytes()) return;
    segment->entries.store(0, std::memory_order_relaxed);  // not a candidate again
    if (!segment->holds_copies.load(std::memory_order_relaxed)) RaiseLogFloor(segment->sealed_last_sequence());
    if (moved_ != nullptr && moved_->from.contains(segment)) {
      // Not while a merge may mark entries in it.
      moved_->retired.push_back(segment);
      moved_->waiting.fetch_add(1, std::memory_order_relaxed);
      epochs_.RetirePinned([moved = moved_] { moved->waiting.fetch_sub(1, std::memory_order_release); });
    } else {
      epochs_.RetirePinned([this, segment] { Release(segment); });
    }
  });
  epochs_.Reclaim();
  ReleaseMoved();
}

void DBImpl::Release(Segment* segment) {
  try {
    BRAIDDB_SYNC_POINT("DBImpl::Release");
    const Status status = segments_->Release(segment);
    Settle(Work::kRelease, status);
    if (segments_->has_deferred()) NotifyWork();  // the compaction thread frees it when readers let it
  } catch (const std::bad_alloc&) {
    Settle(Work::kRelease, NoMemory());  // it is free on media or not; the next open knows
  }
}

}  // namespace braiddb
