// BraidedSkipList: the last level as one braided skiplist, with heads in persistent memory.
//
// LAYOUT        A SkipListHead per region, at the family's LevelPlace. Word 0 of region 0's head begins the bottom list.
// COMMIT POINT  Of each change: the record of a batch in the merge journal (compaction/merge_journal.h).
// PERSIST ORDER P1 the batch's record  P2 all its stores: next words, head words and the heads' checksums. [CC-4]
// RECOVERY      LastLevel::Open does the newest batch of an interrupted merge again. Afterwards the list is as behind a
//               complete batch on all layers, and VerifyHeads checks the heads.
// CONCURRENCY   One merge at a time changes the list. Readers take no lock (braided_list.h).
// LIFETIME      An object belongs to read views. A new index makes a new object over the same list; the old one lives until its
//               last view is released.
#pragma once

#include <xxhash.h>

#include <memory>
#include <utility>

#include "braiddb/status.h"
#include "index/level_place.h"
#include "index/ordered_level.h"
#include "skiplist/braided_list.h"
#include "skiplist/list_cursor.h"
#include "skiplist/tall_index.h"

namespace braiddb {

// The head of one region's lists.
struct SkipListHead {
  static constexpr uint64_t kMagic = 0x314c444941524221;  // "!BRAIDL1"
  uint64_t magic;
  uint64_t reserved[6];
  uint64_t checksum;  // XXH3 of next[]; changed in the same journal batch as next[]
  uint64_t next[kMaxHeight];

  static uint64_t ComputeChecksum(const uint64_t* words) { return XXH3_64bits_withSeed(words, 8 * kMaxHeight, kMagic); }
};
static_assert(offsetof(SkipListHead, checksum) == offsetof(SkipListHead, next) - 8);
static_assert(sizeof(SkipListHead) == 64 + 8 * kMaxHeight && offsetof(SkipListHead, next) == 64);
static_assert(sizeof(SkipListHead) <= LevelPlace::kBytes);

// Thread safety: immutable, except that a merge changes the words of the list.
class BraidedSkipList final : public OrderedLevel {
 public:
  // Persists empty heads. NoSpace: the objects cannot be allocated. REQUIRES: the MANIFEST does not list the family yet, so a
  // crash leaves heads that nothing reads.
  static Status Create(RegionSet* regions, const LevelPlace& place = {});
  // Opens the list without an index. Corruption: a head is missing or has no magic.
  static Status Open(const RegionSet* regions, const KeyOrder* order, std::shared_ptr<const BraidedSkipList>* result,
                     const LevelPlace& place = {});

  // Corruption: a head does not match its checksum. REQUIRES: the merge journal has been redone; before that, an interrupted
  // batch may have stored the words without the checksum.
  Status VerifyHeads() const;

  // Returns an object over the same list with a new index, for the next read view. `entries`: estimated number of entries.
  // `index_bytes`: bound of the index. `changes`: the changes that the last merge has recorded since the present index was
  // made; null if they are unknown. `stop`, `heap`: as for TallIndex. REQUIRES: no merge is running.
  std::shared_ptr<const BraidedSkipList> WithIndex(uint64_t entries, uint64_t index_bytes, const IndexChanges* changes = nullptr,
                                                   const std::atomic<bool>* stop = nullptr, SharedHeap* heap = nullptr) const;
  // Returns an object over the same list with this index.
  std::shared_ptr<const BraidedSkipList> With(TallIndex index) const {
    return std::shared_ptr<const BraidedSkipList>(new BraidedSkipList(list_, std::move(index)));
  }

  // The newest live version of the key, searched from the index's start.
  const LogEntry* Find(const SearchKey& target, LookupTrace* trace) const override {
    return list_.PickLive(list_.FindFrom(index_.Start(list_.Home().reader, target), target, trace), target, trace);
  }
  std::unique_ptr<EntryCursor> NewCursor() const override { return NewListCursor(&list_, &index_); }
  std::vector<uint64_t> Shared() const override { return index_.Shared(); }

  // For merges, checks and relocation: the list itself, and the index of this object.
  const BraidedList& list() const { return list_; }
  const TallIndex& index() const { return index_; }

 private:
  explicit BraidedSkipList(const BraidedList& list) : list_(list), index_(list) {}
  BraidedSkipList(const BraidedList& list, TallIndex index) : list_(list), index_(std::move(index)) {}

  const BraidedList list_;
  const TallIndex index_;
};

}  // namespace braiddb
