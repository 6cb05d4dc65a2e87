// MergeBatch: collects the pointer stores of one journal batch, and lets later steps of the batch see them before they are done.
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

// A tower is named by the PmPtr of its word 0.
class MergeBatch {
 public:
  MergeBatch(const RegionSet* regions, const SegmentAllocator* segments, MergeJournal* journal);

  // Value of a tower's word as it will be after the batch, tag bits included.
  uint64_t Load(PmPtr tower, uint32_t layer) const;
  PmPtr Next(PmPtr tower, uint32_t layer) const { return PmPtr(Load(tower, layer) & ~LogEntry::kTagBits); }
  void Store(PmPtr tower, uint32_t layer, uint64_t value);

  // Marks an entry (kDeadBit or kMovedBit), keeping its pointer for readers that are on it.
  void Mark(PmPtr entry, uint64_t bit);
  // The same of an entry that is marked already, and counted.
  void MarkAgain(PmPtr entry, uint64_t bit) { Store(TowerOf(entry), 0, Load(TowerOf(entry), 0) | bit); }

  // Whether `stores` more fit.
  bool HasRoom(uint64_t stores) const { return stores_.size() + stores <= kBatchStores; }
  bool empty() const { return stores_.empty(); }

  // Applies through the journal and starts anew. `progress` as MergeJournal::Apply.
  Status Commit(PmPtr progress, uint64_t* flushed_lines);

  static PmPtr TowerOf(PmPtr entry) { return entry + offsetof(LogEntry, next); }

 private:
  struct Slot {
    uint64_t address = 0;
    uint64_t value = 0;
  };
  // Fewer than a journal's record holds: what a batch looks up stays in the cache.
  static constexpr uint64_t kBatchStores = kCrashTest ? kJournalStores : 4096;
  static constexpr uint64_t kSlots = std::bit_ceil(uint64_t{2} * kBatchStores);
  static constexpr int kSlotBits = std::countr_zero(kSlots);
  uint64_t SlotFor(uint64_t address) const;

  const RegionSet* regions_;
  const SegmentAllocator* segments_;
  MergeJournal* journal_;
  std::vector<JournalStore> stores_;
  std::vector<Slot> pending_;  // open addressing by address
  std::vector<uint64_t> used_slots_;
  std::vector<PmPtr> marked_;
};

}  // namespace braiddb
