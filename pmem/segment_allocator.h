// SegmentAllocator: log space, taken from the regions and given back a segment at a time.
//
// Each region keeps a persistent directory of segment descriptors. A descriptor's state moves
//
//     kUnused ──Allocate──► kOpen ──Seal──► kSealed ──Release──► kFree ──Allocate──► kOpen …
//                             └──────────────Release──────────────┘
//     kUnused or kFree ──AllocateIndex───► kIndex ──Release──► kFree
//     kUnused or kFree ──AllocateCopies──► kCopies ──Seal──► kSealed
//                                             └────Discard────► kFree
//     kUnused or kFree ──AllocateFlushed─► kFlushed, and on as kCopies
//
// and every arrow is one persisted 8-byte store, made after the other fields of the descriptor are durable.
// Generation: a number that no other use of any segment of the region ever had. The checksums of the entries are seeded with a
// random number of this use, in databases of before with the generation. So bytes left over from an earlier use do not pass as
// valid, and nobody can write them in advance (layout.h, entry_seed).
//
// DEFERRED RELEASES  A process that reads the media of a database that is open (txn/primary_reader.h) finds what it needs as long
//     as no segment is freed under it. While one reads, Release leaves the descriptor of a kSealed or kIndex as it is; nobody
//     in this process gets the segment. To a crash this is a release that has not begun: the open finds a sealed segment of which
//     all is marked, or one that no index has, and frees it. A kOpen is freed at once, since its entries would be replayed, and
//     so are copies, since those of a later table would count together with them. kMaxDeferred bounds the bytes that wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "braiddb/status.h"
#include "pmem/pm_ptr.h"
#include "pmem/region_set.h"

namespace braiddb {

// kOpen and kSealed hold log entries; kIndex holds what an index makes of it, and no log reader looks there; kCopies holds copies
// of entries that may not count yet; kFlushed is the same of a copying flush, and never counts before it is kSealed.
enum class SegmentState : uint8_t { kUnused = 0, kFree = 1, kOpen = 2, kSealed = 3, kIndex = 4, kCopies = 5, kFlushed = 6 };
inline constexpr SegmentState kLastSegmentState = SegmentState::kFlushed;
inline constexpr bool HoldsCopies(SegmentState state) {
  return state == SegmentState::kCopies || state == SegmentState::kFlushed;
}
inline constexpr bool IsUsed(SegmentState state) { return state >= SegmentState::kOpen; }

// The DRAM handle of one segment; lives until its allocator is destroyed. data() is 64-byte aligned. A segment that the pool
// has back leaves its handle to the next segment at the same start, whatever its capacity. So a region has no more handles than
// places where a segment can start, one for each 256 KiB. Who still has the handle sees another generation then.
class Segment {
 public:
  uint32_t region() const { return region_; }
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  // Seeds the checksums of the entries of this use (SegmentDescriptor::entry_seed).
  uint64_t entry_seed() const { return entry_seed_.load(std::memory_order_acquire); }
  uint8_t* data() const { return data_; }
  uint64_t capacity() const { return capacity_.load(std::memory_order_relaxed); }  // bytes at data()
  PmPtr ptr(uint64_t offset) const { return start_ + offset; }
  bool Contains(PmPtr p) const { return p.raw() >= start_.raw() && p.raw() < start_.raw() + capacity(); }
  uint64_t OffsetOf(PmPtr p) const { return p.raw() - start_.raw(); }
  SegmentState state() const { return state_.load(std::memory_order_acquire); }
  // Durable facts of a sealed segment: bytes of valid entries, and the largest sequence number among them (0: none).
  uint64_t sealed_bytes() const { return sealed_bytes_.load(std::memory_order_relaxed); }
  uint64_t sealed_last_sequence() const { return sealed_last_sequence_.load(std::memory_order_relaxed); }

  // Working state of the layers above, in DRAM only and reset by Allocate.
  std::atomic<uint64_t> used_bytes{0};     // appended so far
  std::atomic<uint64_t> entries{0};        // appended so far
  std::atomic<uint64_t> dead_entries{0};   // known to be obsolete; a hint
  std::atomic<uint64_t> dead_bytes{0};     // the log space of these
  std::atomic<uint64_t> last_sequence{0};  // largest so far
  std::atomic<bool> packed{false};         // holds as much as could be copied into it; a hint
  std::atomic<bool> stays{false};          // something in it is damaged, and cannot be copied
  std::atomic<bool> holds_copies{false};   // was kCopies or kFlushed in this session, or its entries say that they are copies

 private:
  friend class SegmentAllocator;
  uint32_t region_ = 0;
  std::atomic<uint64_t> generation_{0};
  std::atomic<uint64_t> entry_seed_{0};
  uint8_t* data_ = nullptr;
  std::atomic<uint64_t> capacity_{0};
  PmPtr start_;
  std::atomic<SegmentState> state_{SegmentState::kUnused};
  std::atomic<uint64_t> sealed_bytes_{0};
  std::atomic<uint64_t> sealed_last_sequence_{0};
  void* descriptor_ = nullptr;        // the SegmentDescriptor on media
  std::atomic<bool> touched_{false};  // its pages have memory since this open
};

// Who wants a segment. The last free bytes of a region that cannot grow are kept: kPut leaves the space of three segments,
// kDelete of two; kBackground, which makes room, takes all. So deletions find log space, and relocations space for copies.
enum class SpaceUse : uint8_t { kPut, kDelete, kBackground };

// Thread safety: all methods may be called concurrently; Seal and Release of one segment by one thread at a time.
class SegmentAllocator {
 public:
  // Reads the directories of all regions (and completes allocations and releases that a crash cut short: nothing leaks).
  // `segment_size`: bytes of a full-grown segment; a young region takes smaller ones (at least 256 KiB): about 1/16 of
  // its size, so that an empty database stays below 1 MiB per region, and one of few keys below 2 MiB.
  static Status Open(RegionSet* regions, uint64_t segment_size, std::unique_ptr<SegmentAllocator>* result);
  ~SegmentAllocator();

  // A segment in `region` with capacity() >= min_bytes, kOpen with a fresh generation, durably. Reuses a free one if one fits
  // (a free segment much larger than what is asked for is left for others); otherwise takes one from the pool, which grows if
  // it must. With more than 16 open segments in the region the next ones are smaller. Zero bytes are not promised. NoSpace when
  // the region is at its maximum or the file system is full; nothing changes then.
  Status Allocate(uint32_t region, uint64_t min_bytes, Segment** segment, SpaceUse use = SpaceUse::kBackground);
  // The same for an index: kIndex.
  Status AllocateIndex(uint32_t region, uint64_t min_bytes, Segment** segment);
  // The same for copies of entries: kCopies.
  Status AllocateCopies(uint32_t region, uint64_t min_bytes, Segment** segment);
  // The same for copies that a flush makes: kFlushed.
  Status AllocateFlushed(uint32_t region, uint64_t min_bytes, Segment** segment);
  // kOpen, kCopies or kFlushed → kSealed, durable on return. No one appends to it any more.
  Status Seal(Segment* segment, uint64_t valid_bytes, uint64_t last_sequence);
  // The same for several segments with two drains in all, which the caller makes: one between the two, one behind.
  void PrepareSeal(Segment* segment, uint64_t valid_bytes, uint64_t last_sequence);
  void SealPrepared(Segment* segment);
  // kOpen, kSealed or kIndex → kFree, durable on return. REQUIRES: nothing reachable points into it, now and after a crash,
  // and no reader is inside. A segment larger than segment_size goes back to the pool. While another process reads segments
  // (SetReaderCheck), a kSealed or kIndex is kFree in DRAM alone, counts as released, and is kept as it is on media.
  Status Release(Segment* segment);
  // kCopies or kFlushed → kFree, durable on return. Who finds the space without its descriptor will not take it for a log.
  // REQUIRES: as Release.
  Status Discard(Segment* segment);

  // `is_read(bytes in use)` says whether another process reads segments. Release and FreeDeferred ask, one thread at a time; each
  // Release once at the most. REQUIRES: before all calls that others make.
  void SetReaderCheck(std::function<bool(uint64_t bytes_in_use)> is_read);
  // Frees on media what Release kept, if `at_once` or if nobody reads any more. An allocation that finds no space does so too.
  Status FreeDeferred(bool at_once);
  // Whether there is such a segment.
  bool has_deferred() const;

  // Keeps `count` spare segments of the usual size ready in `region` (allocated, touched, kFree), so that Allocate does not
  // take page faults or grow the pool. Called by a background thread; fails silently when there is no space.
  void PrepareSpares(uint32_t region, uint32_t count);

  // At creation, where each step of an allocation is a sync: a spare segment, and numbers of generations, so that the first
  // Allocate in `region` takes nothing from the pool. A full file system makes none.
  Status PrepareFirst(uint32_t region);

  // The segment that holds this entry, null if there is none. Lock-free, a few loads.
  Segment* Find(PmPtr p) const;

  // Calls `visit` for every kOpen or kSealed segment.
  void ForEachLog(const std::function<void(Segment*)>& visit) const;
  // … for every kIndex segment.
  void ForEachIndex(const std::function<void(Segment*)>& visit) const;
  // … for every kCopies segment.
  void ForEachCopies(const std::function<void(Segment*)>& visit) const;
  // … for every kFlushed segment.
  void ForEachFlushed(const std::function<void(Segment*)>& visit) const;

  struct Usage {
    uint64_t segments = 0;  // in use
    uint64_t segment_bytes = 0;
    uint64_t free_segments = 0;
    uint64_t free_bytes = 0;
  };
  Usage GetUsage(uint32_t region) const;

  uint64_t allocated_count() const;  // Allocate calls that succeeded since Open
  uint64_t recycled_count() const;   // Release calls since Open

 private:
  SegmentAllocator();
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace braiddb
