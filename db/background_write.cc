// Writes that the database makes for itself: results of compaction filters, and deletions of records of range tombstones.
#include <string>
#include <utility>

#include "db/append.h"
#include "db/no_memory.h"
#include "db/write_limits.h"
#include "util/temporary_thread_index.h"

namespace braiddb {

// STEPS   1 draw a number  2 wait until every write with a smaller number is visible  3 check that `seen` is still the key's
//         newest version as of that number  4 continue as every write (log, fence, publish), or give up. Then no entry has the
//         number.
// WHY NO WRITE IS LOST  A write to the key that 3 does not see has a larger number, and so is newer than this one.
// WHY EVERY WAIT ENDS  Users' writes never wait for a write of this kind while they are announced, and write_if_newest_mutex_
//         allows only one such write at a time. So all writes that 2 waits for end. A thread that needs this number to be visible
//         waits for 2 to 4.
// Takes no space that needs a compaction: the caller may hold compaction_mutex_.
Status DBImpl::WriteIfNewest(const Family& family, const LogEntry& seen, EntryType type, Slice value) try {
  const Slice key = seen.key();
  if (!AreSizesValid(key, value)) return CheckSizes(key, value);
  const std::lock_guard one_at_a_time(write_if_newest_mutex_);
  if (filter_writes_ended_) return Status::Aborted("closing");
  if (write_failed_.load(std::memory_order_acquire)) return BackgroundError();
  const TemporaryThreadIndex index;
  ThreadState* const thread = GetThreadState();
  if (thread == nullptr) return TooManyThreads();
  const LogUpdate update{type, key, value, RandomHeight(thread->random->Next()), family.id};
  BeginSingle(thread, update);
  LogSlot slot;
  Status status = ReserveElsewhere(thread, LogEntrySize(update.height, key.size(), value.size()), SpaceUse::kBackground, &slot);
  if (!status.ok()) return status;
  const auto is_newest = [&](uint64_t sequence) {
    // Announces the number itself, so that WaitWriters does not wait for this write. The write's memtable exists: a flush of it
    // waits until larger numbers are not announced any more.
    thread->announced->in_flight.Set(sequence, asymmetric_fences_);
    WaitWriters(sequence - 1);
    BRAIDDB_SYNC_POINT("DBImpl::WriteIfNewest:Waited");
    const auto guard = epochs_.Enter();
    LookupTrace trace;
    const LogEntry* const newest = FindEntry(family, SearchKey(family.order, key, sequence), family.HashOf(key), &trace);
    if (regions_->damage_seen()) return false;
    const RangeTombstones* const ranges = family.ranges.load(std::memory_order_acquire);
    if (ranges != nullptr && ranges->Hides(key, seen.sequence(), sequence)) return false;
    return (newest != nullptr && newest->sequence() == seen.sequence()) || BRAIDDB_MUTANT("filter-write-unchecked");
  };
  WriteOptions options;
  // An unsynced write that is lost is made again: the older version stays as long as the new one may be lost.
  options.sync = false;
  const AdmitsIf<decltype(is_newest)> admission{{}, is_newest};
  return slot.dedicated ? AppendDedicated<true>(options, thread, &update, 1, &slot, admission)
                        : AppendAndPublish<true>(options, thread, &update, 1, &slot, admission);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status DBImpl::DeleteInBackground(const Family* family, std::span<const std::string> keys) {
  const std::lock_guard one_at_a_time(write_if_newest_mutex_);
  if (filter_writes_ended_) return Status::Aborted("closing");
  if (write_failed_.load(std::memory_order_acquire)) return BackgroundError();
  const TemporaryThreadIndex index;
  ThreadState* const thread = GetThreadState();
  if (thread == nullptr) return TooManyThreads();
  thread->updates.clear();
  uint64_t bytes = 0;
  for (const std::string& key : keys) {
    const LogUpdate update{EntryType::kDelete, key, Slice(), RandomHeight(thread->random->Next()), family->id};
    bytes += LogEntrySize(update.height, key.size(), 0) + kCacheLine - kLastStart;
    thread->updates.push_back(update);
  }
  LogSlot slot;
  Status status = ReserveElsewhere(thread, bytes, SpaceUse::kBackground, &slot);
  if (!status.ok()) return status;
  const LogUpdate* const updates = thread->updates.data();
  return slot.dedicated ? AppendDedicated<false>(WriteOptions(), thread, updates, keys.size(), &slot, AdmitsAllAtOnce())
                        : AppendAndPublish<false>(WriteOptions(), thread, updates, keys.size(), &slot, AdmitsAllAtOnce());
}

void DBImpl::EndFilterWrites() {
  const std::lock_guard lock(write_if_newest_mutex_);
  filter_writes_ended_ = true;
}

}  // namespace braiddb
