// The path of a read through the levels, as templates over an observer of read_observer.h. read.cc compiles it for reads that are
// not measured, observed_read.cc for reads that are.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "db/db_impl.h"
#include "db/read_observer.h"
#include "util/short_bytes.h"
#include "util/sync_point.h"

namespace braiddb {

template <class... Callables>
struct Either : Callables... {
  using Callables::operator()...;
};

// Avoids the calls of std::string::assign if *value already has the size of `from`.
[[gnu::always_inline]] inline void AssignTo(std::string* value, Slice from) {
  size_t size = value->size();
  const bool is_same = size == from.size();
  asm("" : "+r"(size));  // the size that the CPU knows early; capi/early_memory.h
  if (is_same) {
    CopyBytes(value->data(), {from.data(), size});
  } else {
    value->assign(from);
  }
}

// A type-erased reference to the function objects that receive the result of a read.
class AnyDelivery {
 public:
  template <class Deliver>
  explicit AnyDelivery(const Deliver& deliver)
      : deliver_(&deliver),
        entry_([](const void* to, const LogEntry* entry) { return (*static_cast<const Deliver*>(to))(entry); }),
        merged_([](const void* to, std::string&& value) { return (*static_cast<const Deliver*>(to))(std::move(value)); }) {}
  Status operator()(const LogEntry* entry) const { return entry_(deliver_, entry); }
  Status operator()(std::string&& value) const { return merged_(deliver_, std::move(value)); }

 private:
  const void* deliver_;
  Status (*entry_)(const void*, const LogEntry*);
  Status (*merged_)(const void*, std::string&&);
};
// The same for a function that returns the family of a key.
using AnyFamilies = std::function<const Family*(size_t)>;

extern template Status DBImpl::ObserveRead(const ReadOptions&, const Family&, Slice, const AnyDelivery&);
extern template void DBImpl::ReadKeysAs(const ObservedRead&, const ReadOptions&, const AnyFamilies&, const std::vector<Slice>&,
                                        std::vector<std::string>*, std::vector<Status>*);

template <class Observer>
[[gnu::always_inline]] inline DBImpl::Cached DBImpl::SearchCache(const Observer& observer, const Family& family, Slice key,
                                                                 uint64_t hash) const {
  Cached cached;
  if (lookup_cache_ == nullptr || !family.is_hashed) {
    const LookupCache::ForeignTable* const foreign = foreign_cache_.load(std::memory_order_acquire);
    if (__builtin_expect(foreign != nullptr, 0) && family.is_hashed) cached.entry = foreign->Find(family.id, key, hash);
    return cached;
  }
  observer.NoteCacheSearch();
  cached.entry = lookup_cache_->Find(family.id, key, hash, &cached.miss);
  return cached;
}

// The entry that the cache returned, if the target may see it; else null. The entry is the newest version of its key.
[[gnu::always_inline]] inline const LogEntry* DBImpl::UseCached(const SearchKey& target, const LogEntry* cached,
                                                                LookupTrace* trace) const {
  if (cached == nullptr) return nullptr;
  const uint32_t region = regions_->count() == 1 ? 0 : regions_->Find(cached).region();
  const bool is_remote = RegionSet::IsRemote(regions_->RemoteRegions(regions_->HomeRegion()), region);
  trace->Account(*regions_->persistence(), !is_remote, is_remote);
  if (__builtin_expect(cached->is_dead(), 0)) {  // a compaction filter removed the entry; the cache will be told
    trace->met_dead = true;
    return nullptr;
  }
  return cached->sequence() <= target.sequence ? cached : nullptr;
}

// Runs the checks of SearchLevels in fewer instructions. Consecutive reads of absent keys mispredict no branch, so the CPU starts
// the next read while it waits for the cache lines of this one.
template <class Observer>
[[gnu::noinline]] DBImpl::Excluded DBImpl::CheckFilters(const Observer& observer, const Family& family,
                                                        uint64_t hash) const noexcept {
  if (&family != &default_family_ || !family.is_hashed || family.looks_closer.load(std::memory_order_relaxed)) return {};
  const ReadView& view = *view_.load(std::memory_order_acquire);
  const KeyFilter* const filter = filter_.load(std::memory_order_acquire);  // after the view; see filter.cc
  if (filter != nullptr) filter->Prefetch(hash);
  for (const auto& group : view.groups) {
    if (group.index != nullptr) {
      group.index->PrefetchBits(hash);
    } else if (!group.in_filter) {
      return {};
    }
  }
  {
    [[maybe_unused]] const auto timed = observer.TimeMemtables();
    if (view.active->MayContain(hash)) return {};
    for (const auto& memtable : view.immutables) {
      if (memtable->MayContain(hash)) return {};
    }
  }
  BRAIDDB_SYNC_POINT("DBImpl::SearchLevels:Memtables");
  [[maybe_unused]] const auto timed = observer.TimeTables();
  const bool may_contain = filter == nullptr || filter->MayContain(hash);
  {
    [[maybe_unused]] const auto timed_l0 = observer.TimeL0(view);
    for (const auto& group : view.groups) {
      if (group.in_filter && !may_contain) continue;
      if (group.index == nullptr || group.index->MayContain(hash)) return {&view};
    }
  }
  if (may_contain) return {&view, true, false, filter != nullptr};
  BRAIDDB_SYNC_POINT("DBImpl::FindPut:Found");
  // Loaded after all checks: a tombstone that hides the key may have been installed before the key's entry was searched, and the
  // entry removed since.
  const bool may_be_hidden = family.looks_closer.load(std::memory_order_acquire) || regions_->damage_seen();
  return may_be_hidden ? Excluded() : Excluded{&view, true, true, true};
}

// Counts the searches that excluded levels.
template <class Observer>
[[gnu::always_inline]] inline void DBImpl::NoteExcluded(const Observer& observer, const Excluded& excluded) {
  if (std::is_same_v<Observer, UnobservedRead> || excluded.view == nullptr) return;
  observer.NoteMemtables(1 + excluded.view->immutables.size());
  if (!excluded.l0) return;
  for (const auto& group : excluded.view->groups) {
    if (!group.in_filter || !excluded.all) observer.NoteTables(group);
  }
  if (excluded.by_filter) observer.NoteFilter(!excluded.all);
}

template <class Observer>
const LogEntry* DBImpl::SearchLevels(const Observer& observer, const Family& family, const SearchKey& target, uint64_t hash,
                                     const Excluded& excluded, LookupTrace* trace) const {
  const ReadView& all = excluded.view != nullptr ? *excluded.view : *view_.load(std::memory_order_acquire);
  // Loaded after the view; see filter.cc.
  const KeyFilter* const filter = family.is_hashed && !excluded.l0 ? filter_.load(std::memory_order_acquire) : nullptr;
  if (filter != nullptr) filter->Prefetch(hash);
  if (excluded.view == nullptr) {
    [[maybe_unused]] const auto timed = observer.TimeMemtables();
    const auto find = [&](const Memtable& set) {
      const Memtable* const memtable = set.Of(family.id);
      if (memtable == nullptr) return static_cast<const LogEntry*>(nullptr);
      observer.NoteMemtables(1);
      return memtable->Find(target, hash);
    };
    if (const LogEntry* entry = find(*all.active)) return entry;
    for (const auto& memtable : all.immutables) {
      if (const LogEntry* entry = find(*memtable)) return entry;
    }
    BRAIDDB_SYNC_POINT("DBImpl::SearchLevels:Memtables");
  }
  [[maybe_unused]] const auto timed = observer.TimeTables();
  const FamilyView& view = *all.Of(family.id);
  if (!excluded.l0) {
    const auto may_contain = [&] { return filter == nullptr || filter->MayContain(hash); };
    const auto note = [&](const FamilyView::TableGroup& group) { observer.NoteTables(group); };
    {
      [[maybe_unused]] const auto timed_l0 = observer.TimeL0(view);
      if (const LogEntry* entry = view.FindInTables(target, hash, may_contain, note, trace)) return entry;
    }
    if (filter != nullptr) {
      trace->filtered = !may_contain();
      observer.NoteFilter(!trace->filtered);
      if (trace->filtered) return nullptr;
    }
  }
  observer.NoteLastLevel();
  [[maybe_unused]] const auto timed_last = observer.TimeLastLevel();
  return view.l1->Find(target, trace);
}

template <class Observer>
[[gnu::always_inline]] inline const LogEntry* DBImpl::FindPut(const Observer& observer, const Family& family,
                                                              const SearchKey& target, uint64_t hash, const Cached& cached,
                                                              ThreadState* thread, bool* met_dead, bool verify,
                                                              Status* status) const {
  LookupTrace trace;
  const LogEntry* entry = UseCached(target, cached.entry, &trace);
  const bool hit = entry != nullptr;
  // After the lookup in the cache: every write that went through the key's bucket before is in this view.
  if (!hit) {
    entry = SearchLevels(observer, family, target, hash, cached.excluded, &trace);
  }
  observer.NoteLookup(hit, trace);
  const bool found = entry != nullptr && entry->type() != EntryType::kDelete;
  if (thread != nullptr) {
    if (trace.filtered) thread->filter_negatives.Add(1);
    thread->local_visits.Add(trace.local);
    if (trace.remote != 0) thread->remote_visits.Add(trace.remote);
  }
  if (met_dead != nullptr) *met_dead = trace.met_dead;
  // A damaged pointer may have ended the search.
  if (__builtin_expect(regions_->damage_seen(), 0)) *status = RegionSet::DamagedList();
  if (verify && entry != nullptr && status->ok()) *status = VerifyEntry(entry);
  if (!status->ok()) return nullptr;
  // A batch becomes visible as a whole: a reader that sees a part of it waits until all of it is visible (microseconds). The
  // entry is the batch's newest update of the key, because AppendAndPublish publishes the last update first.
  if (entry != nullptr && target.sequence == kMaxSequence) WaitWhole(*entry);
  BRAIDDB_SYNC_POINT("DBImpl::FindPut:Found");
  // Loaded after the lookup. If the lookup found an entry that a tombstone hides, or missed one because a sweep removed it, the
  // tombstone is in this set. A version newer than the tombstone may have been invisible during the lookup, or in a level that
  // was already searched. So a read of the newest state is repeated as of a snapshot. [CC-54]
  const RangeTombstones* const ranges = family.ranges.load(std::memory_order_acquire);
  const bool is_hidden = __builtin_expect(ranges != nullptr, 0) &&
                         ranges->Hides(target.key, entry == nullptr ? 0 : entry->sequence(), target.sequence);
  if (is_hidden && met_dead != nullptr) *met_dead = true;
  // A lookup that is repeated as of a snapshot is counted then.
  const bool is_repeated = met_dead != nullptr && *met_dead && (entry == nullptr || is_hidden || !entry->is_operand());
  if (thread != nullptr && !is_repeated) {
    thread->gets.Add(1);
    if (found && !is_hidden) thread->gets_found.Add(1);
    if (hit) thread->lookup_cache_hits.Add(1);
  }
  if (is_hidden) return nullptr;
  if (found && !hit && lookup_cache_ != nullptr && family.is_hashed && !trace.met_dead && !entry->is_operand()) {
    const PmPtr place = regions_->Find(entry);
    if (place && lookup_cache_->Fill(hash, cached.miss, target.sequence, place)) observer.NoteCacheFill();
  }
  return found ? entry : nullptr;
}

template <class Observer>
bool DBImpl::IsExpectedMiss(const Observer& observer, const Family& family, uint64_t hash, ThreadState* thread) const {
  if (thread->missing_streak < kMissesExpected) return false;
  std::atomic<uint64_t>* const slot = thread->epoch_slot;
  epochs_.EnterOwn(slot);
  const Excluded excluded = CheckFilters(observer, family, hash);
  const EpochManager::Guard guard(slot);
  if (!excluded.all) return false;
  NoteExcluded(observer, excluded);
  thread->plain_misses.Add(1);
  thread->missing_streak = std::min(thread->missing_streak + 1, kMostMisses);
  return true;
}

// A read of the newest state registers no snapshot. It searches the levels from the newest to the oldest. A version that it finds
// in a level was the newest one when the search had found none in the newer levels. There is one exception: a version that was
// the answer when the read began may be marked dead before the read reaches it, because a merge met a newer version that was
// written meanwhile. Then the read meets the mark, and is repeated as of a snapshot, whose versions are not marked. A read that
// finds an operand is also repeated, because it needs several versions.
template <class Observer, class Deliver>
Status DBImpl::ReadKeyAs(const Observer& observer, const ReadOptions& options, const Family& family, Slice key,
                         const Deliver& deliver) {
  const uint64_t hash = family.HashOf(key);
  if (options.snapshot != nullptr) return ReadAsOf(observer, options, family, key, hash, false, deliver);
  ThreadState* const thread = threads_.Get();
  std::atomic<uint64_t>* const slot = epochs_.EnterSlot();
  Cached cached = SearchCache(observer, family, key, hash);
  if (thread != nullptr && local_cache_ != nullptr && IsPlainHit(family, cached.entry) && !options.verify_checksums) {
    const EpochManager::Guard guard(slot);
    thread->plain_hits.Add(1);
    thread->missing_streak = 0;
    observer.NotePlainHit();
    return deliver(cached.entry);
  }
  if (thread != nullptr && IsPlainMiss(observer, family, hash, thread, &cached)) {
    const EpochManager::Guard guard(slot);
    return deliver(static_cast<const LogEntry*>(nullptr));
  }
  return ReadBehindCache(observer, options, family, key, hash, cached, thread, slot, deliver);
}

template <class Observer, class Deliver>
[[gnu::noinline]] Status DBImpl::ReadBehindCache(Observer observer, const ReadOptions& options, const Family& family, Slice key,
                                                 uint64_t hash, Cached cached, ThreadState* thread, std::atomic<uint64_t>* slot,
                                                 Deliver deliver) {
  bool has_operands = false;
  {
    const EpochManager::Guard guard(slot);
    Status status;
    const LogEntry* entry = nullptr;
    if (ReadNewest(observer, options, family, key, hash, cached, thread, &entry, &status))
      return status.ok() ? deliver(entry) : status;
    has_operands = entry != nullptr && entry->is_operand();
  }
  observer.NoteRepeated();
  return ReadAsOf(observer, options, family, key, hash, has_operands, deliver);
}

template <class Observer>
[[gnu::noinline]] bool DBImpl::ReadNewest(const Observer& observer, const ReadOptions& options, const Family& family, Slice key,
                                          uint64_t hash, const Cached& cached, ThreadState* thread, const LogEntry** entry,
                                          Status* status) const {
  bool met_dead = false;
  *entry = FindPut(observer, family, SearchKey(family.order, key, kMaxSequence), hash, cached, thread, &met_dead,
                   options.verify_checksums, status);
  return !status->ok() || (!met_dead && (*entry == nullptr || !(*entry)->is_operand()));
}

template <class Observer, class Deliver>
[[gnu::noinline]] Status DBImpl::ReadAsOf(const Observer& observer, const ReadOptions& options, const Family& family, Slice key,
                                          uint64_t hash, bool has_operands, const Deliver& deliver) {
  const bool verify = options.verify_checksums;
  const uint64_t sequence = [&] {
    [[maybe_unused]] const auto timed = observer.TimeSnapshot();
    return options.snapshot != nullptr ? options.snapshot->GetSequenceNumber() : RegisterSnapshot();
  }();
  const SnapshotRegistration registration(options.snapshot == nullptr ? &snapshots_ : nullptr, sequence);
  Status status;
  if (!has_operands) {
    const auto guard = epochs_.Enter();
    const LogEntry* entry = FindPut(observer, family, SearchKey(family.order, key, sequence), hash,
                                    SearchCache(observer, family, key, hash), threads_.Get(), nullptr, verify, &status);
    if (!status.ok()) return status;
    if (entry == nullptr || !entry->is_operand()) return deliver(entry);
  }
  std::string merged;
  status = ReadMerged(family, SearchKey(family.order, key, sequence), hash, verify, &merged);
  return status.ok() ? deliver(std::move(merged)) : status;
}

template <class Observer, class FamilyAt>
void DBImpl::ReadKeysAs(const Observer& observer, const ReadOptions& options, const FamilyAt& family,
                        const std::vector<Slice>& keys, std::vector<std::string>* values, std::vector<Status>* statuses) {
  const uint64_t sequence = [&] {
    [[maybe_unused]] const auto timed = observer.TimeSnapshot();
    return options.snapshot != nullptr ? options.snapshot->GetSequenceNumber() : RegisterSnapshot();
  }();
  const SnapshotRegistration registration(options.snapshot == nullptr ? &snapshots_ : nullptr, sequence);
  std::vector<size_t> merged;  // keys with operands, which are read outside of the guard
  {
    const auto guard = epochs_.Enter();
    ThreadState* thread = threads_.Get();
    const KeyFilter* const filter = filter_.load(std::memory_order_acquire);
    const LookupCache::ForeignTable* const foreign = foreign_cache_.load(std::memory_order_acquire);
    // The buckets of a group are prefetched together, and then their entries.
    constexpr size_t kGroup = 32;
    uint64_t hashes[kGroup];
    for (size_t begin = 0; begin < keys.size(); begin += kGroup) {
      const size_t count = std::min(kGroup, keys.size() - begin);
      for (size_t i = 0; i < count; ++i) {
        const Family* const own = family(begin + i);
        hashes[i] = own == nullptr ? 0 : own->HashOf(keys[begin + i]);
        if (lookup_cache_ != nullptr) lookup_cache_->Prefetch(hashes[i]);
        if (foreign != nullptr) foreign->Prefetch(hashes[i]);
      }
      for (size_t i = 0; i < count; ++i) {
        const bool may_hit = (lookup_cache_ != nullptr && lookup_cache_->PrefetchEntry(hashes[i])) ||
                             (foreign != nullptr && foreign->PrefetchEntry(hashes[i]));
        if (filter != nullptr && !may_hit) filter->Prefetch(hashes[i]);
      }
      for (size_t i = begin; i < begin + count; ++i) {
        const Family* const own = family(i);
        if (own == nullptr) continue;
        const uint64_t hash = hashes[i - begin];
        Cached cached = SearchCache(observer, *own, keys[i], hash);
        if (thread != nullptr && (local_cache_ != nullptr || foreign != nullptr) && IsPlainHit(*own, cached.entry) &&
            cached.entry->sequence() <= sequence && !options.verify_checksums) {
          thread->plain_hits.Add(1);
          observer.NotePlainHit();
          AssignTo(&(*values)[i], cached.entry->value());
          continue;
        }
        Status& status = (*statuses)[i];
        if (thread != nullptr && IsPlainMiss(observer, *own, hash, thread, &cached)) {
          status = Status::NotFound();
          continue;
        }
        const LogEntry* entry = FindPut(observer, *own, SearchKey(own->order, keys[i], sequence), hash, cached, thread, nullptr,
                                        options.verify_checksums, &status);
        if (!status.ok()) continue;
        if (entry == nullptr) {
          status = Status::NotFound();
        } else if (entry->is_operand()) {
          merged.push_back(i);
        } else {
          AssignTo(&(*values)[i], entry->value());
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

}  // namespace braiddb
