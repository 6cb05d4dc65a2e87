// BraidedSkipList: the last level as one braided skiplist with heads in persistent memory.
//
// LAYOUT  Per region one metadata object (MetadataSlot::kL1): SkipListHead. Only region 0's word 0 heads the bottom list.
// The list is changed by zipper compaction only (compaction/), through the merge journal: after any crash it is as before or as
// after a whole journal batch, on all layers.
#pragma once

#include <memory>

#include "braiddb/status.h"
#include "index/ordered_level.h"
#include "skiplist/braided_list.h"

namespace braiddb {

struct SkipListHead {
  static constexpr uint64_t kMagic = 0x314c444941524221;  // "!BRAIDL1"
  uint64_t magic;
  uint64_t reserved[7];
  uint64_t next[kMaxHeight];
};
static_assert(sizeof(SkipListHead) == 64 + 8 * kMaxHeight && offsetof(SkipListHead, next) == 64);

class BraidedSkipList final : public OrderedLevel {
 public:
  // Allocates and persists empty heads.
  static Status Create(RegionSet* regions);
  // Corruption if the heads are not there.
  static Status Open(const RegionSet* regions, const KeyOrder* order, std::unique_ptr<BraidedSkipList>* result);

  const LogEntry* Find(const SearchKey& target, VisitCounts* visits) const override { return list_.Find(target, visits); }
  std::unique_ptr<EntryCursor> NewCursor() const override { return list_.NewCursor(); }

  const BraidedList& list() const { return list_; }

 private:
  explicit BraidedSkipList(const BraidedList& list) : list_(list) {}

  BraidedList list_;
};

}  // namespace braiddb
