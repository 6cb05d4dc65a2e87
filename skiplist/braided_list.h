// BraidedList: a sorted list of log entries woven over the regions (Braided SkipList, ListDB 3.3).
//
// STRUCTURE  The bottom layer links every entry, whatever region it is in. Each upper layer links only entries of one region,
//            so there is one upper list per region and layer; a search descends through the lists of its own region and
//            touches other regions only at the bottom (and climbs their towers only where its own region has next to nothing).
//            Upper layers are hints: the bottom list is the truth. A head is a tower of kMaxHeight words per region; the bottom
//            list starts at region 0's word 0.
// OBLIVIOUS  Where RegionSet::ListRegion says so, the upper layers link entries of all regions too, from region 0's head: for
//            every region its lists are region 0's, and the other heads stay empty. Then layers say nothing of where a node is.
// CONCURRENCY  Readers take no lock. Writers (flush job before the list is seen, then one merge at a time) store single words
//            with release. A list of L0 may lead into L1 while it is merged; everything that was after a node stays reachable
//            from it.
#pragma once

#include <cstdint>

#include "index/key_order.h"
#include "index/ordered_level.h"
#include "log/log_entry.h"
#include "pmem/region_set.h"

namespace braiddb {

class BraidedList {
 public:
  BraidedList(const RegionSet* regions, const KeyOrder* order) : regions_(regions), order_(order) {}

  // Words of the head tower of `region`, kMaxHeight of them, in DRAM or in persistent memory; they must outlive the list.
  void SetHead(uint32_t region, uint64_t* tower) { heads_[region] = tower; }
  uint64_t* head(uint32_t region) const { return heads_[region]; }

  // First entry at or after target; null at the end. `visits` counts nodes and pays injected read latency; may be null.
  LogEntry* FindGreaterOrEqual(const SearchKey& target, LookupTrace* trace = nullptr) const {
    return FindFrom(Home(), target, trace);
  }
  // Last entry before target; null if there is none.
  LogEntry* FindLess(const SearchKey& target) const { return FindLessFrom(Home(), target); }

  // A tower before the target, in the lists of region `region` (a ListRegion), and the layer to search from; and an entry at or
  // after the target that need not be compared with it, if one is known.
  struct Start {
    uint32_t region;
    const uint64_t* tower;
    uint32_t layer;
    uint32_t reader;  // the reader's home region
    PmPtr bound = PmPtr();
  };
  Start Home() const {
    const uint32_t region = regions_->count() == 1 ? 0 : regions_->HomeRegion();
    return HeadOf(regions_->ListRegion(region), region);
  }
  Start HeadOf(uint32_t region, uint32_t reader) const { return {region, heads_[region], kMaxHeight - 1, reader}; }
  LogEntry* FindFrom(const Start& start, const SearchKey& target, LookupTrace* trace) const;
  LogEntry* FindLessFrom(const Start& start, const SearchKey& target) const;
  // Of the entries from `entry` on, the first of target's key that is not dead; null if there is none.
  const LogEntry* PickLive(const LogEntry* entry, const SearchKey& target, LookupTrace* trace) const;

  LogEntry* FindLast() const;
  LogEntry* First() const { return Load(heads_[0], 0); }
  LogEntry* Next(const LogEntry* entry) const { return Load(entry->next, 0); }
  // The newest entry of target.key that is not dead and has a sequence number <= target.sequence; null if there is none.
  const LogEntry* Find(const SearchKey& target, LookupTrace* trace) const;

  // The entry that word `layer` of a tower leads to; null at the end, and where the word leads outside the regions, which
  // RegionSet::damage_seen then says. acquire: pairs with the release that linked it.
  LogEntry* Load(const uint64_t* tower, uint32_t layer) const {
    const uint64_t raw = LoadAcquire(&tower[layer]) & ~LogEntry::kTagBits;
    if (raw == 0) return nullptr;
    if (__builtin_expect(regions_->Holds(PmPtr(raw)), 1)) return regions_->Resolve<LogEntry>(PmPtr(raw));
    regions_->NoteDamage();
    return nullptr;
  }

  const RegionSet& regions() const { return *regions_; }
  const KeyOrder& order() const { return *order_; }

 private:
  // The tower to search layer 0 from, after the upper layers of region `home` led to `tower`.
  const uint64_t* BottomStart(const uint64_t* tower, uint32_t home) const { return tower == heads_[home] ? heads_[0] : tower; }
  // The last entry for which `before` is true; it must be true up to some entry and false from there on.
  template <class Before>
  LogEntry* LastWhere(const Start& start, const Before& before) const;

  const RegionSet* regions_;
  const KeyOrder* order_;
  uint64_t* heads_[kMaxRegions] = {};
};

}  // namespace braiddb
