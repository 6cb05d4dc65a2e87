// Replay: rebuilds a table of L0 from the log that lies behind the log boundary.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "braiddb/status.h"
#include "index/key_order.h"
#include "lsm/pm_table.h"
#include "pmem/segment_allocator.h"

namespace braiddb {

struct ReplayContext {
  const RegionSet* regions;
  SegmentAllocator* segments;
  const KeyOrder* order;
  uint64_t log_boundary;  // entries with a smaller sequence number are in the tables already
  uint64_t table_id;      // of the table to make
  uint32_t threads;
  std::function<void(std::string_view)> progress;  // a line now and then; may be empty
  bool may_lose_writes;                            // the log may have been written in PersistMode::kPage
};

struct ReplayResult {
  std::shared_ptr<PmTable> table;  // null if there was nothing to replay; its boundary is last_sequence + 1
  uint64_t entries = 0;            // replayed
  uint64_t bytes = 0;              // of log read
  uint64_t last_sequence = 0;      // largest that was found, 0 if none
};

// GOAL   The writes that were acknowledged since the last checkpoint become one table of L0.
// STEPS  Scan the segments that may hold entries behind the boundary: threads take them one by one and stop in each at the first
//        entry that is not valid. Split the entries into key ranges; sort and link the ranges in parallel; join the lists. Seal
//        what was open.
// CRASH  Anywhere: nothing but pointers and seals was written, and the next recovery finds the same entries: sealing fixes the
//        same prefix that scanning would find. The caller makes the pointers durable and then commits the MANIFEST. [CC-5]
// COST   Linear in the log behind the boundary; DRAM: 24 bytes per entry of it, freed at the end.
// Corruption if a sealed segment holds an entry that is not valid, or an open one a whole write behind such an entry.
Status ReplayLog(const ReplayContext& context, ReplayResult* result);

}  // namespace braiddb
