// NvLevel: the last level of a column family as an NV-Tree. Its elements refer to log entries.
//
// LAYOUT  One element per version in the level: the first eight bytes of the key and the PmPtr of the entry. Entries stay where
//         they were written. Of their `next` words only the dead mark is used.
#pragma once

#include <memory>

#include "index/ordered_level.h"
#include "leaf_tree/entry_keys.h"
#include "nvtree/nv_tree.h"

namespace braiddb {

// Cursors enter epoch guards of their own. Their users hold a pin and no guard.
class NvLevel final : public OrderedLevel {
 public:
  // Like NvTree::Open, but keeps the segments of other trees.
  static Status Open(RegionSet* regions, SegmentAllocator* segments, EpochManager* epochs, const KeyOrder* order,
                     const LevelPlace& place, uint32_t threads, std::shared_ptr<NvLevel>* result);

  // As OrderedLevel::Find. Reads every version of the key with a number at most the target's.
  const LogEntry* Find(const SearchKey& target, LookupTrace* trace) const override;
  std::unique_ptr<EntryCursor> NewCursor() const override;

  NvTree* tree() const { return tree_.get(); }
  const EntryKeys& keys() const { return keys_; }

 private:
  NvLevel(const RegionSet* regions, const KeyOrder* order) : keys_(regions, order), order_(order) {}

  const EntryKeys keys_;
  const KeyOrder* const order_;
  std::unique_ptr<NvTree> tree_;
};

}  // namespace braiddb
