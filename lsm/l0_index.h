// L0Index: a hash index in DRAM over the entries of several tables of L0, so that a point lookup searches all of them with one
// probe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "index/key_order.h"
#include "index/lookup_trace.h"
#include "log/log_entry.h"
#include "pmem/region_set.h"
#include "util/huge_array.h"
#include "util/line_words.h"
#include "util/prefetch.h"

namespace braiddb {

// LAYOUT  Buckets of one cache line: eight slots, filled front to back; a full bucket continues in the next one. A slot is bits
//         63–50 tag from the key's hash (KeyHash) · 49–46 column of the table · 45–41 region · 40–0 offset / 8; 0 is empty. Slots
//         are never removed; the index is freed with the last of its tables. A Bloom filter follows the buckets: one word per
//         bucket, in which each key that begins at the bucket sets four bits. It takes an eighth of the buckets' memory. For
//         about 1 % of absent keys it does not exclude the key, and the bucket is probed.
// CONCURRENCY  One thread at a time adds (the flush). A reader asks only for the columns of the tables in its view. These columns
//              were complete before the view was installed; entries that are added concurrently have other columns. The filter
//              words cover all columns, and bits are only set.
// KEYS    Equal keys must have the same bytes (KeyOrder::equal_means_same).
// FAMILIES  Tables of several column families may share an index. Hashes of families differ, and a reader asks for columns of one
//           family.
// WHY AN ANSWER IS RIGHT  Entries never move, and an entry is not freed while a reader has its table in a view. The index
//                         contains all versions of a key that the tables of the view have.
class L0Index {
 public:
  static constexpr uint32_t kMaxTables = 16;

  // Null if there is no memory. `entries`: the intended maximum; half of the slots stay empty then.
  // `heap`: other processes may attach to an index in this heap, which must outlive the index; null: private memory.
  static std::shared_ptr<L0Index> Create(const RegionSet* regions, uint64_t entries, SharedHeap* heap = nullptr);
  // An index of another process, for reading only: `buckets` buckets at `offset` of the heap that `memory` maps.
  static std::shared_ptr<L0Index> Attach(const RegionSet* regions, const SharedMemory& memory, uint64_t offset, uint64_t buckets);
  L0Index(const L0Index&) = delete;
  L0Index& operator=(const L0Index&) = delete;

  // False if the index has no room or the offset does not fit in a slot. The index is unchanged then.
  bool Add(uint32_t column, uint64_t hash, PmPtr entry);
  void Prefetch(uint64_t hash) const { braiddb::Prefetch(&buckets_[BucketOf(hash)]); }
  // False: no entry has a key with this hash. Cheaper than Find. Its first access is the word that PrefetchBits prefetches.
  bool MayContain(uint64_t hash) const noexcept {
    if (__builtin_expect(!BitsSayMaybe(hash), 1)) return false;
    for (uint64_t i = BucketOf(hash);; i = (i + 1) & mask_) {
      if (SlotsWithTag(buckets_[i], hash) != 0 || is_attached_) return true;
      if (!IsFull(buckets_[i])) return false;
    }
  }
  // The filter part of MayContain; reads one word.
  bool BitsSayMaybe(uint64_t hash) const noexcept {
    const uint64_t bits = BitsOf(hash);
    return (LoadRelaxed(&BitsAt(hash)) & bits) == bits;
  }
  void PrefetchBits(uint64_t hash) const { braiddb::Prefetch(&BitsAt(hash)); }
  // Searches the tables in `columns` (bit c: column c; a larger column is a newer table). Returns the newest entry of target.key
  // that is not dead and has a sequence number <= target.sequence; null if there is none.
  const LogEntry* Find(const SearchKey& target, uint64_t hash, uint32_t columns, LookupTrace* trace) const;

  // With the copy.
  uint64_t bytes() const { return copy_offset_.load(std::memory_order_acquire) == 0 ? buckets_.bytes() : 2 * buckets_.bytes(); }
  uint64_t buckets() const { return mask_ + 1; }
  // The offset in the heap of the index, or of its copy; 0: other processes cannot attach to it.
  uint64_t heap_offset() const {
    return buckets_.heap_offset() != 0 ? buckets_.heap_offset() : copy_offset_.load(std::memory_order_acquire);
  }
  // Makes a copy of a private index for other processes, if the heap has room. One thread at a time calls this. REQUIRES: nothing
  // is added any more.
  void CopyTo(SharedHeap* heap) const;
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
  // The filter word of the hash's bucket.
  const uint64_t& BitsAt(uint64_t hash) const {
    const uint64_t bucket = BucketOf(hash);
    return buckets_[mask_ + 1 + bucket / kSlots].slots[bucket % kSlots];
  }
  // Uses hash bits 26–49, which neither select the bucket nor are part of the tag.
  static uint64_t BitsOf(uint64_t hash) {
    return uint64_t{1} << (hash >> 26 & 63) | uint64_t{1} << (hash >> 32 & 63) | uint64_t{1} << (hash >> 38 & 63) |
           uint64_t{1} << (hash >> 44 & 63);
  }
  static uint64_t TagOf(uint64_t hash) { return hash >> kTagShift << kTagShift; }
  // Bit i: slot i has this tag, or is empty and the tag is 0. Compares all slots at once, since a branch per slot would be
  // mispredicted.
  static uint32_t SlotsWithTag(const Bucket& bucket, uint64_t hash) { return WordsWithTag<kTagShift>(LoadLine(&bucket), hash); }
  // True if the probe sequence continues in the next bucket.
  static bool IsFull(const Bucket& bucket) { return LoadRelaxed(&bucket.slots[kSlots - 1]) != 0; }
  static uint32_t ColumnOf(uint64_t slot) { return static_cast<uint32_t>(slot >> kColumnShift) & (kMaxTables - 1); }
  PmPtr PointerOf(uint64_t slot) const;

  const RegionSet* const regions_;
  const uint64_t mask_;             // number of buckets, a power of two, minus one
  HugeArray<Bucket> buckets_;       // followed by the filter words, eight per cache line
  mutable HugeArray<Bucket> copy_;  // for other processes
  mutable std::atomic<uint64_t> copy_offset_{0};
  const uint64_t max_used_;
  bool is_attached_ = false;  // the memory is another process', and may be in use for something else if this reader has expired
  uint64_t used_ = 0;         // number of slots in use; accessed by the adding thread only
  // The hash and the bucket of the last addition. All buckets from BucketOf(last_hash_) up to that bucket are full, so an
  // addition with the same hash starts its search there.
  uint64_t last_hash_ = 0;
  uint64_t last_bucket_ = 0;  // BucketOf(0) before the first addition
};

// Adds the entries of one table after another, and starts a new index when the current one is full.
// Thread safety: none; the flush thread's.
class L0IndexWriter {
 public:
  // `table_entries`: maximum of a usual table.
  L0IndexWriter(const RegionSet* regions, uint64_t table_entries);

  struct Table {
    std::shared_ptr<const L0Index> index;  // null: no index contains all of the table's entries
    uint32_t column = 0;
  };

  // Later indexes are taken from this heap, and nothing is added to those of before. Returns false if that was so already.
  bool Share(SharedHeap* heap) {
    if (std::exchange(heap_, heap) == heap) return false;
    index_.reset();
    return true;
  }
  // Begins a flush that makes `tables` tables of `entries` entries in all. New indexes are sized for tables of the mean size.
  void BeginFlush(uint64_t entries, uint64_t tables) {
    usual_entries_ = std::clamp(std::max(entries, kLeastEntries) / tables, uint64_t{1}, table_entries_);
  }
  // Starts a table of about `entries` entries. `order`: of the table's family.
  void Begin(uint64_t entries, const KeyOrder& order);
  // `hash`: KeyHash of the entry's key.
  void Add(uint64_t hash, PmPtr entry);
  // Adds the remaining entries. Returns the index and column of the table; a null index if the table is incomplete.
  Table Finish();

 private:
  struct Pending {
    uint64_t hash;
    PmPtr entry;
  };
  // Number of additions whose cache lines are being prefetched.
  static constexpr size_t kPending = 32;
  // Upper bound of an index's capacity, unless one table is larger. Such an index takes 18 MiB.
  static constexpr uint64_t kIndexEntries = 1 << 20;
  // Minimum table size for the estimate. A table that Flush rotated early says little about the next one.
  static constexpr uint64_t kLeastEntries = 1024;

  void AddPending(const Pending& pending);

  const RegionSet* const regions_;
  const uint64_t table_entries_;
  SharedHeap* heap_ = nullptr;
  uint64_t usual_entries_ = 0;  // of a table of this flush; 0: not known
  std::shared_ptr<L0Index> index_;
  uint32_t next_column_ = 0;
  bool complete_ = false;         // all entries of this table have been added so far
  std::vector<Pending> pending_;  // a ring once it has kPending elements
  size_t oldest_ = 0;             // index of the oldest element in the ring
};

}  // namespace braiddb
