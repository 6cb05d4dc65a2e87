#include "cache/lookup_cache.h"

#include <algorithm>
#include <atomic>
#include <span>

namespace braiddb {

// A trivial type with a constant initializer: access needs no guard.
constinit thread_local uint32_t LookupCache::t_unmarked_hits_ = 0;

namespace {

// Prefetch distance in buckets: their entries are prefetched before they are moved.
constexpr uint64_t kBucketsAhead = 8;

}  // namespace

void LookupCache::Table::SetMemory(HugeArray<Bucket> fresh) {
  memory = std::move(fresh);
  buckets.store(&memory[0], std::memory_order_relaxed);
  count.store(memory.size(), std::memory_order_relaxed);
  limit.store(memory.size(), std::memory_order_relaxed);
  next.store(nullptr, std::memory_order_relaxed);
}

LookupCache::LookupCache(const RegionSet* regions, HugeArray<Bucket> buckets, std::function<void()> on_crowded)
    : regions_(regions), on_crowded_(std::move(on_crowded)) {
  tables_[0].SetMemory(std::move(buckets));
}

std::unique_ptr<LookupCache> LookupCache::Create(const RegionSet* regions, uint64_t bytes, std::function<void()> on_crowded) {
  HugeArray<Bucket> buckets(BucketsIn(bytes));
  if (buckets.empty()) return nullptr;
  return std::unique_ptr<LookupCache>(new LookupCache(regions, std::move(buckets), std::move(on_crowded)));
}

uint64_t LookupCache::MakeSlot(uint64_t hash, PmPtr entry) {
  const uint64_t offset = entry.offset() >> 3;
  if (offset >> kOffsetBits != 0) return 0;
  return hash >> kTagShift << kTagShift | uint64_t{entry.region()} << kOffsetBits | offset;
}

// Restores the word of the miss as it unlocks: a fill is not a write, so other misses of the bucket stay valid.
bool LookupCache::Fill(uint64_t hash, const Miss& miss, uint64_t sequence, PmPtr entry) {
  // No fill if the miss saw a lock, if late writes are not counted any more, or if the lookup's snapshot was older than a write.
  if ((miss.word & kLocked) != 0 || LateOf(miss.word) == kMostLate || miss.word >> kSequenceShift > sequence) return false;
  const uint64_t slot = MakeSlot(hash, entry);
  if (slot == 0) return false;
  const Table& table = CurrentTable();
  Bucket* bucket = table.BucketOf(hash);
  uint64_t word = LoadAcquire(&bucket->word);
  if (word == kMoved) bucket = FollowMoved(table, hash, &word);
  if (bucket == nullptr || !CompareExchange(&bucket->word, miss.word, miss.word | kLocked)) return false;
  StoreRelease(SlotFor(bucket, hash), slot);
  Unlock(bucket, miss.word);
  return true;
}

uint64_t LookupCache::Lock(Bucket* bucket) {
  for (SpinWait wait;; wait.Once()) {
    const uint64_t word = LoadAcquire(&bucket->word);
    if (__builtin_expect(word == kMoved, 0)) return word;
    if ((word & kLocked) == 0 && CompareExchange(&bucket->word, word, word | kLocked)) return word;
  }
}

// acquire: pairs with the release of kMoved, so that the next table and the moved slots are visible.
LookupCache::Bucket* LookupCache::FollowMoved(const Table& table, uint64_t hash, uint64_t* word) {
  const Table* at = &table;
  for (;;) {
    at = at->next.load(std::memory_order_acquire);
    const uint64_t index = at->IndexOf(hash);
    if (at->IsGivenUp(index)) return nullptr;
    Bucket* const bucket = at->At(index);
    *word = LoadAcquire(&bucket->word);
    if (*word != kMoved) return bucket;
  }
}

// The bucket may be moved between FollowMoved and Lock; then the loop follows the chain further.
LookupCache::Bucket* LookupCache::LockMoved(const Table& table, uint64_t hash, uint64_t* word) {
  for (;;) {
    Bucket* const bucket = FollowMoved(table, hash, word);
    if (bucket == nullptr) return nullptr;
    *word = Lock(bucket);
    if (*word != kMoved) return bucket;
  }
}

LookupCache::Bucket* LookupCache::LockBucketOf(uint64_t hash, uint64_t* word) const {
  const Table& table = CurrentTable();
  const uint64_t index = table.IndexOf(hash);
  if (table.IsGivenUp(index)) return nullptr;
  Bucket* const bucket = table.At(index);
  *word = Lock(bucket);
  return *word == kMoved ? LockMoved(table, hash, word) : bucket;
}

// If the new address does not fit in a slot, the slot is emptied: a miss is always right.
void LookupCache::Move(uint64_t hash, PmPtr from, PmPtr to, uint64_t sequence) {
  std::lock_guard guard(movers_mutex_);
  uint64_t word = 0;
  Bucket* const bucket = LockBucketOf(hash, &word);
  if (bucket == nullptr) return;
  for (uint64_t& place : bucket->slots) {
    const uint64_t slot = LoadRelaxed(&place);
    if (!HasTag(slot, hash) || !(PointerOf(slot) == from)) continue;
    const uint64_t moved = MakeSlot(hash, to);
    StoreRelease(&place, moved == 0 ? 0 : moved | (slot & kUsed));
    if (moved == 0) NoteEmptied(bucket);
  }
  const bool counts = LateOf(word) != kMostLate;
  Unlock(bucket, counts ? word + kLate : std::max(word, sequence << kSequenceShift));
}

void LookupCache::Forget(uint64_t hash, PmPtr entry) {
  std::lock_guard guard(movers_mutex_);
  uint64_t word = 0;
  Bucket* const bucket = LockBucketOf(hash, &word);
  if (bucket == nullptr) return;
  for (uint64_t& place : bucket->slots) {
    const uint64_t slot = LoadRelaxed(&place);
    if (!HasTag(slot, hash) || !(PointerOf(slot) == entry)) continue;
    StoreRelease(&place, uint64_t{0});
    NoteEmptied(bucket);
  }
  Unlock(bucket, word);
}

// Empties every slot with the tag. At worst this removes another key, which is a miss.
void LookupCache::Forget(uint64_t hash, uint64_t sequence) {
  std::lock_guard guard(movers_mutex_);
  uint64_t word = 0;
  Bucket* const bucket = LockBucketOf(hash, &word);
  if (bucket == nullptr) return;
  for (uint64_t& place : bucket->slots) {
    if (!HasTag(LoadRelaxed(&place), hash)) continue;
    StoreRelease(&place, uint64_t{0});
    NoteEmptied(bucket);
  }
  const bool counts = LateOf(word) != kMostLate;
  Unlock(bucket, counts ? word + kLate : std::max(word, sequence << kSequenceShift));
}

// ---- Size

void LookupCache::Shrink(uint64_t bytes) {
  std::atomic<uint64_t>& limit = current_.load(std::memory_order_relaxed)->limit;
  const uint64_t buckets = bytes / sizeof(Bucket);
  if (buckets < limit.load(std::memory_order_relaxed)) limit.store(buckets, std::memory_order_seq_cst);
}

bool LookupCache::HasManyKeys(int64_t sampled_keys) const {
  const uint64_t sampled = (CurrentTable().count.load(std::memory_order_relaxed) + kSampledOf - 1) / kSampledOf;
  return sampled_keys > static_cast<int64_t>(kKeysPerBucket * sampled);
}

// Calls on_crowded_ once: the compare-and-swap lets only one thread change kNone to kCrowded.
void LookupCache::NoteTaken(const Bucket* bucket) {
  if (!IsSampled(bucket)) return;
  const int64_t keys = sampled_keys_.fetch_add(1, std::memory_order_seq_cst) + 1;
  if (crowd_.load(std::memory_order_seq_cst) != Crowd::kNone || !HasManyKeys(keys)) return;
  Crowd none = Crowd::kNone;
  if (crowd_.compare_exchange_strong(none, Crowd::kCrowded, std::memory_order_acq_rel) && on_crowded_) on_crowded_();
}

// relaxed: a count that is late for a moment only delays a resize.
void LookupCache::NoteEmptied(const Bucket* bucket) {
  if (IsSampled(bucket)) sampled_keys_.fetch_sub(1, std::memory_order_relaxed);
}

// seq_cst: either this thread sees the key of a concurrent NoteTaken, or that thread sees kNone.
void LookupCache::AskAgain() {
  crowd_.store(Crowd::kNone, std::memory_order_seq_cst);
  Crowd none = Crowd::kNone;
  if (HasManyKeys(sampled_keys_.load(std::memory_order_seq_cst)))
    crowd_.compare_exchange_strong(none, Crowd::kCrowded, std::memory_order_acq_rel);
}

void LookupCache::PrefetchEntries(const Bucket& bucket) const {
  for (const uint64_t& place : bucket.slots) {
    const uint64_t slot = LoadRelaxed(&place);
    if (slot == 0) continue;
    const auto* const entry = regions_->Resolve<char>(PointerOf(slot));
    braiddb::Prefetch(entry);
    braiddb::Prefetch(entry + kCacheLine);
  }
}

// STEPS  1. Lock the old bucket. 2. Read the entries of its slots and compute their hashes. 3. For each new bucket with an
//        overlapping interval: lock it, add the slots, raise its word, unlock it. 4. Store kMoved in the old bucket.
// WHAT A READER SEES  Before 4 a locked bucket, a miss; after 4 the new buckets.
// WHY THE ENTRIES EXIST  Each entry is the newest version of its key, and stays so while the bucket is locked.
void LookupCache::MoveBucket(const Table& from, uint64_t index, const Table& to) const {
  Bucket* const old = from.At(index);
  const uint64_t word = Lock(old);
  struct Item {
    uint64_t slot, hash, target;
  };
  Item items[kSlots];
  uint32_t count = 0;
  for (const uint64_t& place : old->slots) {
    const uint64_t slot = LoadRelaxed(&place);
    if (slot == 0) continue;
    const auto* const entry = regions_->Resolve<LogEntry>(PointerOf(slot));
    // Checks that the key lies within the regions before it is hashed.
    const PmPtr end = PointerOf(slot) + (LogEntrySize(entry->height(), entry->key_size(), 0) - 8);
    if (entry->height() > kMaxHeight || !regions_->Holds(end)) continue;  // damaged
    const uint64_t hash = KeyHash(*entry);
    if (HasTag(slot, hash)) items[count++] = {slot, hash, to.IndexOf(hash)};
  }
  // Hashes h of this bucket: index * 2^32 <= h * buckets < (index + 1) * 2^32.
  const uint64_t buckets = from.count.load(std::memory_order_relaxed);
  const uint64_t first = ((index << 32) + buckets - 1) / buckets;
  const uint64_t last = (((index + 1) << 32) + buckets - 1) / buckets - 1;
  // A smaller table gets fewer keys per bucket than kKeysPerBucket, so that it is not crowded at once.
  const uint32_t most_slots = to.count.load(std::memory_order_relaxed) < buckets ? kKeysPerBucket - 1 : kSlots;
  for (uint64_t target = to.IndexOf(first); target <= to.IndexOf(last); ++target) {
    Bucket* const fresh = to.At(target);
    const uint64_t there = Lock(fresh);
    // A slot with the tag is there already if a write went to the new bucket, or if another old bucket overlaps it: keep that
    // slot.
    for (const Item& item : std::span(items, count)) {
      if (item.target != target) continue;
      uint64_t* empty = nullptr;
      bool has_tag = false;
      uint32_t used = 0;
      for (uint64_t& place : fresh->slots) {
        const uint64_t slot = LoadRelaxed(&place);
        has_tag = has_tag || HasTag(slot, item.hash);
        used += slot != 0;
        if (slot == 0 && empty == nullptr) empty = &place;
      }
      if (!has_tag && used < most_slots && empty != nullptr) StoreRelease(empty, item.slot);
    }
    Unlock(fresh, std::max(there, word));
  }
  StoreRelease(&old->word, kMoved);
}

// `next` is stored before the first bucket is moved, so a thread that sees kMoved finds the next table.
bool LookupCache::StartResize(uint64_t bytes, SharedHeap* heap) {
  Table* const from = current_.load(std::memory_order_relaxed);
  Table* const to = from == &tables_[0] ? &tables_[1] : &tables_[0];
  if (from->limit.load(std::memory_order_relaxed) != from->count.load(std::memory_order_relaxed)) return false;
  HugeArray<Bucket> memory(BucketsIn(bytes), heap);
  if (memory.empty()) return false;
  memory.Populate();  // writers should not wait for page faults
  to->SetMemory(std::move(memory));
  from->next.store(to, std::memory_order_release);
  moved_ = 0;
  return true;
}

bool LookupCache::MoveBuckets(uint64_t most) {
  const Table& from = *current_.load(std::memory_order_relaxed);
  const Table& to = *from.next.load(std::memory_order_relaxed);
  const uint64_t buckets = from.count.load(std::memory_order_relaxed);
  const uint64_t end = moved_ + std::min(most, buckets - moved_);
  for (uint64_t i = moved_; i < std::min(moved_ + kBucketsAhead, end); ++i) PrefetchEntries(*from.At(i));
  // One bucket at a time: a writer waits at most for one bucket's move, and a reader sees a miss.
  for (; moved_ < end; ++moved_) {
    if (moved_ + kBucketsAhead < end) PrefetchEntries(*from.At(moved_ + kBucketsAhead));
    MoveBucket(from, moved_, to);
    BRAIDDB_SYNC_POINT("LookupCache::MoveBuckets:Moved");
  }
  if (end < buckets) return false;
  // seq_cst: a writer that announces its write after the caller's fence loads this table.
  current_.store(const_cast<Table*>(&to), std::memory_order_seq_cst);
  // Keys that other threads add during the count stay counted, some of them twice. A count that is too small would be worse: no
  // empty slot of a full table is taken, so NoteTaken would never report a crowd.
  const int64_t keys_before = sampled_keys_.load(std::memory_order_relaxed);
  int64_t keys = 0;
  for (uint64_t i = 0; i < to.memory.size(); i += kSampledOf) {
    for (const uint64_t& place : to.memory[i].slots) keys += LoadRelaxed(&place) != 0;
  }
  BRAIDDB_SYNC_POINT("LookupCache::MoveBuckets:Counted");
  sampled_keys_.fetch_add(keys - keys_before, std::memory_order_relaxed);
  AskAgain();
  return true;
}

// The address stays in the table: a prefetch may still load it.
SharedRange LookupCache::ReleaseOld() {
  std::lock_guard guard(movers_mutex_);
  Table* const current = current_.load(std::memory_order_relaxed);
  HugeArray<Bucket>& old = (current == &tables_[0] ? tables_[1] : tables_[0]).memory;
  SharedRange left;
  if (old.heap_offset() != 0) {
    left = {old.heap_offset(), old.bytes()};
    old.LeaveInHeap();
  }
  old = HugeArray<Bucket>();
  return left;
}

uint64_t* LookupCache::SlotFor(Bucket* bucket, uint64_t hash) {
  for (uint32_t with_tag = SlotsWithTag(*bucket, hash); with_tag != 0; with_tag &= with_tag - 1) {
    uint64_t* const place = &bucket->slots[std::countr_zero(with_tag)];
    if (HasTag(LoadRelaxed(place), hash)) return place;
  }
  for (uint32_t empty = SlotsWithTag(*bucket, 0); empty != 0; empty &= empty - 1) {
    uint64_t* const place = &bucket->slots[std::countr_zero(empty)];
    if (LoadRelaxed(place) != 0) continue;
    NoteTaken(bucket);
    return place;
  }
  // The clock hand starts at a position given by the tag, which is as good as random.
  const uint32_t first = static_cast<uint32_t>((hash >> kTagShift) % kSlots);
  for (uint32_t i = 0; i < kSlots; ++i) {
    uint64_t* const place = &bucket->slots[(first + i) % kSlots];
    if ((LoadRelaxed(place) & kUsed) == 0) return place;
  }
  // All slots were used: the hand clears the bits and takes the first slot.
  for (uint64_t& place : bucket->slots) StoreRelease(&place, LoadRelaxed(&place) & ~kUsed);
  return &bucket->slots[first];
}

uint64_t LookupCache::SetSlot(Bucket* bucket, uint64_t word, uint64_t hash, const LogEntry& entry, PmPtr pointer) {
  const uint64_t sequence = entry.sequence();
  const uint64_t slot = entry.type() == EntryType::kPut ? MakeSlot(hash, pointer) : 0;
  // The newest write through the bucket: a slot with the tag is older or another key's, so its entry is not read.
  if (sequence > word >> kSequenceShift) {
    if (slot != 0) {
      StoreRelease(SlotFor(bucket, hash), slot);
    } else {
      for (uint64_t& place : bucket->slots) {
        if (!HasTag(LoadRelaxed(&place), hash)) continue;
        StoreRelaxed(&place, uint64_t{0});
        NoteEmptied(bucket);
      }
    }
    return sequence << kSequenceShift;
  }
  // A late write: replaces only an older version of the same key (see WRITE).
  for (uint64_t& place : bucket->slots) {
    const uint64_t there = LoadRelaxed(&place);
    if (!HasTag(there, hash)) continue;
    const auto* const other = regions_->Resolve<LogEntry>(PointerOf(there));
    if (other->sequence() > word >> kSequenceShift) {
      StoreRelaxed(&place, uint64_t{0});  // damaged: it would hide all new writes
      NoteEmptied(bucket);
    } else if (other->sequence() < sequence && other->family() == entry.family() && other->key() == entry.key()) {
      StoreRelease(&place, slot);
      if (slot == 0) NoteEmptied(bucket);
    }
  }
  return LateOf(word) == kMostLate ? word : word + kLate;
}

}  // namespace braiddb
