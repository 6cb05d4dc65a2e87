// Replay: rebuilds tables of L0, one for each column family, from the log that lies behind the log boundary.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "braiddb/status.h"
#include "index/key_order.h"
#include "lsm/pm_table.h"
#include "pmem/segment_allocator.h"

namespace braiddb {

struct ReplayContext {
  const RegionSet* regions;
  SegmentAllocator* segments;
  std::vector<const KeyOrder*> orders;  // by family; null: there is none, or it was dropped
  uint64_t log_boundary;                // entries with a smaller sequence number are in the tables already
  uint64_t table_id;                    // of the tables to make
  uint32_t threads;
  std::function<void(std::string_view)> progress;  // a line now and then; may be empty
  bool may_lose_writes;                            // the log may have been written in PersistMode::kPage
  uint32_t range_family = 0;                       // of the records of deleted ranges; 0: there is none
  uint32_t prepared_family = 0;                    // of the records of prepared transactions; 0: there is none
};

struct ReplayResult {
  // By family, each at most one, none if there was nothing to replay. Their boundary is last_sequence + 1; the first has the
  // extents of all.
  std::vector<std::shared_ptr<PmTable>> tables;
  uint64_t entries = 0;        // replayed
  uint64_t bytes = 0;          // of log read
  uint64_t searched = 0;       // bytes behind the ends of open segments that were read for checksums
  uint64_t last_sequence = 0;  // largest that was found, 0 if none
  uint64_t last_update = 0;    // largest of a user's write; 0 if none
};

// GOAL   The writes that were acknowledged since the last checkpoint become one table of L0 in each family.
// STEPS  Scan the segments that may hold entries behind the boundary: threads take them one by one and stop in each at the first
//        entry that is not valid. Of each family: split the entries into key ranges; sort and link the ranges in parallel; join
//        the lists. Entries of families that were dropped are marked dead. Seal what was open.
// CRASH  Anywhere: nothing but pointers and seals was written, and the next recovery finds the same entries: sealing fixes the
//        same prefix that scanning would find. The caller makes the pointers durable and then commits the MANIFEST. [CC-5]
// COST   Linear in the log behind the boundary, whatever stands behind the ends of open segments; DRAM: 24 bytes per entry of the
//        log, freed at the end.
// Corruption if a sealed segment holds an entry that is not valid, or an open one a whole write behind such an entry. The search
// for the latter has an end (LogReader::LimitHashing).
Status ReplayLog(const ReplayContext& context, ReplayResult* result);

}  // namespace braiddb
