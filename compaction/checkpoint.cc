#include "compaction/checkpoint.h"

#include "util/mutant.h"

namespace braiddb {

Status PersistTablePointers(const PmTable& table, Persistence* persistence, uint64_t* flushed_lines) {
  bool is_flushed = false;
  for (const auto& extent : table.extents) {
    uint64_t end = extent->end.load(std::memory_order_acquire);
    // An extent of an open segment has no end yet: its writer may still append entries of later memtables.
    if (end == 0) end = extent->segment->used_bytes.load(std::memory_order_acquire);
    if (end <= extent->begin) continue;
    if (BRAIDDB_MUTANT("checkpoint-flush-too-short")) end = extent->begin + (end - extent->begin + 1) / 2;
    if (!BRAIDDB_MUTANT("checkpoint-not-flushed"))
      persistence->Flush(extent->segment->data() + extent->begin, end - extent->begin);
    is_flushed = true;
    *flushed_lines += (end - extent->begin) / kCacheLine + 1;
  }
  // ORDER: the table's pointers before the MANIFEST that lists it. [CC-3]
  return !is_flushed || persistence->Drain() ? Status::OK() : persistence->error();
}

}  // namespace braiddb
