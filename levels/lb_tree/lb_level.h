// LbLevel: the last level of a column family as an LB+-Tree of log entries.
//
// LAYOUT  One entry of a leaf per version in the level. Log entries stay where they were written. Of their `next` words only the
//         dead mark is used.
#pragma once

#include <memory>

#include "index/ordered_level.h"
#include "levels/lb_tree/lb_entry_tree.h"

namespace braiddb {

// Cursors enter epoch guards of their own. Their users hold a pin and no guard.
class LbLevel final : public OrderedLevel {
 public:
  // Like LbEntryTree::Open, but keeps the segments of other trees.
  static Status Open(RegionSet* regions, SegmentAllocator* segments, EpochManager* epochs, const KeyOrder* order,
                     const LevelPlace& place, uint32_t threads, std::shared_ptr<LbLevel>* result);

  // As OrderedLevel::Find. Reads the versions of the key in the leaf of the target, and further leaves if none of them is found.
  const LogEntry* Find(const SearchKey& target, LookupTrace* trace) const override;
  std::unique_ptr<EntryCursor> NewCursor() const override;

  LbEntryTree* tree() const { return tree_.get(); }
  const EntryKeys& keys() const { return keys_; }

 private:
  LbLevel(const RegionSet* regions, const KeyOrder* order) : keys_(regions, order), order_(order) {}

  const EntryKeys keys_;
  const KeyOrder* const order_;
  std::unique_ptr<LbEntryTree> tree_;
};

}  // namespace braiddb
