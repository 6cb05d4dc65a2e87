// SegmentAllocator: allocates log space from the regions and frees it, a segment at a time.
//
// STATES  Each region has a persistent directory of segment descriptors (segment_directory.h). States of a segment:
//
//     kUnused ──Allocate──► kOpen ──Seal──► kSealed ──Release──► kFree ──Allocate──► kOpen …
//                             └──────────────Release──────────────┘
//     kUnused or kFree ──AllocateIndex───► kIndex ──Release──► kFree
//     kUnused or kFree ──AllocateCopies──► kCopies ──Seal──► kSealed
//                                             └────Discard────► kFree
//     kUnused or kFree ──AllocateFlushed─► kFlushed, and on as kCopies
//
// COMMIT POINT  Of each arrow: one persisted 8-byte store, after the other fields of the descriptor are durable.
// GENERATIONS   Each use of a segment has a generation, a number that no other use of a segment of the region has. The
//     checksums of the entries are seeded with a random number of this use (version 1: with the generation). So bytes of an
//     earlier use are invalid, and no user can prepare valid ones (layout.h, IMITATION).
// RECOVERY      Open finishes allocations and returns that a crash has cut short, so no space leaks. A segment in use stays in
//     use: its owner (replay, last level, relocation) decides.
// CONCURRENCY   Allocate and Release of different segments run in parallel. A mutex per region guards the free list for
//     moments; another one is held while PMDK allocates, which may take long. A segment has one owner, who seals and releases
//     it.
// LIFETIME      The bytes of a released segment may be reused at once. So the owner releases a segment only when no durable
//     pointer leads into it, and no reader of this process can reach it.
//
// BLOCKS  Free segments beyond those that a region keeps ready lose the blocks of their pages (GiveBackFree). The pages with the
//     header and with PMDK's words keep theirs, so PMDK's accounting does not change. Order: [CC-66]
//     P1 the segment is kFree, durably  P2 its pages lose their blocks  P3 its pages have blocks again  P4 it is opened, or
//     returned to the pool.
//     A hole is to an earlier owner's bytes what the stores of the next owner are. So P1 and LIFETIME make P2 safe. Without space
//     P3 fails, the segment stays free, and Allocate searches elsewhere. So no thread stores to a page without a block, and a
//     full file system is a NoSpace of Allocate.
//
// DEFERRED RELEASES  A process that reads the files of an open database (txn/primary_reader.h) needs segments that are not
//     reused under it. While such a process reads, Release leaves the descriptor of a kSealed or kIndex segment unchanged on
//     media, and gives the segment to no thread. After a crash the release has not begun: the open finds a sealed segment in
//     which all entries are marked, or a segment of no index, and frees it. A kOpen segment is freed at once, since its entries
//     would be replayed. Copies are freed at once, since they would count together with those of a later table. kMaxDeferred
//     and kMaxDeferredShare bound the bytes that wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "braiddb/status.h"
#include "pmem/pm_ptr.h"
#include "pmem/region_set.h"
#include "util/mutant.h"

namespace braiddb {

// The state of a segment, as stored on media. kOpen and kSealed: log entries. kIndex: data of a last level; no log reader reads
// it. kCopies: copies of entries, which count only if the MANIFEST lists their table. kFlushed: copies of a copying flush,
// which do not count before the segment is kSealed.
enum class SegmentState : uint8_t { kUnused = 0, kFree = 1, kOpen = 2, kSealed = 3, kIndex = 4, kCopies = 5, kFlushed = 6 };
inline constexpr SegmentState kLastSegmentState = SegmentState::kFlushed;
static_assert(sizeof(SegmentState) == 1, "the state is the low byte of SegmentDescriptor::state_word");
inline constexpr bool HoldsCopies(SegmentState state) {
  return state == SegmentState::kCopies || state == SegmentState::kFlushed;
}
// Returns true if the segment belongs to an owner.
inline constexpr bool IsUsed(SegmentState state) { return state >= SegmentState::kOpen; }

// The DRAM handle of one segment. data() is aligned to 64 bytes.
//
// LIFETIME     A handle lives until its allocator is destroyed. When a segment is returned to the pool, the next segment with
//              the same start takes its handle over, whatever its capacity is. So a region has at most one handle for each 256
//              KiB. A thread that has kept the handle sees another generation.
// CONCURRENCY  The allocator sets the private fields. generation() and entry_seed() change before the other fields of a new use
//              are reset. state() is stored last, with release: a thread that loads the new state sees the other fields.
class Segment {
 public:
  uint32_t region() const { return region_; }
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  // The seed of the checksums of entries of this use (SegmentDescriptor::entry_seed, or the generation in version 1).
  uint64_t entry_seed() const { return entry_seed_.load(std::memory_order_acquire); }
  uint8_t* data() const { return data_; }
  uint64_t capacity() const { return capacity_.load(std::memory_order_relaxed); }  // bytes at data()
  // The pointer to byte `offset` of data().
  PmPtr ptr(uint64_t offset) const { return start_ + offset; }
  bool Contains(PmPtr p) const { return p.raw() >= start_.raw() && p.raw() < start_.raw() + capacity(); }
  // The offset of p from data(). REQUIRES: Contains(p).
  uint64_t OffsetOf(PmPtr p) const { return p.raw() - start_.raw(); }
  SegmentState state() const { return state_.load(std::memory_order_acquire); }
  // Durable facts of a sealed segment: the bytes of valid entries, and the largest sequence number among them (0: none).
  uint64_t sealed_bytes() const { return sealed_bytes_.load(std::memory_order_relaxed); }
  uint64_t sealed_last_sequence() const { return sealed_last_sequence_.load(std::memory_order_relaxed); }

  // Working state of the folders above, in DRAM only. Allocate resets it.
  std::atomic<uint64_t> used_bytes{0};     // bytes of appended entries
  std::atomic<uint64_t> entries{0};        // number of appended entries
  std::atomic<uint64_t> dead_entries{0};   // number of entries known to be obsolete; a hint
  std::atomic<uint64_t> dead_bytes{0};     // log space of the obsolete entries; a hint
  std::atomic<uint64_t> last_sequence{0};  // largest sequence number of appended entries
  std::atomic<bool> packed{false};         // relocation has filled the segment; a hint
  std::atomic<bool> stays{false};          // has a damaged entry, so relocation cannot empty the segment
  std::atomic<bool> holds_copies{false};   // was kCopies or kFlushed in this session, or its entries are marked as copies

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
  void* descriptor_ = nullptr;                // the SegmentDescriptor on media
  std::atomic<bool> touched_{false};          // all pages have memory since this open
  std::atomic<bool> has_small_pages_{false};  // blocks were given back since the segment had huge pages
  bool counts_as_punched_ = false;            // is in Usage::punched_segments; guarded by the mutex of the region
};

// The purpose of an allocation. In a region that cannot grow, kPut leaves the space of three segments free, and kDelete that of
// two; kBackground, which makes room, may take all. So deletions find log space, and relocations find space for copies.
enum class SpaceUse : uint8_t { kPut, kDelete, kBackground };

// Thread safety: all methods may be called concurrently; Seal and Release of one segment by one thread at a time.
class SegmentAllocator {
 public:
  // Reads the directories of all regions, and completes allocations and returns that a crash has cut short. `segment_size`:
  // bytes of a segment in a large region, 256 KiB to 1 GiB. A small region gets segments of about 1/16 of its size, at least
  // 256 KiB, so that a small database takes little space. InvalidArgument: segment_size is out of range. Corruption: a
  // directory is damaged. `regions` must outlive the allocator.
  static Status Open(RegionSet* regions, uint64_t segment_size, std::unique_ptr<SegmentAllocator>* result);
  ~SegmentAllocator();

  // Allocates a segment in `region` with capacity() >= min_bytes: kOpen, with a new generation, durably. Reuses a free segment
  // that fits and is not much larger than needed; otherwise takes one from the pool, which may grow. With more than 16 open
  // segments in the region, further ones are smaller. The bytes of the segment are arbitrary. NoSpace: the region has its
  // largest size, or the file system is full, or the free space is reserved (SpaceUse); nothing has changed.
  Status Allocate(uint32_t region, uint64_t min_bytes, Segment** segment, SpaceUse use = SpaceUse::kBackground);
  // As Allocate, for data of a last level: kIndex. `enough`: a new segment need not have more bytes than that.
  Status AllocateIndex(uint32_t region, uint64_t min_bytes, Segment** segment, uint64_t enough = UINT64_MAX);
  // As Allocate, for copies of entries by a relocation: kCopies.
  Status AllocateCopies(uint32_t region, uint64_t min_bytes, Segment** segment);
  // As Allocate, for copies by a flush: kFlushed.
  Status AllocateFlushed(uint32_t region, uint64_t min_bytes, Segment** segment);
  // kOpen, kCopies or kFlushed → kSealed, durable on return. `valid_bytes`, `last_sequence`: as sealed_bytes() and
  // sealed_last_sequence(). REQUIRES: the entries are durable, and no thread appends any more.
  Status Seal(Segment* segment, uint64_t valid_bytes, uint64_t last_sequence);
  // Seal in two steps, so that several segments share two drains. The caller drains after all PrepareSeal and after all
  // SealPrepared.
  void PrepareSeal(Segment* segment, uint64_t valid_bytes, uint64_t last_sequence);
  void SealPrepared(Segment* segment);
  // kOpen, kSealed or kIndex → kFree, durable on return. A segment larger than segment_size returns to the pool. While another
  // process reads segments (SetReaderCheck), a kSealed or kIndex segment becomes kFree in DRAM only, and counts as released
  // (DEFERRED RELEASES). REQUIRES: no reachable pointer leads into the segment, now and after a crash, and no reader is inside.
  Status Release(Segment* segment);
  // kCopies or kFlushed → kFree, durable on return. Clears the header first, so that a repair without descriptors does not take
  // the copies for a log. REQUIRES: as Release.
  Status Discard(Segment* segment);

  // Sets the function that tells whether another process reads segments. Release and FreeDeferred call it, one thread at a
  // time, Release at most once. REQUIRES: no other thread uses the allocator yet.
  void SetReaderCheck(std::function<bool(uint64_t bytes_in_use)> is_read);
  // Frees deferred segments on media if no process reads any more, or if `at_once`. An allocation without space does so as
  // well.
  Status FreeDeferred(bool at_once);
  // Returns true if a segment is deferred.
  bool has_deferred() const;

  // Keeps `count` spare segments of the usual size in `region`: kFree, with memory for all pages, so that Allocate neither
  // grows the pool nor takes page faults. Stops silently if there is no space. One thread at a time, which is also that of
  // GiveBackFree.
  void PrepareSpares(uint32_t region, uint32_t count);

  // For a creation: prepares a spare segment and reserves generations, so that the first Allocate in `region` needs no
  // allocation from the pool, each step of which is a sync in kPage. OK without a spare segment if there is no space.
  Status PrepareFirst(uint32_t region);

  // Gives the blocks of free segments back to the file system. Keeps those of `kept` bytes of free segments in all regions
  // together, and at least what each region needs for SpaceUse. Free segments that may have blocks of an earlier session count
  // as segments with blocks, and lose them first. A segment counts as superfluous if that many bytes were free
  // during the last kGiveBackWindow calls. The caller calls at regular times, which makes the calls a measure of time. Ends when
  // `stops` returns true, which it asks before each segment. A refusal by the file system is written to the log, and ends it.
  void GiveBackFree(uint64_t kept, const std::function<bool()>& stops);
  static constexpr int kGiveBackWindow = kCrashTest ? 1 : 3;
  // Returns true if GiveBackFree would find superfluous segments after enough calls.
  bool HasSuperfluous(uint64_t kept) const;

  // Returns the segment that contains p, null if there is none. Accepts every p. Takes no lock.
  Segment* Find(PmPtr p) const;

  // Calls `visit` for every kOpen or kSealed segment, without a lock. The set is that of one moment per region.
  void ForEachLog(const std::function<void(Segment*)>& visit) const;
  // As ForEachLog, for every kIndex segment.
  void ForEachIndex(const std::function<void(Segment*)>& visit) const;
  // As ForEachLog, for every kCopies segment.
  void ForEachCopies(const std::function<void(Segment*)>& visit) const;
  // As ForEachLog, for every kFlushed segment.
  void ForEachFlushed(const std::function<void(Segment*)>& visit) const;

  struct Usage {
    uint64_t segments = 0;  // segments in use; deferred ones do not count
    uint64_t segment_bytes = 0;
    uint64_t free_segments = 0;
    uint64_t free_bytes = 0;
    // Of the free ones: those whose blocks were given back, and those without data when the region was opened.
    uint64_t punched_segments = 0;
    uint64_t punched_bytes = 0;
  };
  Usage GetUsage(uint32_t region) const;

  uint64_t allocated_count() const;  // successful allocations since Open
  uint64_t recycled_count() const;   // releases since Open

 private:
  SegmentAllocator();
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace braiddb
