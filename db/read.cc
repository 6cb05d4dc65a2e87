// Reading: point lookups, MultiGet, snapshots, pinned slices.
#include <algorithm>
#include <utility>

#include "db/db_impl.h"
#include "db/no_memory.h"
#include "db/read_path.h"
#include "db/timestamped_entry.h"
#include "index/key_hash.h"
#include "log/log_reader.h"
#include "util/sync_point.h"

namespace braiddb {

PinnableSlice::PinnableSlice(PinnableSlice&& other) noexcept { *this = std::move(other); }

PinnableSlice& PinnableSlice::operator=(PinnableSlice&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  value_ = std::exchange(other.value_, Slice());
  release_ = std::exchange(other.release_, nullptr);
  owner_ = other.owner_;
  pin_ = other.pin_;
  return *this;
}

void PinnableSlice::Reset() {
  if (release_ != nullptr) release_(owner_, pin_);
  release_ = nullptr;
  value_ = Slice();
}

const LogEntry* DBImpl::FindEntry(const Family& family, const SearchKey& target, uint64_t hash, LookupTrace* trace) const {
  return SearchLevels(UnobservedRead(), family, target, hash, Excluded(), trace);
}

// A read of the newest state that the cache answers needs one bucket and one entry. This path is short enough that the CPU starts
// the following reads while it waits for the lines of this one. For keys of usual sizes it makes no call before the answer is
// known; rare cases are in other functions. (Without asymmetric fences the CPU waits.)
template <class Deliver>
[[gnu::always_inline]] inline Status DBImpl::ReadKey(const ReadOptions& options, const Family& family, Slice key,
                                                     const Deliver& deliver) {
  ThreadState* const thread = threads_.Find(PeekThreadIndex());
  if (__builtin_expect(IsObserved() || !IsPlainRead(options, family, thread), 0))
    return ReadAnyKey(options, family, key, deliver);
  if (__builtin_expect(thread->missing_streak >= kMissesExpected, 0)) return ReadMissing(options, family, key, thread, deliver);
  std::atomic<uint64_t>* const slot = thread->epoch_slot;
  epochs_.EnterOwn(slot);
  const uint64_t hash = family.HashOf(key);
  Cached cached;
  if (__builtin_expect(!local_cache_->FindQuickly(family.id, key, hash, &cached.miss, &cached.entry), 0)) {
    { const EpochManager::Guard guard(slot); }
    return ReadAnyKey(options, family, key, deliver);
  }
  if (IsPlainHit(family, cached.entry)) {
    const EpochManager::Guard guard(slot);
    thread->plain_hits.Add(1);
    thread->missing_streak = 0;
    return deliver(cached.entry);
  }
  if (IsPlainMiss(UnobservedRead(), family, hash, thread, &cached)) {
    const EpochManager::Guard guard(slot);
    return deliver(static_cast<const LogEntry*>(nullptr));
  }
  return ReadBehindCache(UnobservedRead(), options, family, key, hash, cached, thread, slot, deliver);
}

template <class Deliver>
[[gnu::noinline]] Status DBImpl::ReadMissing(const ReadOptions& options, const Family& family, Slice key, ThreadState* thread,
                                             Deliver deliver) {
  if (IsExpectedMiss(UnobservedRead(), family, family.HashOf(key), thread)) return deliver(static_cast<const LogEntry*>(nullptr));
  return ReadAnyKey(options, family, key, deliver);
}

template <class Deliver>
[[gnu::noinline]] Status DBImpl::ReadAnyKey(const ReadOptions& options, const Family& family, Slice key, Deliver deliver) {
  if (options.timestamp.has_value()) return TakesNoTimestamp(family.name);
  ThreadState* const thread = threads_.Get();
  if (thread != nullptr && thread->epoch_slot == nullptr) thread->epoch_slot = epochs_.OwnSlot();
  if (IsObserved()) return ObserveRead(options, family, key, AnyDelivery(deliver));
  return ReadKeyAs(UnobservedRead(), options, family, key, deliver);
}

Status DBImpl::VerifyEntry(const LogEntry* entry) const {
  const PmPtr place = regions_->Find(entry);
  if (!place) {
    return Status::Corruption(
        "a pointer leads outside the database; restore it from a copy, or save what is intact with braiddb repair");
  }
  const Segment* segment = segments_->Find(place);
  if (segment != nullptr && LogReader(*segment, segment->capacity()).ValidAt(segment->OffsetOf(place))) return Status::OK();
  return Status::Corruption("region " + std::to_string(place.region()) + ": the log entry at offset " +
                            std::to_string(place.offset()) +
                            " is damaged; restore the database from a copy, or save what is intact with braiddb repair");
}

[[gnu::always_inline]] inline Status DBImpl::GetString(const ReadOptions& options, const Family& family, Slice key,
                                                       std::string* value) {
  return ReadKey(options, family, key,
                 Either{[value](const LogEntry* entry) {
                          if (entry == nullptr) return Status::NotFound();
                          AssignTo(value, entry->value());
                          return Status::OK();
                        },
                        [value](std::string&& merged) {
                          *value = std::move(merged);
                          return Status::OK();
                        }});
}

inline Status DBImpl::GetPinned(const ReadOptions& options, const Family& family, Slice key, PinnableSlice* value) {
  value->Reset();
  const auto pin = [this, value](const LogEntry* entry) {
    if (entry == nullptr) return Status::NotFound();
    // Inside the guard: the entry is reachable, so the pin keeps it.
    value->pin_ = epochs_.Pin();
    value->owner_ = &epochs_;
    value->release_ = [](void* epochs, uint64_t pinned) { static_cast<EpochManager*>(epochs)->Unpin(pinned); };
    value->value_ = entry->value();
    return Status::OK();
  };
  const auto own = [value](std::string&& merged) {
    auto* const kept = new std::string(std::move(merged));
    value->owner_ = kept;
    value->release_ = [](void* string, uint64_t) { delete static_cast<std::string*>(string); };
    value->value_ = *kept;
    return Status::OK();
  };
  return ReadKey(options, family, key, Either{pin, own});
}

[[gnu::always_inline]] inline Status DBImpl::GetReceived(const ReadOptions& options, const Family& family, Slice key,
                                                         ValueReceiver* value) {
  const auto received = [](bool is_there) { return is_there ? Status::OK() : NoMemory(); };
  return ReadKey(options, family, key,
                 Either{[&](const LogEntry* entry) {
                          return entry == nullptr ? Status::NotFound() : received(value->Receive(entry->value()));
                        },
                        [&](std::string&& merged) { return received(value->Receive(merged)); }});
}

Status DB::GetTo(const ReadOptions& options, Slice key, ValueReceiver* value) {
  return GetTo(options, DefaultColumnFamily(), key, value);
}

Status DB::GetTo(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, ValueReceiver* value) {
  PinnableSlice pinned;
  Status status = Get(options, family, key, &pinned);
  if (status.ok() && !value->Receive(pinned.slice())) status = NoMemory();
  return status;
}

Status DBImpl::GetTo(const ReadOptions& options, Slice key, ValueReceiver* value) try {
  return GetReceived(options, default_family_, key, value);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status DBImpl::GetTo(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, ValueReceiver* value) try {
  Status status;
  const Family* const known = FamilyOf(family, &status);
  return known == nullptr ? status : GetReceived(options, *known, key, value);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status DBImpl::Get(const ReadOptions& options, Slice key, std::string* value) try {
  return GetString(options, default_family_, key, value);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status DBImpl::Get(const ReadOptions& options, Slice key, PinnableSlice* value) try {
  return GetPinned(options, default_family_, key, value);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status DBImpl::Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value) try {
  Status status;
  const Family* const known = FamilyOf(family, &status);
  return known == nullptr ? status : GetString(options, *known, key, value);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status DBImpl::Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, PinnableSlice* value) try {
  Status status;
  const Family* const known = FamilyOf(family, &status);
  return known == nullptr ? status : GetPinned(options, *known, key, value);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// Like ReadKey, but a deletion also has a sequence number.
Status DBImpl::LatestSequence(const Family& family, Slice key, uint64_t* sequence) {
  const uint64_t hash = family.HashOf(key);
  const auto find = [&](uint64_t at_most, LookupTrace* trace) {
    const auto guard = epochs_.Enter();
    const SearchKey target(family.order, key, at_most);
    const LogEntry* entry = UseCached(target, SearchCache(UnobservedRead(), family, key, hash).entry, trace);
    if (entry == nullptr) entry = FindEntry(family, target, hash, trace);
    if (entry != nullptr && at_most == kMaxSequence) WaitWhole(*entry);
    if (__builtin_expect(regions_->damage_seen(), 0)) return RegionSet::DamagedList();
    const RangeTombstones* const ranges = family.ranges.load(std::memory_order_acquire);
    const uint64_t range = ranges == nullptr ? 0 : ranges->Newest(key, at_most);
    *sequence = std::max(entry == nullptr ? 0 : entry->sequence(), range);
    trace->met_dead |= *sequence != 0 && *sequence == range;  // as in FindPut: more of its batch may become visible
    return *sequence == 0 ? Status::NotFound() : Status::OK();
  };
  LookupTrace trace;
  Status status = find(kMaxSequence, &trace);
  if (!trace.met_dead || status.IsCorruption()) return status;
  const uint64_t registered = RegisterSnapshot();
  const SnapshotRegistration registration(&snapshots_, registered);
  LookupTrace again;
  return find(registered, &again);
}

Status DBImpl::GetLatestSequenceForKey(Slice key, uint64_t* sequence) try {
  return LatestSequence(default_family_, key, sequence);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status DBImpl::GetLatestSequenceForKey(ColumnFamilyHandle* family, Slice key, uint64_t* sequence) try {
  Status status;
  const Family* const known = FamilyOf(family, &status);
  return known == nullptr ? status : LatestSequence(*known, key, sequence);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

template <class FamilyAt>
void DBImpl::ReadKeys(const ReadOptions& options, const FamilyAt& family, const std::vector<Slice>& keys,
                      std::vector<std::string>* values, std::vector<Status>* statuses) {
  for (size_t i = 0; __builtin_expect(options.timestamp.has_value(), 0); ++i) {
    if (i == keys.size()) return;
    if (family(i) != nullptr) (*statuses)[i] = TakesNoTimestamp(family(i)->name);
  }
  if (!IsObserved()) return ReadKeysAs(UnobservedRead(), options, family, keys, values, statuses);
  const uint64_t begin = measures_ ? perf::NowNs() : 0;
  ReadKeysAs(ObservedRead(), options, AnyFamilies(family), keys, values, statuses);
  uint64_t bytes = 0;
  for (size_t i = 0; i < keys.size(); ++i) bytes += (*statuses)[i].ok() ? (*values)[i].size() : 0;
  perf::Add(&PerfContext::multiget_read_bytes, bytes);
  Measure(HistogramKind::kBytesPerMultiGet, bytes);
  if (measures_) Measure(HistogramKind::kMultiGetMicros, perf::NowNs() - begin);
}

std::vector<Status> DBImpl::MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                                     std::vector<std::string>* values) {
  std::vector<Status> statuses(keys.size());
  values->resize(keys.size());
  ReadKeys(
      options, [this](size_t) { return &default_family_; }, keys, values, &statuses);
  return statuses;
}

std::vector<Status> DBImpl::MultiGet(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                                     const std::vector<Slice>& keys, std::vector<std::string>* values) {
  std::vector<Status> statuses(keys.size());
  values->resize(keys.size());
  if (families.size() != keys.size()) {
    statuses.assign(keys.size(), Status::InvalidArgument(
                                     "the numbers of column families and keys differ; give one column family for each key"));
    return statuses;
  }
  std::vector<const Family*> known;
  for (size_t i = 0; i < keys.size(); ++i) known.push_back(FamilyOf(families[i], &statuses[i]));
  ReadKeys(
      options, [&known](size_t i) { return known[i]; }, keys, values, &statuses);
  return statuses;
}

const Snapshot* DBImpl::GetSnapshot() {
  const uint64_t sequence = RegisterSnapshot();
  SnapshotRegistration registration(&snapshots_, sequence);
  const Snapshot* const snapshot = new SnapshotImpl(sequence);
  registration.Leave();  // ReleaseSnapshot unregisters
  return snapshot;
}

void DBImpl::ReleaseSnapshot(const Snapshot* snapshot) {
  if (snapshot == nullptr) return;
  // A thread of the parent may have held the lock at the fork.
  if (!fork_mark_.is_in_child()) snapshots_.Unregister(snapshot->GetSequenceNumber());
  delete static_cast<const SnapshotImpl*>(snapshot);
}

}  // namespace braiddb
