// MergeBatch: collects the pointer stores of one journal batch. Later steps of the batch read the pending stores.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "braiddb/status.h"
#include "compaction/merge_journal.h"
#include "log/log_entry.h"
#include "pmem/region_set.h"
#include "pmem/segment_allocator.h"

namespace braiddb {

// GOAL   Steps of a merge compute their stores as if each earlier store were done, while persistent memory keeps the state before
//        the batch.
// STEPS  1 Store and Mark append to the list of stores and to a hash table of pending values  2 Load reads the hash table first,
//        then persistent memory  3 Commit gives the list to the journal, and clears both.
// CRASH  Before Commit nothing is stored to persistent memory. Commit is atomic (merge_journal.h).
// WHAT A READER SEES  Before Commit the old pointers. During Commit each store becomes visible on its own, in the order of the
//                     calls.
// CONCURRENCY  One thread uses a batch.
// A tower is identified by the PmPtr of its word 0.
class MergeBatch {
 public:
  MergeBatch(const RegionSet* regions, const SegmentAllocator* segments, MergeJournal* journal);

  // The value that the word will have after the batch, tag bits included.
  uint64_t Load(PmPtr tower, uint32_t layer) const;
  PmPtr Next(PmPtr tower, uint32_t layer) const { return PmPtr(Load(tower, layer) & ~LogEntry::kTagBits); }
  void Store(PmPtr tower, uint32_t layer, uint64_t value);

  // Sets kDeadBit or kMovedBit. Keeps the entry's pointer for readers that stand on the entry. Commit counts the entry as
  // obsolete in its segment.
  void Mark(PmPtr entry, uint64_t bit);
  // Sets another bit of an entry that is marked and counted already.
  void MarkAgain(PmPtr entry, uint64_t bit) { Store(TowerOf(entry), 0, Load(TowerOf(entry), 0) | bit); }

  // Whether `stores` more stores fit into this batch.
  bool HasRoom(uint64_t stores) const { return stores_.size() + stores <= kBatchStores; }
  bool empty() const { return stores_.empty(); }

  // Applies the batch through the journal and clears it. `progress`: see MergeJournal::Apply.
  Status Commit(PmPtr progress, uint64_t* flushed_lines);

  static PmPtr TowerOf(PmPtr entry) { return entry + kTowerOffset; }

 private:
  struct Slot {
    uint64_t address = 0;
    uint64_t value = 0;
  };
  // Smaller than a journal record, so that the hash table of pending stores stays in the CPU cache.
  static constexpr uint64_t kBatchStores = kCrashTest ? kJournalStores : 4096;
  static constexpr uint64_t kSlots = std::bit_ceil(uint64_t{2} * kBatchStores);
  static constexpr int kSlotBits = std::countr_zero(kSlots);
  uint64_t SlotFor(uint64_t address) const;

  const RegionSet* regions_;
  const SegmentAllocator* segments_;
  MergeJournal* journal_;
  std::vector<JournalStore> stores_;
  std::vector<Slot> pending_;  // open-addressed hash table, keyed by address
  std::vector<uint64_t> used_slots_;
  std::vector<PmPtr> marked_;
};

}  // namespace braiddb
