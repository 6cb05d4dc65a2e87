// LookupCache: a hash table in DRAM from keys to the addresses of their newest entries (ListDB, OSDI '22, 3.5). It can be resized
// online.
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
#include "util/shared_memory.h"
#include "util/short_bytes.h"
#include "util/spin.h"
#include "util/sync_point.h"

namespace braiddb {

// In the paper a flush fills the cache. Here every write goes through it, so that a hit is the newest version and a lookup reads
// one bucket and one entry.
//
// LAYOUT  Buckets of one cache line: a version word and seven slots.
//         word  Bits 63–8: the largest sequence number of all writes through the bucket since the open. Bits 7–1: the number
//               of late writes since then, that is, writes with smaller numbers; at most kMostLate. Bit 0: locked.
//         slot  Bits 63–47: a tag from the key's hash. Bit 46: used. Bits 45–41: region. Bits 40–0: offset / 8. 0: empty.
//         A word with the value kMoved, which no write creates, means: the bucket's contents are in the next table.
//         No two slots of a bucket have the same tag. If no slot is empty, a put replaces a slot whose used bit is not set
//         (clock algorithm). One in eight of a thread's hits of such slots sets the bit.
// KEYS    Equal keys must have the same bytes (KeyOrder::equal_means_same).
//
// WHY A HIT IS THE NEWEST VERSION:
// I1  While a bucket is unlocked, each entry in it is a put, and the newest visible version of its key. Its sequence number is at
//     most the word's, or the entry is older than the open.
// WRITE  A writer makes an entry visible while it holds the lock of the key's bucket: lock, publish in the memtable, set the slot
//        (a deletion empties it), unlock. Of two writes to a key, the one with the larger number is newer. If the number is
//        larger than the word's, it is larger than all numbers before. A slot with the key's tag is then older or another key's,
//        and is overwritten without reading its entry. Otherwise the write is late. It reads the entry of a slot with the tag,
//        and replaces it if it is an older version of the key. If no slot has the tag, the write sets none, because a newer
//        version may have been inserted and replaced.
// HIT  A reader treats a locked bucket as a cache miss. If the bucket is unlocked when the reader loads the word, I1 holds. A
//      slot that the reader loads afterwards has the version that was the newest then, or one that became the newest later. The
//      lookup takes effect at one of these times. Suppose a lookup begins after another lookup returned a newer version from a
//      memtable. It finds the bucket locked, or without the older version, because the writer published the newer version with
//      the lock held.
// FILL  A lookup that misses may insert what it found in older levels, which it loaded after its miss. It may do so only if the
//       word is unlocked and unchanged since the miss. Then no write went through, and no visible version is newer. A word never
//       returns to an earlier value: each write increases its number or its count of late writes. The count stops at kMostLate,
//       and then nothing is inserted until a larger number comes. A lookup as of a snapshot found the newest version only if the
//       word's number is at most the snapshot's.
// MOVE  Moving an entry changes the word like a late write; if the count is at its limit, like a write with a number above all
//       before. Forget(hash, sequence) does the same, after the version was marked dead, so a lookup that misses later sees the
//       mark. Before that, slots may refer to entries that are marked dead. Readers check the mark where that is possible
//       (Options::compaction_filter).
//
// WHY THE ENTRY STILL EXISTS  The space of an entry is released after the entry is no longer the newest version and all readers
//   of that time have left their epochs. A reader that reaches the entry entered its epoch before it loaded the word, and so
//   before the write that replaced the slot. A writer that has published and not yet set the slot holds the lock. A late writer
//   reads an entry without an epoch guard. If the entry is another key's, it is that key's newest version, and stays so while the
//   bucket is locked. If the entry is an older version of the writer's key, it stays while the write is announced, since no flush
//   takes its memtable then. When a column family is dropped, every entry of it is forgotten before its space is released.
//
// WHY A RESIZE IS RIGHT  The buckets of a table divide the range of hashes into intervals of equal size, in order. A resize
//   handles the old buckets one after another. It locks the old bucket. For each new bucket whose interval overlaps, it locks the
//   new bucket, raises its word to the old word if that is larger, adds the slots that belong there, and unlocks it. At last it
//   stores kMoved to the old bucket's word. A slot that has no room in its new bucket is dropped.
//   At each instant one bucket answers for a key: the first in the chain of tables whose word is not kMoved. Readers and writers
//   follow the chain, which has at most two tables. A writer locks a word by compare-and-swap, so it cannot lock a moved bucket.
//   All writes to a key therefore lock one bucket at a time, and I1 holds for the bucket that answers.
//   A reader that loaded the old word before the resize locked it reads slots that no thread changes any more. They were the
//   newest versions when the bucket was moved, so the lookup takes effect between its load of the word and that instant. A reader
//   that began after another lookup had returned a newer version sees kMoved, because the newer version's writer saw it.
//   A fill compares words. The word of a new bucket is at least the word of each old bucket that it replaces, and words grow with
//   each write (or stay at kMostLate, where nothing is filled in). A fill after a miss in the old bucket therefore finds the same
//   word in the new bucket only if no write to its key came between.
//   There is no deadlock: the resize holds an old bucket while it waits for a new one. A thread that holds any other bucket waits
//   only for its fence, never for another bucket.
//   The old table's memory is released (ReleaseOld) after all threads that may have loaded its address have left.
//
// WHY A SHRINK IS RIGHT  Buckets that Shrink gave up never come back, and threads that load the limit later skip them. All
//   readers and writers that use such a bucket began before that. The slots that such a reader finds were the newest versions
//   then, or became so later. Its lookup takes effect at one of these times, before any write that skipped the bucket. The memory
//   is released after these readers have left, so no word returns to a value that one of them knows. A writer that loaded the
//   limit before may come later. It may find its lock lost, or compare its key with an entry whose space is in use again, because
//   newer versions of that entry's key no longer pass through the bucket. No reader sees what such a writer stores. A table that
//   has given up buckets is not resized.
//
// OTHER PROCESSES  A table may lie in a SharedHeap. Processes that map the heap look keys up through a ForeignTable. The argument
//   is that of HIT, since they hold an epoch of the owner. For them a moved bucket is a cache miss. Before Shrink gives buckets
//   up, the owner stores the limit where these processes load it before each lookup.
//
// CONCURRENCY  All methods may be called by any number of threads. StartResize, MoveBuckets, ReleaseOld and Shrink: one call at a
//              time. Readers and fills hold an epoch guard; writers have announced their write.
class LookupCache {
  struct Bucket;

 public:
  // The bytes of the table that Create and StartResize make of `bytes`: whole buckets, at least one, at most 2^32.
  static uint64_t UsableBytes(uint64_t bytes) { return BucketsIn(bytes) * sizeof(Bucket); }
  // Null if there is no memory. `bytes`: rounded down to whole buckets; at least one, at most 2^32 buckets. `on_crowded`: called
  // by the thread whose key makes is_crowded() true, with a bucket locked.
  static std::unique_ptr<LookupCache> Create(const RegionSet* regions, uint64_t bytes, std::function<void()> on_crowded = {});
  LookupCache(const LookupCache&) = delete;
  LookupCache& operator=(const LookupCache&) = delete;

  // Prefetches the bucket of a hash (KeyHash), for reading or for writing. During a resize also prefetches the bucket of the next
  // table. Needs no guard: if a table is released concurrently, the prefetch has no effect.
  void Prefetch(uint64_t hash) const {
    ForEachBucketOf(hash, [](const Bucket* bucket) { braiddb::Prefetch(bucket); });
  }
  void PrefetchForWrite(uint64_t hash) const {
    ForEachBucketOf(hash, [](const Bucket* bucket) { braiddb::PrefetchForWrite(bucket); });
  }

  // Prefetches the entry that Find will read, if any. The bucket should be in the CPU's cache. False: no slot has the tag, and
  // the key will be searched in the levels.
  bool PrefetchEntry(uint64_t hash) const;

  // The state of the bucket when a lookup missed.
  struct Miss {
    uint64_t word = kLocked;  // the default never permits a fill
  };
  // The newest version of the key, which is a put; null on a cache miss. Sets *miss.
  const LogEntry* Find(uint32_t family, Slice key, uint64_t hash, Miss* miss) const;
  // Like Find, with fewer instructions. False, which is rare: the result is unknown, call Find. True: on a hit *entry is the
  // version; on a miss *entry is null or unchanged.
  bool FindQuickly(uint32_t family, Slice key, uint64_t hash, Miss* miss, const LogEntry** entry) const noexcept;
  // Inserts a put that a lookup as of `sequence` found after `miss`. Does nothing if the put may not be the newest version, and
  // then returns false.
  bool Fill(uint64_t hash, const Miss& miss, uint64_t sequence, PmPtr entry);

  // A locked bucket, or none. The write is announced, so no flush moves the hidden versions to a table while the bucket is
  // locked.
  class WriteLock {
   private:
    friend class LookupCache;
    Bucket* bucket_ = nullptr;
    uint64_t word_ = 0;
  };
  // LockForWrite and EndWrite enclose the publication of a durable entry. For readers, publication and change of the slot are one
  // step. LockForWrite may come before the caller's fence; EndWrite only stores and does not wait. A thread holds one lock at a
  // time, for a short time, since other writers to keys of the bucket wait.
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
  // Unlocks without a change: the entry did not become visible.
  static void AbandonWrite(const WriteLock& lock) {
    if (lock.bucket_ != nullptr) Unlock(lock.bucket_, lock.word_);
  }

  // Replaces the address of an entry by that of its copy, which has the same sequence number. A lookup that missed before cannot
  // fill in the original. `sequence`: of an earlier write.
  void Move(uint64_t hash, PmPtr from, PmPtr to, uint64_t sequence);

  // Removes an entry whose key no thread reads or writes any more. Called before its space is reused.
  void Forget(uint64_t hash, PmPtr entry);
  // Removes the key because its newest version was removed without a newer one. A lookup that missed before cannot fill the
  // version in. REQUIRES: the version is marked dead. `sequence`: of an earlier write.
  void Forget(uint64_t hash, uint64_t sequence);

  // True if the table has more than kKeysPerBucket keys per bucket, so that hits would be lost. Stays true until a resize, or
  // until AcceptCrowd keeps the size. AskAgain ends the effect of AcceptCrowd.
  bool is_crowded() const { return crowd_.load(std::memory_order_acquire) == Crowd::kCrowded; }
  void AcceptCrowd() { crowd_.store(Crowd::kAccepted, std::memory_order_release); }
  void AskAgain();
  static constexpr uint64_t kKeysPerBucket = 3;

  // STEPS  1. StartResize.  2. MoveBuckets until it returns true. Lookups and writes that begin later use the new table.  3. The
  //        caller waits until all current readers have left their epochs and all announced writes have ended.  4. ReleaseOld.
  // Allocates a table of `bytes` bytes (as for Create). `heap`: the table lies there; null: in private memory. False: there is no
  // memory, or Shrink has given up buckets.
  bool StartResize(uint64_t bytes, SharedHeap* heap = nullptr);
  // Moves at most `most` buckets. True if all are moved. COST: reads each entry, whose lines are prefetched some buckets ahead.
  bool MoveBuckets(uint64_t most);
  // Ends the resize. If the old table lies in a shared heap, its memory is left to the caller, and the result says where it is.
  // Otherwise the memory is released.
  SharedRange ReleaseOld();

  // Gives up the buckets beyond `bytes` for ever.
  void Shrink(uint64_t bytes);
  // Returns the memory of the buckets given up by Shrink(bytes) to the system. REQUIRES: their readers have left their epochs.
  void ReleaseGivenUp(uint64_t bytes) { current_.load(std::memory_order_relaxed)->memory.ReleaseFrom(bytes / sizeof(Bucket)); }

  // Where the current table lies in a shared heap. It has `bytes` bytes, a part of which may be given up.
  SharedRange shared_range() const {
    const HugeArray<Bucket>& memory = CurrentTable().memory;
    return memory.heap_offset() == 0 ? SharedRange() : SharedRange{memory.heap_offset(), memory.bytes()};
  }
  // The number of buckets that Shrink(bytes) leaves.
  static uint64_t BucketsLeft(uint64_t bytes) { return bytes / sizeof(Bucket); }

  // Size of the current table.
  uint64_t bytes() const { return CurrentTable().limit.load(std::memory_order_relaxed) * sizeof(Bucket); }

  class ForeignTable;

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

  // The two tables alternate. Fields that lookups load are atomic, since a prefetch may race with SetMemory.
  struct Table {
    // Uses hash bits that are not part of the tag.
    uint64_t IndexOf(uint64_t hash) const { return (hash & UINT32_MAX) * count.load(std::memory_order_relaxed) >> 32; }
    Bucket* At(uint64_t index) const { return buckets.load(std::memory_order_relaxed) + index; }
    Bucket* BucketOf(uint64_t hash) const { return At(IndexOf(hash)); }
    bool IsGivenUp(uint64_t index) const { return index >= limit.load(std::memory_order_relaxed); }
    void SetMemory(HugeArray<Bucket> fresh);

    std::atomic<Bucket*> buckets{nullptr};
    std::atomic<uint64_t> count{0};
    std::atomic<uint64_t> limit{0};           // buckets from here on are given up
    std::atomic<const Table*> next{nullptr};  // stored before the first bucket is moved there
    HugeArray<Bucket> memory;
  };
  enum class Crowd : uint32_t { kNone, kCrowded, kAccepted };
  // One bucket in kSampledOf is sampled to estimate the number of keys.
  static constexpr uint64_t kSampledOf = 16;

  LookupCache(const RegionSet* regions, HugeArray<Bucket> buckets, std::function<void()> on_crowded);

  // acquire: pairs with the store in MoveBuckets, so that the table's fields and the moved buckets are visible.
  const Table& CurrentTable() const { return *current_.load(std::memory_order_acquire); }
  // Calls visit with the hash's bucket of the current table and, during a resize, with that of the next one.
  template <class Visit>
  void ForEachBucketOf(uint64_t hash, const Visit& visit) const {
    const Table& table = CurrentTable();
    visit(table.BucketOf(hash));
    const Table* const next = table.next.load(std::memory_order_acquire);
    if (__builtin_expect(next != nullptr, 0)) visit(next->BucketOf(hash));
  }
  static bool HasTag(uint64_t slot, uint64_t hash) { return slot != 0 && (slot ^ hash) >> kTagShift == 0; }
  static bool CompareExchange(uint64_t* word, uint64_t expected, uint64_t desired) {
    return std::atomic_ref<uint64_t>(*word).compare_exchange_strong(expected, desired, std::memory_order_acq_rel,
                                                                    std::memory_order_relaxed);
  }
  // True for one in eight of the thread's hits of unmarked slots, chosen by a hash of a counter, so that no access pattern
  // interferes. Setting the bit is a locked instruction, which delays the loads of the next lookup. Keys worth keeping are hit
  // often enough.
  static bool MarksThisHit() { return ++t_unmarked_hits_ * 0x9e3779b9u >> 29 == 0; }
  // Bit i: slot i has this tag, or is empty and the tag is 0.
  static uint32_t SlotsWithTag(const Bucket& bucket, uint64_t hash);
  static uint64_t LateOf(uint64_t word) { return word & kMostLate; }
  static PmPtr PointerOf(uint64_t slot) {
    const auto region = static_cast<uint32_t>(slot >> kOffsetBits) & ((1u << kRegionBits) - 1);
    return PmPtr(region, (slot & ((uint64_t{1} << kOffsetBits) - 1)) << 3);
  }
  // 0 if the address does not fit in a slot.
  static uint64_t MakeSlot(uint64_t hash, PmPtr entry);

  // The entry of the slot if it has this key, else null. May set the slot's used bit.
  const LogEntry* EntryAt(uint64_t* place, uint64_t slot, uint32_t family, Slice key) const;
  // Follows the chain of tables to the bucket that answers for the key; *word: its word. Null if that bucket is given up.
  static Bucket* FollowMoved(const Table& table, uint64_t hash, uint64_t* word);
  static Bucket* LockMoved(const Table& table, uint64_t hash, uint64_t* word);
  // Locks the bucket that answers; *word: its word before. Null if it is given up.
  Bucket* LockBucketOf(uint64_t hash, uint64_t* word) const;
  // Locks a bucket and returns its word before; returns kMoved without a lock if the bucket was moved.
  static uint64_t Lock(Bucket* bucket);
  static void Unlock(Bucket* bucket, uint64_t word) { StoreRelease(&bucket->word, word); }
  // Applies a write to the slots and returns the new word. REQUIRES: the lock is held.
  uint64_t SetSlot(Bucket* bucket, uint64_t word, uint64_t hash, const LogEntry& entry, PmPtr pointer);
  // The slot with this tag; else an empty one, else one chosen by the clock algorithm. REQUIRES: the lock is held.
  uint64_t* SlotFor(Bucket* bucket, uint64_t hash);
  // Count a slot that was empty and is now used, or the reverse. REQUIRES: the lock is held.
  void NoteTaken(const Bucket* bucket);
  void NoteEmptied(const Bucket* bucket);
  static uint64_t BucketsIn(uint64_t bytes) { return std::clamp<uint64_t>(bytes / sizeof(Bucket), 1, uint64_t{1} << 32); }
  static bool IsSampled(const Bucket* bucket) { return reinterpret_cast<uintptr_t>(bucket) / sizeof(Bucket) % kSampledOf == 0; }
  // True if the sampled buckets have more than kKeysPerBucket keys on average.
  bool HasManyKeys(int64_t sampled_keys) const;
  void MoveBucket(const Table& from, uint64_t index, const Table& to) const;
  void PrefetchEntries(const Bucket& bucket) const;

  const RegionSet* const regions_;
  const std::function<void()> on_crowded_;
  Table tables_[2];
  std::atomic<Table*> current_{&tables_[0]};
  alignas(kCacheLine) std::atomic<int64_t> sampled_keys_{0};  // number of keys in the sampled buckets of the current table
  std::atomic<Crowd> crowd_{Crowd::kNone};
  uint64_t moved_ = 0;  // buckets that the current resize has moved
  // Held by Move and Forget, whose callers hold no guard, and by ReleaseOld.
  std::mutex movers_mutex_;
  static constinit thread_local uint32_t t_unmarked_hits_;
};

// The table of a cache that another process owns, for reading only. What it returns is valid under the conditions of LiveReader.
// Thread safety: all methods may be called concurrently.
class LookupCache::ForeignTable {
 public:
  // `memory` has the table at `range`, which IsTable. `limit_complement`: the complement of the number of buckets that are not
  // given up. The regions, the memory and the number must outlive the object.
  ForeignTable(const RegionSet* regions, const SharedMemory& memory, SharedRange range,
               const std::atomic<uint64_t>* limit_complement)
      : regions_(regions),
        buckets_(HugeArray<Bucket>::Attach(memory, range.offset, range.bytes / sizeof(Bucket))),
        limit_complement_(limit_complement) {}
  // Whether the range can be that of a table.
  static bool IsTable(const SharedMemory& memory, SharedRange range) {
    return range.offset % sizeof(Bucket) == 0 && range.bytes >= sizeof(Bucket) && range.bytes % sizeof(Bucket) == 0 &&
           range.offset < memory.bytes() && range.bytes <= memory.bytes() - range.offset;
  }

  void Prefetch(uint64_t hash) const { braiddb::Prefetch(&buckets_[IndexOf(hash)]); }
  // As LookupCache::PrefetchEntry. Only the bytes of the place are read, never the entry.
  bool PrefetchEntry(uint64_t hash) const;
  // As LookupCache::Find. Stores nothing.
  const LogEntry* Find(uint32_t family, Slice key, uint64_t hash) const;

 private:
  uint64_t IndexOf(uint64_t hash) const { return (hash & UINT32_MAX) * buckets_.size() >> 32; }

  const RegionSet* const regions_;
  const HugeArray<Bucket> buckets_;
  const std::atomic<uint64_t>* const limit_complement_;
};

// Compares all slots at once, since a branch per slot would be mispredicted in nearly every lookup.
[[gnu::always_inline]] inline uint32_t LookupCache::SlotsWithTag(const Bucket& bucket, uint64_t hash) {
  static_assert(kSlots == 7);
  return WordsWithTag<kTagShift>(LoadLine(&bucket), hash) >> 1;  // without the version word
}

// A pointer beyond the mapped parts belongs to a part that this process has not mapped yet, or comes from memory in other use.
[[gnu::always_inline]] inline const LogEntry* LookupCache::ForeignTable::Find(uint32_t family, Slice key, uint64_t hash) const {
  const uint64_t index = IndexOf(hash);
  if (index >= ~limit_complement_->load(std::memory_order_acquire)) return nullptr;
  const Bucket& bucket = buckets_[index];
  if ((LoadAcquire(&bucket.word) & kLocked) != 0) return nullptr;  // kMoved has the bit, too
  for (uint32_t with_tag = SlotsWithTag(bucket, hash); with_tag != 0; with_tag &= with_tag - 1) {
    const uint64_t slot = LoadAcquire(&bucket.slots[std::countr_zero(with_tag)]);
    if (!HasTag(slot, hash)) continue;
    const PmPtr place = PointerOf(slot);
    if (!regions_->Holds(place)) return nullptr;
    const auto* const entry = regions_->Resolve<LogEntry>(place);
    const bool is_same =
        entry->key_shape() == LogEntry::MakeKeyShape(key.size(), family) && SameBytes(Slice(entry->key_data(), key.size()), key);
    if (!is_same) return nullptr;
    BRAIDDB_SYNC_POINT("LookupCache::ForeignTable::Find:Hit");
    return entry;
  }
  return nullptr;
}

inline bool LookupCache::ForeignTable::PrefetchEntry(uint64_t hash) const {
  const uint64_t index = IndexOf(hash);
  if (index >= ~limit_complement_->load(std::memory_order_acquire)) return false;
  const Bucket& bucket = buckets_[index];
  const uint32_t with_tag = SlotsWithTag(bucket, hash);
  if (with_tag == 0) return false;
  const uint64_t slot = LoadRelaxed(&bucket.slots[std::countr_zero(with_tag)]);
  if (!HasTag(slot, hash) || !regions_->Holds(PointerOf(slot))) return false;
  const auto* const entry = regions_->Resolve<char>(PointerOf(slot));
  braiddb::Prefetch(entry);
  braiddb::Prefetch(entry + kCacheLine);
  return true;
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
  // acquire: the slots loaded after the word are at least as new as the word.
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
    // The slot is empty, or was replaced since the comparison.
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
  // The bit is set at most once per round of the clock hand, so that the lines of a bucket that is only read stay in the caches
  // of all CPUs. If the slot has changed, the compare-and-swap leaves the new contents alone.
  if ((slot & kUsed) == 0 && MarksThisHit()) CompareExchange(place, slot, slot | kUsed);
  return entry;
}

}  // namespace braiddb
