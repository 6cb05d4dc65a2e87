// SortedRuns: the last level as runs of copied entries with disjoint key ranges, each a braided list in segments of its own.
//
// LAYOUT  RunsRoot at the family's LevelPlace in region 0. It links the record of the first run, and each record the next one, in
//         the order of their keys. A run has whole segments (kIndex): copies of entries from their beginning on, in each region
//         in the order of keys; in one of them, behind the copies, its record:
//           RunRecord, heads[regions][kMaxHeight] u64, then for each segment a RunSegment
// COMMIT POINT   The store of the link in front of what is exchanged: new runs, or none, take the place of neighbours.
// PERSIST ORDER  P1 copies, their pointers, records, and the links of new records  P2 the link in front
// RECOVERY       A run is there if and only if links lead to it from the root; segments that no run names are nobody's, and the
//                open of the database releases them. Records and links that are not valid are damage: a crash cannot cause them.
//                What an open finds it makes durable, which it need not be when a process was killed [CC-46]. [CC-52]
// CONCURRENCY    One thread at a time exchanges. Readers take no lock: the list of runs in DRAM is immutable, and replaced by one
//                store behind P2.
// LIFETIME       The segments of a run that was replaced are released when all guards and pins of before have gone.
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

struct RunsRoot {
  static constexpr uint64_t kMagic = 0x31535552'44415242;  // "BRADRUS1"

  uint64_t first;     //  0  link; its owner is the checksum
  uint64_t magic;     //  8
  uint64_t number;    // 16  of the family
  uint64_t checksum;  // 24  XXH3 of bytes [8, 24) and the database's id
};
static_assert(sizeof(RunsRoot) == 32 && sizeof(RunsRoot) <= LevelPlace::kBytes);

struct RunRecord {
  static constexpr uint64_t kMagic = 0x314e5552'44415242;  // "BRADRUN1"

  uint64_t next;        //  0  link to the record of the next run; its owner is the place of this one
  uint64_t checksum;    //  8  XXH3 of [16, bytes of the record)
  uint64_t magic;       // 16
  uint64_t number;      // 24  of the family
  uint64_t place;       // 32  PmPtr of this record
  uint64_t generation;  // 40  of its segment
  uint64_t entries;     // 48
  uint32_t regions;     // 56
  uint32_t segments;    // 60
};
static_assert(sizeof(RunRecord) == kCacheLine);

struct RunSegment {
  uint64_t start;       //  0  PmPtr of its first entry
  uint64_t generation;  //  8
  uint64_t bytes;       // 16  of entries, from there on
};
static_assert(sizeof(RunSegment) == 24);

inline uint64_t RunRecordBytes(uint32_t regions, uint32_t segments) {
  return sizeof(RunRecord) + 8ull * regions * kMaxHeight + segments * sizeof(RunSegment);
}
inline uint64_t* HeadsOf(RunRecord* record) { return reinterpret_cast<uint64_t*>(record + 1); }
inline RunSegment* SegmentsOf(RunRecord* record) {
  return reinterpret_cast<RunSegment*>(HeadsOf(record) + uint64_t{record->regions} * kMaxHeight);
}
uint64_t RootChecksum(const RunsRoot& root, uint64_t database_id);
uint64_t RecordChecksum(const RunRecord& record);
bool IsRunsRoot(const RunsRoot& root, uint64_t database_id, uint64_t number);
// Whether a record of the family is there. `room`: bytes from it to the end of its segment, which has this generation.
bool IsRunRecord(const RunRecord& record, PmPtr place, uint64_t room, uint64_t generation, uint64_t number, uint32_t regions);

// A run as readers see it. Thread safety: immutable.
class SortedRun {
 public:
  // Without an index if `index_bytes` is 0. REQUIRES: the record is valid, and names these segments.
  SortedRun(const RegionSet* regions, const KeyOrder* order, RunRecord* record, std::vector<Segment*> segments,
            uint64_t index_bytes);
  // The same run with another index.
  SortedRun(const SortedRun& run, uint64_t index_bytes);
  SortedRun& operator=(const SortedRun&) = delete;

  PmPtr place() const { return PmPtr(record_->place); }
  RunRecord* record() const { return record_; }
  const std::vector<Segment*>& segments() const { return segments_; }
  uint64_t entries() const { return entries_; }
  uint64_t bytes() const { return bytes_; }  // of entries
  const BraidedList& list() const { return list_; }
  const TallIndex& index() const { return index_; }
  bool has_index() const { return has_index_; }
  // Null if the list is damaged.
  const LogEntry* first() const { return first_; }
  uint64_t first_prefix() const { return first_prefix_; }

 private:
  static BraidedList MakeList(const RegionSet* regions, const KeyOrder* order, RunRecord* record);

  RunRecord* const record_;
  const uint64_t entries_;  // the record's: who keeps the list alone may still ask when the segments are somebody else's
  const std::vector<Segment*> segments_;
  const BraidedList list_;
  const TallIndex index_;
  const bool has_index_;
  const LogEntry* const first_;
  const uint64_t first_prefix_;
  uint64_t bytes_ = 0;
};

// In the order of their keys.
struct RunList {
  std::vector<std::shared_ptr<const SortedRun>> runs;
  mutable std::shared_ptr<const RunList> before;  // kept when there was no memory to retire it

  // The run that has the key's versions, if one has; 0 for keys before all.
  size_t FindRun(const KeyOrder& order, const SearchKey& target) const;
};

// Thread safety: Find and cursors by any number of threads, concurrent with one that does all else. Cursors keep the runs that
// were there when they were made; their users hold a pin.
class SortedRuns final : public OrderedLevel {
 public:
  // An empty level, durable. NoSpace: nothing has changed.
  static Status Create(RegionSet* regions, const LevelPlace& place);
  // Without indexes. Corruption if anything that leads to runs is damaged.
  static Status Open(RegionSet* regions, SegmentAllocator* segments, EpochManager* epochs, const KeyOrder* order,
                     const LevelPlace& place, std::shared_ptr<SortedRuns>* result);
  ~SortedRuns() override;

  const LogEntry* Find(const SearchKey& target, LookupTrace* trace) const override;
  std::unique_ptr<EntryCursor> NewCursor() const override;

  // Of the thread that exchanges.
  const RunList& current() const { return *runs_; }
  // Puts these runs in the place of [begin, end) of the current ones. Durable when it returns OK, with all that the thread has
  // flushed before; otherwise nobody knows, and nothing more may be stored. `readable()` is called when readers find the new
  // runs, and before the segments of the old ones can be released.
  template <class Readable>
  Status Exchange(size_t begin, size_t end, const std::vector<std::shared_ptr<const SortedRun>>& runs, const Readable& readable) {
    std::shared_ptr<const RunList> old;
    if (Status status = Commit(begin, end, runs, &old); !status.ok()) return status;
    readable();
    Retire(old, begin, end);
    return Status::OK();
  }
  // All runs get an index; together they take about so many bytes. None does once *stop is true; `stop` may be null.
  void Refresh(uint64_t index_bytes, const std::atomic<bool>* stop = nullptr);
  // The share of a run with so many entries.
  uint64_t IndexShare(uint64_t index_bytes, uint64_t entries) const;

  bool Owns(const Segment* segment) const;
  // Gives back all segments. REQUIRES: nobody reads it any more. The last call.
  Status ReleaseSegments();

  struct Stats {
    uint64_t runs = 0;
    uint64_t entries = 0;
    uint64_t bytes = 0;        // of segments
    uint64_t index_bytes = 0;  // of DRAM
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
  mutable std::mutex mutex_;  // for who asks for statistics
  std::shared_ptr<const RunList> runs_;
  std::atomic<const RunList*> published_{nullptr};
};

}  // namespace braiddb
