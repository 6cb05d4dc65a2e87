// The append of a write: from a reserved slot of the log to the publication of its updates. A template over the kinds of writes
// of write_admission.h: write.cc compiles it for the writes of users, background_write.cc for those of the database itself.
#pragma once

#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "db/db_impl.h"
#include "db/write_admission.h"
#include "index/key_hash.h"
#include "util/mutant.h"
#include "util/sync_point.h"

namespace braiddb {

// Threads account written bytes and entries in portions of 1/kChargePortions of a memtable, so that writes do not share a
// counter.
inline constexpr uint64_t kChargePortions = 64;

inline void DBImpl::Announce(ThreadState* thread) {
  thread->announced->in_flight.Begin(next_sequence_->load(std::memory_order_relaxed), asymmetric_fences_);
}

// Appends in a segment of the slot's own. A refused write gives the segment back. After a failed persist the segment stays: its
// content on media is unknown, and no segment is used any more.
template <bool kSingle, class Admission>
[[gnu::noinline]] Status DBImpl::AppendDedicated(const WriteOptions& options, ThreadState* thread, const LogUpdate* updates,
                                                 size_t count, LogSlot* slot, const Admission& admission) {
  Segment* const segment = slot->segment;
  Status status;
  try {
    status = AppendAndPublish<kSingle>(options, thread, updates, count, slot, admission);
  } catch (const std::bad_alloc&) {
    (void)segments_->Release(segment);  // the caller returns MemoryLimit
    throw;
  }
  if (status.ok() || write_failed_.load(std::memory_order_acquire)) return status;
  const Status released = segments_->Release(segment);
  return released.ok() ? status : released;
}

// Continues a write whose segment another thread has taken. A write of the database itself takes only space that needs no
// compaction.
template <bool kSingle, class Admission>
[[gnu::noinline]] Status DBImpl::AppendElsewhere(const WriteOptions& options, ThreadState* thread, const LogUpdate* updates,
                                                 size_t count, LogSlot* slot, const Admission& admission) {
  EndAnnounced(thread, false);
  Status status = Admission::kIsUsers ? ReserveLog(thread, slot->bytes, UseOf({updates, count}), slot)
                                      : ReserveElsewhere(thread, slot->bytes, SpaceUse::kBackground, slot);
  if (!status.ok()) return status;
  return slot->dedicated ? AppendDedicated<kSingle>(options, thread, updates, count, slot, admission)
                         : AppendAndPublish<kSingle>(options, thread, updates, count, slot, admission);
}

// REQUIRES: BeginSingle was called, if kSingle.
// STEPS   1 announce the write, check that the slot still belongs to this thread, draw a sequence number, find its memtable. A
//         single update then waits for barriers (visibility.cc); a batch waits after 7  2 single update: build its entry in DRAM,
//         lock its bucket of the lookup cache, claim its slot in the memtable  3 write the entries to the log  4 start the flush
//         of their lines  5 meanwhile find the slots that are not claimed  6 fence  7 publish.
// ORDER   The entries are durable (6) before any reader can see them (7). [CC-6]
// COST    One flush per line; one fence. After the fence a single update executes only stores. So the CPU continues with the next
//         write, up to its first locked instruction (1), while memory takes the lines of this one. If 3 to 6 take long (a large
//         value, or kPage), no other thread may wait for a lock during them. Then nothing is claimed in 2; the bucket is locked
//         and the slot is taken in 7. The same applies if Append streams. Then 5 follows 6: loads proceed while such a fence
//         drains, and only locked instructions wait (design/0006).
template <bool kSingle, class Admission>
Status DBImpl::AppendAndPublish(const WriteOptions& options, ThreadState* thread, const LogUpdate* updates, size_t number,
                                LogSlot* slot, const Admission& admission) {
  const size_t count = kSingle ? 1 : number;
  if (thread->insertions.size() < count) thread->insertions.resize(count);
  Memtable::Insertion* const insertions = thread->insertions.data();
  // A barrier is a write of several updates, or a range deletion; see visibility.cc. A write that users are not shown is no
  // barrier.
  const bool is_barrier = !kSingle && Admission::kIsShown && (count > 1 || Admission::kHasRanges);
  BRAIDDB_SYNC_POINT("DBImpl::AppendAndPublish:Reserved");
  Announce(thread);
  // ORDER: the announcement before the check; see open_segments.cc.
  if (__builtin_expect(!thread->writer.Owns(*slot), 0))
    return AppendElsewhere<kSingle>(options, thread, updates, count, slot, admission);
  if (is_barrier) BeginBarrier(&thread->announced->barrier);
  // Loaded before the number is drawn: the search for the memtable of the number follows successors only.
  Memtable* const active = active_.load(std::memory_order_seq_cst);
  if (kSingle && __builtin_expect(updates[0].family == 0, 1)) active->Prefetch(insertions[0].key_hash);
  BRAIDDB_SYNC_POINT("DBImpl::AppendAndPublish:Loaded");
  const uint64_t first = next_sequence_->fetch_add(count, std::memory_order_seq_cst);
  Memtable* const memtable = MemtableFor(active, first);
  // A snapshot need not wait for this write because of a number that is too small. ORDER: after MemtableFor, which loads from
  // `active`. A flush of `active` waits for the smaller number, but perhaps not for `first`; see RotateMemtable.
  thread->announced->in_flight.Refine(first);
  if (is_barrier) thread->announced->barrier.Set(first, asymmetric_fences_);
  // acquire: pairs with EndBarrier. The count shows every barrier with a smaller position that is under way. Range deletions wait
  // here, before they take ranges_mutex_.
  const bool waits_early = !is_barrier || Admission::kHasRanges;
  if (waits_early && __builtin_expect(barriers_->load(std::memory_order_seq_cst) != 0, 0)) WaitForTurn(thread, first);
  if (!admission.Admits(first)) {
    EndAnnounced(thread, is_barrier);
    return Status::Aborted("overtaken");
  }

  Memtable* own = memtable;
  for (size_t i = 0; i < count; ++i) {
    own = memtable;
    Memtable::NodeBlock* nodes = &thread->nodes;
    if (__builtin_expect(updates[i].family != 0, 0)) {
      if (Status status = ChooseMemtable(thread, memtable, updates[i].family, &own, &nodes); !status.ok()) {
        EndAnnounced(thread, is_barrier);
        return status;
      }
    }
    if (!own->Allocate(nodes, updates[i].height, &insertions[i])) {
      EndAnnounced(thread, is_barrier);
      return Status::MemoryLimit("the memtable is full; write smaller batches or flush");
    }
    if (kSingle) continue;
    const uint64_t hash = KeyHash(updates[i].family, updates[i].key);
    insertions[i].key_hash = hash;
    insertions[i].memtable = own;
    own->Prefetch(hash);
    if (lookup_cache_ != nullptr) lookup_cache_->PrefetchForWrite(hash);
  }
  try {
    // The last allocation of DRAM before the write is visible.
    const bool goes_on = thread->extent_owner == memtable->id() && thread->extent->segment == slot->segment;
    if (__builtin_expect(!goes_on || slot->dedicated, 0)) BeginExtent(thread, memtable, *slot);
  } catch (const std::bad_alloc&) {
    EndAnnounced(thread, is_barrier);
    throw;
  }

  admission.NoteLogging();
  Persistence* const persistence = regions_->persistence();
  const bool is_staged = kSingle && slot->bytes <= ThreadState::kMaxStagedBytes;
  const bool streams = persistence->streams();
  const bool claims = is_staged && persistence->mode() != PersistMode::kPage && !streams;
  LookupCache::WriteLock lock;
  insertions[0].is_claimed = false;
  // Before the claims: the cache lines that the claims need arrive during this step.
  if (is_staged) StageEntry(thread, slot, first, updates[0]);
  if (claims) {
    if (LookupCache* const cache = CacheOf(updates[0].family)) lock = cache->LockForWrite(insertions[0].key_hash);
    own->Claim(updates[0].key, first, &insertions[0]);
  }
  if (is_staged) {
    AppendStaged(*slot, insertions[0].entry);
  } else {
    WriteInPlace(thread, slot, first, {updates, count});
  }
  if (kSingle && !streams && !insertions[0].is_claimed) own->Prepare(insertions[0].entry, insertions[0].pointer, &insertions[0]);
  const bool drain = !BRAIDDB_MUTANT("ack-before-fence") && (options.sync || persistence->mode() != PersistMode::kPage);
  const bool durable = drain ? persistence->Drain() : !persistence->failed();
  if (kSingle && streams) own->Prepare(insertions[0].entry, insertions[0].pointer, &insertions[0]);
  Status status = durable ? thread->writer.Commit(segments_.get(), *slot, static_cast<uint32_t>(count), first + count - 1)
                          : persistence->error();
  if (__builtin_expect(!status.ok(), 0)) {
    if (claims) {
      own->Abandon(&insertions[0]);
      LookupCache::AbandonWrite(lock);
    }
    EndAnnounced(thread, is_barrier);
    Settle(Work::kAppend, status);
    return status;
  }
  BRAIDDB_SYNC_POINT("DBImpl::AppendAndPublish:Durable");
  admission.NoteDurable();
  // ORDER: before the first store that makes an update visible, which has release. Pairs with SnapshotChoice::IsState.
  thread->announced->last_visible.store(first + count - 1, std::memory_order_relaxed);
  admission.BeforeVisible();  // [CC-54]
  // ORDER: the last update first. If a batch updates a key twice, the newest version is visible before the others. So a Get that
  // finds a version of the batch, and waits until the whole batch is visible, has found the newest one.
  for (size_t i = count; i-- > 0;) {
    Memtable::Insertion* const insertion = &insertions[i];
    if (!kSingle) {
      own = insertion->memtable;
      insertion->is_claimed = false;
      own->Prepare(insertion->entry, insertion->pointer, insertion);
    }
    LookupCache* const cache = CacheOf(updates[i].family);
    if (!claims && cache != nullptr) lock = cache->LockForWrite(insertion->key_hash);
    own->Publish(insertion);
    if (cache != nullptr) cache->EndWrite(lock, insertion->key_hash, *insertion->entry, insertion->pointer);
  }
  admission.NotePublished();
  thread->uncharged_bytes += slot->bytes;
  thread->uncharged_entries.Add(count);
  const bool portion = thread->uncharged_bytes * kChargePortions >= changing_.memtable_size.load(std::memory_order_relaxed) ||
                       thread->uncharged_entries.value() * kChargePortions >= options_.memtable_max_entries;
  const bool full = __builtin_expect(portion, 0) && Charge(thread, memtable);
  const size_t shown = Admission::kIsShown ? admission.CountShown(count) : 0;
  if (shown != 0) thread->announced->last_update.store(first + shown - 1, std::memory_order_release);
  // Pairs with the loads in WaitWriters: a thread that sees the end of the announcement sees the entries. After this call the
  // memtable may be freed.
  EndAnnounced(thread, is_barrier);
  if (__builtin_expect(update_is_awaited_.load(std::memory_order_seq_cst), 0)) WakeAwaiting();
  if (Admission::kIsUsers) {
    thread->writes.Add(count);
    thread->batches.Add(1);
    thread->log_bytes.Add(slot->bytes);
  }
  if (__builtin_expect(full, 0)) {
    TryRotateMemtable(memtable);
  }
  if (!waits_early && barriers_->load(std::memory_order_seq_cst) != 0) WaitBarriers(first - 1);
  if (Admission::kIsUsers && __builtin_expect(thread->unpaced_entries != 0, 0)) PaceWrites(thread);
  return Status::OK();
}

}  // namespace braiddb
