// SegmentDirectory: the segment descriptors of one region, on media. Every durable change of a segment's state is here.
//
// LAYOUT        layout.h: blocks of descriptors, linked from the region's root. Slots are reused, blocks never freed.
// COMMIT POINT  of each transition: its store of state_word (kUnused ⇒ object: PMDK's own, which stores `object`).
// PERSIST ORDER kUnused → taken  P1 chunks, state_word = allocating   P2 object, by PMDK
//               → kOpen, kIndex, kCopies, kFlushed  P1 SegmentHeader, generation, entry_seed  P2 state_word
//               → kSealed        P1 sealed_bytes, sealed_last_sequence  P2 state_word
//               → kFree          P1 of copies that are discarded: no header  P2 state_word
//               kFree → unused   P1 object = null, by PMDK            P2 state_word = 0
// RECOVERY      Load checks all descriptors before anything is changed; PersistFound makes them durable, which those that a
//               killed process left need not be [CC-46]; Finish completes what a crash cut short.
// CONCURRENCY   A descriptor is changed by the one thread that owns its segment. AddBlock and NextGeneration: one thread at a
// time.
#pragma once

#include <cstdint>
#include <vector>

#include "braiddb/status.h"
#include "pmem/layout.h"
#include "pmem/region.h"
#include "pmem/segment_allocator.h"

namespace braiddb {

class SegmentDirectory {
 public:
  explicit SegmentDirectory(Region* region) : region_(region) {}

  // All descriptors, in the order of the directory. Corruption if one is damaged or two segments overlap; nothing is written.
  Status Load(std::vector<SegmentDescriptor*>* descriptors);
  // Makes durable what Load found. REQUIRES: Load was called.
  Status PersistFound(const std::vector<SegmentDescriptor*>& descriptors);
  // Completes the allocation or the return that a crash cut short. Segments of more than `max_kept_chunks` are not kept kFree.
  Status Finish(SegmentDescriptor* descriptor, uint64_t max_kept_chunks);
  // Appends fresh, unused descriptors.
  Status AddBlock(std::vector<SegmentDescriptor*>* descriptors);

  // A number that no use of any segment of this region ever had. One persist in 64 calls.
  Status NextGeneration(uint64_t* generation);
  // The next NextGeneration makes nothing durable.
  Status ReserveGenerations();

  // Gives an unused descriptor a segment of `chunks` chunks from the pool. NoSpace leaves it unused.
  Status Take(SegmentDescriptor* descriptor, uint64_t chunks);
  // taken or kFree → kOpen, kIndex, kCopies or kFlushed
  Status Open(SegmentDescriptor* descriptor, uint64_t generation, SegmentState state);
  // kOpen, kCopies or kFlushed → kSealed
  Status Seal(SegmentDescriptor* descriptor, uint64_t valid_bytes, uint64_t last_sequence);
  // Seal in two steps, which flush and do not wait: after a drain, SealPrepared; a second drain makes the seal durable.
  void PrepareSeal(SegmentDescriptor* descriptor, uint64_t valid_bytes, uint64_t last_sequence);
  void SealPrepared(SegmentDescriptor* descriptor);
  // Of a kCopies or kFlushed that is freed next: its header.
  Status EraseHeader(SegmentDescriptor* descriptor);
  // taken or in use → kFree
  Status Free(SegmentDescriptor* descriptor);
  // kFree → unused; the memory goes back to the pool.
  Status Return(SegmentDescriptor* descriptor);

  static SegmentState StateOf(const SegmentDescriptor& descriptor);
  static uint64_t CapacityOf(const SegmentDescriptor& descriptor);
  // From the start of the pool; 64-byte aligned.
  static uint64_t DataOffsetOf(const SegmentDescriptor& descriptor);

 private:
  Status Check(const SegmentDescriptor& descriptor) const;
  Status CheckHeader(const SegmentDescriptor& descriptor) const;
  Status CheckOverlap(const std::vector<SegmentDescriptor*>& descriptors) const;
  Status CheckGenerations(const std::vector<SegmentDescriptor*>& descriptors) const;
  Status Damaged(const char* what) const;
  uint64_t BlockTag(uint64_t number, uint64_t object_offset) const;
  DirectoryBlock* BlockAt(uint64_t object_offset) const;
  void StoreStateWord(SegmentDescriptor* descriptor, uint64_t word);
  Status PersistStateWord(SegmentDescriptor* descriptor, uint64_t word);
  // Of a new use of a segment; 0 in a region of the oldest version.
  uint64_t NewEntrySeed() const;
  SegmentHeader* HeaderOf(const SegmentDescriptor& descriptor) const;

  Region* const region_;
  ObjectId* last_link_ = nullptr;  // where the next block will hang
  uint64_t block_count_ = 0;
  uint64_t next_generation_ = 0;
  uint64_t generation_limit_ = 0;
};

}  // namespace braiddb
