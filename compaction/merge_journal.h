// MergeJournal: makes batches of pointer stores atomic across a crash.
//
// A merge of two thousand entries makes about six thousand stores. Persisting each bottom-layer store on its own, as published,
// costs two fences per entry. A redo record costs two fences per batch: the stores are written to one sequential record, fenced,
// done in memory in the published order, flushed together, and fenced. docs/design/0002-zipper.md has the argument.
//
// LAYOUT  One metadata object in region 0 (MetadataSlot::kMergeJournal): one cache line with the word `begun`, then two buffers.
//         Batch number n uses buffer n mod 2.
//           begun   number of the newest batch of which a store was begun << 16 | 16 bits of its XXH3
//           buffer  Header (64 bytes), then count × JournalStore (16 bytes each), room for kJournalStores. Older journals
//                   have larger buffers; the object's size determines the buffer size
// COMMIT POINT   The fence after the flush of the record's lines. From then on the record's checksum matches.
// PERSIST ORDER  P1 the record  P2 the stores that it lists, and `begun`  P3 the next record, in the other buffer
// RECOVERY       A buffer is valid if and only if its checksum matches. The newest batch is the valid buffer with the larger
//                number, among those with the id of the merge that the MANIFEST calls running. Recovery makes the record durable
//                and repeats its stores, in order. Repeating is idempotent. [CC-46] The batch's progress says from which entry on
//                all entries are merged. An invalid newer buffer was never applied, unless `begun` has its number: then the
//                journal is damaged. [CC-4]
// WHY TWO BUFFERS  The progress of a merge is stored only in the records. While record n is written, record n-1 must stay valid:
//        if a crash cuts record n off, the merge resumes from the progress of n-1. A single buffer would lose this progress, and
//        the resumed merge would link entries that are linked already.
// WHY `begun`      It tells a record that was cut off from a record that was damaged later. A cut-off record has made no store,
//        so it can be ignored. A damaged record may have made some of its stores.
// CONCURRENCY    One merge at a time writes. No thread reads after the open.
// LIFETIME       As long as the database. A record is overwritten two batches later.
#pragma once

#include <cstdint>
#include <vector>

#include "braiddb/status.h"
#include "pmem/region_set.h"
#include "util/mutant.h"

namespace braiddb {

// `value` is stored to the 8-byte word at `address`.
struct JournalStore {
  uint64_t address;  // PmPtr
  uint64_t value;
};
static_assert(sizeof(JournalStore) == 16);

inline constexpr uint32_t kJournalStores = kCrashTest ? 64 : 8176;  // the object then fits one chunk of the pool

// A batch as the record holds it.
struct JournalBatch {
  uint64_t number = 0;
  const JournalStore* stores = nullptr;
  uint64_t count = 0;  // 0: no batch was found
  PmPtr progress;
};

class MergeJournal {
 public:
  static Status Create(RegionSet* regions);
  static Status Open(RegionSet* regions, MergeJournal* journal);

  // Call before the first batch of a merge. Batch numbers continue from the number that recovery found.
  void Begin(uint64_t merge_id) { merge_id_ = merge_id; }

  // Records the stores, does them in order (each with release), and makes them durable. `progress`: when the batch is done, every
  // entry of the merging tables at or after `progress` has been merged or dropped.
  // REQUIRES: 0 < stores.size() <= kJournalStores. Adds to *flushed_lines.
  Status Apply(const std::vector<JournalStore>& stores, PmPtr progress, uint64_t* flushed_lines);

  // Finds the newest batch of merge `merge_id` in the journal at `object`, which has `bytes` bytes. *last_number: the largest
  // number of any batch. Returns Corruption if no journal exists there, or if the record of a running merge is damaged.
  static Status FindNewest(const void* object, uint64_t bytes, uint64_t merge_id, JournalBatch* newest, uint64_t* last_number);

  // Repeats the newest batch of this merge. *progress: all entries at or after it are merged; null if no batch was recorded.
  Status Redo(uint64_t merge_id, PmPtr* progress);

 private:
  struct Header;
  uint8_t* Buffer(uint64_t number) const;
  Status Do(uint64_t number, const JournalStore* stores, uint64_t count, uint64_t* flushed_lines);

  RegionSet* regions_ = nullptr;
  uint8_t* object_ = nullptr;
  uint64_t bytes_ = 0;  // of the object
  uint64_t merge_id_ = 0;
  uint64_t number_ = 0;  // of the newest batch
};

}  // namespace braiddb
