// The state of SegmentAllocator. Private to segment_allocator.cc and free_segments.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "pmem/free_ranges.h"
#include "pmem/layout.h"
#include "pmem/region.h"
#include "pmem/segment_allocator.h"
#include "pmem/segment_directory.h"
#include "pmem/segment_map.h"
#include "util/check.h"

namespace braiddb {

// Free space, in segments of the usual size, that is reserved for kBackground, and further space for kDelete (SpaceUse).
inline constexpr uint64_t kKeptForBackground = 2;
inline constexpr uint64_t kKeptForDeletes = 1;

// The state of the allocator. For each segment that was ever in use there is one handle, which is in one of these places:
//
//   in use        its owner has it; `map` finds it by address
//   free          free_segments and `map`; kFree in DRAM and on media; all pages have blocks
//   punched       punched_segments and `map`; as free, but some pages may have no blocks (BLOCKS in the header)
//   doubtful      doubtful_segments and `map`; as punched, but was not punched in this session. So the segment may have blocks
//                 that were reserved and not written: the file system reports such blocks as holes
//   deferred      deferred_ and `map`; kFree in DRAM, in use on media (DEFERRED RELEASES in the header)
//   returned      returned_handles; the pool has its space, and `map` does not find it
//
// Every change on media comes before the change in DRAM that lets another thread see or reuse the segment. Exceptions: a return
// to the pool leaves the map and enters returned_handles first, since PMDK may give the space away at once; a deferred release
// is in DRAM only.
class SegmentAllocator::Impl {
 public:
  Impl(RegionSet* set, uint64_t segment_size) : full_chunks_(segment_size / kChunkBytes) {
    for (uint32_t i = 0; i < set->count(); ++i) regions_.emplace_back(set->impl()->region(i));
  }

  Status Load();
  Status Allocate(uint32_t region, uint64_t min_bytes, SegmentState state, Segment** segment,
                  SpaceUse use = SpaceUse::kBackground, uint64_t enough = UINT64_MAX);
  Status Seal(Segment* segment, uint64_t valid_bytes, uint64_t last_sequence);
  void PrepareSeal(Segment* segment, uint64_t valid_bytes, uint64_t last_sequence);
  void SealPrepared(Segment* segment);
  Status Release(Segment* segment);
  Status Discard(Segment* segment);
  void SetReaderCheck(std::function<bool(uint64_t)> is_read) { is_read_ = std::move(is_read); }
  Status FreeDeferred(bool at_once);
  bool has_deferred() const { return deferred_count_.load(std::memory_order_acquire) != 0; }
  void PrepareSpares(uint32_t region, uint32_t count);
  Status PrepareFirst(uint32_t region);
  void GiveBackFree(uint64_t kept, const std::function<bool()>& stops);
  bool HasSuperfluous(uint64_t kept) const;
  Segment* Find(PmPtr p) const;
  template <class Wanted>
  void ForEach(const Wanted& wanted, const std::function<void(Segment*)>& visit) const;
  Usage GetUsage(uint32_t region) const;

  std::atomic<uint64_t> allocated_count{0};
  std::atomic<uint64_t> recycled_count{0};

 private:
  // The segments of one region. Lock order: take_mutex, mutex. generation_mutex is a leaf.
  struct RegionSegments {
    explicit RegionSegments(Region* r) : region(r), directory(r) {}

    Region* const region;
    SegmentDirectory directory;
    SegmentMap map;
    std::mutex take_mutex;        // held while PMDK allocates a segment, which may take long; guards directory.AddBlock
    std::mutex generation_mutex;  // guards directory.NextGeneration, and the directory.Open with that generation
    mutable std::mutex mutex;     // guards the fields below; held for moments only
    std::deque<Segment> handles;  // never shrinks, so handles stay valid
    std::map<uint64_t, Segment*> returned_handles;        // by start: handles of segments that were returned to the pool
    std::multimap<uint64_t, Segment*> free_segments;      // by capacity
    std::multimap<uint64_t, Segment*> punched_segments;   // by capacity
    std::multimap<uint64_t, Segment*> doubtful_segments;  // by capacity
    uint64_t bytes_with_blocks = 0;                       // sum of the capacities in free_segments
    uint64_t doubtful_bytes = 0;                          // sum of the capacities in doubtful_segments
    uint64_t least_free = 0;                              // least result of BytesToGiveBack since the last call of GiveBackFree
    // The same between the calls before, less what was given back since. Used by GiveBackFree only, so by one thread at a time.
    std::array<uint64_t, kGiveBackWindow> least_free_before{};
    std::vector<SegmentDescriptor*> unused_descriptors;
    Usage usage;
    uint64_t open_segments = 0;  // number of kOpen segments
  };

  static SegmentDescriptor* DescriptorOf(const Segment* segment) { return static_cast<SegmentDescriptor*>(segment->descriptor_); }
  RegionSegments& HomeOf(const Segment* segment) {
    BRAIDDB_DCHECK(segment->region() < regions_.size());
    return regions_[segment->region()];
  }

  Status LoadRegion(RegionSegments* home);
  void OnSealed(Segment* segment);
  Segment* Register(RegionSegments* home, SegmentDescriptor* descriptor);
  uint64_t UsualChunks(const RegionSegments& home) const;
  uint64_t OpenChunks(const RegionSegments& home) const;
  static uint64_t FreeWithBlocks(const RegionSegments& home);
  static uint64_t BytesToGiveBack(const RegionSegments& home);
  static Segment* PopFree(RegionSegments* home, uint64_t min_bytes, uint64_t max_bytes);
  static void PushFree(RegionSegments* home, Segment* segment);
  static void PushPunched(RegionSegments* home, Segment* segment);
  static void PushDoubtful(RegionSegments* home, Segment* segment, bool counts_as_punched);
  static void AddWithoutBlocks(RegionSegments* home, Segment* segment, bool counts_as_punched);
  static Segment* PopWithoutBlocks(RegionSegments* home, uint64_t min_bytes, uint64_t max_bytes, bool* is_doubtful);
  static void RemoveWithoutBlocks(RegionSegments* home, Segment* segment);
  static Status TakePunched(RegionSegments* home, uint64_t min_bytes, uint64_t max_bytes, Segment** segment);
  static PoolRange PagesOf(const Segment* segment);
  uint64_t KeptBytes(const RegionSegments& home, uint64_t kept) const;
  static Segment* PopSuperfluous(RegionSegments* home, uint64_t most_bytes, bool* is_doubtful);
  static void GiveBackSegment(RegionSegments* home, Segment* segment, bool is_doubtful);
  Status TakeFromPool(RegionSegments* home, uint64_t chunks, Segment** segment);
  Status UnusedDescriptor(RegionSegments* home, SegmentDescriptor** descriptor);
  Status FindRoom(RegionSegments* home, uint64_t min_bytes, uint64_t usual_chunks, Segment** segment);
  Status ReturnAllFree(RegionSegments* home);
  Status ReturnAllPunched(RegionSegments* home);
  Status ReturnToPool(RegionSegments* home, Segment* segment);
  Status Open(RegionSegments* home, Segment* segment, SegmentState state);
  bool BackSpare(RegionSegments* home, uint64_t min_bytes);
  Status MakeSpare(RegionSegments* home, uint64_t chunks);
  Status KeepReserve(RegionSegments* home, uint64_t bytes);
  Status GiveBack(RegionSegments* home, Segment* segment);
  Status AllocateOnce(uint32_t region, uint64_t min_bytes, SegmentState state, Segment** segment, SpaceUse use, uint64_t enough);
  uint64_t BytesInUse() const;
  uint64_t MostDeferred() const;
  void CountReleased(Segment* segment);
  bool Waits(uint64_t bytes);
  Status FreeAllDeferred();
  Status AddFree(Segment* segment);

  const uint64_t full_chunks_;
  std::deque<RegionSegments> regions_;
  std::function<bool(uint64_t)> is_read_;  // called under deferred_mutex_
  std::mutex deferred_mutex_;              // guards the fields below; taken before the mutexes of a region
  std::vector<Segment*> deferred_;         // kFree in DRAM, unchanged on media; in the order of their releases
  uint64_t deferred_bytes_ = 0;
  std::atomic<uint64_t> deferred_count_{0};
};

}  // namespace braiddb
