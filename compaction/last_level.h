// LastLevel: what a database does to its last level, whichever structure that is.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
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
#include "index/level_place.h"
#include "index/ordered_level.h"
#include "lsm/key_filter.h"
#include "lsm/pm_table.h"
#include "lsm/table_order.h"
#include "pmem/region_set.h"
#include "pmem/segment_allocator.h"
#include "util/epoch.h"

namespace braiddb {

inline constexpr L1Kind kLastL1Kind = L1Kind::kSortedRuns;
// As options.h has it, also of a number that is no kind.
std::string NameOfL1(uint8_t kind);

// One merge or sweep; what is pointed to outlives it.
struct MergeJob {
  uint64_t id;          // by which the MANIFEST calls it
  uint64_t l1_entries;  // estimate
  const VersionFilter* filter;
  uint32_t threads;                // that work at once, the caller included
  const std::atomic<bool>* stop;   // ends the run between two batches, resumable; may be null
  std::atomic<uint64_t>* settled;  // counts entries of the tables that were merged or dropped; may be null
  const MovedEntries* moved = nullptr;
  EntryFilterSource* entry_filters = nullptr;  // null: nothing is filtered, and nothing is paid for it
  // Of a level that copies: told of newest puts of the last level whose copies readers find from now on, before their own space
  // can be released. Null: nobody wants to know.
  const std::function<void(PmPtr from, PmPtr to)>* copied = nullptr;
  // Which get the keys of what comes to the level, before Merge returns; may be null. KeyHash is by family, so of tables of one.
  KeyFilter* key_filters[2] = {};
  // Of all that the tables have, none of which has been merged before; null: not known.
  std::shared_ptr<const TableOrder> order = nullptr;
};

// CONTRACT  The MANIFEST knows of a job before it begins, and forgets it after Merge or Sweep has returned OK: then
//           everything is durable. A job that does not return OK, or that a crash cuts short, is given again, with the same
//           id and tables, to Merge before any other job; until then no segment is released. Readers see all versions that
//           they need at every instant, together with the tables. [CC-4] [CC-45]
// Thread safety: one of these calls at a time. What they give out is read by any thread meanwhile.
class LastLevel {
 public:
  struct Parts {
    RegionSet* regions;
    SegmentAllocator* segments;
    EpochManager* epochs;
    const KeyOrder* order;
    LevelPlace place = {};
    // Of the database, opened, and Redo(0) called; null: the level opens it, and no other does.
    std::shared_ptr<MergeJournal> journal = nullptr;
    uint64_t run_bytes = 0;                   // of sorted runs; 0: by the size of segments
    const std::atomic<bool>* stop = nullptr;  // once it is true Refresh need not make an index; may be null
  };

  // An empty level of the kind that the options say. A crash in here is one in the creation of the database, or of the family,
  // which the MANIFEST does not know of yet.
  static Status Create(const Options& options, RegionSet* regions, SegmentAllocator* segments, const LevelPlace& place = {});
  // Of options.l1, which must be the kind that was created. Finishes what a crash cut short, but for jobs. `job`: of the
  // merge of this level that the MANIFEST calls running, 0 for none. Corruption if the level is missing or damaged.
  static Status Open(const Options& options, const Parts& parts, uint64_t job, std::unique_ptr<LastLevel>* result);
  virtual ~LastLevel() = default;

  // For the next read view. After Refresh it is of use until the next: that may build an index anew. REQUIRES: no job is
  // running.
  virtual std::shared_ptr<const OrderedLevel> View() const = 0;
  virtual void Refresh(uint64_t l1_entries) = 0;

  // Merges the tables, oldest first, into the level, and marks dead what nobody sees. Without tables: makes up for a sweep
  // that was cut short. Aborted if stopped. Adds to *stats.
  virtual Status Merge(const MergeJob& job, const std::vector<const PmTable*>& tables, MergeStats* stats) = 0;
  // Takes out, and marks dead, what nobody sees of the user keys in the ranges.
  virtual Status Sweep(const MergeJob& job, const KeyRanges& ranges, MergeStats* stats) = 0;

  // Gives back the segments that the level has for itself. REQUIRES: nobody reads it any more, and the MANIFEST says that its
  // family was dropped, so that no open looks for it. The last call.
  virtual Status Discard() = 0;
  // Whether the level has this segment for itself. REQUIRES: no job is running.
  virtual bool Owns(const Segment* segment) const = 0;

  // Stores what makes the next open faster. The last call.
  virtual Status Close() = 0;

  // DRAM that the level and its indexes take, about; bytes. Thread-safe.
  virtual uint64_t DramBytes() const = 0;
  // A few lines on its structure. Thread-safe.
  virtual std::string Describe() const = 0;
};

}  // namespace braiddb
