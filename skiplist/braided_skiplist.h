// BraidedSkipList: the last level as one braided skiplist with heads in persistent memory.
//
// LAYOUT  Per region a SkipListHead at the family's LevelPlace. Only region 0's word 0 heads the bottom list.
// The list is changed by zipper compaction only (compaction/), through the merge journal: after any crash it is as before or as
// after a whole journal batch, on all layers.
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

struct SkipListHead {
  static constexpr uint64_t kMagic = 0x314c444941524221;  // "!BRAIDL1"
  uint64_t magic;
  uint64_t reserved[6];
  uint64_t checksum;  // of next[]; changed in the same journal batch
  uint64_t next[kMaxHeight];

  static uint64_t ComputeChecksum(const uint64_t* words) { return XXH3_64bits_withSeed(words, 8 * kMaxHeight, kMagic); }
};
static_assert(offsetof(SkipListHead, checksum) == offsetof(SkipListHead, next) - 8);
static_assert(sizeof(SkipListHead) == 64 + 8 * kMaxHeight && offsetof(SkipListHead, next) == 64);
static_assert(sizeof(SkipListHead) <= LevelPlace::kBytes);

class BraidedSkipList final : public OrderedLevel {
 public:
  // Persists empty heads. REQUIRES: the MANIFEST does not know of the family yet.
  static Status Create(RegionSet* regions, const LevelPlace& place = {});
  // Without an index. Corruption if the heads are not there.
  static Status Open(const RegionSet* regions, const KeyOrder* order, std::shared_ptr<const BraidedSkipList>* result,
                     const LevelPlace& place = {});

  // Corruption if a head does not match its checksum. After the merge journal was redone: a batch may have been cut off before.
  Status VerifyHeads() const;

  // The same list with a new index, for the next read view. REQUIRES: no merge is running. `entries`: an estimate.
  // `index_bytes`: at most. `changes`: what the merge that this list's index is older than noted in its NewChanges(); null: not
  // known. `stop`: as for TallIndex.
  std::shared_ptr<const BraidedSkipList> WithIndex(uint64_t entries, uint64_t index_bytes, const IndexChanges* changes = nullptr,
                                                   const std::atomic<bool>* stop = nullptr) const;

  const LogEntry* Find(const SearchKey& target, LookupTrace* trace) const override {
    return list_.PickLive(list_.FindFrom(index_.Start(list_.Home().reader, target), target, trace), target, trace);
  }
  std::unique_ptr<EntryCursor> NewCursor() const override { return NewListCursor(&list_, &index_); }

  const BraidedList& list() const { return list_; }
  const TallIndex& index() const { return index_; }

 private:
  explicit BraidedSkipList(const BraidedList& list) : list_(list), index_(list) {}
  BraidedSkipList(const BraidedList& list, TallIndex index) : list_(list), index_(std::move(index)) {}

  const BraidedList list_;
  const TallIndex index_;
};

}  // namespace braiddb
