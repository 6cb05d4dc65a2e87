// Column families: dropped, and purged after the drop.
#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

#include "db/db_impl.h"
#include "db/no_memory.h"
#include "index/key_hash.h"
#include "log/log_reader.h"
#include "util/mutant.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

constexpr auto kPurgePollInterval = std::chrono::milliseconds(1);

}  // namespace

// STEPS   1 refuse new writes to the family, and wait for announced ones  2 flush all memtables, and merge until the MANIFEST
//         lists all of their tables: then all entries are below the log boundary  3 wait for a merge or sweep of the family, and
//         finish a merge that is to be resumed  4 commit a MANIFEST that marks the family as dropped and forgets its tables.
// 2 and 3 may take long. Only calls that create or drop families wait for them.
// CRASH   Before 4 the family is unchanged. After 4 the family does not exist, and PurgeFamilies continues at the next open.
//         [CC-49]
Status DBImpl::DropColumnFamily(ColumnFamilyHandle* handle) try {
  if (fork_mark_.is_in_child()) return InChild();
  Status status;
  Family* const family = FamilyOf(handle, &status);
  if (family == nullptr) return status;
  if (family->id == 0) return Status::InvalidArgument("Can't drop default column family");
  if (write_failed_.load(std::memory_order_acquire)) return BackgroundError();
  std::lock_guard drop_lock(drop_mutex_);
  if (family->dropped.exchange(true, std::memory_order_seq_cst)) return Status::InvalidArgument("Column family already dropped!");
  // Without a commit the family stays, also if an exception ends the call.
  struct Undo {
    Family* const family;
    ~Undo() {
      if (!family->is_gone.load(std::memory_order_acquire)) family->dropped.store(false, std::memory_order_seq_cst);
    }
  };
  const Undo undo{family};
  WaitWriters(next_sequence_->load(std::memory_order_seq_cst));
  uint64_t last_id = 0;
  status = FlushWritten(&last_id);
  if (status.ok()) status = ListTablesUntil(last_id);
  if (status.ok()) status = CommitDropWhenPossible(family);
  if (!status.ok()) return status;
  {
    std::lock_guard lock(families_mutex_);
    changed_foreign_.erase(family->id);
    NoteOptions();
  }
  Log("column family '" + family->name + "' dropped");
  NotifyWork();
  return Status::OK();
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// A checkpoint lists no more tables than the MANIFEST has room for. The others are listed after merges. Without that the log
// boundary would stay below entries of the dropped family, and a replay would give them to the next family with its id. [CC-49]
Status DBImpl::ListTablesUntil(uint64_t last_id) {
  const auto are_listed = [&] {
    std::lock_guard lock(view_mutex_);
    bool all = true;
    current_view_->ForEach([&](uint32_t, const FamilyView& levels) {
      for (const auto& table : levels.l0)
        all = all && (table->checkpointed.load(std::memory_order_acquire) || table->id() > last_id);
    });
    return all;
  };
  const auto listed = [&] {
    std::lock_guard lock(manifest_mutex_);
    return std::pair(manifest_state_.log_boundary, manifest_state_.tables.size());
  };
  while (!are_listed()) {
    if (write_failed_.load(std::memory_order_acquire)) return BackgroundError();
    if (stopping_.load(std::memory_order_acquire)) return Closing();
    const auto before = listed();
    Status status;
    {
      std::lock_guard lock(compaction_mutex_);
      status = CompactTables();
      Settle(Work::kMerge, status);
    }
    if (status.ok()) {
      status = CheckpointTables();
      Settle(Work::kCheckpoint, status);
    }
    if (!status.ok()) return status;
    if (listed() == before)
      return Status::NoSpace(
          "the MANIFEST has no room for the tables that were flushed before the drop; free space, and drop again");
  }
  return Status::OK();
}

// Does not wait for a merge of another family, which may take seconds. That merge neither uses nor changes anything of `family`,
// and its end commits what it finds in manifest_state_. [CC-49]
Status DBImpl::CommitDropWhenPossible(Family* family) {
  constexpr auto kLongestPolling = std::chrono::milliseconds(100);  // then a wait for the mutex, which has its turn
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock compaction_lock(compaction_mutex_, std::defer_lock);
  while (!compaction_lock.try_lock()) {
    if (std::chrono::steady_clock::now() - begin > kLongestPolling) {
      compaction_lock.lock();
      break;
    }
    if (write_failed_.load(std::memory_order_acquire)) return BackgroundError();
    if (std::unique_lock lock(manifest_mutex_); only_used_family_ != nullptr && only_used_family_ != family)
      return CommitDrop(family, std::move(lock));
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  if (write_failed_.load(std::memory_order_acquire)) return BackgroundError();
  if (resume_merge_) {
    Status status = CompactTables();
    Settle(Work::kMerge, status);
    if (!status.ok()) return status;
  }
  return CommitDrop(family, std::unique_lock(manifest_mutex_));
}

Status DBImpl::CommitDrop(Family* family, std::unique_lock<std::mutex> lock) {
  Status status = CommitDropLocked(family);
  lock.unlock();
  Settle(Work::kDropFamily, status);
  return status;
}

Status DBImpl::CommitDropLocked(Family* family) {
  ManifestState state = manifest_state_;
  state.FindFamily(family->id)->dropped = true;
  std::erase_if(state.tables, [family](const ManifestState::Table& table) { return table.family == family->id; });
  std::lock_guard view_lock(view_mutex_);
  auto view = std::make_shared<ReadView>(*current_view_);
  Status status = manifest_.Commit(state);
  if (!status.ok()) return status;
  manifest_state_ = std::move(state);
  family->is_gone.store(true, std::memory_order_release);
  purge_waits_.store(true, std::memory_order_release);
  counters_.l1_entries.fetch_sub(family->l1_entries.load(std::memory_order_relaxed), std::memory_order_relaxed);
  InstallView(view);  // the view no longer counts the family's tables
  return Status::OK();
}

// STEPS   1 install a view without the family, and wait until readers of older views have left  2 release the segments of its
//         last level  3 mark all its entries dead in all segments of the log  4 commit a MANIFEST that forgets the family. Its id
//         is free then.
// ORDER   3 before 4: otherwise live entries would belong to the next family with this id, or to no family for ever. [CC-49] Also
//         before 4: segments of 2 that wait for readers (SegmentAllocator::FreeDeferred) are freed, because entries of sorted
//         runs have no dead marks.
// CRASH   Before 4 the next open continues with 3; entries that are marked stay marked. Segments of the last level have no owner
//         then, and the open releases them.
// REQUIRES: compaction_mutex_
bool DBImpl::PurgeFamilies() try {
  if (write_failed_.load(std::memory_order_acquire)) return false;
  if (purged_families_.empty()) {
    std::vector<bool> ready(kMaxFamilies);
    bool any = false;
    std::vector<uint32_t> dropped;
    {
      std::lock_guard lock(manifest_mutex_);
      for (const ManifestState::Family& family : manifest_state_.families) {
        if (family.dropped) dropped.push_back(family.id);
      }
      if (dropped.empty()) {
        purge_waits_.store(false, std::memory_order_relaxed);
        return false;
      }
    }
    for (const uint32_t id : dropped) {
      Family* const family = FindFamily(id);
      ready[id] = family == nullptr || HasLeft(family);
      any |= ready[id];
    }
    if (!any || resume_merge_.load(std::memory_order_acquire)) return false;
    // All segments, or none if there is no memory: entries of a segment that is left out would belong to the next family. [CC-49]
    std::vector<Segment*> segments;
    segments_->ForEachLog([&segments](Segment* segment) { segments.push_back(segment); });
    unpurged_ = std::move(segments);
    purged_families_ = std::move(ready);
  }
  const bool forgets = unpurged_.empty() || BRAIDDB_MUTANT("family-forgotten-early");
  const Status status = forgets ? ForgetPurged() : PurgeOneSegment();
  Settle(Work::kPurgeFamily, status);
  return status.ok();
} catch (const std::bad_alloc&) {
  return false;  // the next call tries again
}

bool DBImpl::HasLeft(Family* family) {
  // The records of its tombstones are deleted first, see SweepRanges.
  if (family->ranges.load(std::memory_order_acquire) != nullptr) return false;
  // acquire: pairs with the release in the destructor of the last handle.
  if (family->leaving.load(std::memory_order_acquire) == 0 && family->handles.load(std::memory_order_acquire) == 0) {
    {
      std::lock_guard lock(view_mutex_);
      auto view = std::make_shared<ReadView>(*current_view_);
      view->others[family->id] = nullptr;
      InstallView(view);
    }
    BRAIDDB_SYNC_POINT("DBImpl::HasLeft:View");
    family->leaving.store(1, std::memory_order_relaxed);
    epochs_.RetirePinned([family] { family->leaving.store(2, std::memory_order_release); });
  }
  epochs_.Reclaim();
  if (family->leaving.load(std::memory_order_acquire) != 2) return false;
  std::shared_ptr<LastLevel> level;
  {
    std::lock_guard lock(view_mutex_);
    level.swap(family->last_level);
    by_id_[family->id].store(nullptr, std::memory_order_release);
  }
  // Entries in the log leave the lookup cache with their segments, see PurgeOneSegment. Copies are not in the log.
  if (lookup_cache_ != nullptr && family->kind->copies_entries) {
    const std::unique_ptr<EntryCursor> cursor = level->View()->NewCursor();
    for (cursor->SeekToFirst(); cursor->entry() != nullptr; cursor->Next())
      lookup_cache_->Forget(KeyHash(*cursor->entry()), regions_->Find(cursor->entry()));
  }
  const Status status = level->Discard();
  Settle(Work::kPurgeFamily, status);
  return status.ok();
}

Status DBImpl::PurgeOneSegment() {
  Segment* const segment = unpurged_.back();
  unpurged_.pop_back();
  std::optional<PinnedView> pinned;  // a log that is flushed by copies may be released concurrently
  if (IsFlushedByCopies(*segment)) {
    pinned.emplace(this);
    std::lock_guard lock(manifest_mutex_);
    const bool is_sealed = segment->state() == SegmentState::kSealed;
    if (is_sealed && segment->sealed_last_sequence() < manifest_state_.log_boundary) return Status::OK();
  }
  // A segment that was retired before may be released, and be in use again, at any moment. All of its entries are marked. It has
  // no count of entries, or another generation than before. While this thread holds compaction_mutex_, no segment is retired.
  const uint64_t generation = segment->generation();
  const SegmentState state = segment->state();
  if (state != SegmentState::kSealed && state != SegmentState::kOpen) return Status::OK();
  const bool is_counted = std::ranges::find(unaccounted_, segment) == unaccounted_.end();
  const bool is_retired = state == SegmentState::kSealed && is_counted && segment->entries.load(std::memory_order_acquire) == 0;
  if (is_retired || segment->generation() != generation) return Status::OK();
  BRAIDDB_SYNC_POINT_ARG("DBImpl::PurgeOneSegment:Walk", segment);
  const uint64_t bytes =
      state == SegmentState::kSealed ? segment->sealed_bytes() : segment->used_bytes.load(std::memory_order_acquire);
  Persistence* const persistence = regions_->persistence();
  LogReader reader(*segment, bytes);
  bool flushed = false;
  while (const LogEntry* found = reader.NextTrusted()) {
    if (!purged_families_[found->family()]) continue;
    auto* const entry = const_cast<LogEntry*>(found);
    if (!entry->is_obsolete()) {
      StoreRelease(&entry->next[0], LoadRelaxed(&entry->next[0]) | LogEntry::kDeadBit);
      CountObsolete(segment, segment->ptr(reader.entry_offset()), *entry);
    }
    if (lookup_cache_ != nullptr) lookup_cache_->Forget(KeyHash(*entry), segment->ptr(reader.entry_offset()));
    // The mark may have been set before a crash, and may not be durable. [CC-46]
    // No canary test leaves out the fence below: the fence of the MANIFEST, made by this thread before it stores the selector,
    // would be enough. The fence below bounds the number of lines that wait, and reports a sync that fails.
    if (!BRAIDDB_MUTANT("purge-not-flushed")) persistence->Flush(&entry->next[0], sizeof(uint64_t));
    flushed = true;
  }
  return !flushed || persistence->Drain() ? Status::OK() : persistence->error();
}

Status DBImpl::ForgetPurged() {
  BRAIDDB_SYNC_POINT("DBImpl::ForgetPurged");
  // ORDER: sorted runs that wait for readers are freed before the id can be given to another family; see txn/primary_reader.h.
  if (Status status = segments_->FreeDeferred(true); !status.ok()) return status;
  {
    std::lock_guard lock(manifest_mutex_);
    ManifestState state = manifest_state_;
    std::erase_if(state.families, [this](const ManifestState::Family& family) { return purged_families_[family.id]; });
    if (Status status = manifest_.Commit(state); !status.ok()) return status;
    manifest_state_ = std::move(state);
    families_forgotten_.fetch_add(1, std::memory_order_release);  // with the mutex: WaitForPurge looks at both
  }
  BRAIDDB_SYNC_POINT("DBImpl::ForgetPurged:Done");
  purged_families_.clear();
  unpurged_.clear();
  ReclaimSegments();
  return Status::OK();
}

// Runs the steps of PurgeFamilies without the pauses that the compaction thread makes.
bool DBImpl::WaitForPurge(uint64_t forgotten, std::chrono::steady_clock::time_point deadline) {
  const auto can_be_forgotten = [this] {
    std::lock_guard lock(manifest_mutex_);
    return std::any_of(manifest_state_.families.begin(), manifest_state_.families.end(), [this](const auto& listed) {
      const Family* const family = listed.dropped ? FindFamily(listed.id) : nullptr;
      return listed.dropped && (family == nullptr || family->handles.load(std::memory_order_acquire) == 0);
    });
  };
  const auto are_forgotten = [&] { return families_forgotten_.load(std::memory_order_acquire) != forgotten; };
  while (!are_forgotten()) {
    if (stopping_.load(std::memory_order_acquire) || write_failed_.load(std::memory_order_acquire)) return false;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    if (!can_be_forgotten()) return are_forgotten();  // perhaps since they have just been forgotten
    bool stepped = false;
    {
      // A compaction may hold the mutex for a long time.
      const std::unique_lock lock(compaction_mutex_, std::try_to_lock);
      stepped = lock.owns_lock() && PurgeFamilies();
    }
    if (!stepped) std::this_thread::sleep_for(kPurgePollInterval);
  }
  return true;
}

}  // namespace braiddb
