#include "cache/lookup_cache.h"

#include <algorithm>
#include <atomic>

namespace braiddb {

// Trivial, with a constant initializer: no guard.
constinit thread_local uint32_t LookupCache::t_unmarked_hits_ = 0;

std::unique_ptr<LookupCache> LookupCache::Create(const RegionSet* regions, uint64_t bytes) {
  HugeArray<Bucket> buckets(std::clamp<uint64_t>(bytes / sizeof(Bucket), 1, uint64_t{1} << 32));
  if (buckets.empty()) return nullptr;
  return std::unique_ptr<LookupCache>(new LookupCache(regions, std::move(buckets)));
}

uint64_t LookupCache::MakeSlot(uint64_t hash, PmPtr entry) {
  const uint64_t offset = entry.offset() >> 3;
  if (offset >> kOffsetBits != 0) return 0;
  return hash >> kTagShift << kTagShift | uint64_t{entry.region()} << kOffsetBits | offset;
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
