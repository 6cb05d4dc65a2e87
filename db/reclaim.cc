// Reclamation: releases segments that have no live entry.
#include <algorithm>
#include <utility>

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
    // By family: keys with operands that an earlier session has not collapsed.
    std::map<uint32_t, std::vector<std::string>> operands;
    while (const LogEntry* entry = reader.NextTrusted()) {
      ++entries;
      if (!entry->is_obsolete()) {
        if (entry->is_operand()) operands[entry->family()].emplace_back(entry->key());
        continue;
      }
      ++dead;
      dead_bytes += LogSpace(reader.entry_offset(), LogEntrySize(*entry));
    }
    if (reader.end() != segment->sealed_bytes()) ++entries;  // the segment is damaged: entries after the damage may be live
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

// Sessions may be so short that the compaction thread has no turn before the close, each with a segment of its own. So a close
// waits for a part of that thread's work. The part is small: such segments have few entries. If it takes long all the same, for
// example since the medium is a disk, the close does not wait (EndCompactionThread): the next session resumes a merge.
void DBImpl::TidyBeforeClose() try {
  constexpr uint64_t kMuchUnused = 64 << 20;  // bytes of segments that are nearly empty
  constexpr uint64_t kMostRead = 1 << 20;     // bytes of entries that are counted
  constexpr uint64_t kMostMerged = 10'000;    // entries
  const auto unused = [this] {
    uint64_t bytes = 0;
    segments_->ForEachLog([&bytes](const Segment* segment) {
      if (segment->state() == SegmentState::kSealed && segment->sealed_bytes() < segment->capacity() / 16)
        bytes += segment->capacity() - segment->sealed_bytes();
    });
    return bytes;
  };
  if (write_failed_.load(std::memory_order_acquire) || !changing_.MergesByItself() || unused() < kMuchUnused) return;
  {
    const std::lock_guard manifest_lock(manifest_mutex_);
    if (manifest_state_.merge_id != 0 && manifest_state_.merging_tables == 0) return;  // a sweep has to be resumed first
  }
  Status status;
  job_stop_ = &tidying_stops_;
  for (uint64_t left = l0_load_.entries(), before = kMostMerged + 1; status.ok() && 0 < left && left < before;) {
    status = CompactTables();
    before = std::exchange(left, l0_load_.entries());
  }
  std::sort(unaccounted_.begin(), unaccounted_.end(),
            [](const Segment* a, const Segment* b) { return a->sealed_bytes() > b->sealed_bytes(); });
  const auto stops = [this] { return tidying_stops_.load(std::memory_order_acquire); };
  for (uint64_t read = 0; status.ok() && !unaccounted_.empty() && read < kMostRead && !stops();) {
    read += unaccounted_.back()->sealed_bytes();
    AccountOneSegment();
  }
  if (status.ok()) ReclaimSegments();
  bool relocated = false;
  const bool is_merged = l0_load_.most() == 0 && !MergeIsUnfinished();
  if (status.ok() && is_merged && unused() >= kMuchUnused) status = RelocateSparse(&relocated);
  if (status.ok() && relocated) status = CompactTables();
  Settle(Work::kMerge, status);
  Settle(Work::kRelease, segments_->FreeDeferred(false));
} catch (const std::bad_alloc&) {  // a later session has more memory
}

// Releases each segment whose entries are all marked, after all readers that may be in it have left. The counters are hints. The
// marks, which became durable with the unlinking, decide. [CC-7]
// REQUIRES: compaction_mutex_
void DBImpl::ReclaimSegments() {
  // A merge that copies has marked entries of tables that still exist. These entries count as live until the merge ends. [CC-52]
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
        Log("reclaim: a segment's counters and marks disagree; the segment is kept");
        segment->dead_entries.store(0, std::memory_order_relaxed);
        return;
      }
    }
    if (reader.end() != segment->sealed_bytes()) return;
    segment->entries.store(0, std::memory_order_relaxed);  // the segment is no candidate any more
    if (!segment->holds_copies.load(std::memory_order_relaxed)) RaiseLogFloor(segment->sealed_last_sequence());
    if (moved_ != nullptr && moved_->from.contains(segment)) {
      // A running merge may still mark entries in the segment.
      moved_->retired.push_back(segment);
      moved_->waiting.fetch_add(1, std::memory_order_relaxed);
      epochs_.RetirePinned([moved = moved_] { moved->waiting.fetch_sub(1, std::memory_order_release); });
    } else {
      ReleaseLater(segment);
    }
  });
  epochs_.Reclaim();
  ReleaseMoved();
}

// Releases the segment when no reader uses it any more.
void DBImpl::ReleaseLater(Segment* segment) {
  epochs_.RetirePinned([this, segment] {
    held_segments_.fetch_sub(1, std::memory_order_relaxed);
    Release(segment);
  });
  held_segments_.fetch_add(1, std::memory_order_relaxed);
}

void DBImpl::Release(Segment* segment) {
  try {
    BRAIDDB_SYNC_POINT("DBImpl::Release");
    const Status status = segments_->Release(segment);
    Settle(Work::kRelease, status);
    if (segments_->has_deferred()) NotifyWork();  // the compaction thread frees the segment when readers allow it
    NoteSuperfluous();
  } catch (const std::bad_alloc&) {
    Settle(Work::kRelease, NoMemory());  // the segment may or may not be free on media; the next open finds out
  }
}

}  // namespace braiddb
