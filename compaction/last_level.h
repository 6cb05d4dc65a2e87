// LastLevel: the interface through which a database changes its last level, for all kinds of last level.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braiddb/options.h"
#include "braiddb/status.h"
#include "compaction/entry_filter.h"
#include "compaction/key_range.h"
#include "compaction/merge_journal.h"
#include "compaction/merge_stats.h"
#include "compaction/moved_entries.h"
#include "compaction/version_filter.h"
#include "index/level_kind.h"
#include "index/level_place.h"
#include "index/ordered_level.h"
#include "lsm/key_filter.h"
#include "lsm/pm_table.h"
#include "lsm/table_order.h"
#include "pmem/region_set.h"
#include "pmem/segment_allocator.h"
#include "util/block_file.h"
#include "util/epoch.h"

namespace braiddb {

// One merge or sweep. All pointers stay valid until it ends.
struct MergeJob {
  uint64_t id;          // the job's id in the MANIFEST
  uint64_t l1_entries;  // estimated number of entries of the level
  const VersionFilter* filter;
  uint32_t threads;                // number of threads that work, the calling thread included
  const std::atomic<bool>* stop;   // stops the job between two batches; the job can be resumed; may be null
  std::atomic<uint64_t>* settled;  // incremented for each entry of the tables that was merged or dropped; may be null
  const MovedEntries* moved = nullptr;
  EntryFilterSource* entry_filters = nullptr;  // null: no user filter is called
  // Used by a level that copies. Called for each newest put of the last level that was copied, when readers find the copy, and
  // before the original's space can be released. Null: no calls.
  const std::function<void(PmPtr from, PmPtr to)>* copied = nullptr;
  // The filters that receive the keys of the merged entries before Merge returns; may be null. KeyHash includes the family, so
  // all tables of a job belong to one family.
  KeyFilter* key_filters[2] = {};
  // Sorted array of the addresses of all entries of the tables, none of which is merged yet. Null: unknown.
  std::shared_ptr<const TableOrder> order = nullptr;
};

// What a level gets from its database.
struct LastLevelParts {
  RegionSet* regions;
  SegmentAllocator* segments;
  EpochManager* epochs;
  const KeyOrder* order;
  LevelPlace place = {};
  // The database's journal, opened, after Redo(0). Null: the level opens the journal, and no other level uses it.
  std::shared_ptr<MergeJournal> journal = nullptr;
  uint64_t run_bytes = 0;                   // target size of a sorted run; 0: derived from the segment size
  const std::atomic<bool>* stop = nullptr;  // once it is true, Refresh may skip building an index; may be null
  // Where indexes are made from the next Refresh on, so that other processes can read them; null, or a null heap: private memory.
  const std::atomic<SharedHeap*>* shared_heap = nullptr;
};

// CONTRACT  The MANIFEST lists a job before it begins. It forgets the job after Merge or Sweep has returned OK; then all effects
//           are durable. If a job does not return OK, or a crash interrupts it, the caller passes it to Merge again before any
//           other job, with the same id and tables. Until then no segment is released. At every instant readers find all versions
//           that they need in the level and the tables together. [CC-4] [CC-45]
// RECOVERY  Open repairs what the level itself has interrupted: a journal batch, a leaf split, an exchange of runs. A job is
//        repaired by running it again, because only its caller has the tables.
// Thread safety: one of these calls at a time. Any thread may read the returned objects meanwhile.
class LastLevel {
 public:
  using Parts = LastLevelParts;

  // Creates an empty level of the kind options.l1 (index/level_kind.h). A crash in this call is a crash in the creation of the
  // database or family, which the MANIFEST does not list yet.
  static Status Create(const Options& options, RegionSet* regions, SegmentAllocator* segments, const LevelPlace& place = {});
  // Opens the level. Its kind must be options.l1. Recovers everything that a crash interrupted, except jobs. `job`: the merge of
  // this level that the MANIFEST lists as running, or 0. Returns Corruption if the level is missing or damaged.
  static Status Open(const Options& options, const Parts& parts, uint64_t job, std::unique_ptr<LastLevel>* result);
  virtual ~LastLevel() = default;

  // View returns the level for the next read view. Refresh may rebuild the index; a view taken after Refresh uses it until the
  // next Refresh. REQUIRES: no job is running.
  virtual std::shared_ptr<const OrderedLevel> View() const = 0;
  virtual void Refresh(uint64_t l1_entries) = 0;
  // The number of entries, if the level knows it or has to estimate it anew. REQUIRES: no job is running.
  virtual std::optional<uint64_t> Entries() const { return std::nullopt; }
  // Copies an index that other processes cannot read to the shared heap. Returns true if a view taken later uses the copy.
  // May throw std::bad_alloc. REQUIRES: no job is running.
  virtual bool Share() { return false; }

  // Merges the tables, oldest first, into the level. Marks dead the versions that no reader or snapshot can see. Without tables:
  // repeats an interrupted sweep, over all keys. Returns Aborted if stopped. Adds to *stats.
  virtual Status Merge(const MergeJob& job, const std::vector<const PmTable*>& tables, MergeStats* stats) = 0;
  // Removes from `ranges` the versions that no reader or snapshot can see, and marks them dead.
  virtual Status Sweep(const MergeJob& job, const KeyRanges& ranges, MergeStats* stats) = 0;

  // Releases the segments that the level owns. REQUIRES: no reader uses the level, and the MANIFEST lists its family as dropped,
  // so that no open looks for the level. No other call may follow.
  virtual Status Discard() = 0;
  // Whether the level owns this segment. REQUIRES: no job is running.
  virtual bool Owns(const Segment* segment) const = 0;

  // Stores data that speeds up the next open. Only StoreIndex may follow.
  virtual Status Close() = 0;

  // The bytes of an index that is worth a file, and describes the level as it is; 0: there is none.
  virtual uint64_t StorableBytes() const { return 0; }
  // Writes it. May throw std::bad_alloc.
  virtual void StoreIndex(BlockFileWriter*) const {}
  // Takes the index that StoreIndex wrote at `offset`; a view taken later uses it. False if it cannot be used. May throw
  // std::bad_alloc. REQUIRES: no job has run, and the level has the contents that it had at StoreIndex.
  virtual bool LoadIndex(const BlockFileReader&, uint64_t) { return false; }

  // DRAM of the level and its indexes, in bytes, approximate. Thread-safe.
  virtual uint64_t DramBytes() const = 0;
  // A few lines that describe the structure. Thread-safe.
  virtual std::string Describe() const = 0;
};

}  // namespace braiddb
