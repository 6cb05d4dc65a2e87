// Relocation: copies the live entries of sparse segments to new ones. The copies form a table, which becomes the oldest of L0.
#include <algorithm>
#include <chrono>
#include <thread>

#include "compaction/relocation.h"
#include "db/db_impl.h"
#include "db/no_memory.h"
#include "index/key_hash.h"
#include "util/format.h"
#include "util/mutant.h"
#include "util/prefetch.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// The number of keys whose buckets in the lookup cache are prefetched together.
constexpr size_t kCacheGroup = 32;

void MoveAllInCache(const std::vector<Relocation::Move>& moves, const RegionSet& regions, uint64_t sequence, LookupCache* cache) {
  uint64_t hashes[kCacheGroup];
  for (size_t begin = 0; begin < moves.size(); begin += kCacheGroup) {
    const size_t count = std::min(kCacheGroup, moves.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      if (begin + i + kCacheGroup < moves.size()) Prefetch(moves[begin + i + kCacheGroup].from);
      hashes[i] = KeyHash(*moves[begin + i].from);
      cache->PrefetchForWrite(hashes[i]);
    }
    for (size_t i = 0; i < count; ++i) {
      const Relocation::Move& move = moves[begin + i];
      cache->Move(hashes[i], regions.Find(move.from), move.to, sequence);
    }
  }
}

}  // namespace

// STEPS   1 write copies, durable  2 list their table as the oldest in the MANIFEST  3 install a view with the table  4 seal the
//         copies' segments  5 tell the lookup cache the addresses of the copies. The next merge replaces the originals, and marks
//         them moved.
// ORDER   1 before 2, 2 before 4 and before any merge. [CC-47]
// WHY EVERY READER FINDS THE ENTRY  A reader whose view has the table finds the copy there, or in the last level. A reader with
//         an older view finds the original until it is replaced, by one store on each layer of the list, or within one leaf. If a
//         reader is at an original, it treats the original as live as long as the copy is (MovedEntries). The original is
//         released after all such readers have left. Until then nothing else is relocated, so an original is never a copy whose
//         own original still exists.
// WHY THE CACHE HAS NO ORIGINAL WHEN IT IS RELEASED  Step 5 changes the slot and the bucket's word. A lookup that missed before 5
//         does not fill the cache with the entry that it found. A lookup that misses later has a view with the table, or one in
//         which the originals have been replaced.
// REQUIRES: compaction_mutex_, and no merge is running or to be resumed.
Status DBImpl::RelocateSparse(bool* relocated, bool urgent) try {
  *relocated = false;
  const uint64_t boundary = options_.max_space_amplification == 0 ? 0 : BoundaryOfCopies();
  if (boundary == 0) return Status::OK();
  // With bound_space, a part of the slack is reserved for entries that have not been merged.
  const uint64_t slack = BoundsSpace() && changing_.MergesByItself() ? options_.space_slack / 8 : options_.space_slack;
  const SpaceLimits limits{urgent ? 1.0 : options_.max_space_amplification, urgent ? 0 : slack, boundary, dram_.most_relocated,
                           !options_.index_unified_logging};
  std::vector<Segment*> sparse = ChooseSparseSegments(*segments_, limits);
  if (sparse.empty() || (!urgent && !RelocationsGain())) return Status::OK();
  const PinnedView pinned(this);
  Relocation relocation;
  std::vector<RelocationJob::Family> families;
  pinned.view().ForEach([&](uint32_t id, const FamilyView& levels) {
    families.resize(id + 1);
    families[id] = {&FindFamily(id)->order, levels.l1.get(), MergedBoundary(*FindFamily(id))};
  });
  const RelocationJob job{regions_.get(), segments_.get(), std::move(families), job_stop_,
                          live_heap_.load(std::memory_order_acquire)};
  Status status = CopyLiveEntries(job, sparse, &relocation);
  while (status.IsNoSpace() && sparse.size() > 1) {  // fewer copies need less space
    sparse.resize(sparse.size() / 2);
    status = CopyLiveEntries(job, sparse, &relocation);
  }
  counters_.flushed_lines.fetch_add(relocation.flushed_lines, std::memory_order_relaxed);
  if (OutcomeOf(Work::kMakeCopies, status) == Outcome::kLater) {
    if (!urgent) relocation_progress_.NoteFailed();
    Log("relocation: " + status.ToString());
    return Status::OK();  // the originals stay; there is only less free space than before
  }
  if (!status.ok() || relocation.tables.empty()) return status;
  status = PublishCopies(&relocation);
  if (OutcomeOf(Work::kMakeCopies, status) == Outcome::kLater) {
    Log("relocation: " + status.ToString());
    return Status::OK();
  }
  if (!status.ok()) return status;
  counters_.relocated_entries.fetch_add(relocation.moves.size(), std::memory_order_relaxed);
  counters_.relocated_bytes.fetch_add(relocation.bytes, std::memory_order_relaxed);
  Log(Format("relocation: %zu entries, %llu bytes, of %zu segments", relocation.moves.size(),
             static_cast<unsigned long long>(relocation.bytes), sparse.size()));
  *relocated = true;
  return Status::OK();
} catch (const std::bad_alloc&) {
  Settle(Work::kInstall, NoMemory());  // the MANIFEST may list the table although the view does not have it
  return NoMemory();
}

bool DBImpl::RelocationsGain() {
  uint64_t garbage = 0;
  segments_->ForEachLog([&garbage](const Segment* segment) {
    if (segment->state() != SegmentState::kSealed) return;
    const uint64_t live =
        segment->sealed_bytes() - std::min(segment->sealed_bytes(), segment->dead_bytes.load(std::memory_order_relaxed));
    garbage += segment->capacity() - live;
  });
  uint64_t written = 0;
  threads_.ForEach([&written](const ThreadState& thread) { written += thread.log_bytes.value(); });
  return relocation_progress_.MayBegin(garbage, written, options_.segment_size);
}

uint64_t DBImpl::BoundaryOfCopies() {
  const uint64_t boundary = MergedBoundary();
  if (boundary == 0 || resume_merge_.load(std::memory_order_acquire) || write_failed_.load(std::memory_order_acquire) ||
      purge_waits_.load(std::memory_order_acquire)) {
    return 0;
  }
  {
    std::lock_guard lock(manifest_mutex_);
    if (HasRelocation(manifest_state_)) return 0;
  }
  return ReleaseMoved() ? boundary : 0;
}

Status DBImpl::PublishCopies(Relocation* made) {
  const Relocation& relocation = *made;
  Status status;
  BRAIDDB_SYNC_POINT("DBImpl::RelocateSparse:Copied");
  if (BRAIDDB_MUTANT("copies-sealed-early")) status = SealCopies(segments_.get(), relocation.copies);
  if (status.ok()) status = InstallRelocation(relocation);
  // The MANIFEST could not grow, and lists no copies.
  if (OutcomeOf(Work::kMakeCopies, status) == Outcome::kLater) DiscardCopies(segments_.get(), made);
  BRAIDDB_SYNC_POINT("DBImpl::RelocateSparse:Listed");
  if (status.ok() && !BRAIDDB_MUTANT("copies-sealed-early")) status = SealCopies(segments_.get(), relocation.copies);
  if (!status.ok()) return status;
  if (lookup_cache_ != nullptr) {
    MoveAllInCache(relocation.moves, *regions_, LastDrawn(), lookup_cache_.get());
  }
  BRAIDDB_SYNC_POINT("DBImpl::RelocateSparse:Installed");
  return Status::OK();
}

// Remembers the originals of a merge that is complete, until no reader uses them: no view leads to them any more.
// REQUIRES: compaction_mutex_
void DBImpl::KeepMoved(MovedEntries entries) {
  if (entries.pairs().empty()) return;
  // Copies of several families are merged one after the other, and their originals are remembered together.
  const std::shared_ptr<MovedSegments> moved = moved_ != nullptr ? moved_ : std::make_shared<MovedSegments>();
  moved->entries.Add(entries);
  moved->entries.Sort();
  for (const MovedEntries::Pair& pair : moved->entries.pairs()) moved->from.insert(segments_->Find(pair.original));
  moved->retired.reserve(moved->from.size());
  if (moved_ != nullptr) moved->waiting.fetch_add(1, std::memory_order_relaxed);
  // Readers may also be at originals in segments that are kept for other entries.
  epochs_.RetirePinned([moved] { moved->waiting.fetch_sub(1, std::memory_order_release); });
  moved_ = moved;
  moved_waits_.store(true, std::memory_order_relaxed);
}

// REQUIRES: compaction_mutex_
bool DBImpl::ReleaseMoved() {
  if (moved_ == nullptr) return true;
  epochs_.Reclaim();
  if (moved_->waiting.load(std::memory_order_acquire) != 0) return false;
  for (Segment* segment : moved_->retired) Release(segment);
  moved_.reset();
  moved_waits_.store(false, std::memory_order_relaxed);
  return true;
}

bool DBImpl::ReleaseMovedWithin(std::chrono::nanoseconds limit) {
  constexpr std::chrono::microseconds kPause{200};
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!ReleaseMoved()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    BRAIDDB_SYNC_POINT("DBImpl::ReleaseMovedWithin:Wait");
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

Status DBImpl::InstallRelocation(const Relocation& relocation) {
  std::lock_guard lock(manifest_mutex_);
  ManifestState state = manifest_state_;
  for (const auto& [table, order] : relocation.tables) {
    state.tables.insert(state.tables.begin(), {table->id(), table->boundary(), table->entries, table->heads(), table->family()});
  }
  if (Status status = manifest_.Commit(state); !status.ok()) return status;
  NoteMerged(manifest_state_, state);
  manifest_state_ = std::move(state);
  std::lock_guard view_lock(view_mutex_);
  auto view = std::make_shared<ReadView>(*current_view_);
  for (const Relocation::Table& copies : relocation.tables) {
    view->Alter(copies.table->family(), [&](FamilyView* levels) { levels->AddOldest(copies.table, copies.in_order); });
  }
  InstallView(view);
  return Status::OK();
}

// Relocates until the log is within its limits. Concurrent writers may make the log sparse as fast as this, so the number of
// rounds is at most the number of segments at the beginning.
// REQUIRES: as RelocateSparse.
Status DBImpl::RelocateAll() {
  uint64_t rounds = 0;
  segments_->ForEachLog([&rounds](Segment*) { ++rounds; });
  for (bool more = true; more && rounds > 0; --rounds) {
    Status status = RelocateSparse(&more);
    while (status.ok() && more && l0_load_.oldest_id() == kRelocationId) status = CompactTables();
    if (!status.ok()) return status;
  }
  return Status::OK();
}

}  // namespace braiddb
