// Writing: one log append with one flush pass and one fence, overlapped with the search in the memtable; then publication.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <type_traits>
#include <utility>

#include "db/db_impl.h"
#include "db/no_memory.h"
#include "db/range_update.h"
#include "index/key_hash.h"
#include "util/check.h"
#include "util/mutant.h"
#include "util/prefetch.h"
#include "util/spin.h"
#include "util/sync_point.h"
#include "util/temporary_thread_index.h"

namespace braiddb {
namespace {

// Threads account what they write in portions of this fraction of a memtable, so that they do not share a counter per write.
constexpr uint64_t kChargePortions = 64;

bool AreSizesValid(Slice key, Slice value) { return key.size() <= kMaxKeySize && value.size() <= kMaxValueSize; }

Status CheckSizes(Slice key, Slice value) {
  if (key.size() > kMaxKeySize) {
    return Status::InvalidArgument("a key of " + std::to_string(key.size()) + " bytes; at most 65536 are possible");
  }
  if (value.size() > kMaxValueSize) {
    return Status::InvalidArgument("a value of " + std::to_string(value.size()) + " bytes; at most 1 GiB is possible");
  }
  return Status::OK();
}

// How far a write is; a write that nobody measures does not say.
struct Unobserved {
  static void NoteLogging() {}
  static void NoteDurable() {}
  static void NotePublished() {}
};

// Whether a write that has drawn its number is made. Users' writes always are.
struct AdmitsAll : Unobserved {
  static constexpr bool kIsUsers = true;  // counted in the statistics, and throttled
  static constexpr bool kHasRanges = false;
  static constexpr bool kIsShown = true;  // by GetUpdatesSince
  static constexpr bool Admits(uint64_t) { return true; }
  static constexpr void BeforeVisible() {}
  static constexpr size_t CountShown(size_t count) { return count; }
};

// Of a batch whose last updates are of a hidden family: GetUpdatesSince shows only the first ones.
struct AdmitsRecords : AdmitsAll {
  size_t CountShown(size_t) const { return shown; }
  size_t shown = 0;
};

// Of the compaction thread: nobody makes room meanwhile, and what is deleted concerns nobody.
struct AdmitsAllAtOnce : AdmitsAll {
  static constexpr bool kIsUsers = false;
  static constexpr bool kIsShown = false;
};

// Of a batch with ranges; see range_delete.cc.
struct AdmitsRanges : Unobserved {
  static constexpr bool kIsUsers = true;
  static constexpr bool kHasRanges = true;
  static constexpr bool kIsShown = true;
  bool Admits(uint64_t first) const { return update->Prepare(first); }
  void BeforeVisible() const { update->Install(); }
  static constexpr size_t CountShown(size_t count) { return count; }
  RangeUpdate* update = nullptr;
};

// Where only one version of a key may be overwritten.
template <class IsAdmitted>
struct AdmitsIf : Unobserved {
  static constexpr bool kIsUsers = false;
  static constexpr bool kHasRanges = false;
  static constexpr bool kIsShown = true;
  bool Admits(uint64_t sequence) const { return is_admitted(sequence); }
  static constexpr void BeforeVisible() {}
  static constexpr size_t CountShown(size_t count) { return count; }
  const IsAdmitted& is_admitted;
};

// Lines of the log are fetched before they are overwritten. That is done some entries ahead, since a store that waits for its
// line keeps the fence behind it waiting.
void FetchAhead(const LogSlot& slot) {
  constexpr uint64_t kDistance = 512;
  if (__builtin_expect(slot.bytes > ThreadState::kMostStaged, 0)) return;  // the CPU foresees those
  const uint8_t* const begin = slot.segment->data() + slot.offset + kDistance;
  for (uint64_t i = 0; i < slot.bytes; i += kCacheLine) PrefetchForWrite(begin + i);
}

// Counts for the thread's PerfContext.
template <class Admission>
struct Observed : Admission {
  explicit Observed(const Admission& admission) : Admission(admission) {}
  void NoteLogging() const { begin_ns = perf::Times() ? perf::NowNs() : 0; }
  void NoteDurable() const { EndPhase(&PerfContext::write_wal_time); }
  void NotePublished() const { EndPhase(&PerfContext::write_memtable_time); }
  void EndPhase(perf::Counter counter) const {
    if (begin_ns == 0) return;
    const uint64_t now_ns = perf::NowNs();
    perf::t_context.*counter += now_ns - std::exchange(begin_ns, now_ns);
  }
  mutable uint64_t begin_ns = 0;  // of the phase
};

Status TooManyThreads() {
  return Status::Busy("more than " + std::to_string(kMaxThreads) + " threads use databases; end some, then write again");
}

}  // namespace

void DBImpl::Announce(ThreadState* thread) {
  thread->in_flight.Begin(next_sequence_.load(std::memory_order_relaxed), asymmetric_fences_);
}

ThreadState* DBImpl::GetThreadState() {
  ThreadState* thread = threads_.Get();
  if (thread != nullptr && __builtin_expect(thread->random == nullptr, 0)) {
    thread->random = std::make_unique<Random>(regions_->database_id() + ThreadIndex());
  }
  return thread;
}

// Inlined into the functions that users call, key and value as words, not as the 16 bytes that a Slice is: what the caller has
// just stored in two parts, a load of the whole waits for until it is in the cache, behind the fence of the write before.
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

Status NoSuchFamily(uint32_t family) {
  return Status::InvalidArgument("the batch writes to column family " + std::to_string(family) +
                                 ", which does not exist; create the family, or take its updates out of the batch");
}

Status ReservedFamily(uint32_t family) {
  return Status::InvalidArgument("the batch writes to column family " + std::to_string(family) +
                                 ", which holds the database's own records; take these updates out of the batch");
}

bool IsDropped(const Family& family) { return family.dropped.load(std::memory_order_seq_cst); }

// The result of a write to one family: a write that may be skipped is OK if its family was dropped.
Status SkipDropped(const WriteOptions& options, const Family& family, Status status) {
  const bool is_skipped = !status.ok() && options.ignore_missing_column_families && IsDropped(family);
  return is_skipped ? Status::OK() : status;
}

// What a thread keeps for its next batch; a larger batch gives the rest back when it ends.
class LargeBatchRelease {
 public:
  explicit LargeBatchRelease(ThreadState* thread) : thread_(*thread) {}
  ~LargeBatchRelease() {
    if (thread_.updates.capacity() > kMostKept) decltype(thread_.updates)().swap(thread_.updates);
    if (thread_.insertions.capacity() > kMostKept) decltype(thread_.insertions)().swap(thread_.insertions);
  }
  LargeBatchRelease(const LargeBatchRelease&) = delete;
  LargeBatchRelease& operator=(const LargeBatchRelease&) = delete;

 private:
  static constexpr size_t kMostKept = 4096;  // updates; about 1 MiB
  ThreadState& thread_;
};

}  // namespace

// REQUIRES: the caller has a handle of the family, unless that is the default one.
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

// If a family is dropped between the collection and the write, the write is refused, and the next attempt skips the family.
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
  struct Collector : WriteBatch::Handler {
    void Put(Slice, Slice) override {}  // these are called through the ones below only
    void Delete(Slice) override {}
    void Merge(Slice, Slice) override {}
    Status PutCF(uint32_t family, Slice key, Slice value) override { return AddUsers(EntryType::kPut, family, key, value); }
    Status DeleteCF(uint32_t family, Slice key) override { return AddUsers(EntryType::kDelete, family, key, Slice()); }
    Status MergeCF(uint32_t family, Slice key, Slice operand) override {
      return AddUsers(EntryType::kMerge, family, key, operand);
    }
    Status DeleteRangeCF(uint32_t family, Slice begin, Slice end) override {
      if (Skips(family)) return Status::OK();
      if (ranges == nullptr) ranges = std::make_unique<RangeUpdate>(db);
      std::string_view record[2];
      bool is_empty = false;
      Status status = ranges->Add(family, begin, end, thread->updates.size(), record, &is_empty);
      if (!status.ok() || is_empty) return status;
      return Take(EntryType::kPut, ranges->family(), record[0], record[1]);
    }
    // Whether an update is skipped, because users see no such family.
    bool Skips(uint32_t family) {
      if (__builtin_expect(!ignores_missing, 1) || family == 0) return false;
      const Family* const known = db->FindFamily(family);
      const bool is_missing = known == nullptr || IsDropped(*known) || (!kHiddenFamilies && known->is_hidden);
      skipped += is_missing ? 1 : 0;
      return is_missing;
    }
    // Records of deleted ranges come from DeleteRangeCF only: an open refuses what is no such record.
    Status AddUsers(EntryType type, uint32_t family, Slice key, Slice value) {
      if (Skips(family)) return Status::OK();
      const Family* const records = db->range_family_.load(std::memory_order_acquire);
      if (records != nullptr && family == records->id) {
        return Status::InvalidArgument("the batch writes to column family " + std::to_string(family) +
                                       ", in which the database keeps deleted ranges; use DeleteRange");
      }
      return Add(type, family, key, value);
    }
    // Looked up once: a family that is dropped meanwhile goes from the table at any time. Its object stays until the close.
    Status Add(EntryType type, uint32_t family, Slice key, Slice value) {
      const Family* const known = db->FindFamily(family);
      if (known == nullptr) return NoSuchFamily(family);
      if (known->is_hidden) return kHiddenFamilies ? Take(type, family, key, value) : ReservedFamily(family);
      if (!kHiddenFamilies && type == EntryType::kMerge && known->options.merge_operator == nullptr)
        return Status::InvalidArgument("Merge requires `ColumnFamilyOptions::merge_operator != nullptr`");  // in RocksDB's words
      if (Status status = Take(type, family, key, value); !status.ok()) return status;
      shown = thread->updates.size();
      return Status::OK();
    }
    Status Take(EntryType type, uint32_t family, Slice key, Slice value) {
      if (!AreSizesValid(key, value)) return CheckSizes(key, value);
      thread->updates.push_back({type, key, value, RandomHeight(thread->random->Next()), family});
      return Status::OK();
    }
    DBImpl* db;
    ThreadState* thread;
    bool ignores_missing;
    size_t skipped = 0;
    size_t shown = 0;                     // updates up to the last one of a user's family
    std::unique_ptr<RangeUpdate> ranges;  // null: there are none
  } collector;
  const LargeBatchRelease release(thread);
  collector.db = this;
  collector.thread = thread;
  collector.ignores_missing = options.ignore_missing_column_families;
  thread->updates.clear();
  Status status = batch.Iterate(&collector);
  *skipped = collector.skipped;
  if (!status.ok() || thread->updates.empty()) return status;
  if (collector.ranges != nullptr) return WriteRanges(options, thread, collector.ranges.get());
  const bool is_single = thread->updates.size() == 1;
  if (kHiddenFamilies && collector.shown < thread->updates.size()) {
    AdmitsRecords admission;
    admission.shown = collector.shown;
    return is_single ? WriteUpdates<true>(options, thread, thread->updates, admission)
                     : WriteUpdates<false>(options, thread, thread->updates, admission);
  }
  return is_single ? WriteUpdates<true>(options, thread, thread->updates, AdmitsAll())
                   : WriteUpdates<false>(options, thread, thread->updates, AdmitsAll());
}

// Before anything else that a write of a single update does: the bucket takes longer to come than all of that.
void DBImpl::BeginSingle(ThreadState* thread, const LogUpdate& update) {
  const uint64_t hash = KeyHash(update.family, update.key);
  if (lookup_cache_ != nullptr) lookup_cache_->PrefetchForWrite(hash);
  if (thread->insertions.empty()) thread->insertions.resize(1);
  thread->insertions[0].key_hash = hash;
}

// What the ranges of a batch were is retired when nobody waits for the write any more.
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
  // Enough for any start in a cache line; a single update takes exactly its size.
  const size_t count = kSingle ? 1 : updates.size();
  uint64_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    bytes += LogEntrySize(updates[i].height, updates[i].key.size(), updates[i].value.size());
    if (!kSingle) bytes += kCacheLine - kLastStart;
  }
  if (bytes > kMaxBatchSize) return Status::InvalidArgument("a batch of more than 4 GiB; write it in several");
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

// A write that is refused after its segment was taken gives the segment back. After a failed persist it stays: nobody knows what
// media have of it, and no segment is taken any more.
template <bool kSingle, class Admission>
[[gnu::noinline]] Status DBImpl::AppendDedicated(const WriteOptions& options, ThreadState* thread, const LogUpdate* updates,
                                                 size_t count, LogSlot* slot, const Admission& admission) {
  Segment* const segment = slot->segment;
  Status status;
  try {
    status = AppendAndPublish<kSingle>(options, thread, updates, count, slot, admission);
  } catch (const std::bad_alloc&) {
    (void)segments_->Release(segment);  // the caller hears that there is no memory
    throw;
  }
  if (status.ok() || write_failed_.load(std::memory_order_acquire)) return status;
  const Status released = segments_->Release(segment);
  return released.ok() ? status : released;
}

// Who calls for the database itself takes no space that needs a compaction, and gives back what was refused.
template <bool kSingle, class Admission>
[[gnu::noinline]] Status DBImpl::AppendElsewhere(const WriteOptions& options, ThreadState* thread, const LogUpdate* updates,
                                                 size_t count, LogSlot* slot, const Admission& admission) {
  EndAnnounced(thread, false);
  if (!Admission::kIsUsers) {
    Status status = ReserveElsewhere(thread, slot->bytes, SpaceUse::kBackground, slot);
    return status.ok() ? AppendAndPublish<kSingle>(options, thread, updates, count, slot, admission) : status;
  }
  Status status = ReserveLog(thread, slot->bytes, UseOf({updates, count}), slot);
  if (!status.ok()) return status;
  return slot->dedicated ? AppendDedicated<kSingle>(options, thread, updates, count, slot, admission)
                         : AppendAndPublish<kSingle>(options, thread, updates, count, slot, admission);
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

// A full home region does not stop its writers while another has space: the home first, then the others in turn.
Status DBImpl::ReserveElsewhere(ThreadState* thread, uint64_t bytes, SpaceUse use, LogSlot* slot) {
  Status status;
  const uint32_t home = regions_->HomeRegion();
  for (uint32_t i = 0; i < regions_->count(); ++i) {
    status = thread->writer.Reserve(segments_.get(), (home + i) % regions_->count(), bytes, slot, use);
    if (!status.IsNoSpace()) break;
  }
  return status;
}

// Makes the entry in a buffer, from where it is copied to the log: what is read of it before it is visible is not read from lines
// that are just written back.
void DBImpl::StageEntry(ThreadState* thread, LogSlot* slot, uint64_t sequence, const LogUpdate& update) {
  Segment* const segment = slot->segment;
  uint8_t* const staged = thread->staged + slot->offset % kCacheLine;
  auto* const entry = reinterpret_cast<LogEntry*>(staged);
  std::memset(staged + slot->bytes - 8, 0, 8);  // padding, in part
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
  const bool single = updates.size() == 1;
  uint64_t end = slot->offset;
  for (size_t i = 0; i < updates.size(); ++i) {
    const uint64_t offset = i == 0 ? slot->offset : NextEntryOffset(end);
    uint64_t flags = 0;
    if (!single && !BRAIDDB_MUTANT("batch-unmarked"))
      flags = LogEntry::kBatchMember | (i + 1 < updates.size() ? LogEntry::kMoreFollows : 0);
    end = LogWriter::WriteEntry(*slot, offset, first + i, flags, updates[i]);
    thread->insertions[i].entry = reinterpret_cast<LogEntry*>(segment->data() + offset);
    thread->insertions[i].pointer = segment->ptr(offset);
  }
  slot->bytes = end - slot->offset;
  const uint64_t flushed = BRAIDDB_MUTANT("entry-flush-too-short") ? 1 : slot->bytes;
  if (!BRAIDDB_MUTANT("entry-not-flushed")) regions_->persistence()->Flush(segment->data() + slot->offset, flushed);
}

// REQUIRES: of a single update, BeginSingle.
// STEPS   1 announce, look whether the slot is still this thread's, draw a sequence number, find its memtable; a single update
//         waits for barriers (visibility.cc), others do so behind 7  2 of a single update: make its entry in DRAM, lock its
//         bucket of the lookup cache, claim its place in the memtable  3 write the entries  4 start the flush of their lines
//         5 find the places that are not claimed meanwhile  6 fence  7 publish.
// ORDER   The entries are durable (6) before anyone can see them (7). [CC-6]
// COST    One flush per line; one fence. Behind the fence a single update only stores, so that the CPU goes on with the next one,
//         up to its first locked instruction (1), while memory takes the lines of this one. Where 3 to 6 take long, for a large
//         value, or in kPage, nobody shall wait for a lock as long: there nothing is claimed, and the bucket is locked and the
//         place taken in 7. So they are where Append streams, and 5 comes after 6: loads go on while such a fence drains, and
//         only locked instructions wait (design/0006).
template <bool kSingle, class Admission>
Status DBImpl::AppendAndPublish(const WriteOptions& options, ThreadState* thread, const LogUpdate* updates, size_t number,
                                LogSlot* slot, const Admission& admission) {
  const size_t count = kSingle ? 1 : number;
  if (thread->insertions.size() < count) thread->insertions.resize(count);
  Memtable::Insertion* const insertions = thread->insertions.data();
  // Several updates, or a range: see visibility.cc. What nobody is shown is none.
  const bool is_barrier = !kSingle && Admission::kIsShown && (count > 1 || Admission::kHasRanges);
  BRAIDDB_SYNC_POINT("DBImpl::AppendAndPublish:Reserved");
  Announce(thread);
  // ORDER: the announcement before the question; see open_segments.cc.
  if (__builtin_expect(!thread->writer.Owns(*slot), 0))
    return AppendElsewhere<kSingle>(options, thread, updates, count, slot, admission);
  if (is_barrier) BeginBarrier(&thread->barrier);
  // The memtable before the number: the search for the number's memtable goes forward only.
  Memtable* const active = active_.load(std::memory_order_seq_cst);
  if (kSingle && __builtin_expect(updates[0].family == 0, 1)) active->Prefetch(insertions[0].key_hash);
  const uint64_t first = next_sequence_.fetch_add(count, std::memory_order_seq_cst);
  Memtable* const memtable = MemtableFor(active, first);
  if (is_barrier) thread->barrier.Set(first, asymmetric_fences_);
  // acquire: pairs with EndBarrier. If a barrier with a smaller position is under way, its count is seen. Ranges wait before they
  // take their mutex.
  const bool waits_early = !is_barrier || Admission::kHasRanges;
  if (waits_early && __builtin_expect(barriers_.load(std::memory_order_seq_cst) != 0, 0)) WaitForTurn(thread, first);
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
    // The last thing that needs DRAM before the write is visible.
    const bool goes_on = thread->extent_owner == memtable->id() && thread->extent->segment == slot->segment;
    if (__builtin_expect(!goes_on || slot->dedicated, 0)) BeginExtent(thread, memtable, *slot);
  } catch (const std::bad_alloc&) {
    EndAnnounced(thread, is_barrier);
    throw;
  }

  admission.NoteLogging();
  Persistence* const persistence = regions_->persistence();
  const bool is_staged = kSingle && slot->bytes <= ThreadState::kMostStaged;
  const bool streams = persistence->streams();
  const bool claims = is_staged && persistence->mode() != PersistMode::kPage && !streams;
  LookupCache::WriteLock lock;
  insertions[0].is_claimed = false;
  // Before the claims: meanwhile the lines come that these wait for.
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
  admission.BeforeVisible();  // [CC-54]
  // ORDER: the last update first. Of several to one key the newest is there before the others, so that a Get which finds one of
  // the batch, and waits until it is all there, has found the one that counts.
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
  thread->uncharged_entries += count;
  const bool portion = thread->uncharged_bytes * kChargePortions >= changing_.memtable_size.load(std::memory_order_relaxed) ||
                       thread->uncharged_entries * kChargePortions >= options_.memtable_max_entries;
  const bool full = __builtin_expect(portion, 0) && Charge(thread, memtable);
  const size_t shown = Admission::kIsShown ? admission.CountShown(count) : 0;
  if (shown != 0) thread->last_update.store(first + shown - 1, std::memory_order_release);
  // Pairs with the loads in WaitWriters: the entries are visible to whoever sees this. From here on the memtable may be gone.
  EndAnnounced(thread, is_barrier);
  if (Admission::kIsUsers) {
    thread->writes.Add(count);
    thread->batches.Add(1);
    thread->log_bytes.Add(slot->bytes);
  }
  if (__builtin_expect(full, 0)) {
    TryRotateMemtable(memtable);
  }
  if (!waits_early && barriers_.load(std::memory_order_seq_cst) != 0) WaitBarriers(first - 1);
  if (Admission::kIsUsers && __builtin_expect(thread->unpaced_entries != 0, 0)) PaceWrites(thread);
  return Status::OK();
}

// STEPS   1 draw a number  2 wait until every write with a smaller one is visible  3 look whether `seen` is still the key's
//         newest version as of that number  4 go on as every write: log, fence, publish; or leave it, and the number is nobody's.
// WHY NOTHING IS OVERWRITTEN  A write to the key that 3 does not see has a larger number, and so is newer than this one.
// WHY NOBODY WAITS FOR EVER  Users' writes wait for none while they are under way, and of these there is one at a time. So all
//         that 2 waits for come to their end. Who needs this number to be visible waits for 2 to 4.
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
    // Not for this one itself. Its memtable stays: a flush of it waits for larger numbers than this.
    thread->in_flight.Set(sequence, asymmetric_fences_);
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
  options.sync = false;  // what the operating system loses is done again: the version of before is there as long as this may go
  status = AppendAndPublish<true>(options, thread, &update, 1, &slot, AdmitsIf<decltype(is_newest)>{{}, is_newest});
  if (!status.IsAborted() || !slot.dedicated) return status;
  const Status released = segments_->Release(slot.segment);
  return released.ok() ? status : released;
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
  return AppendAndPublish<false>(WriteOptions(), thread, thread->updates.data(), keys.size(), &slot, AdmitsAllAtOnce());
}

void DBImpl::EndFilterWrites() {
  const std::lock_guard lock(write_if_newest_mutex_);
  filter_writes_ended_ = true;
}

}  // namespace braiddb
