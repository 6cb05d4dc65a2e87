// Reading: point lookups, MultiGet, snapshots, pinned slices.
#include <algorithm>
#include <utility>

#include "db/db_impl.h"
#include "db/no_memory.h"
#include "index/key_hash.h"
#include "log/log_reader.h"
#include "util/short_bytes.h"
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

[[gnu::always_inline]] inline DBImpl::Cached DBImpl::AskCache(const Family& family, Slice key, uint64_t hash) const {
  Cached cached;
  if (lookup_cache_ != nullptr && family.is_hashed) cached.entry = lookup_cache_->Find(family.id, key, hash, &cached.miss);
  return cached;
}

// What the cache knows, if the target may see it. The version is the newest of all.
[[gnu::always_inline]] inline const LogEntry* DBImpl::UseCached(const SearchKey& target, const LogEntry* cached,
                                                                LookupTrace* trace) const {
  if (cached == nullptr) return nullptr;
  const bool local = regions_->count() == 1 || regions_->Find(cached).region() == regions_->HomeRegion();
  trace->Account(*regions_->persistence(), local, !local);
  if (__builtin_expect(cached->is_dead(), 0)) {  // by a compaction filter; the cache is about to be told
    trace->met_dead = true;
    return nullptr;
  }
  return cached->sequence() <= target.sequence ? cached : nullptr;
}

const LogEntry* DBImpl::FindEntry(const Family& family, const SearchKey& target, uint64_t hash, LookupTrace* trace) const {
  const ReadView& all = *view_.load(std::memory_order_acquire);
  const KeyFilter* const filter =
      family.is_hashed ? filter_.load(std::memory_order_acquire) : nullptr;  // after the view; see filter.cc
  if (filter != nullptr) filter->Prefetch(hash);
  const auto find = [&](const Memtable& set) {
    const Memtable* const memtable = set.Of(family.id);
    return memtable == nullptr ? nullptr : memtable->Find(target, hash);
  };
  if (const LogEntry* entry = find(*all.active)) return entry;
  for (const auto& memtable : all.immutables) {
    if (const LogEntry* entry = find(*memtable)) return entry;
  }
  const FamilyView& view = *all.Of(family.id);
  if (filter != nullptr && !filter->MayContain(hash)) {
    trace->filtered = true;
    return nullptr;
  }
  if (const LogEntry* entry = view.FindInTables(target, hash, trace)) return entry;
  return view.l1->Find(target, trace);
}

[[gnu::always_inline]] inline const LogEntry* DBImpl::FindPut(const Family& family, const SearchKey& target, uint64_t hash,
                                                              const Cached& cached, ThreadState* thread, bool* met_dead,
                                                              bool verify, Status* status) const {
  LookupTrace trace;
  const LogEntry* entry = UseCached(target, cached.entry, &trace);
  const bool hit = entry != nullptr;
  // After the cache was asked: what came through its bucket before is in this view.
  if (!hit) entry = FindEntry(family, target, hash, &trace);
  const bool found = entry != nullptr && entry->type() != EntryType::kDelete;
  if (thread != nullptr) {
    thread->gets.Add(1);
    if (found) thread->gets_found.Add(1);
    if (hit) thread->lookup_cache_hits.Add(1);
    if (trace.filtered) thread->filter_negatives.Add(1);
    thread->local_visits.Add(trace.local);
    if (trace.remote != 0) thread->remote_visits.Add(trace.remote);
  }
  if (met_dead != nullptr) *met_dead = trace.met_dead;
  // A search may have ended there.
  if (__builtin_expect(regions_->damage_seen(), 0)) *status = RegionSet::DamagedList();
  if (verify && entry != nullptr && status->ok()) *status = VerifyEntry(entry);
  if (!status->ok()) return nullptr;
  // A batch becomes visible as one: who sees a part of it waits until it is all there (microseconds). What it has found is the
  // batch's last word on the key, since AppendAndPublish begins with the last update.
  if (entry != nullptr && target.sequence == kMaxSequence && entry->is_batch_member()) {
    WaitPublished(std::min(entry->sequence(), next_sequence_.load(std::memory_order_seq_cst) - 1));  // it may be damaged
  }
  BRAIDDB_SYNC_POINT("DBImpl::FindPut:Found");
  // After the lookup: who has found what a tombstone hides finds that. Not all of its batch may be visible yet, so that the
  // newest state is read again, as of a snapshot. [CC-54]
  const RangeTombstones* const ranges = family.ranges.load(std::memory_order_acquire);
  if (__builtin_expect(ranges != nullptr, 0) && found && ranges->Hides(target.key, entry->sequence(), target.sequence)) {
    if (met_dead != nullptr) *met_dead = true;
    return nullptr;
  }
  if (found && !hit && lookup_cache_ != nullptr && family.is_hashed && !trace.met_dead && !entry->is_operand()) {
    if (const PmPtr place = regions_->Find(entry)) lookup_cache_->Fill(hash, cached.miss, target.sequence, place);
  }
  return found ? entry : nullptr;
}

// A read of the newest state that the cache answers has all it needs in one bucket and one entry, and takes so few instructions
// that the CPU begins the next one, if that follows at once, while this one waits for its entry.
//
// Otherwise: a read of the newest state registers no snapshot. It goes through the levels from the newest to the oldest, and
// what it finds in one was the newest version when it had seen that the levels above have none. That fails only when a version
// that was its answer when it began is marked dead before it gets there, because a newer one, written since, was merged: then it
// comes upon the mark, and reads again at a snapshot, whose versions are not marked. So does a read that finds an operand: it
// needs several versions.
template <class Deliver>
[[gnu::always_inline]] inline Status DBImpl::ReadKey(const ReadOptions& options, const Family& family, Slice key,
                                                     const Deliver& deliver) {
  const uint64_t hash = family.HashOf(key);
  bool has_operands = false;
  if (__builtin_expect(options.snapshot == nullptr, 1)) {
    ThreadState* const thread = threads_.Get();
    const auto guard = epochs_.Enter();
    const Cached cached = AskCache(family, key, hash);
    if (thread != nullptr && IsPlainHit(family, cached.entry) && !options.verify_checksums) {
      thread->plain_hits.Add(1);
      return deliver(cached.entry);
    }
    Status status;
    const LogEntry* entry = nullptr;
    if (ReadNewest(options, family, key, hash, cached, thread, &entry, &status)) return status.ok() ? deliver(entry) : status;
    has_operands = entry != nullptr && entry->is_operand();
  }
  return ReadAsOf(options, family, key, hash, has_operands, deliver);
}

bool DBImpl::ReadNewest(const ReadOptions& options, const Family& family, Slice key, uint64_t hash, const Cached& cached,
                        ThreadState* thread, const LogEntry** entry, Status* status) const {
  bool met_dead = false;
  *entry = FindPut(family, SearchKey(family.order, key, kMaxSequence), hash, cached, thread, &met_dead, options.verify_checksums,
                   status);
  return !status->ok() || (!met_dead && (*entry == nullptr || !(*entry)->is_operand()));
}

template <class Deliver>
[[gnu::noinline]] Status DBImpl::ReadAsOf(const ReadOptions& options, const Family& family, Slice key, uint64_t hash,
                                          bool has_operands, const Deliver& deliver) {
  const bool verify = options.verify_checksums;
  const uint64_t sequence = options.snapshot != nullptr ? options.snapshot->GetSequenceNumber() : RegisterSnapshot();
  const SnapshotRegistration registration(options.snapshot == nullptr ? &snapshots_ : nullptr, sequence);
  Status status;
  if (!has_operands) {
    const auto guard = epochs_.Enter();
    const LogEntry* entry = FindPut(family, SearchKey(family.order, key, sequence), hash, AskCache(family, key, hash),
                                    threads_.Get(), nullptr, verify, &status);
    if (!status.ok()) return status;
    if (entry == nullptr || !entry->is_operand()) return deliver(entry);
  }
  std::string merged;
  status = ReadMerged(family, SearchKey(family.order, key, sequence), hash, verify, &merged);
  return status.ok() ? deliver(std::move(merged)) : status;
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

namespace {

// Without the calls of std::string::assign when the last value had the same size.
void AssignTo(std::string* value, Slice from) {
  if (value->size() == from.size()) {
    CopyBytes(value->data(), from);
  } else {
    value->assign(from);
  }
}

template <class... Callables>
struct Either : Callables... {
  using Callables::operator()...;
};

}  // namespace

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
    // Inside the guard: what the pin holds is reachable now.
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

// As ReadKey, but a deletion is an answer, too.
Status DBImpl::LatestSequence(const Family& family, Slice key, uint64_t* sequence) {
  const uint64_t hash = family.HashOf(key);
  const auto find = [&](uint64_t at_most, LookupTrace* trace) {
    const auto guard = epochs_.Enter();
    const SearchKey target(family.order, key, at_most);
    const LogEntry* entry = UseCached(target, AskCache(family, key, hash).entry, trace);
    if (entry == nullptr) entry = FindEntry(family, target, hash, trace);
    if (__builtin_expect(regions_->damage_seen(), 0)) return RegionSet::DamagedList();
    const RangeTombstones* const ranges = family.ranges.load(std::memory_order_acquire);
    *sequence = std::max(entry == nullptr ? 0 : entry->sequence(), ranges == nullptr ? 0 : ranges->Newest(key, at_most));
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
  const uint64_t sequence = options.snapshot != nullptr ? options.snapshot->GetSequenceNumber() : RegisterSnapshot();
  const SnapshotRegistration registration(options.snapshot == nullptr ? &snapshots_ : nullptr, sequence);
  std::vector<size_t> merged;  // keys with operands: read outside of the guard
  {
    const auto guard = epochs_.Enter();
    ThreadState* thread = threads_.Get();
    const KeyFilter* const filter = filter_.load(std::memory_order_acquire);
    // The buckets of a group come at the same time, and so do their entries.
    constexpr size_t kGroup = 32;
    uint64_t hashes[kGroup];
    for (size_t begin = 0; begin < keys.size(); begin += kGroup) {
      const size_t count = std::min(kGroup, keys.size() - begin);
      for (size_t i = 0; i < count; ++i) {
        const Family* const own = family(begin + i);
        hashes[i] = own == nullptr ? 0 : own->HashOf(keys[begin + i]);
        if (lookup_cache_ != nullptr) lookup_cache_->Prefetch(hashes[i]);
        if (filter != nullptr) filter->Prefetch(hashes[i]);
      }
      for (size_t i = 0; i < count && lookup_cache_ != nullptr; ++i) lookup_cache_->PrefetchEntry(hashes[i]);
      for (size_t i = begin; i < begin + count; ++i) {
        const Family* const own = family(i);
        if (own == nullptr) continue;
        const uint64_t hash = hashes[i - begin];
        Status& status = (*statuses)[i];
        const LogEntry* entry = FindPut(*own, SearchKey(own->order, keys[i], sequence), hash, AskCache(*own, keys[i], hash),
                                        thread, nullptr, options.verify_checksums, &status);
        if (!status.ok()) continue;
        if (entry == nullptr) {
          status = Status::NotFound();
        } else if (entry->is_operand()) {
          merged.push_back(i);
        } else {
          (*values)[i].assign(entry->value());
        }
      }
    }
  }
  for (const size_t i : merged) {
    const Family& own = *family(i);
    (*statuses)[i] =
        ReadMerged(own, SearchKey(own.order, keys[i], sequence), own.HashOf(keys[i]), options.verify_checksums, &(*values)[i]);
  }
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
    statuses.assign(keys.size(), Status::InvalidArgument("as many column families as keys have to be given"));
    return statuses;
  }
  std::vector<const Family*> known;
  for (size_t i = 0; i < keys.size(); ++i) known.push_back(FamilyOf(families[i], &statuses[i]));
  ReadKeys(
      options, [&known](size_t i) { return known[i]; }, keys, values, &statuses);
  return statuses;
}

// Every write that was acknowledged before has a smaller number and is visible when this returns; every write that has a smaller
// number and was still under way is waited for. Batches are wholly below or wholly above: their numbers are drawn at once.
uint64_t DBImpl::RegisterSnapshot() {
  const uint64_t sequence = snapshots_.Register([this] { return next_sequence_.load(std::memory_order_seq_cst) - 1; });
  WaitPublished(sequence);
  return sequence;
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
  snapshots_.Unregister(snapshot->GetSequenceNumber());
  delete static_cast<const SnapshotImpl*>(snapshot);
}

}  // namespace braiddb
