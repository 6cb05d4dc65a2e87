// SortedRuns: the last level as runs of copied entries with disjoint key ranges. Each run is a braided list in segments of its
// own.
//
// LAYOUT         RunsRoot at the family's LevelPlace in region 0. It links the record of the first run, and each record links
//                the next one, in key order. A run owns segments (kIndex): copies of entries from the beginning of each segment
//                on, in each region in key order. Its record lies behind the copies in one of the segments:
//                  RunRecord, heads[regions][kMaxHeight] u64, then for each segment a RunSegment
//
//                  RunsRoot ──first──► RunRecord A ──next──► RunRecord B ──next──► null
//                                        │ heads, segments      │ heads, segments
//                                        ▼                      ▼
//                                      keys [a, f)            keys [f, …)
//
// COMMIT POINT   The store of the link before the exchanged runs: new runs, or none, replace a range of neighbours.
// PERSIST ORDER  P1 copies, their pointers, records, and the links of new records  P2 the link before them. [CC-52]
// CRASH          before P2: the old runs count, and the segments of the new ones belong to no run. After P2: the new runs
//                count, and the segments of the old ones belong to no run.
// RECOVERY       A run counts if and only if links lead to it from the root. The open of the database releases segments that no
//                run names. An invalid record or link is damage: a crash cannot cause it. The open makes the links that it has
//                found durable, since a killed process may have left them in the caches [CC-46].
// CONCURRENCY    One thread at a time exchanges runs. Readers take no lock: the list of runs in DRAM is immutable, and one
//                store replaces it after P2 is durable.
// LIFETIME       The segments of a replaced run are released when all earlier guards and pins have ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "braiddb/status.h"
#include "index/level_place.h"
#include "index/link.h"
#include "index/ordered_level.h"
#include "pmem/region_set.h"
#include "pmem/segment_allocator.h"
#include "skiplist/braided_list.h"
#include "skiplist/tall_index.h"
#include "util/epoch.h"

namespace braiddb {

// The root of a family's runs.
struct RunsRoot {
  static constexpr uint64_t kMagic = 0x31535552'44415242;  // "BRADRUS1"

  uint64_t first;     //  0  link to the record of the first run; its owner is the checksum
  uint64_t magic;     //  8
  uint64_t number;    // 16  number of the family
  uint64_t checksum;  // 24  XXH3 of bytes [8, 24), seeded with the database's id
};
static_assert(sizeof(RunsRoot) == 32 && sizeof(RunsRoot) <= LevelPlace::kBytes);

// The record of a run.
struct RunRecord {
  static constexpr uint64_t kMagic = 0x314e5552'44415242;  // "BRADRUN1"

  uint64_t next;        //  0  link to the record of the next run; its owner is `place`
  uint64_t checksum;    //  8  XXH3 of [16, bytes of the record)
  uint64_t magic;       // 16
  uint64_t number;      // 24  number of the family
  uint64_t place;       // 32  PmPtr of this record
  uint64_t generation;  // 40  generation of the segment that has this record
  uint64_t entries;     // 48  entries of the run
  uint32_t regions;     // 56  regions of the database
  uint32_t segments;    // 60  segments of the run
};
static_assert(sizeof(RunRecord) == kCacheLine);

// A segment of a run.
struct RunSegment {
  uint64_t start;       //  0  PmPtr of its first entry
  uint64_t generation;  //  8  generation of this use
  uint64_t bytes;       // 16  bytes of entries from `start` on
};
static_assert(sizeof(RunSegment) == 24);

// Returns the bytes of a record with its heads and its list of segments.
inline uint64_t RunRecordBytes(uint32_t regions, uint32_t segments) {
  return sizeof(RunRecord) + 8ull * regions * kMaxHeight + segments * sizeof(RunSegment);
}
// Return the head words and the list of segments behind a record. REQUIRES: the record is valid.
inline uint64_t* HeadsOf(RunRecord* record) { return reinterpret_cast<uint64_t*>(record + 1); }
inline RunSegment* SegmentsOf(RunRecord* record) {
  return reinterpret_cast<RunSegment*>(HeadsOf(record) + uint64_t{record->regions} * kMaxHeight);
}
// Return the checksums as the structures store them.
uint64_t RootChecksum(const RunsRoot& root, uint64_t database_id);
uint64_t RecordChecksum(const RunRecord& record);
bool IsRunsRoot(const RunsRoot& root, uint64_t database_id, uint64_t number);
// Returns true if a valid record of the family lies there. `room`: bytes from the record to the end of its segment.
// `generation`: that of the segment. Reads only [record, record + room).
bool IsRunRecord(const RunRecord& record, PmPtr place, uint64_t room, uint64_t generation, uint64_t number, uint32_t regions);

// A run as readers see it, with an index in DRAM. Thread safety: immutable.
class SortedRun {
 public:
  // `index_bytes`: bound of the index; 0: no index. REQUIRES: the record is valid and lists these segments.
  SortedRun(const RegionSet* regions, const KeyOrder* order, RunRecord* record, std::vector<Segment*> segments,
            uint64_t index_bytes);
  // Makes the same run with another index.
  SortedRun(const SortedRun& run, uint64_t index_bytes);
  SortedRun& operator=(const SortedRun&) = delete;

  PmPtr place() const { return PmPtr(record_->place); }
  RunRecord* record() const { return record_; }
  const std::vector<Segment*>& segments() const { return segments_; }
  uint64_t entries() const { return entries_; }
  uint64_t bytes() const { return bytes_; }  // bytes of entries
  const BraidedList& list() const { return list_; }
  const TallIndex& index() const { return index_; }
  bool has_index() const { return has_index_; }
  // The first entry; null if the list is damaged.
  const LogEntry* first() const { return first_; }
  uint64_t first_prefix() const { return first_prefix_; }

 private:
  static BraidedList MakeList(const RegionSet* regions, const KeyOrder* order, RunRecord* record);

  RunRecord* const record_;
  const uint64_t entries_;  // copied from the record: may be read after the segments were released
  const std::vector<Segment*> segments_;
  const BraidedList list_;
  const TallIndex index_;
  const bool has_index_;
  const LogEntry* const first_;
  const uint64_t first_prefix_;
  uint64_t bytes_ = 0;
};

// The runs of the level, in key order. Immutable once published.
struct RunList {
  std::vector<std::shared_ptr<const SortedRun>> runs;
  // The list before this one, kept here if there was no memory to retire it.
  mutable std::shared_ptr<const RunList> before;

  // Returns the index of the only run that may have versions of the key; 0 for keys before all runs. REQUIRES: there is a run.
  size_t FindRun(const KeyOrder& order, const SearchKey& target) const;
};

// Thread safety: any number of threads may call Find and use cursors, concurrently with one thread that calls other methods. A
// cursor reads the runs of the time when it was made; its user holds a pin.
class SortedRuns final : public OrderedLevel {
 public:
  // Creates an empty level, durably. NoSpace: nothing has changed.
  static Status Create(RegionSet* regions, const LevelPlace& place);
  // Opens the level, without indexes. Corruption: the root, a link, a record or a segment of a run is damaged.
  static Status Open(RegionSet* regions, SegmentAllocator* segments, EpochManager* epochs, const KeyOrder* order,
                     const LevelPlace& place, std::shared_ptr<SortedRuns>* result);
  ~SortedRuns() override;

  const LogEntry* Find(const SearchKey& target, LookupTrace* trace) const override;
  std::unique_ptr<EntryCursor> NewCursor() const override;

  // The current runs. For the thread that exchanges.
  const RunList& current() const { return *runs_; }
  // Replaces the runs [begin, end) by `runs`, durably, together with everything that the thread has flushed before.
  // `readable()` is called when readers find the new runs, and before the segments of the old ones can be released. An error: a
  // persist has failed, the state on media is unknown, and the caller must stop writing.
  template <class Readable>
  Status Exchange(size_t begin, size_t end, const std::vector<std::shared_ptr<const SortedRun>>& runs, const Readable& readable) {
    std::shared_ptr<const RunList> old;
    if (Status status = Commit(begin, end, runs, &old); !status.ok()) return status;
    readable();
    Retire(old, begin, end);
    return Status::OK();
  }
  // Builds missing indexes, and rebuilds those that are too large, within about `index_bytes` in all. Ends early when *stop
  // becomes true; `stop` may be null.
  void Refresh(uint64_t index_bytes, const std::atomic<bool>* stop = nullptr);
  // Returns the index bytes of a new run with `entries` entries.
  uint64_t IndexShare(uint64_t index_bytes, uint64_t entries) const;

  // Returns true if a current run has the segment.
  bool Owns(const Segment* segment) const;
  // Releases all segments. The last call. REQUIRES: the level has no reader.
  Status ReleaseSegments();

  struct Stats {
    uint64_t runs = 0;
    uint64_t entries = 0;
    uint64_t bytes = 0;        // capacity of the segments
    uint64_t index_bytes = 0;  // DRAM of the indexes
  };
  // Thread-safe.
  Stats GetStats() const;

 private:
  SortedRuns(RegionSet* regions, SegmentAllocator* segments, EpochManager* epochs, const KeyOrder* order)
      : regions_(regions), allocator_(segments), epochs_(epochs), order_(order) {}
  Status FindRuns(uint64_t number);
  Status FindSegments(RunRecord* record, std::vector<Segment*>* segments) const;
  Status Commit(size_t begin, size_t end, const std::vector<std::shared_ptr<const SortedRun>>& runs,
                std::shared_ptr<const RunList>* old);
  std::shared_ptr<const RunList> Publish(std::shared_ptr<const RunList> fresh);
  void Retire(const std::shared_ptr<const RunList>& old, size_t begin, size_t end);

  RegionSet* const regions_;
  SegmentAllocator* const allocator_;
  EpochManager* const epochs_;
  const KeyOrder* const order_;
  RunsRoot* root_ = nullptr;
  mutable std::mutex mutex_;  // guards runs_ against GetStats
  std::shared_ptr<const RunList> runs_;
  std::atomic<const RunList*> published_{nullptr};  // the list of runs_, for readers
};

}  // namespace braiddb
