// HashIndex: a persistent hash index from key signatures to log entries, by extendible hashing.
//
// ORIGIN         HiKV (Xia, Jiang, Xiong, Sun: "HiKV: A Hybrid Index Key-Value Store for DRAM-NVM Memory Systems", ATC '17): the
//                partitioned hash index of section 3.3, and the ordered-write consistency of section 3.4. HiKV's table has a
//                fixed size. Pages with a depth each (Fagin et al., TODS '79; CCEH, FAST '19) let this one grow and shrink page
//                by page. HiKV's entries have 16 bytes, of which eight are the signature. Here 12 bits of the signature share a
//                word with the address, so each change is one atomic store of eight bytes, and a line has twice as many entries.
// LAYOUT         HashRoot at the index's LevelPlace in region 0. Pages (hash_page.h) lie in segments of their own
//                (index/leaf_space.h). A page of depth d has all entries whose signatures begin with its d bits of prefix. The
//                first six bits (one in builds for crash tests) are the partition. The directories, from prefixes to pages, are
//                in DRAM and derived from the pages.
// COMMIT POINT   One 8-byte store for each operation: a slot (add, replace, remove); a page's depth (split in place); the
//                clearing of the old page's state (split by copying); the new page's state (join, first page of a partition).
// PERSIST ORDER  A new page: P1 its slots, prefix and link; a fence  P2 its state. So a valid page has its contents. [CC-74]
//                Split in place: P1 a new page with the upper half, one bit deeper  P2 the old page's depth. [CC-75]
//                Split by copying: P1 two new pages, one bit deeper  P2 the old page's state is cleared. [CC-75] This is the way
//                for pages with overflow pages, and after kMaxSplits splits in place.
//                Join: P1 a new page, one bit less deep  P2 the states of the two old pages are cleared. [CC-75] Only then is
//                their space reused.
//                Changes of slots have no order among them. Their lines are durable after the caller's next fence.
// RECOVERY       Of two valid pages that overlap, the one with the smaller depth counts: it is the page before a split or behind
//                a join that a crash cut short. Open clears the states of the other pages. All blocks that are in no counting
//                page are free, so no space leaks. [CC-42] Open flushes the first line of every block: a killed process may have
//                stored a state without its flush. FlushAll does the same for all slots. [CC-46]
// CONCURRENCY    A writer locks the partition of its signature. A reader takes no lock: after it has read a page, it checks that
//                the directory still leads to the page, and otherwise starts over. A split changes the directory before slots of
//                the old page are reused. A split or join reads the keys of the entries that it moves. Removed pages are reused
//                after all readers inside epochs have left.
// LIFETIME       A replaced directory stays until the index is closed; together they are smaller than the current ones.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "braiddb/slice.h"
#include "braiddb/status.h"
#include "hash_index/hash_page.h"
#include "index/leaf_space.h"
#include "index/level_place.h"
#include "index/link.h"
#include "util/epoch.h"
#include "util/prefetch.h"

namespace braiddb {

struct HashRoot {
  static constexpr uint64_t kMagic = 0x31534148'44415242;  // "BRADHAS1"

  uint64_t magic;        //  0
  uint64_t tree_id;      //  8  hash of the database's id, which is random, and of the family's number
  uint64_t page_bytes;   // 16
  uint64_t reserved[4];  // 24  zero
  uint64_t checksum;     // 56  XXH3 of bytes [0, 56)
  uint64_t used;         // 64  bit p: partition p has pages
};
static_assert(sizeof(HashRoot) == 72 && offsetof(HashRoot, used) == kCacheLine);
static_assert(sizeof(HashRoot) <= LevelPlace::kBytes);

// How far pages may lie in a segment of an index: in the second line of the segment's first block. So an open reads no blocks
// that were never used, which on tmpfs and in sparse files would allocate them.
// COMMIT POINT   The mark, which is durable before a block behind the last mark is written. [CC-74]
// RECOVERY       A mark without the right hash counts as all blocks: the segment is new, or the mark is damaged.
struct HashMark {
  uint64_t word;  // bits 0–31 number of blocks; bits 32–63 a hash of this number, the tree and the segment's generation

  static constexpr uint64_t kOffset = kCacheLine;
  static uint64_t Make(uint64_t tree_id, uint64_t generation, uint64_t blocks) {
    return Mix64(Mix64(tree_id ^ generation) ^ blocks) >> 32 << 32 | blocks;
  }
  // The number of blocks to read, of `blocks` that the segment has. `segment`: its first byte.
  static uint64_t Blocks(const uint8_t* segment, uint64_t tree_id, uint64_t generation, uint64_t blocks) {
    const uint64_t word = LoadRelaxed(reinterpret_cast<const uint64_t*>(segment + kOffset));
    const uint64_t marked = word & UINT32_MAX;
    return word == Make(tree_id, generation, marked) && marked <= blocks ? marked : blocks;
  }
};

// Returns true if the root is undamaged and belongs to the family with this number.
bool IsHashRoot(const HashRoot& root, uint64_t database_id, uint64_t number);

// HashRoot::tree_id of the index of this database and family.
uint64_t HashTreeId(uint64_t database_id, uint64_t number);

// The signature of a user key in an index. Part of the format. tree_id is a secret: who chooses keys cannot choose signatures.
uint64_t KeySignature(uint64_t tree_id, Slice key);

// What an index knows of its entries' keys. Thread-safe.
class HashKeys {
 public:
  virtual ~HashKeys() = default;
  // Sets *signature to that of the entry's key. False: no entry can be there.
  virtual bool SignatureOf(PmPtr entry, uint64_t* signature) const = 0;
  virtual void Prefetch(PmPtr entry) const = 0;
};

struct HashIndexParts {
  RegionSet* regions;
  SegmentAllocator* segments;
  EpochManager* epochs;
  const HashKeys* keys;
  LevelPlace place = {};
};

// A change of one entry: it is added (`from` is null), removed (`to` is null), or replaced by another one with the same key.
struct HashChange {
  uint64_t signature;
  PmPtr from;
  PmPtr to;
};

// Finds which of an index's valid pages count, for Open and for checks.
// COST  A sort, and one pass over the pages for each of their depths.
class CountingPages {
 public:
  struct Page {
    PmPtr place;
    HashPage::Range range;
  };
  // `pages`: all valid pages that are no overflow pages, in any order. `used`: HashRoot::used.
  CountingPages(std::vector<Page> pages, uint64_t used);

  // Sorted by prefix.
  const std::vector<Page>& counting() const { return counting_; }
  // The pages that a crash left, whose states are to be cleared.
  const std::vector<Page>& others() const { return others_; }
  // Null if the counting pages cover all signatures of each partition that has a page; otherwise what is wrong.
  const char* damage() const { return damage_; }

 private:
  std::vector<Page> counting_;
  std::vector<Page> others_;
  const char* damage_ = nullptr;
};

// Thread safety: all methods may be called concurrently after Open returned.
class HashIndex {
 public:
  static constexpr uint32_t kPartitionBits = kCrashTest ? 1 : 6;
  static constexpr uint32_t kPartitions = 1 << kPartitionBits;

  // Creates an empty index. A crash in this call is a crash in the creation of the database or family.
  static Status Create(RegionSet* regions, SegmentAllocator* segments, const LevelPlace& place = {});
  // Reads the first line of each page on `threads` threads, and builds the directories. Corruption: the root or a page is
  // damaged.
  static Status Open(const HashIndexParts& parts, uint32_t threads, std::unique_ptr<HashIndex>* result);

  // Applies changes in any order. The changed lines are flushed; the caller's next fence makes them durable. NoSpace,
  // MemoryLimit: some of the changes were not applied. REQUIRES: removed and replaced entries are there, and added ones are not.
  Status Apply(std::span<const HashChange> changes);
  // Joins neighboring pages with few entries. Durable.
  Status Shrink();
  // Flushes all pages and waits. Call before the first change of a job that a killed process has begun. [CC-46]
  Status FlushAll();

  // Prefetches what VisitEntries reads first.
  void Prefetch(uint64_t signature) const {
    const HashPage* const page = Find(signature).page;
    if (page == nullptr) return;
    braiddb::Prefetch(page->buckets[HashPage::FirstBucket(signature)]);
    braiddb::Prefetch(page->buckets[HashPage::SecondBucket(signature)]);
  }
  // Calls `visit(PmPtr)` for each entry with this signature, and for some others, in any order. If the page changes meanwhile,
  // entries may be visited again. Visits each entry that is there from the beginning to the end. Returns true if no entry of the
  // partition was removed or replaced meanwhile: then all that were visited last were there at one moment. REQUIRES: an epoch
  // guard. Entries may have been removed since.
  template <class Visit>
  bool VisitEntries(uint64_t signature, const Visit& visit) const;
  // Calls `visit(PmPtr, bits, count)` for each entry of a partition, in any order, while no writer changes the partition. The
  // first `count` bits of the entry's signature are those of `bits`.
  template <class Visit>
  void VisitPartition(uint32_t partition, const Visit& visit) const;

  struct Stats {
    uint64_t pages = 0;  // with overflow pages
    uint64_t overflow_pages = 0;
    uint64_t free_pages = 0;
    uint64_t splits = 0;
    uint64_t joins = 0;
  };
  Stats GetStats() const;
  // DRAM of the directories in bytes.
  uint64_t DramBytes() const;
  // Number of cache lines that changes have flushed since the open.
  uint64_t flushed_lines() const { return flushed_lines_.load(std::memory_order_relaxed); }

  uint64_t tree_id() const { return root_->tree_id; }
  // Returns true if the segment has pages of this index. REQUIRES: no change is running.
  bool Owns(const Segment* segment) const { return space_->Owns(segment); }
  // Releases all segments of the index, which destroys it. REQUIRES: no thread uses the index; no other call follows.
  Status ReleaseSegments();

 private:
  // From the bits behind the partition's to pages.
  struct Directory {
    explicit Directory(uint32_t bits)
        : depth(kPartitionBits + bits), cells(std::make_unique<std::atomic<uint64_t>[]>(uint64_t{1} << bits)) {}
    uint64_t size() const { return uint64_t{1} << (depth - kPartitionBits); }
    std::atomic<uint64_t>& CellOf(uint64_t signature) const {
      return cells[depth == kPartitionBits ? 0 : signature << kPartitionBits >> (64 - depth + kPartitionBits)];
    }
    const uint32_t depth;  // of the deepest page that it can have
    // Bits 0–51: the PmPtr of the page; bits 52–57: its base; bit 63: it has overflow pages. 0: the partition has no page. So a
    // search does not read the first line of a page.
    const std::unique_ptr<std::atomic<uint64_t>[]> cells;
  };
  struct alignas(kCacheLine) Partition {
    std::atomic<Directory*> directory{nullptr};
    std::atomic<uint64_t> removals{0};  // incremented before an entry is removed or replaced
    mutable std::mutex mutex;
    std::vector<std::unique_ptr<Directory>> directories;  // the last one is current
    uint64_t pages = 0;                                   // without overflow pages
    // The overflow slot that was last found by a search, and its page. Changes of many versions of one key have the order of the
    // slots, so the next search begins here.
    PmPtr hint_page;
    uint32_t hint_slot = 0;
    bool has_holes = true;  // overflow slots before the hint may be free
    // A page that was not worth a split, and the number of additions to it without another look.
    uint64_t unsplit_cell = 0;
    uint32_t unsplit_additions = 0;
  };
  struct Found {
    uint64_t cell = 0;
    HashPage* page = nullptr;  // null: there is none
    PmPtr place() const { return HashPage::EntryOf(cell); }
    uint32_t base() const { return static_cast<uint32_t>(cell >> HashPage::kTagShift & 0x3f); }
    bool has_overflow() const { return (cell & kHasOverflow) != 0; }
  };
  static constexpr uint64_t kHasOverflow = uint64_t{1} << 63;
  struct Entry {
    uint64_t signature;
    PmPtr place;
  };
  // A page with its overflow pages in DRAM, before it is written.
  struct Chain {
    std::vector<HashPage> pages;
    std::vector<PmPtr> places;
    uint32_t depth = 0;  // also the base
    uint64_t prefix = 0;
  };

  HashIndex(const HashIndexParts& parts, HashRoot* root);

  HashPage* At(PmPtr page) const { return parts_.regions->Resolve<HashPage>(page); }
  uint64_t LinkOwner(PmPtr page) const { return page.raw() ^ root_->tree_id; }
  // The next overflow page; null if there is none. A damaged link counts as null, and is noted (RegionSet::damage_seen).
  PmPtr NextOf(PmPtr place, const HashPage& page) const {
    const uint64_t link = LoadAcquire(&page.next);
    const PmPtr next = LinkTarget(link);
    if (__builtin_expect(IsLink(LinkOwner(place), link) && (next.is_null() || parts_.regions->Holds(next)), 1)) return next;
    parts_.regions->NoteDamage();
    return PmPtr();
  }
  Persistence* persistence() const { return parts_.regions->persistence(); }
  Found Find(uint64_t signature) const {
    const Directory* const directory = partitions_[signature >> (64 - kPartitionBits)].directory.load(std::memory_order_acquire);
    return FoundAt(directory->CellOf(signature).load(std::memory_order_acquire));
  }
  Found FoundAt(uint64_t cell) const { return cell == 0 ? Found() : Found{cell, At(HashPage::EntryOf(cell))}; }

  // Open (hash_index_open.cc).
  Status Rebuild(uint32_t threads);
  Status BuildDirectories(const std::vector<CountingPages::Page>& pages);

  // Changes. REQUIRES for all: the partition's mutex is held.
  Status ApplyOne(const HashChange& change);
  uint64_t* FindSlot(Partition* partition, const Found& found, uint64_t signature, PmPtr entry) const;
  // Returns a free slot in the signature's buckets, or in the overflow pages; null if there is none.
  uint64_t* FreeInBuckets(const Found& found, uint64_t signature) const;
  uint64_t* FreeInOverflow(Partition* partition, const Found& found) const;
  // Returns the first slot of the overflow pages for which `matches(word)`, from the hint on, then, if `wraps`, from the
  // beginning; null if there is none.
  template <class Matches>
  uint64_t* FindInOverflow(Partition* partition, const Found& found, bool wraps, const Matches& matches) const;
  bool HasHint(const Partition& partition, const Found& found) const {
    return !partition.hint_page.is_null() && LoadRelaxed(&At(partition.hint_page)->prefix) == found.place().raw();
  }
  void FlushLine(const void* address);
  // Stores the entry into a free slot; if there is none, first splits the page or adds an overflow page.
  Status Add(uint64_t signature, PmPtr entry);
  bool MaySplit(const Partition& partition, const Found& found) const;
  // The same, answered without a look for the next additions if the answer is no.
  bool IsToSplit(Partition* partition, const Found& found) const;
  Status AddFirstPage(uint64_t signature);
  Status SplitInPlace(const Found& found);
  Status SplitByCopying(const Found& found);
  Status AddOverflow(const Found& found);
  // *has_joined: set to true if the pages were joined.
  Status Join(Partition* partition, const Found& left, const Found& right, bool* has_joined);
  // Appends the entries of a page and of its overflow pages. Corruption: no entry with its slot's tag is there.
  Status Collect(const Found& found, std::vector<Entry>* entries) const;
  uint32_t Count(const HashPage& page) const;
  // Makes a page of entries, and overflow pages for those that find no slot.
  Chain MakeChain(uint32_t depth, uint64_t prefix, const std::vector<Entry>& entries) const;
  // Allocates the blocks of chains; all or none.
  Status Allocate(std::span<Chain> chains);
  // Makes the mark of the block's segment cover the block, durably.
  Status Mark(PmPtr block);
  // Writes the pages of chains, durably. [CC-74]
  Status Write(std::span<Chain> chains);
  // Stores the page's state and persists it.
  [[nodiscard]] bool SetState(PmPtr place, uint64_t state);
  // Prepares the directory for pages of this depth. May throw std::bad_alloc; then nothing has changed.
  static void PrepareDirectory(Partition* partition, uint32_t depth);
  // Makes the directory lead to the page for all of its signatures.
  static void Publish(Partition* partition, PmPtr place, const HashPage::Range& range, bool has_overflow) noexcept;
  static void Publish(Partition* partition, const Chain& chain) noexcept {
    Publish(partition, chain.places[0], {chain.depth, chain.depth, chain.prefix}, chain.pages.size() > 1);
  }
  // Takes empty overflow pages out of the page's chain, durably.
  Status UnlinkEmpty(Partition* partition, const Found& found);
  // Frees the blocks of a page and of its overflow pages, or of one page, when no reader is inside any more.
  void Retire(const Found& found) noexcept;
  void RetireBlock(PmPtr place) noexcept;
  // REQUIRES: no partition's mutex is held.
  void Reclaim();
  Partition* PartitionOf(uint64_t signature) { return &partitions_[signature >> (64 - kPartitionBits)]; }
  static Status NoMemory();
  Status Damaged() const;

  // Calls `visit(slot)` for each used slot of the page and of its overflow pages.
  template <class Visit>
  void VisitSlots(const Found& found, const Visit& visit) const;

  const HashIndexParts parts_;
  HashRoot* const root_;
  std::shared_ptr<LeafSpace> space_;  // shared with the reclaimers of retired pages
  std::array<Partition, kPartitions> partitions_;
  std::mutex used_mutex_;                               // for HashRoot::used and marks_
  std::unordered_map<const Segment*, uint64_t> marks_;  // blocks by HashMark
  std::atomic<bool> retired_{false};                    // pages were retired since the last Reclaim
  std::atomic<uint64_t> pages_{0};
  std::atomic<uint64_t> overflow_pages_{0};
  std::atomic<uint64_t> splits_{0};
  std::atomic<uint64_t> joins_{0};
  std::atomic<uint64_t> flushed_lines_{0};
};

template <class Visit>
bool HashIndex::VisitEntries(uint64_t signature, const Visit& visit) const {
  // acquire: entries that were added before the last removal that is counted are visible. A slot's acquire load that sees a
  // removal makes its count visible to the load at the end.
  const std::atomic<uint64_t>& removals = partitions_[signature >> (64 - kPartitionBits)].removals;
  const uint64_t removed = removals.load(std::memory_order_acquire);
  for (Found found = Find(signature); found.page != nullptr;) {
    const HashPage& page = *found.page;
    const uint64_t tag = HashPage::TagOf(found.base(), signature);
    const auto in_bucket = [&](const HashPage::Bucket& bucket) {
      for (const uint64_t& slot : bucket) {
        const uint64_t word = LoadAcquire(&slot);
        if ((word & HashPage::kTagMask) == tag && word != tag) visit(HashPage::EntryOf(word));
      }
    };
    const HashPage::Bucket& second = page.buckets[HashPage::SecondBucket(signature)];
    braiddb::Prefetch(second);
    in_bucket(page.buckets[HashPage::FirstBucket(signature)]);
    in_bucket(second);
    for (PmPtr more = found.has_overflow() ? NextOf(found.place(), page) : PmPtr(); !more.is_null();) {
      const HashPage& overflow = *At(more);
      for (const HashPage::Bucket& bucket : overflow.buckets) in_bucket(bucket);
      more = NextOf(more, overflow);
    }
    const Found now = Find(signature);
    if (now.cell == found.cell) break;
    found = now;  // the page was split or joined
  }
  return removals.load(std::memory_order_relaxed) == removed;
}

template <class Visit>
void HashIndex::VisitSlots(const Found& found, const Visit& visit) const {
  const HashPage::Range range = found.page->range();
  PmPtr place = found.place();
  for (const HashPage* page = found.page;; page = At(place)) {
    for (const HashPage::Bucket& bucket : page->buckets) {
      for (const uint64_t& slot : bucket) {
        if (const uint64_t word = LoadRelaxed(&slot); range.IsUsed(word)) visit(word);
      }
    }
    place = NextOf(place, *page);
    if (place.is_null()) return;
  }
}

template <class Visit>
void HashIndex::VisitPartition(uint32_t partition, const Visit& visit) const {
  const std::lock_guard lock(partitions_[partition].mutex);
  const Directory& directory = *partitions_[partition].directory.load(std::memory_order_relaxed);
  for (uint64_t i = 0; i < directory.size();) {
    const Found found = FoundAt(directory.cells[i].load(std::memory_order_relaxed));
    if (found.page == nullptr) return;
    const HashPage::Range range = found.page->range();
    VisitSlots(found, [&](uint64_t slot) { visit(HashPage::EntryOf(slot), range.KnownBits(slot), range.known()); });
    i += uint64_t{1} << (directory.depth - range.depth);
  }
}

}  // namespace braiddb
