// PmTable: one table of L0, a flushed memtable: log entries linked into a braided skiplist where they lie.
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

// The heads are in DRAM; a checkpoint copies them into the MANIFEST. Nothing changes them: zipper compaction rewrites the
// entries' pointers and leaves the head, so that readers of this table are led into the last level where it has been merged.
// Thread safety: immutable after construction, but for what is atomic.
class PmTable {
 public:
  PmTable(uint64_t id, uint64_t boundary, const RegionSet* regions, const KeyOrder* order, uint32_t family = 0)
      : list(regions, order), family_(family), id_(id), boundary_(boundary), heads_(uint64_t{regions->count()} * kMaxHeight) {
    for (uint32_t region = 0; region < regions->count(); ++region) list.SetHead(region, &heads_[region * kMaxHeight]);
  }
  PmTable(const PmTable&) = delete;
  PmTable& operator=(const PmTable&) = delete;

  uint32_t family() const { return family_; }
  // Those of the families' memtables that were rotated together have the same id and boundary.
  uint64_t id() const { return id_; }
  // Every write with a smaller sequence number is in this table, in one with the same id, or in an older one.
  uint64_t boundary() const { return boundary_; }
  // No write with a smaller sequence number is in this table; 0: not known. Set before anyone reads it.
  uint64_t begin = 0;
  std::vector<uint64_t>& heads() { return heads_; }
  const std::vector<uint64_t>& heads() const { return heads_; }

  BraidedList list;
  // The index in which lookups find the entries, and the column of the table there. Null: lookups search the list. That is so if
  // equal keys may differ in bytes, if there was no memory, and in a restored table until SetIndex.
  const L0Index* index() const { return is_indexed_.load(std::memory_order_acquire) ? indexed_.index.get() : nullptr; }
  uint32_t column() const { return indexed_.column; }
  // At most once, with an index. Readers may have the table already.
  void SetIndex(L0IndexWriter::Table indexed) {
    indexed_ = std::move(indexed);
    is_indexed_.store(indexed_.index != nullptr, std::memory_order_release);
  }
  // Whether the filter over keys has the table's, too, if there is one. If not, the merge adds them that takes the table, and
  // until then the table is asked. Set before anyone reads it.
  bool in_filter = true;
  // An open has restored the table, and nobody has walked along it since. The compaction thread's, once there is one.
  bool waits_for_index = false;
  uint64_t entries = 0;
  uint64_t log_bytes = 0;
  std::vector<std::shared_ptr<LogExtent>>
      extents;  // where they and those of tables with the same id lie, in one of them; empty once checkpointed
  // An entry whose copy the table has: the log is released behind it, so the lookup cache has to know.
  struct Move {
    const LogEntry* from;
    PmPtr to;
  };
  std::vector<Move> moves;  // of a copying flush; empty once checkpointed
  std::atomic<bool> checkpointed{false};
  mutable OperandRuns operand_runs;

 private:
  const uint32_t family_;
  const uint64_t id_;
  const uint64_t boundary_;
  std::vector<uint64_t> heads_;
  L0IndexWriter::Table indexed_;  // not changed once is_indexed_ is true
  std::atomic<bool> is_indexed_{false};
};

}  // namespace braiddb
