// BraidedList: a sorted list of log entries over several regions, with the layers of a skiplist (Braided SkipList, ListDB 3.3).
// This class reads lists; compaction/ changes them.
//
// STRUCTURE  The bottom layer links the entries of all regions, in entry order. An upper layer links entries of one region, so
//            there is one upper list per region and layer. A search descends through the upper lists of the reader's region and
//            touches other regions at the bottom only. If its own region has few entries, the search climbs the towers of other
//            regions. The bottom list is the truth; upper layers are hints.
//              layer 2  head[0] ──────────────────► D ──────────► end          region 0
//                       head[1] ─────────► C ───────────────────► end          region 1
//              layer 1  head[0] ──► A ────────────► D ──────────► end
//                       head[1] ─────────► C ──────────► E ─────► end
//              layer 0  head[0] ──► A ──► B ──► C ──► D ──► E ──► end          A, D in region 0; B, C, E in region 1
//
// LAYOUT     A head is a tower of kMaxHeight words per region. Each word, and each next word of an entry, is a PmPtr with tag
//            bits (LogEntry). The bottom list begins at word 0 of region 0; word 0 of the other heads is 0.
// OBLIVIOUS  With ListKind::kOblivious the upper layers link the entries of all regions, from region 0's head. The heads of
//            other regions stay empty. RegionSet::ListRegion maps each region to the one whose upper lists it uses.
// RECOVERY   The owner of the heads decides which lists count: the MANIFEST for tables, the merge journal for the last level
//            [CC-3] [CC-4]. Readers check that each pointer lies in a region, and detect cycles by counting steps. Damage ends
//            a search, and RegionSet::damage_seen tells callers.
// CONCURRENCY  Readers take no lock. Writers store single words with release: the flush job before the list is visible, later
//            one merge at a time. While a table is merged, its list may lead into the last level. WHY A READER IS SAFE: entries
//            are unlinked by changing their predecessors' words only, so from each entry a reader can reach all successors that
//            the entry had, and the order is always ascending.
// LIFETIME   Entries stay readable while a guard or a pin of an epoch holds the view that the list belongs to.
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

  // Sets the head tower of `region`: kMaxHeight words, in DRAM or in persistent memory, which must outlive the list.
  void SetHead(uint32_t region, uint64_t* tower) { heads_[region] = tower; }
  uint64_t* head(uint32_t region) const { return heads_[region]; }

  // Returns the first entry at or after the target; null if there is none. `trace`, if any, counts the visited nodes and waits
  // for the injected read latency.
  LogEntry* FindGreaterOrEqual(const SearchKey& target, LookupTrace* trace = nullptr) const {
    return FindFrom(Home(), target, trace);
  }
  // Returns the last entry before the target; null if there is none.
  LogEntry* FindLess(const SearchKey& target) const { return FindLessFrom(Home(), target); }

  // The start of a search: a tower that is before the target, in the upper lists of `region` (a ListRegion), and the layer to
  // begin with. `bound`, if not null, is an entry at or after the target, so the search need not compare it.
  struct Start {
    uint32_t region;
    const uint64_t* tower;
    uint32_t layer;
    uint32_t reader;  // the reader's home region
    PmPtr bound = PmPtr();
  };
  // The start at the head of the calling thread's home region.
  Start Home() const {
    const uint32_t region = regions_->count() == 1 ? 0 : regions_->HomeRegion();
    return HeadOf(regions_->ListRegion(region), region);
  }
  Start HeadOf(uint32_t region, uint32_t reader) const { return {region, heads_[region], kMaxHeight - 1, reader}; }
  // As FindGreaterOrEqual and FindLess, from a start. REQUIRES: the start's tower is before the target.
  LogEntry* FindFrom(const Start& start, const SearchKey& target, LookupTrace* trace) const;
  LogEntry* FindLessFrom(const Start& start, const SearchKey& target) const;
  // Returns the first entry from `entry` on that has the target's key and is not dead; null if there is none. `entry` may be
  // null.
  const LogEntry* PickLive(const LogEntry* entry, const SearchKey& target, LookupTrace* trace) const;

  // The last and the first entry of the list; null if it is empty.
  LogEntry* FindLast() const;
  LogEntry* First() const { return Load(heads_[0], 0); }
  // The successor on the bottom layer; null at the end.
  LogEntry* Next(const LogEntry* entry) const { return Load(entry->next, 0); }
  // The number of entries, dead ones included. Exact up to some thousands; above, it follows from the number of nodes of a taller
  // layer, with a standard deviation of about 1 %. Reads some 45,000 nodes at most.
  uint64_t EstimateEntries() const;
  // Returns the newest entry of target.key that is not dead and whose sequence number is at most target.sequence; null if there
  // is none.
  const LogEntry* Find(const SearchKey& target, LookupTrace* trace) const;

  // Returns the entry to which word `layer` of a tower leads; null at the end. A word that leads outside the regions is damage:
  // returns null and calls RegionSet::NoteDamage. acquire: pairs with the release of the store that linked the entry.
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
  // Returns the tower for the search of layer 0, after the upper layers of region `home` have led to `tower`. Only region 0's
  // head begins the bottom list, so it replaces the other heads.
  const uint64_t* BottomStart(const uint64_t* tower, uint32_t home) const { return tower == heads_[home] ? heads_[0] : tower; }
  // Returns the last entry for which `before` is true. REQUIRES: `before` is true up to some entry and false from there on.
  template <class Before>
  LogEntry* LastWhere(const Start& start, const Before& before) const;

  const RegionSet* regions_;
  const KeyOrder* order_;
  uint64_t* heads_[kMaxRegions] = {};
};

}  // namespace braiddb
