// Replay: rebuilds tables of L0, one for each column family, from the log entries behind the log boundary.
//
// INPUTS   The segments of the allocator, whose states an open has made durable [CC-46]; the log boundary and the families of
//          the MANIFEST.
// RESULT   Tables like those of a flush, except that only the newest visible versions are linked. Their pointers are in the
//          caches:
//          the caller checkpoints the tables before the log boundary moves.
// DECIDES  Which writes survive a crash: a write is replayed if and only if all of its entries are valid and every write before
//          it in its segment is valid. Acknowledged writes are, since a writer commits in order behind a fence [CC-6]. A write
//          that was not acknowledged may be replayed or lost, as a whole.
// USED BY  The open of a database (db/open.cc). A secondary reads the log of a running primary by other code
//          (txn/primary_reader.h).
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

// The inputs of a replay. Pointers must stay valid during the call.
struct ReplayContext {
  const RegionSet* regions;
  SegmentAllocator* segments;
  std::vector<const KeyOrder*> orders;             // by family id; null: the family does not exist, or was dropped
  uint64_t log_boundary;                           // entries with smaller sequence numbers are in listed tables already
  uint64_t table_id;                               // id of the new tables
  uint32_t threads;                                // number of threads, at least 1
  std::function<void(std::string_view)> progress;  // gets a line now and then, from any thread; may be empty
  bool may_lose_writes;                            // the log may have been written without sync, in PersistMode::kPage
  uint32_t range_family = 0;                       // id of the family of range tombstones; 0: there is none
  uint32_t prepared_family = 0;                    // id of the family of prepared transactions; 0: there is none
};

struct ReplayResult {
  // At most one table for each family, in the order of ids; none if the log has no entry to replay. The boundary of each table
  // is last_sequence + 1. The first table has the log extents of all.
  std::vector<std::shared_ptr<PmTable>> tables;
  uint64_t entries = 0;        // entries that were replayed
  uint64_t bytes = 0;          // bytes of valid log that were read
  uint64_t searched = 0;       // bytes behind the ends of open segments that were read for checksums
  uint64_t last_sequence = 0;  // largest sequence number in the log; 0 if there is no entry
  uint64_t last_update = 0;    // largest sequence number of a user's write; 0 if there is none
};

// GOAL   The writes that were acknowledged since the last checkpoint become one table of L0 for each family.
// STEPS  1. Choose the segments that may have entries behind the boundary: open ones, and sealed ones with larger numbers.
//        2. Scan them. Threads take segments one by one, and stop in each at the first invalid entry. Entries of dropped families
//           are marked dead.
//        3. For each family, split the entries into key ranges. Threads sort and link the ranges; then the lists are joined.
//        4. Make the log that was found in open segments durable [CC-46], then seal these segments. Release empty ones.
// CRASH  after any step: steps 1 to 3 store only pointers and marks, which no list reads before a checkpoint. Step 4 fixes the
//        prefix that a scan would find again. So the next recovery finds the same entries. The caller makes the pointers
//        durable, and then commits the MANIFEST. [CC-5]
// WHAT A READER SEES  Replay runs before the database has readers.
// COST   Linear in the log behind the boundary; the search behind the ends of open segments is bounded
//        (LogReader::LimitHashing). DRAM: 24 bytes per entry, twice that while sorting, freed at the end.
// Corruption: a sealed segment has an invalid entry, or an open segment has a complete write behind an invalid entry. The
// latter is accepted, with a line to `progress`, if may_lose_writes. Other errors: a seal has failed.
Status ReplayLog(const ReplayContext& context, ReplayResult* result);

}  // namespace braiddb
