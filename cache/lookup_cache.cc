#include "cache/lookup_cache.h"

#include <emmintrin.h>

#include <algorithm>
#include <atomic>
#include <bit>

#include "util/short_bytes.h"

namespace braiddb {
namespace {

bool CompareExchange(uint64_t* word, uint64_t expected, uint64_t desired) {
  return std::atomic_ref<uint64_t>(*word).compare_exchange_strong(expected, desired, std::memory_order_acq_rel,
                                                                  std::memory_order_relaxed);
}

// Of a thread's hits of slots that are not marked as used, one in eight marks its slot, and no rhythm of theirs decides which: no
// load of the next lookup begins before a locked instruction has ended, and what is worth keeping is hit often.
constinit thread_local uint32_t t_unmarked_hits = 0;
bool MarksThisHit() { return ++t_unmarked_hits * 0x9e3779b9u >> 29 == 0; }

}  // namespace

std::unique_ptr<LookupCache> LookupCache::Create(const RegionSet* regions, uint64_t bytes) {
  HugeArray<Bucket> buckets(std::clamp<uint64_t>(bytes / sizeof(Bucket), 1, uint64_t{1} << 32));
  if (buckets.empty()) return nullptr;
  return std::unique_ptr<LookupCache>(new LookupCache(regions, std::move(buckets)));
}

PmPtr LookupCache::PointerOf(uint64_t slot) {
  const auto region = static_cast<uint32_t>(slot >> kOffsetBits) & ((1u << kRegionBits) - 1);
  return PmPtr(region, (slot & ((uint64_t{1} << kOffsetBits) - 1)) << 3);
}

uint64_t LookupCache::MakeSlot(uint64_t hash, PmPtr entry) {
  const uint64_t offset = entry.offset() >> 3;
  if (offset >> kOffsetBits != 0) return 0;
  return hash >> kTagShift << kTagShift | uint64_t{entry.region()} << kOffsetBits | offset;
}

// All at once: in which slot a key is cannot be foreseen, so a branch for each would be mispredicted in nearly every lookup.
uint32_t LookupCache::SlotsWithTag(const Bucket& bucket, uint64_t hash) {
  static_assert(kSlots == 7 && kTagShift >= 32);
  const auto tags = [](uint64_t first, uint64_t second) {  // in bits 0–31 and 64–95
    return _mm_castsi128_ps(_mm_srli_epi64(_mm_set_epi64x(static_cast<int64_t>(second), static_cast<int64_t>(first)), kTagShift));
  };
  const __m128i tag = _mm_set1_epi32(static_cast<int32_t>(hash >> kTagShift));
  const auto equal = [&tag](__m128 two, __m128 next_two) {
    const __m128i four = _mm_castps_si128(_mm_shuffle_ps(two, next_two, _MM_SHUFFLE(2, 0, 2, 0)));
    return static_cast<uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(four, tag))));
  };
  const auto slot = [&bucket](uint32_t i) { return LoadRelaxed(&bucket.slots[i]); };
  return equal(tags(slot(0), slot(1)), tags(slot(2), slot(3))) | equal(tags(slot(4), slot(5)), tags(slot(6), ~hash)) << 4;
}

const LogEntry* LookupCache::Find(uint32_t family, Slice key, uint64_t hash, Miss* miss) const {
  const uint64_t index = BucketOf(hash);
  if (__builtin_expect(IsGivenUp(index), 0)) return nullptr;
  auto& bucket = const_cast<Bucket&>(buckets_[index]);
  // acquire: the slots are loaded after it, and are at least as new.
  miss->word = LoadAcquire(&bucket.word);
  if ((miss->word & kLocked) != 0) return nullptr;
  for (uint32_t with_tag = SlotsWithTag(bucket, hash); with_tag != 0; with_tag &= with_tag - 1) {
    uint64_t& place = bucket.slots[std::countr_zero(with_tag)];
    const uint64_t slot = LoadAcquire(&place);
    if (__builtin_expect(!HasTag(slot, hash), 0)) continue;  // empty, or displaced just now
    const auto* const entry = regions_->Resolve<LogEntry>(PointerOf(slot));
    if (entry->key_shape() != LogEntry::MakeKeyShape(key.size(), family) || !SameBytes(entry->key(), key)) return nullptr;
    // At most once for each round of the hand: a line that is only read stays in the caches of all CPUs. If the slot has changed,
    // the one that is there now is left alone.
    if ((slot & kUsed) == 0 && MarksThisHit()) CompareExchange(&place, slot, slot | kUsed);
    return entry;
  }
  return nullptr;
}

void LookupCache::Fill(uint64_t hash, const Miss& miss, uint64_t sequence, PmPtr entry) {
  if ((miss.word & kLocked) != 0 || LateOf(miss.word) == kMostLate || miss.word >> kSequenceShift > sequence) return;
  const uint64_t slot = MakeSlot(hash, entry);
  if (slot == 0) return;
  Bucket* const bucket = &buckets_[BucketOf(hash)];
  if (!CompareExchange(&bucket->word, miss.word, miss.word | kLocked)) return;
  StoreRelease(SlotFor(bucket, hash), slot);
  Unlock(bucket, miss.word);
}

uint64_t LookupCache::Lock(Bucket* bucket) {
  for (SpinWait wait;; wait.Once()) {
    const uint64_t word = LoadRelaxed(&bucket->word);
    if ((word & kLocked) == 0 && CompareExchange(&bucket->word, word, word | kLocked)) return word;
  }
}

void LookupCache::Move(uint64_t hash, PmPtr from, PmPtr to, uint64_t sequence) {
  const uint64_t index = BucketOf(hash);
  if (IsGivenUp(index)) return;
  Bucket* const bucket = &buckets_[index];
  const uint64_t word = Lock(bucket);
  for (uint64_t& place : bucket->slots) {
    const uint64_t slot = LoadRelaxed(&place);
    if (!HasTag(slot, hash) || !(PointerOf(slot) == from)) continue;
    const uint64_t moved = MakeSlot(hash, to);
    StoreRelease(&place, moved == 0 ? 0 : moved | (slot & kUsed));
  }
  const bool counts = LateOf(word) != kMostLate;
  Unlock(bucket, counts ? word + kLate : std::max(word, sequence << kSequenceShift));
}

void LookupCache::Forget(uint64_t hash, PmPtr entry) {
  const uint64_t index = BucketOf(hash);
  if (IsGivenUp(index)) return;
  Bucket* const bucket = &buckets_[index];
  const uint64_t word = Lock(bucket);
  for (uint64_t& place : bucket->slots) {
    const uint64_t slot = LoadRelaxed(&place);
    if (HasTag(slot, hash) && PointerOf(slot) == entry) StoreRelease(&place, uint64_t{0});
  }
  Unlock(bucket, word);
}

void LookupCache::Forget(uint64_t hash, uint64_t sequence) {
  const uint64_t index = BucketOf(hash);
  if (IsGivenUp(index)) return;
  Bucket* const bucket = &buckets_[index];
  const uint64_t word = Lock(bucket);
  for (uint64_t& place : bucket->slots) {
    if (HasTag(LoadRelaxed(&place), hash)) StoreRelease(&place, uint64_t{0});
  }
  const bool counts = LateOf(word) != kMostLate;
  Unlock(bucket, counts ? word + kLate : std::max(word, sequence << kSequenceShift));
}

void LookupCache::Shrink(uint64_t bytes) {
  const uint64_t limit = bytes / sizeof(Bucket);
  if (limit < limit_.load(std::memory_order_relaxed)) limit_.store(limit, std::memory_order_seq_cst);
}

uint64_t* LookupCache::SlotFor(Bucket* bucket, uint64_t hash) {
  for (uint32_t with_tag = SlotsWithTag(*bucket, hash); with_tag != 0; with_tag &= with_tag - 1) {
    uint64_t* const place = &bucket->slots[std::countr_zero(with_tag)];
    if (HasTag(LoadRelaxed(place), hash)) return place;
  }
  for (uint32_t empty = SlotsWithTag(*bucket, 0); empty != 0; empty &= empty - 1) {
    uint64_t* const place = &bucket->slots[std::countr_zero(empty)];
    if (LoadRelaxed(place) == 0) return place;
  }
  // The hand begins where the tag says, which is as good as at random.
  const uint32_t first = static_cast<uint32_t>((hash >> kTagShift) % kSlots);
  for (uint32_t i = 0; i < kSlots; ++i) {
    uint64_t* const place = &bucket->slots[(first + i) % kSlots];
    if ((LoadRelaxed(place) & kUsed) == 0) return place;
  }
  for (uint64_t& place : bucket->slots) StoreRelease(&place, LoadRelaxed(&place) & ~kUsed);
  return &bucket->slots[first];
}

uint64_t LookupCache::SetSlot(Bucket* bucket, uint64_t word, uint64_t hash, const LogEntry& entry, PmPtr pointer) {
  const uint64_t sequence = entry.sequence();
  const uint64_t slot = entry.type() == EntryType::kPut ? MakeSlot(hash, pointer) : 0;
  if (sequence > word >> kSequenceShift) {
    if (slot != 0) {
      StoreRelease(SlotFor(bucket, hash), slot);
    } else {
      for (uint64_t& place : bucket->slots) {
        if (HasTag(LoadRelaxed(&place), hash)) StoreRelaxed(&place, uint64_t{0});
      }
    }
    return sequence << kSequenceShift;
  }
  for (uint64_t& place : bucket->slots) {
    const uint64_t there = LoadRelaxed(&place);
    if (!HasTag(there, hash)) continue;
    const auto* const other = regions_->Resolve<LogEntry>(PointerOf(there));
    if (other->sequence() > word >> kSequenceShift) {
      StoreRelaxed(&place, uint64_t{0});  // damaged: it would hide all writes of now
    } else if (other->sequence() < sequence && other->family() == entry.family() && other->key() == entry.key()) {
      StoreRelease(&place, slot);
    }
  }
  return LateOf(word) == kMostLate ? word : word + kLate;
}

}  // namespace braiddb
