// ListBuilder: links log entries, in ascending order, into a new braided list, in place.
#pragma once

#include <cstdint>
#include <vector>

#include "log/log_entry.h"
#include "lsm/pm_table.h"
#include "pmem/region_set.h"
#include "util/mutant.h"

namespace braiddb {

// GOAL   An L0 list from sorted entries, without copies and without flush instructions (ListDB 3.2, "Flush without clflush").
// STEPS  Each entry becomes the successor of the last entry on the bottom layer, and of the last entry of its region on each of
//        its upper layers. With oblivious lists, upper layers link all regions.
// CRASH  Anywhere: the pointers mean nothing until a checkpoint has made them durable and the MANIFEST lists the table. Until
//        then recovery ignores the pointers and rebuilds the list from the entries. [CC-3]
// WHAT A READER SEES  Nothing: the stores are relaxed. The caller publishes the table with a release store after Finish.
// WHY NO FLUSH  Until the checkpoint the log is the durable form of the table. The checkpoint flushes whole extents, so it writes
//        each cache line once, with all pointers of its entries.
// COST   `height` stores per entry. No fence.
class ListBuilder {
 public:
  // Links the entries into the head towers of `table`.
  ListBuilder(const RegionSet* regions, PmTable* table) : regions_(regions), table_(table), tails_(table->heads().size()) {
    for (uint32_t region = 0; region < regions->count(); ++region) {
      for (uint32_t layer = 0; layer < kMaxHeight; ++layer) tails_[region * kMaxHeight + layer] = table->list.head(region);
    }
    bottom_ = table->list.head(0);
  }

  // REQUIRES: `entry` is larger than all entries before. The entry's own pointers are not written here: the next Append, or
  // Finish, writes them. Until then they are undefined, and no reader may follow them.
  void Append(LogEntry* entry, PmPtr pointer) {
    StoreRelaxed(&bottom_[0], pointer.raw());
    bottom_ = entry->next;
    uint64_t** tails = &tails_[regions_->ListRegion(pointer.region()) * kMaxHeight];
    const uint32_t height = entry->height();
    for (uint32_t layer = 1; layer < height; ++layer) {
      StoreRelaxed(&tails[layer][layer], pointer.raw());
      tails[layer] = entry->next;
    }
    ++table_->entries;
  }

  // Marks an invisible entry dead instead of linking it.
  static void Drop(LogEntry* entry) { StoreRelaxed(&entry->next[0], LogEntry::kDeadBit); }

  // Appends the list of another builder. All its entries must be larger than this builder's. `next` must not be used afterwards.
  void Join(const PmTable& next_table, const ListBuilder& next) {
    const uint64_t first = LoadRelaxed(next_table.list.head(0));
    if (next_table.entries == 0) return;
    StoreRelaxed(&bottom_[0], first);
    bottom_ = next.bottom_;
    for (uint32_t region = 0; region < regions_->count(); ++region) {
      for (uint32_t layer = 1; layer < kMaxHeight; ++layer) {
        const uint32_t at = region * kMaxHeight + layer;
        if (next.tails_[at] == next_table.list.head(region)) continue;  // no entry reaches this layer
        StoreRelaxed(&tails_[at][layer], LoadRelaxed(&next_table.list.head(region)[layer]));
        tails_[at] = next.tails_[at];
      }
    }
    table_->entries += next_table.entries;
  }

  // Terminates all lists. The caller publishes the table with a release store.
  void Finish() {
    if (BRAIDDB_MUTANT("list-end-left-out")) return;
    StoreRelaxed(&bottom_[0], 0);
    for (uint32_t region = 0; region < regions_->count(); ++region) {
      for (uint32_t layer = 1; layer < kMaxHeight; ++layer) StoreRelaxed(&tails_[region * kMaxHeight + layer][layer], 0);
    }
  }

 private:
  const RegionSet* regions_;
  PmTable* table_;
  std::vector<uint64_t*> tails_;  // [region][layer]: the tower that the next entry is linked to
  uint64_t* bottom_;
};

}  // namespace braiddb
