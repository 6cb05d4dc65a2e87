// L0Index: a hash index in DRAM over the entries of several tables of L0, so that a point lookup asks all of them at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "index/key_order.h"
#include "index/lookup_trace.h"
#include "log/log_entry.h"
#include "pmem/region_set.h"
#include "util/huge_array.h"
#include "util/line_words.h"
#include "util/prefetch.h"

namespace braiddb {

// LAYOUT  Buckets of one cache line: eight slots, filled front to back; a full one continues in the next bucket. A slot is
//         bits 63–50 a tag from the key's hash (KeyHash) · 49–46 the table's column · 45–41 region · 40–0 offset / 8; 0 is empty.
//         Nothing is removed: an index dies with the last of its tables. Behind the buckets there is a word for each, in which
//         a key that begins there sets four bits: an eighth as much memory, and for 1 % of the keys that are not there its
//         bucket has to be looked at.
// CONCURRENCY  One thread at a time adds (the flush). A reader asks for the columns of its view's tables only; those were
//         complete before the view was installed. What is being added beside it has other columns. A word's bits are of all
//         columns, and only become more.
// KEYS    Equal keys must have the same bytes (KeyOrder::equal_means_same).
// FAMILIES  Tables of several column families may be in one index: hashes differ, and a reader asks for columns of one family.
// WHY AN ANSWER IS RIGHT  A slot's entry lies in the log where the table has it, for as long as a reader has the table in its
//         view; entries never move. Versions of one key that tables of the view have are all here.
class L0Index {
 public:
  static constexpr uint32_t kMaxTables = 16;

  // Null if there is no memory. `entries`: how many it is meant for, at most; half of the slots stay empty then.
  static std::shared_ptr<L0Index> Create(const RegionSet* regions, uint64_t entries);
  L0Index(const L0Index&) = delete;
  L0Index& operator=(const L0Index&) = delete;

  // False if the index has no room; what is there stays as it is.
  bool Add(uint32_t column, uint64_t hash, PmPtr entry);
  void Prefetch(uint64_t hash) const { braiddb::Prefetch(&buckets_[BucketOf(hash)]); }
  // False: it has no entry of a key with this hash. Cheaper than Find; it begins with what PrefetchBits fetches.
  bool MayContain(uint64_t hash) const noexcept {
    if (__builtin_expect(!BitsSayMaybe(hash), 1)) return false;
    for (uint64_t i = BucketOf(hash);; i = (i + 1) & mask_) {
      if (SlotsWithTag(buckets_[i], hash) != 0) return true;
      if (!IsFull(buckets_[i])) return false;
    }
  }
  // The first half of MayContain.
  bool BitsSayMaybe(uint64_t hash) const noexcept {
    const uint64_t bits = BitsOf(hash);
    return (LoadRelaxed(&BitsAt(hash)) & bits) == bits;
  }
  void PrefetchBits(uint64_t hash) const { braiddb::Prefetch(&BitsAt(hash)); }
  // Of the tables in `columns` (bit c: column c; a larger one is a newer table), the newest entry of target.key that is not dead
  // and has a sequence number <= target.sequence; null if there is none.
  const LogEntry* Find(const SearchKey& target, uint64_t hash, uint32_t columns, LookupTrace* trace) const;

  uint64_t bytes() const { return buckets_.bytes(); }
  uint64_t free_slots() const { return max_used_ - used_; }

 private:
  static constexpr uint32_t kOffsetBits = 41;
  static constexpr uint32_t kRegionBits = 5;
  static constexpr uint32_t kColumnBits = 4;
  static constexpr uint32_t kColumnShift = kOffsetBits + kRegionBits;
  static constexpr uint32_t kTagShift = kColumnShift + kColumnBits;
  static_assert(kMaxTables == 1u << kColumnBits && kMaxRegions <= 1u << kRegionBits);
  static constexpr uint32_t kSlots = 8;
  struct alignas(64) Bucket {
    uint64_t slots[kSlots];  // atomic
  };

  L0Index(const RegionSet* regions, uint64_t buckets, HugeArray<Bucket> lines);

  static uint64_t LinesOf(uint64_t buckets) { return buckets + (buckets + kSlots - 1) / kSlots; }
  uint64_t BucketOf(uint64_t hash) const { return hash & mask_; }
  // The word of its bucket.
  const uint64_t& BitsAt(uint64_t hash) const {
    const uint64_t bucket = BucketOf(hash);
    return buckets_[mask_ + 1 + bucket / kSlots].slots[bucket % kSlots];
  }
  // Between those that say which bucket, and the tag.
  static uint64_t BitsOf(uint64_t hash) {
    return uint64_t{1} << (hash >> 26 & 63) | uint64_t{1} << (hash >> 32 & 63) | uint64_t{1} << (hash >> 38 & 63) |
           uint64_t{1} << (hash >> 44 & 63);
  }
  static uint64_t TagOf(uint64_t hash) { return hash >> kTagShift << kTagShift; }
  // Bit i: slot i has this tag, or is empty and the tag is 0. All at once: how many a bucket has cannot be foreseen, so a branch
  // for each would be mispredicted nearly every time.
  static uint32_t SlotsWithTag(const Bucket& bucket, uint64_t hash) { return WordsWithTag<kTagShift>(LoadLine(&bucket), hash); }
  // If so, the next bucket may have more.
  static bool IsFull(const Bucket& bucket) { return LoadRelaxed(&bucket.slots[kSlots - 1]) != 0; }
  static uint32_t ColumnOf(uint64_t slot) { return static_cast<uint32_t>(slot >> kColumnShift) & (kMaxTables - 1); }
  PmPtr PointerOf(uint64_t slot) const;

  const RegionSet* const regions_;
  const uint64_t mask_;        // the number of buckets, a power of two, less one
  HugeArray<Bucket> buckets_;  // and behind them the words, eight in a line
  const uint64_t max_used_;
  uint64_t used_ = 0;  // slots; the adding thread's
  // The hash and the bucket of the slot that was added last. The buckets from BucketOf(last_hash_) to that bucket stay full, so
  // the search for an empty slot for the same hash begins there.
  uint64_t last_hash_ = 0;
  uint64_t last_bucket_ = 0;  // BucketOf(0) before the first one
};

// What adds the entries of one table after another, and begins a new index when the last one is full.
// Thread safety: none; the flush thread's.
class L0IndexWriter {
 public:
  // `table_entries`: at most in a usual table.
  L0IndexWriter(const RegionSet* regions, uint64_t table_entries);

  struct Table {
    std::shared_ptr<const L0Index> index;  // null: not all of the table's entries are in one
    uint32_t column = 0;
  };

  // A flush begins that makes `tables` tables of `entries` in all. New indexes are then for tables of the mean size.
  void BeginFlush(uint64_t entries, uint64_t tables) {
    usual_entries_ = std::clamp(std::max(entries, kLeastEntries) / tables, uint64_t{1}, table_entries_);
  }
  // Begins a table of about `entries`, of a family with this order.
  void Begin(uint64_t entries, const KeyOrder& order);
  // `hash`: KeyHash of the entry's key.
  void Add(uint64_t hash, PmPtr entry);
  Table Finish();

 private:
  struct Pending {
    uint64_t hash;
    PmPtr entry;
  };
  // Additions whose buckets are on their way at any time.
  static constexpr size_t kPending = 32;
  // What one index is made for at the most, unless one table has more: 18 MiB.
  static constexpr uint64_t kIndexEntries = 1 << 20;
  // Smaller tables count as if they had so many: one that was rotated early, by Flush, says little of the next.
  static constexpr uint64_t kLeastEntries = 1024;

  void AddPending(const Pending& pending);

  const RegionSet* const regions_;
  const uint64_t table_entries_;
  uint64_t usual_entries_ = 0;  // of a table of this flush; 0: not known
  std::shared_ptr<L0Index> index_;
  uint32_t next_column_ = 0;
  bool complete_ = false;         // everything of this table has been taken so far
  std::vector<Pending> pending_;  // a ring, once it is full
  size_t oldest_ = 0;             // of it
};

}  // namespace braiddb
