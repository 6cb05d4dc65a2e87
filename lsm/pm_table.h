// PmTable: one table of L0: a flushed memtable, whose log entries are linked into a braided skiplist without a copy.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lsm/l0_index.h"
#include "lsm/memtable.h"
#include "lsm/operand_runs.h"
#include "skiplist/braided_list.h"

namespace braiddb {

// LAYOUT       The heads are in DRAM; a checkpoint copies them to the MANIFEST. The heads are never changed: zipper compaction
//              rewrites the pointers of entries and leaves the head. A reader of this table therefore reaches the last level
//              where the table has been merged.
// CONCURRENCY  Immutable after construction, except for the atomic members and the members whose comment names their writer.
class PmTable {
 public:
  PmTable(uint64_t id, uint64_t boundary, const RegionSet* regions, const KeyOrder* order, uint32_t family = 0)
      : list(regions, order), family_(family), id_(id), boundary_(boundary), heads_(uint64_t{regions->count()} * kMaxHeight) {
    for (uint32_t region = 0; region < regions->count(); ++region) list.SetHead(region, &heads_[region * kMaxHeight]);
  }
  PmTable(const PmTable&) = delete;
  PmTable& operator=(const PmTable&) = delete;

  uint32_t family() const { return family_; }
  // Tables that were flushed from memtables of one rotation have the same id and boundary.
  uint64_t id() const { return id_; }
  // Every write with a smaller sequence number is in this table, in a table with the same id, or in an older one.
  uint64_t boundary() const { return boundary_; }
  // No write with a smaller sequence number is in this table; 0: unknown. Set before readers get the table.
  uint64_t begin = 0;
  std::vector<uint64_t>& heads() { return heads_; }
  const std::vector<uint64_t>& heads() const { return heads_; }

  BraidedList list;
  // The index in which lookups find the table's entries. Null: lookups search the list. The index is null if equal keys may
  // differ in bytes, if there was no memory, and in a restored table until SetIndex. column(): the table's column in the index.
  const L0Index* index() const { return is_indexed_.load(std::memory_order_acquire) ? indexed_.index.get() : nullptr; }
  uint32_t column() const { return indexed_.column; }
  // Called at most once, with an index. Readers may have the table already.
  void SetIndex(L0IndexWriter::Table indexed) {
    indexed_ = std::move(indexed);
    is_indexed_.store(indexed_.index != nullptr, std::memory_order_release);
  }
  // True if the key filter, if any, contains the table's keys. If false, the merge that takes the table adds them, and lookups
  // search the table without the filter until then. Set before readers get the table.
  bool in_filter = true;
  // True in a restored table until the compaction thread walks along it to build its index and its sorted array. Accessed by
  // that thread only, once it runs.
  bool waits_for_index = false;
  uint64_t entries = 0;
  uint64_t log_bytes = 0;
  std::vector<std::shared_ptr<LogExtent>>
      extents;  // log extents of all tables with this id, kept in one of them; empty once checkpointed
  // A copied entry. The flush releases the log with the original, so the lookup cache must learn the new address.
  struct Move {
    const LogEntry* from;
    PmPtr to;
  };
  std::vector<Move> moves;  // only after a copying flush; empty once checkpointed
  std::atomic<bool> checkpointed{false};
  mutable OperandRuns operand_runs;

 private:
  const uint32_t family_;
  const uint64_t id_;
  const uint64_t boundary_;
  std::vector<uint64_t> heads_;
  L0IndexWriter::Table indexed_;  // immutable once is_indexed_ is true
  std::atomic<bool> is_indexed_{false};
};

}  // namespace braiddb
