// ListBuilder: links log entries, given in order, into a new braided list where they lie.
#pragma once

#include <cstdint>
#include <vector>

#include "log/log_entry.h"
#include "lsm/pm_table.h"
#include "pmem/region_set.h"
#include "util/mutant.h"

namespace braiddb {

// GOAL   From entries in order to a list of L0, without copying and without flush instructions (ListDB 3.2, "Flush without
//        clflush").
// STEPS  Each entry becomes the successor of the last entry below (bottom), and of the last entry of its region (oblivious lists:
//        of all regions) on each of its upper layers.
// CRASH  Anywhere: the pointers mean nothing until a checkpoint has made them durable and the MANIFEST lists the table; until
//        then recovery rebuilds the list from the entries and ignores the pointers. [CC-3]
// COST   height stores per entry, no fence.
class ListBuilder {
 public:
  // Links into the head towers of `table`.
  ListBuilder(const RegionSet* regions, PmTable* table) : regions_(regions), table_(table), tails_(table->heads().size()) {
    for (uint32_t region = 0; region < regions->count(); ++region) {
      for (uint32_t layer = 0; layer < kMaxHeight; ++layer) tails_[region * kMaxHeight + layer] = table->list.head(region);
    }
    bottom_ = table->list.head(0);
  }

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

  // An entry that nobody can see: marked dead instead of linked.
  static void Drop(LogEntry* entry) { StoreRelaxed(&entry->next[0], LogEntry::kDeadBit); }

  // Adds the whole list of another builder, whose entries all come after this one's. `next` must not be used afterwards.
  void Join(const PmTable& next_table, const ListBuilder& next) {
    const uint64_t first = LoadRelaxed(next_table.list.head(0));
    if (next_table.entries == 0) return;
    StoreRelaxed(&bottom_[0], first);
    bottom_ = next.bottom_;
    for (uint32_t region = 0; region < regions_->count(); ++region) {
      for (uint32_t layer = 1; layer < kMaxHeight; ++layer) {
        const uint32_t at = region * kMaxHeight + layer;
        if (next.tails_[at] == next_table.list.head(region)) continue;  // nothing on that layer
        StoreRelaxed(&tails_[at][layer], LoadRelaxed(&next_table.list.head(region)[layer]));
        tails_[at] = next.tails_[at];
      }
    }
    table_->entries += next_table.entries;
  }

  // Ends every list. The caller publishes the table with a release.
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
  std::vector<uint64_t*> tails_;  // [region][layer]: tower to link the next entry to
  uint64_t* bottom_;
};

}  // namespace braiddb
