// MergeJournal: makes batches of pointer stores atomic across a crash.
//
// Zipper compaction as published persists every bottom-layer store on its own: two fences per merged entry. Here the stores
// of about two thousand entries are first written down in one sequential record, with one fence, then done in memory in the
// published order, then flushed together with a second fence. docs/design/0002-zipper.md has the argument and the figures.
//
// LAYOUT  One metadata object in region 0 (MetadataSlot::kMergeJournal): a line with the word `begun`, then two buffers; batch
//         number n goes to buffer n mod 2.
//           begun   number of the newest batch of which a store was begun << 16 | 16 bits of its XXH3
//           buffer  JournalHeader (64 bytes), then count × JournalStore (16 bytes), room for kJournalStores. Older journals
//                   have larger buffers; the size of the object says how large
// COMMIT POINT   The record's lines are flushed and one fence has passed (its checksum then matches).
// PERSIST ORDER  P1 the record  P2 the stores it lists, and `begun`  P3 the next record, into the other buffer
// RECOVERY       A buffer is valid if and only if its checksum matches. Of the valid ones that carry the id of the merge that the
//                MANIFEST calls running, the one with the larger number is the newest: its stores are done again, in order, which
//                is idempotent, when the record is durable [CC-46]; its progress says from which entry on everything has been
//                merged. An invalid newer one was never applied: if `begun` says that it was, it is damaged. [CC-4]
// CONCURRENCY    One merge at a time writes; no readers after open.
// LIFETIME       As long as the database; a record is overwritten two batches later.
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

inline constexpr uint32_t kJournalStores = kCrashTest ? 64 : 8176;  // so that the object fits one chunk of the pool

// A batch as it was recorded.
struct JournalBatch {
  uint64_t number = 0;
  const JournalStore* stores = nullptr;
  uint64_t count = 0;  // 0: there is none
  PmPtr progress;
};

class MergeJournal {
 public:
  static Status Create(RegionSet* regions);
  static Status Open(RegionSet* regions, MergeJournal* journal);

  // Before the first batch of a merge. Numbers go on from what recovery found.
  void Begin(uint64_t merge_id) { merge_id_ = merge_id; }

  // Records the stores, does them in order (each with release), and makes them durable. `progress`: every entry of the merging
  // tables at or after this one has been merged or dropped when the batch is done.
  // REQUIRES: 0 < stores.size() <= kJournalStores. Adds to *flushed_lines.
  Status Apply(const std::vector<JournalStore>& stores, PmPtr progress, uint64_t* flushed_lines);

  // The newest batch of this merge in the journal at `object`, which has `bytes` bytes. *last_number: the largest number of any
  // batch. Corruption if there is no journal there, or a record of a running merge is damaged.
  static Status FindNewest(const void* object, uint64_t bytes, uint64_t merge_id, JournalBatch* newest, uint64_t* last_number);

  // Does the newest batch of this merge again. *progress: from where on all is merged, null if no batch was recorded.
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
