// Writes of users: single updates, batches, the reservation of log space, the entries in the log, measurements.
#include <algorithm>
#include <cstring>
#include <utility>

#include "db/append.h"
#include "db/batch_collector.h"
#include "db/db_impl.h"
#include "db/no_memory.h"
#include "db/range_update.h"
#include "db/write_admission.h"
#include "db/write_limits.h"
#include "index/key_hash.h"
#include "util/mutant.h"
#include "util/prefetch.h"
#include "util/sync_point.h"
#include "util/temporary_thread_index.h"

namespace braiddb {
namespace {

// Prefetches the lines of the log that later entries will overwrite. A store that waits for its line delays the fence after it.
void FetchAhead(const LogSlot& slot) {
  constexpr uint64_t kDistance = 512;
  if (__builtin_expect(slot.bytes > ThreadState::kMaxStagedBytes, 0)) return;  // the hardware prefetcher handles long copies
  const uint8_t* const begin = slot.segment->data() + slot.offset + kDistance;
  for (uint64_t i = 0; i < slot.bytes; i += kCacheLine) PrefetchForWrite(begin + i);
}

}  // namespace

ThreadState* DBImpl::GetThreadState() {
  ThreadState* thread = threads_.Get();
  if (thread != nullptr && __builtin_expect(thread->random == nullptr, 0)) {
    // Of the session too: short sessions would all draw the same heights.
    thread->random = std::make_unique<Random>(Mix64(regions_->database_id() + ThreadIndex()) ^ session_seed_);
  }
  return thread;
}

// Inlined into the functions that users call, with key and value as two words each. If a caller has just stored a Slice as two
// words, a 16-byte load of it would wait until both stores are in the cache, which is after the fence of the previous write.
[[gnu::always_inline]] inline Status DBImpl::WriteSingle(const WriteOptions& options, EntryType type, uint32_t family,
                                                         const Slice& key, const Slice& value) {
  if (__builtin_expect(!AreSizesValid(key, value), 0)) return CheckSizes(key, value);
  ThreadState* const thread = GetThreadState();
  if (__builtin_expect(thread == nullptr, 0)) {
    return [ =, this ]() __attribute__((noinline, cold)) {
      const TemporaryThreadIndex index;
      return GetThreadState() == nullptr ? TooManyThreads() : WriteOne(options, type, family, key, value);
    }
    ();
  }
  LogUpdate update{type, Slice(key.data(), key.size()), Slice(value.data(), value.size()), RandomHeight(thread->random->Next()),
                   family};
  return WriteUpdates<true>(options, thread, {&update, 1}, AdmitsAll());
}

namespace {

// The result of a write to one family: OK if the write may be skipped and its family was dropped.
Status SkipDropped(const WriteOptions& options, const Family& family, Status status) {
  const bool is_skipped =
      !status.ok() && options.ignore_missing_column_families && family.dropped.load(std::memory_order_seq_cst);
  return is_skipped ? Status::OK() : status;
}

// Frees the vectors of a large batch when the batch ends. A thread keeps the memory of smaller batches for its next batch.
class LargeBatchRelease {
 public:
  explicit LargeBatchRelease(ThreadState* thread) : thread_(*thread) {}
  ~LargeBatchRelease() {
    if (thread_.updates.capacity() > kMaxKeptUpdates) decltype(thread_.updates)().swap(thread_.updates);
    if (thread_.insertions.capacity() > kMaxKeptUpdates) decltype(thread_.insertions)().swap(thread_.insertions);
  }
  LargeBatchRelease(const LargeBatchRelease&) = delete;
  LargeBatchRelease& operator=(const LargeBatchRelease&) = delete;

 private:
  static constexpr size_t kMaxKeptUpdates = 4096;  // updates; about 1 MiB
  ThreadState& thread_;
};

}  // namespace

// REQUIRES: the caller has a handle of the family, or the family is the default one.
Status DBImpl::WriteOne(const WriteOptions& options, EntryType type, uint32_t family, Slice key, Slice value) {
  return SkipDropped(options, *FindFamily(family), WriteSingle(options, type, family, key, value));
}

Status DBImpl::Put(const WriteOptions& options, Slice key, Slice value) try {
  return WriteSingle(options, EntryType::kPut, 0, key, value);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status DBImpl::Delete(const WriteOptions& options, Slice key) try {
  return WriteSingle(options, EntryType::kDelete, 0, key, Slice());
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status DBImpl::Put(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice value) try {
  Status status;
  const Family* const known = FamilyOf(family, &status);
  if (known == nullptr) return status;
  return SkipDropped(options, *known, WriteSingle(options, EntryType::kPut, known->id, key, value));
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status DBImpl::Delete(const WriteOptions& options, ColumnFamilyHandle* family, Slice key) try {
  Status status;
  const Family* const known = FamilyOf(family, &status);
  if (known == nullptr) return status;
  return SkipDropped(options, *known, WriteSingle(options, EntryType::kDelete, known->id, key, Slice()));
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status DBImpl::Write(const WriteOptions& options, const WriteBatch& batch) { return WriteBatchTo<false>(options, batch); }

Status DBImpl::WriteToAnyFamily(const WriteOptions& options, const WriteBatch& batch) {
  return WriteBatchTo<true>(options, batch);
}

// If a family is dropped after its updates were collected, the write is refused, and the next attempt skips the family.
template <bool kHiddenFamilies>
Status DBImpl::WriteBatchTo(const WriteOptions& options, const WriteBatch& batch) try {
  const TemporaryThreadIndex index;
  size_t skipped = 0;
  Status status = TryWriteBatch<kHiddenFamilies>(options, batch, &skipped);
  while (options.ignore_missing_column_families && status.IsInvalidArgument()) {
    const size_t skipped_before = skipped;
    status = TryWriteBatch<kHiddenFamilies>(options, batch, &skipped);
    if (skipped <= skipped_before) break;
  }
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

template <bool kHiddenFamilies>
Status DBImpl::TryWriteBatch(const WriteOptions& options, const WriteBatch& batch, size_t* skipped) {
  ThreadState* thread = GetThreadState();
  if (thread == nullptr) return TooManyThreads();
  const LargeBatchRelease release(thread);
  BatchCollector::Families families{{by_id_.get(), kMaxFamilies}, &range_family_, kHiddenFamilies};
  BatchCollector collector(this, families, options.ignore_missing_column_families, thread);
  thread->updates.clear();
  Status status = batch.Iterate(&collector);
  *skipped = collector.skipped();
  if (!status.ok() || thread->updates.empty()) return status;
  if (collector.ranges() != nullptr) return WriteRanges(options, thread, collector.ranges());
  const bool is_single = thread->updates.size() == 1;
  if (kHiddenFamilies && collector.shown() < thread->updates.size()) {
    AdmitsRecords admission;
    admission.shown = collector.shown();
    return is_single ? WriteUpdates<true>(options, thread, thread->updates, admission)
                     : WriteUpdates<false>(options, thread, thread->updates, admission);
  }
  return is_single ? WriteUpdates<true>(options, thread, thread->updates, AdmitsAll())
                   : WriteUpdates<false>(options, thread, thread->updates, AdmitsAll());
}

// Prefetches the bucket before any other step of the write: the bucket takes longer to arrive than the other steps take.
void DBImpl::BeginSingle(ThreadState* thread, const LogUpdate& update) {
  const uint64_t hash = KeyHash(update.family, update.key);
  if (lookup_cache_ != nullptr) lookup_cache_->PrefetchForWrite(hash);
  if (thread->insertions.empty()) thread->insertions.resize(1);
  thread->insertions[0].key_hash = hash;
}

// Retires the replaced sets of range tombstones after the write has ended, when no thread waits for the write any more.
Status DBImpl::WriteRanges(const WriteOptions& options, ThreadState* thread, RangeUpdate* ranges) {
  AdmitsRanges admission;
  admission.update = ranges;
  WaitForRanges(thread);
  const Status status = IsObserved() ? ObserveWrite<false>(options, thread, thread->updates, admission)
                                     : WriteAdmitted<false>(options, thread, thread->updates, admission);
  ranges->End();
  return status.IsAborted() ? ranges->refusal() : status;
}

template <bool kSingle, class Admission>
Status DBImpl::WriteUpdates(const WriteOptions& options, ThreadState* thread, std::span<LogUpdate> updates,
                            const Admission& admission) {
  if (IsObserved()) return ObserveWrite<kSingle>(options, thread, updates, admission);
  return WriteAdmitted<kSingle>(options, thread, updates, admission);
}

template <bool kSingle, class Admission>
[[gnu::noinline]] Status DBImpl::ObserveWrite(const WriteOptions& options, ThreadState* thread, std::span<LogUpdate> updates,
                                              const Admission& admission) {
  const auto named = [] {
    const PerfContext& context = perf::t_context;
    return context.write_wal_time + context.write_memtable_time + context.write_delay_time;
  };
  const uint64_t named_before = named();
  const uint64_t bytes_before = thread->log_bytes.value();
  const uint64_t begin_ns = perf::NowNs();
  Status status = WriteAdmitted<kSingle>(options, thread, updates, Observed<Admission>(admission));
  const uint64_t end_ns = perf::NowNs();
  const uint64_t took_ns = end_ns - begin_ns;
  if (perf::Times()) perf::t_context.write_pre_and_post_process_time += took_ns - std::min(took_ns, named() - named_before);
  Sample(&thread->sampled_writes, end_ns, took_ns);
  if (!status.ok()) return status;
  Measure(HistogramKind::kWriteMicros, took_ns);
  Measure(HistogramKind::kBytesPerWrite, thread->log_bytes.value() - bytes_before);
  return status;
}

template <bool kSingle, class Admission>
[[gnu::always_inline]] inline Status DBImpl::WriteAdmitted(const WriteOptions& options, ThreadState* thread,
                                                           std::span<LogUpdate> updates, const Admission& admission) {
  if (kSingle) BeginSingle(thread, updates[0]);
  if (__builtin_expect(write_failed_.load(std::memory_order_acquire), 0)) return BackgroundError();
  // For a batch: enough for entries that begin anywhere in a cache line. For a single update: its exact size.
  const size_t count = kSingle ? 1 : updates.size();
  uint64_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    bytes += LogEntrySize(updates[i].height, updates[i].key.size(), updates[i].value.size());
    if (!kSingle) bytes += kCacheLine - kLastStart;
  }
  if (bytes > kMaxBatchSize) return Status::InvalidArgument("a batch of more than 4 GiB; write several smaller batches");
  const uint32_t most_waiting = changing_.max_immutable_memtables.load(std::memory_order_relaxed);
  if (__builtin_expect(immutable_count_.load(std::memory_order_relaxed) > most_waiting, 0)) DelayWrite(thread, count);
  LogSlot slot;
  if (__builtin_expect(!thread->writer.ReserveHere(bytes, &slot), 0)) {
    Status status = ReserveLog(thread, bytes, UseOf(updates), &slot);
    if (!status.ok()) return status;
  }
  if (kSingle && !regions_->persistence()->streams()) FetchAhead(slot);
  if (__builtin_expect(slot.dedicated, 0))
    return AppendDedicated<kSingle>(options, thread, updates.data(), count, &slot, admission);
  return AppendAndPublish<kSingle>(options, thread, updates.data(), count, &slot, admission);
}

SpaceUse DBImpl::UseOf(std::span<const LogUpdate> updates) const {
  const Family* const ranges = range_family_.load(std::memory_order_acquire);
  const bool deletes = std::all_of(updates.begin(), updates.end(), [&](const LogUpdate& update) {
    return update.type == EntryType::kDelete || (ranges != nullptr && update.family == ranges->id);
  });
  return deletes ? SpaceUse::kDelete : SpaceUse::kPut;
}

Status DBImpl::ReserveLog(ThreadState* thread, uint64_t bytes, SpaceUse use, LogSlot* slot) {
  Status status = thread->writer.Reserve(segments_.get(), regions_->HomeRegion(), bytes, slot, use);
  if (__builtin_expect(!status.ok(), 0)) {
    if (status.IsNoSpace()) status = ReserveElsewhere(thread, bytes, use, slot);
    if (status.IsNoSpace()) status = ReserveInIdle(thread, bytes, Idleness::kEnded, slot);
    if (status.IsNoSpace()) status = WaitForRoom(thread, bytes, use, slot);
    Settle(Work::kReserveLog, status);
  }
  return status;
}

// Tries the home region first, and then the other regions in turn, so that writers of a full region continue while another has
// space.
Status DBImpl::ReserveElsewhere(ThreadState* thread, uint64_t bytes, SpaceUse use, LogSlot* slot) {
  Status status;
  const uint32_t home = regions_->HomeRegion();
  for (uint32_t i = 0; i < regions_->count(); ++i) {
    status = thread->writer.Reserve(segments_.get(), (home + i) % regions_->count(), bytes, slot, use);
    if (!status.IsNoSpace()) break;
  }
  return status;
}

// Builds the entry in a buffer in DRAM, from which it is copied to the log. Reads of the entry before publication then do not
// load lines that are just being written back.
void DBImpl::StageEntry(ThreadState* thread, LogSlot* slot, uint64_t sequence, const LogUpdate& update) {
  Segment* const segment = slot->segment;
  uint8_t* const staged = thread->staged + slot->offset % kCacheLine;
  auto* const entry = reinterpret_cast<LogEntry*>(staged);
  std::memset(staged + slot->bytes - 8, 0, 8);  // zeroes the padding; the rest is overwritten
  slot->bytes = LogWriter::WriteEntryAt(entry, segment->entry_seed(), sequence, 0, update);
  thread->insertions[0].entry = entry;
  thread->insertions[0].pointer = segment->ptr(slot->offset);
}

void DBImpl::AppendStaged(const LogSlot& slot, const LogEntry* staged) {
  uint8_t* const target = slot.segment->data() + slot.offset;
  Persistence* const persistence = regions_->persistence();
  if (BRAIDDB_MUTANT("entry-not-flushed")) {
    std::memcpy(target, staged, slot.bytes);
  } else if (BRAIDDB_MUTANT("entry-flush-too-short")) {
    std::memcpy(target, staged, slot.bytes);
    persistence->Flush(target, 1);
  } else {
    persistence->Append(target, staged, slot.bytes);
  }
}

void DBImpl::WriteInPlace(ThreadState* thread, LogSlot* slot, uint64_t first, std::span<const LogUpdate> updates) {
  BRAIDDB_SYNC_POINT("DBImpl::WriteInPlace");
  Segment* const segment = slot->segment;
  Persistence* const persistence = regions_->persistence();
  const bool single = updates.size() == 1;
  uint64_t end = slot->offset;
  uint64_t flushed = slot->offset;  // all before this offset
  LogWriter::Streamed streamed;
  LogWriter::Streamed* const streams = persistence->streams_lines() ? &streamed : nullptr;
  for (size_t i = 0; i < updates.size(); ++i) {
    const uint64_t offset = i == 0 ? slot->offset : NextEntryOffset(end);
    uint64_t flags = 0;
    if (!single && !BRAIDDB_MUTANT("batch-unmarked"))
      flags = LogEntry::kBatchMember | (i + 1 < updates.size() ? LogEntry::kMoreFollows : 0);
    end = LogWriter::WriteEntry(*slot, offset, first + i, flags, updates[i], streams);
    if (streamed.begin != nullptr) {
      persistence->Flush(segment->data() + flushed, static_cast<size_t>(streamed.begin - segment->data()) - flushed);
      flushed = static_cast<uint64_t>(streamed.end - segment->data());
      streamed = {};
    }
    thread->insertions[i].entry = reinterpret_cast<LogEntry*>(segment->data() + offset);
    thread->insertions[i].pointer = segment->ptr(offset);
  }
  slot->bytes = end - slot->offset;
  const uint64_t bytes = BRAIDDB_MUTANT("entry-flush-too-short") ? 1 : end - flushed;
  if (!BRAIDDB_MUTANT("entry-not-flushed")) persistence->Flush(segment->data() + flushed, bytes);
}

}  // namespace braiddb
