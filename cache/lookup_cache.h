// LookupCache: a hash in DRAM from keys to the addresses of their newest entries (ListDB, OSDI '22, 3.5). It is resized while it
// is used.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "log/log_entry.h"
#include "pmem/region_set.h"
#include "util/huge_array.h"
#include "util/line_words.h"
#include "util/prefetch.h"
#include "util/short_bytes.h"
#include "util/spin.h"
#include "util/sync_point.h"

namespace braiddb {

// The paper fills it when a memtable is flushed. Here every write goes through it, so that a hit is the newest version and a
// lookup is one bucket and one entry.
//
// LAYOUT  Buckets of one cache line: a version word and seven slots.
//         word  bits 63–8 the largest sequence number that went through the bucket since the open · 7–1 how many writes with a
//               smaller one went through since (kMostLate: so many or more) · 0 locked
//         slot  bits 63–47 a tag from the key's hash · 46 used · 45–41 region · 40–0 offset / 8; 0 is empty
//         kMoved, a word that no write makes: the bucket's content is in the next table.
//         No two slots of a bucket have the same tag. A put displaces a slot that was not marked since the hand came by;
//         one in eight of a thread's hits of unmarked slots marks its slot.
// KEYS    Equal keys must have the same bytes (KeyOrder::equal_means_same).
//
// WHY A HIT IS THE NEWEST VERSION
//   I1 While a bucket is not locked, each entry in it is a put, and the newest version of its key that is visible. Its number is
//     at most the word's, or from before the open.
//   Write  Whoever makes an entry visible does it with the bucket of its key locked: lock, publish in the memtable, set the slot
//     (of a deletion: empty it), unlock. Of two writes to one key the one with the larger number is the newer. A number above
//     the word's is above that of all writes that went through: the slot with the key's tag is then older, or another key's,
//     and is taken without a look. Otherwise the entry there is looked at, and replaced if it is the key's and older; if no slot
//     has the tag nothing is put in, since a newer version may have been, and have been displaced.
//   Hit  A reader that finds the bucket locked does as if nothing were there. Else, at the time of its look at the word, I1 held,
//     and a slot that it loads afterwards has what was the newest version then or became so later: the lookup takes effect at
//     one of these times. A lookup that began after another one had returned a newer version, from a memtable, found the bucket
//     locked, or no older version in it, since the memtable had that version only with the lock held.
//   Fill  What a lookup has found below, in levels that it loaded after it had asked the cache, goes in only if the word still is
//     what it was then, not locked: no write went through, so nothing newer than what was found is visible. A word never returns
//     to a value that a write has changed: either its number grows, or the count of late writes, which stops at kMostLate; then
//     nothing is filled in until a larger number comes. A lookup as of a snapshot found the newest version only if no larger
//     number went through.
//   Move  of an entry changes the word as a late write does, or, when these are too many to count, as a write with a number that
//     is above all of before. Forget does the same, behind the mark of what it forgets: a lookup that misses later sees the mark.
//     Until then slots may have entries that are marked dead: where that can be, who gets one looks at the mark (Options::
//     compaction_filter).
// WHY THE ENTRY IS STILL THERE  It is released when it was not the newest version any more and the readers of that time have left
//   their epochs. Whoever reaches it entered its own before it looked at the word, so before the write that displaced it. A write
//   that has published and not yet set the slot holds the lock. A writer that was overtaken looks at an entry without an epoch:
//   another key's is the newest of that key, and stays so while the bucket is locked; an older one of its own key goes nowhere as
//   long as the write is announced, since no flush takes its memtable then. Of a column family that was dropped every entry is
//   forgotten before its space is.
//
// WHY A RESIZE IS RIGHT
//   A table's buckets divide the range of hashes into intervals of one size, in order. A resize goes through the old table's
//   buckets. It locks a bucket. It locks each new bucket whose interval shares hashes with it, raises the new bucket's word to
//   the old one's if that is larger, adds the slots that belong there, and unlocks it. Then it stores kMoved to the old
//   bucket's word. A slot that finds no room in its new bucket is dropped.
//   At each instant one bucket answers for a key: the first in the chain of tables whose word is not kMoved. Readers and writers
//   go along the chain, which has two tables at most, and a writer compares and exchanges the word that it locks. So all writes
//   to a key lock one bucket at a time, and I1 holds for the bucket that answers.
//   A reader that loaded the old bucket's word before the lock finds slots that nobody changes any more. They were the newest
//   versions when the bucket was moved, so its lookup takes effect between its load of the word and that instant. A reader whose
//   lookup began after another one had returned a newer version sees kMoved, since the newer version's writer saw it.
//   A fill compares words. A new bucket's word is at least the word of each old bucket it takes the place of, and words grow
//   with each write (but at kMostLate, where nothing is filled in). So a fill whose lookup missed in the old bucket finds the
//   same word in the new one only if no write to its key came between.
//   Nobody waits in a circle: a resize holds an old bucket while it waits for a new one, and whoever holds a bucket waits for its
//   fence only, never for another bucket.
//   The old table's memory goes (ReleaseOld) when all who may have loaded its address have left.
//
// WHY WHAT SHRINK LEAVES IS RIGHT  Buckets that Shrink gave up never come back, and who looks at the limit later does as if they
//   were not there. So all who use one began before that, readers and writers; what such a reader finds there was the newest
//   version then, or became so later, and its lookup takes effect at one of these times, before any write that left the bucket
//   out. The memory goes when these readers have left, so that no word returns to what one of them knows. A writer that looked
//   at the limit before may come after that. It may find its lock taken away, or compare its key with an entry whose space
//   has been used again, since newer versions of that no longer come by; what it leaves there nobody reads. A table that has
//   given up buckets is not resized.
//
// Thread safety: all methods, by any number of threads, but of StartResize, MoveBuckets, ReleaseOld and Shrink one call at a
// time. Readers, and fills, hold an epoch guard; writers have announced their write.
class LookupCache {
  struct Bucket;

 public:
  // Null if there is no memory. `bytes`: rounded down to whole buckets; at least one, at most 2^32 of them. `on_crowded`: called,
  // with a bucket locked, by the thread whose key makes is_crowded() true.
  static std::unique_ptr<LookupCache> Create(const RegionSet* regions, uint64_t bytes, std::function<void()> on_crowded = {});
  LookupCache(const LookupCache&) = delete;
  LookupCache& operator=(const LookupCache&) = delete;

  // The bucket of a key with this hash (KeyHash) is fetched, to be read or to be written.
  // Needs no guard: a table that is released meanwhile is prefetched in vain.
  void Prefetch(uint64_t hash) const { braiddb::Prefetch(CurrentTable().BucketOf(hash)); }
  void PrefetchForWrite(uint64_t hash) const { braiddb::PrefetchForWrite(CurrentTable().BucketOf(hash)); }

  // The entry that Find will look at, if any. The bucket should be there already.
  // False: there is none, and the key will be looked up elsewhere.
  bool PrefetchEntry(uint64_t hash) const;

  // Of a lookup that found nothing here: where the bucket stood.
  struct Miss {
    uint64_t word = kLocked;
  };
  // The newest version of the key, which is a put; null if the cache does not know.
  const LogEntry* Find(uint32_t family, Slice key, uint64_t hash, Miss* miss) const;
  // The same in fewer instructions. False, which is rare: Find has to be asked.
  bool FindQuickly(uint32_t family, Slice key, uint64_t hash, Miss* miss, const LogEntry** entry) const noexcept;
  // Remembers a put, found after this miss by a lookup as of this sequence number, unless it may not be the newest version.
  void Fill(uint64_t hash, const Miss& miss, uint64_t sequence, PmPtr entry);

  // The bucket of a key, locked; or none. Versions that the write hides stay where they are meanwhile: the caller's write is
  // announced, so no flush takes it to the tables.
  class WriteLock {
   private:
    friend class LookupCache;
    Bucket* bucket_ = nullptr;
    uint64_t word_ = 0;
  };
  // Making a durable entry visible, and remembering or forgetting the key, is one step for readers: between these two. The first
  // may come before the caller's fence; the second stores, and waits for nothing. A thread has one lock at a time, and not for
  // long: others that write to keys of the bucket wait.
  WriteLock LockForWrite(uint64_t hash) {
    WriteLock lock;
    const Table* const table = &CurrentTable();
    const uint64_t index = table->IndexOf(hash);
    if (__builtin_expect(table->IsGivenUp(index), 0)) return lock;
    lock.bucket_ = table->At(index);
    lock.word_ = Lock(lock.bucket_);
    if (__builtin_expect(lock.word_ == kMoved, 0)) lock.bucket_ = LockMoved(*table, hash, &lock.word_);
    return lock;
  }
  void EndWrite(const WriteLock& lock, uint64_t hash, const LogEntry& entry, PmPtr pointer) {
    if (__builtin_expect(lock.bucket_ == nullptr, 0)) return;
    BRAIDDB_SYNC_POINT("LookupCache::EndWrite:Published");
    Unlock(lock.bucket_, SetSlot(lock.bucket_, lock.word_, hash, entry, pointer));
  }
  // Nothing became visible.
  static void AbandonWrite(const WriteLock& lock) {
    if (lock.bucket_ != nullptr) Unlock(lock.bucket_, lock.word_);
  }

  // A copy with the same sequence number took the place of an entry: the cache knows it as the copy from now on, and a lookup
  // that missed before does not fill in the original. `sequence`: of a write that was made before.
  void Move(uint64_t hash, PmPtr from, PmPtr to, uint64_t sequence);

  // Forgets an entry whose key nobody reads or writes any more, before its space is used again.
  void Forget(uint64_t hash, PmPtr entry);
  // What was the newest version of the key has gone without a newer one: the cache does not know the key, and a lookup that
  // missed before does not fill it in. REQUIRES: the version is marked dead. `sequence`: of a write that was made before.
  void Forget(uint64_t hash, uint64_t sequence);

  // It has more than kKeysPerBucket keys for each bucket, and hits would be lost: from the key that made it so until a resize, or
  // until AcceptCrowd says that it stays as it is. A pause of AcceptCrowd ends with AskAgain.
  bool is_crowded() const { return crowd_.load(std::memory_order_acquire) == Crowd::kCrowded; }
  void AcceptCrowd() { crowd_.store(Crowd::kAccepted, std::memory_order_release); }
  void AskAgain();
  static constexpr uint64_t kKeysPerBucket = 3;

  // STEPS  1 StartResize  2 MoveBuckets until it returns true: who begins from now on uses the new table  3 the caller waits
  //        until readers that are inside an epoch, and writes that are announced, have ended  4 ReleaseOld.
  // To a table of `bytes` (as for Create), whose memory comes now. False: there is no memory, or Shrink has given up buckets.
  bool StartResize(uint64_t bytes);
  // Moves that many more buckets, at most. COST  A visit of each entry; its lines are prefetched some buckets ahead.
  bool MoveBuckets(uint64_t most);
  void ReleaseOld();

  // Gives up, for good, what is more than `bytes`.
  void Shrink(uint64_t bytes);
  // The system gets the memory of what was given up by a Shrink to `bytes`. REQUIRES: its readers have left their epochs.
  void ReleaseGivenUp(uint64_t bytes) { current_.load(std::memory_order_relaxed)->memory.ReleaseFrom(bytes / sizeof(Bucket)); }

  // Of the table in use.
  uint64_t bytes() const { return CurrentTable().limit.load(std::memory_order_relaxed) * sizeof(Bucket); }

 private:
  static constexpr uint64_t kLocked = 1;
  static constexpr uint64_t kMoved = UINT64_MAX;
  static constexpr uint64_t kLate = 2;
  static constexpr uint32_t kSequenceShift = 8;
  static constexpr uint64_t kMostLate = (uint64_t{1} << kSequenceShift) - kLate;
  static constexpr uint32_t kOffsetBits = 41;
  static constexpr uint32_t kRegionBits = 5;
  static constexpr uint64_t kUsed = uint64_t{1} << (kOffsetBits + kRegionBits);
  static constexpr uint32_t kTagShift = kOffsetBits + kRegionBits + 1;
  static_assert(kMaxRegions <= 1u << kRegionBits);
  static constexpr uint32_t kSlots = 7;
  struct alignas(kCacheLine) Bucket {
    uint64_t word;           // atomic
    uint64_t slots[kSlots];  // atomic
  };
  static_assert(sizeof(Bucket) == kCacheLine);

  // Two take turns. What lookups load is atomic, since a prefetch may come while a table gets new memory.
  struct Table {
    // By bits that the tag does not have.
    uint64_t IndexOf(uint64_t hash) const { return (hash & UINT32_MAX) * count.load(std::memory_order_relaxed) >> 32; }
    Bucket* At(uint64_t index) const { return buckets.load(std::memory_order_relaxed) + index; }
    Bucket* BucketOf(uint64_t hash) const { return At(IndexOf(hash)); }
    bool IsGivenUp(uint64_t index) const { return index >= limit.load(std::memory_order_relaxed); }
    void SetMemory(HugeArray<Bucket> fresh);

    std::atomic<Bucket*> buckets{nullptr};
    std::atomic<uint64_t> count{0};
    std::atomic<uint64_t> limit{0};           // buckets behind it are given up
    std::atomic<const Table*> next{nullptr};  // set before a bucket is moved there
    HugeArray<Bucket> memory;
  };
  enum class Crowd : uint32_t { kNone, kCrowded, kAccepted };
  // Keys are counted in one bucket of so many.
  static constexpr uint64_t kSampledOf = 16;

  LookupCache(const RegionSet* regions, HugeArray<Bucket> buckets, std::function<void()> on_crowded);

  // acquire: pairs with the store in MoveBuckets; the table's fields, and what was moved there, are seen.
  const Table& CurrentTable() const { return *current_.load(std::memory_order_acquire); }
  static bool HasTag(uint64_t slot, uint64_t hash) { return slot != 0 && (slot ^ hash) >> kTagShift == 0; }
  static bool CompareExchange(uint64_t* word, uint64_t expected, uint64_t desired) {
    return std::atomic_ref<uint64_t>(*word).compare_exchange_strong(expected, desired, std::memory_order_acq_rel,
                                                                    std::memory_order_relaxed);
  }
  // Of a thread's hits of slots that are not marked as used, one in eight marks its slot, and no rhythm of theirs decides which:
  // no load of the next lookup begins before a locked instruction has ended, and what is worth keeping is hit often.
  static bool MarksThisHit() { return ++t_unmarked_hits_ * 0x9e3779b9u >> 29 == 0; }
  // Bit i: slot i has this tag, or is empty and the tag is 0.
  static uint32_t SlotsWithTag(const Bucket& bucket, uint64_t hash);
  static uint64_t LateOf(uint64_t word) { return word & kMostLate; }
  static PmPtr PointerOf(uint64_t slot) {
    const auto region = static_cast<uint32_t>(slot >> kOffsetBits) & ((1u << kRegionBits) - 1);
    return PmPtr(region, (slot & ((uint64_t{1} << kOffsetBits) - 1)) << 3);
  }
  // 0 if the address does not fit.
  static uint64_t MakeSlot(uint64_t hash, PmPtr entry);

  // What the slot there leads to, if that is of this key, which is marked as a hit; else null.
  const LogEntry* EntryAt(uint64_t* place, uint64_t slot, uint32_t family, Slice key) const;
  // Goes along the tables to the bucket that answers for the key; *word: its word, as loaded. Null if it is given up.
  static Bucket* FollowMoved(const Table& table, uint64_t hash, uint64_t* word);
  static Bucket* LockMoved(const Table& table, uint64_t hash, uint64_t* word);
  // The bucket, locked; *word as it was.
  Bucket* LockBucketOf(uint64_t hash, uint64_t* word) const;
  // The word as it was; kMoved: it is not locked.
  static uint64_t Lock(Bucket* bucket);
  static void Unlock(Bucket* bucket, uint64_t word) { StoreRelease(&bucket->word, word); }
  // The new word. REQUIRES: the lock.
  uint64_t SetSlot(Bucket* bucket, uint64_t word, uint64_t hash, const LogEntry& entry, PmPtr pointer);
  // The slot with this tag, else one that is empty or given up. REQUIRES: the lock.
  uint64_t* SlotFor(Bucket* bucket, uint64_t hash);
  // An empty slot is used, or a used one emptied. REQUIRES: the lock.
  void NoteTaken(const Bucket* bucket);
  void NoteEmptied(const Bucket* bucket);
  static uint64_t BucketsIn(uint64_t bytes) { return std::clamp<uint64_t>(bytes / sizeof(Bucket), 1, uint64_t{1} << 32); }
  static bool IsSampled(const Bucket* bucket) { return reinterpret_cast<uintptr_t>(bucket) / sizeof(Bucket) % kSampledOf == 0; }
  bool HasManyKeys(int64_t sampled_keys) const;
  void MoveBucket(const Table& from, uint64_t index, const Table& to) const;
  void PrefetchEntries(const Bucket& bucket) const;

  const RegionSet* const regions_;
  const std::function<void()> on_crowded_;
  Table tables_[2];
  std::atomic<Table*> current_{&tables_[0]};
  alignas(kCacheLine) std::atomic<int64_t> sampled_keys_{0};  // in sampled buckets of the table in use
  std::atomic<Crowd> crowd_{Crowd::kNone};
  uint64_t moved_ = 0;  // buckets, by the resize that is going on
  // Held by Move and Forget, whose callers hold no guard, and by ReleaseOld.
  std::mutex movers_mutex_;
  static constinit thread_local uint32_t t_unmarked_hits_;
};

// All at once: in which slot a key is cannot be foreseen, so a branch for each would be mispredicted in nearly every lookup.
[[gnu::always_inline]] inline uint32_t LookupCache::SlotsWithTag(const Bucket& bucket, uint64_t hash) {
  static_assert(kSlots == 7);
  return WordsWithTag<kTagShift>(LoadLine(&bucket), hash) >> 1;  // without the version word
}

inline bool LookupCache::PrefetchEntry(uint64_t hash) const {
  const Table& table = CurrentTable();
  const uint64_t index = table.IndexOf(hash);
  if (table.IsGivenUp(index)) return false;
  const Bucket& bucket = *table.At(index);
  const uint32_t with_tag = SlotsWithTag(bucket, hash);
  if (with_tag == 0) return false;
  const uint64_t slot = LoadRelaxed(&bucket.slots[std::countr_zero(with_tag)]);
  if (!HasTag(slot, hash)) return false;
  const auto* const entry = regions_->Resolve<char>(PointerOf(slot));
  braiddb::Prefetch(entry);
  braiddb::Prefetch(entry + kCacheLine);
  return true;
}

[[gnu::always_inline]] inline const LogEntry* LookupCache::Find(uint32_t family, Slice key, uint64_t hash, Miss* miss) const {
  const Table& table = CurrentTable();
  const uint64_t index = table.IndexOf(hash);
  if (__builtin_expect(table.IsGivenUp(index), 0)) return nullptr;
  Bucket* bucket = table.At(index);
  // acquire: the slots are loaded after it, and are at least as new.
  miss->word = LoadAcquire(&bucket->word);
  if (__builtin_expect((miss->word & kLocked) != 0, 0)) {
    if (miss->word != kMoved) return nullptr;
    bucket = FollowMoved(table, hash, &miss->word);
    if (bucket == nullptr || (miss->word & kLocked) != 0) return nullptr;
  }
  for (uint32_t with_tag = SlotsWithTag(*bucket, hash); with_tag != 0; with_tag &= with_tag - 1) {
    uint64_t& place = bucket->slots[std::countr_zero(with_tag)];
    const uint64_t slot = LoadAcquire(&place);
    if (__builtin_expect(HasTag(slot, hash), 1)) return EntryAt(&place, slot, family, key);
    // It is empty, or was displaced just now.
  }
  return nullptr;
}

[[gnu::always_inline]] inline bool LookupCache::FindQuickly(uint32_t family, Slice key, uint64_t hash, Miss* miss,
                                                            const LogEntry** entry) const noexcept {
  const Table& table = CurrentTable();
  const uint64_t index = table.IndexOf(hash);
  if (__builtin_expect(table.IsGivenUp(index), 0)) return true;
  Bucket& bucket = *table.At(index);
  miss->word = LoadAcquire(&bucket.word);  // as in Find
  if (__builtin_expect((miss->word & kLocked) != 0, 0)) return miss->word != kMoved;
  const uint32_t with_tag = SlotsWithTag(bucket, hash);
  if (with_tag == 0) return true;
  uint64_t& place = bucket.slots[std::countr_zero(with_tag)];
  const uint64_t slot = LoadAcquire(&place);
  if (__builtin_expect(!HasTag(slot, hash), 0)) return false;
  *entry = EntryAt(&place, slot, family, key);
  return true;
}

[[gnu::always_inline]] inline const LogEntry* LookupCache::EntryAt(uint64_t* place, uint64_t slot, uint32_t family,
                                                                   Slice key) const {
  const auto* const entry = regions_->Resolve<LogEntry>(PointerOf(slot));
  if (entry->key_shape() != LogEntry::MakeKeyShape(key.size(), family)) return nullptr;
  if (!SameBytes(Slice(entry->key_data(), key.size()), key)) return nullptr;
  // At most once for each round of the hand: a line that is only read stays in the caches of all CPUs. If the slot has changed,
  // the one that is there now is left alone.
  if ((slot & kUsed) == 0 && MarksThisHit()) CompareExchange(place, slot, slot | kUsed);
  return entry;
}

}  // namespace braiddb
