// SegmentDirectory: the segment descriptors of one region, on media. It makes every durable change of a segment's state.
//
// LAYOUT        layout.h: blocks of descriptors, linked from the region's root. Slots are reused; blocks are never freed.
// STATES        unused ──Take──► taken ──Open──► in use ──Seal──► kSealed ──Free──► kFree ──Open──► in use …
//               unused: state_word 0, no object. taken: kUnused with an object. In use: kOpen, kIndex, kCopies, kFlushed,
//               kSealed.
//               kFree ──Return──► unused. Taken and in use ──Free──► kFree.
// COMMIT POINT  Of each transition: the store of state_word. Exception: unused → taken commits with PMDK's store of `object`.
// PERSIST ORDER unused → taken   P1 chunks, state_word = allocating  P2 object, by PMDK
//               → in use         P1 SegmentHeader, generation, entry_seed  P2 state_word
//               → kSealed        P1 sealed_bytes, sealed_last_sequence  P2 state_word
//               → kFree          P1 for copies that are discarded: no header  P2 state_word
//               kFree → unused   P1 object = null, by PMDK  P2 state_word = 0
//               [CC-34] [CC-35] [CC-36] [CC-47]
// CRASH         after P1 of a transition: the old state counts, since the new fields have no meaning in it. After P2: the new
//               one.
// RECOVERY      Load checks all descriptors before anything changes. PersistFound makes them durable: stores of a killed
//               process may be in the caches only [CC-46]. Finish completes an allocation or a return that a crash has cut
//               short.
// CONCURRENCY   The thread that owns a segment changes its descriptor. AddBlock: one thread at a time. NextGeneration and
//               ReserveGenerations: one thread at a time.
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

  // Returns all descriptors, in the order of the directory. Writes nothing. Corruption: a link or a descriptor is damaged, two
  // segments overlap, or a generation was never given out.
  Status Load(std::vector<SegmentDescriptor*>* descriptors);
  // Makes the descriptors that Load has found durable. REQUIRES: Load has returned OK.
  Status PersistFound(const std::vector<SegmentDescriptor*>& descriptors);
  // Completes an allocation or a return that a crash has cut short. Returns a kFree segment of more than `max_kept_chunks`
  // chunks to the pool, unless the file system has too little space for its blocks.
  Status Finish(SegmentDescriptor* descriptor, uint64_t max_kept_chunks);
  // Adds a block to the directory, and appends its descriptors, which are unused, to *descriptors. NoSpace: nothing has
  // changed.
  Status AddBlock(std::vector<SegmentDescriptor*>* descriptors);

  // Sets *generation to a number that no use of a segment of this region has had. Every 64th call makes a new limit durable.
  Status NextGeneration(uint64_t* generation);
  // Persists a limit now, so that the next NextGeneration does not.
  Status ReserveGenerations();

  // unused → taken: allocates a segment of `chunks` chunks from the pool. NoSpace: the descriptor stays unused.
  Status Take(SegmentDescriptor* descriptor, uint64_t chunks);
  // taken or kFree → kOpen, kIndex, kCopies or kFlushed
  Status Open(SegmentDescriptor* descriptor, uint64_t generation, SegmentState state);
  // kOpen, kCopies or kFlushed → kSealed
  Status Seal(SegmentDescriptor* descriptor, uint64_t valid_bytes, uint64_t last_sequence);
  // Seal in two steps that flush and do not wait: PrepareSeal, a drain, SealPrepared, and a drain that makes the seal durable.
  // So several segments share the two drains.
  void PrepareSeal(SegmentDescriptor* descriptor, uint64_t valid_bytes, uint64_t last_sequence);
  void SealPrepared(SegmentDescriptor* descriptor);
  // Clears the header of a kCopies or kFlushed segment that is freed next, durably.
  Status EraseHeader(SegmentDescriptor* descriptor);
  // taken or in use → kFree
  Status Free(SegmentDescriptor* descriptor);
  // kFree → unused. Frees the segment's object in the pool. REQUIRES: all pages of the segment have blocks.
  Status Return(SegmentDescriptor* descriptor);

  static SegmentState StateOf(const SegmentDescriptor& descriptor);
  static uint64_t CapacityOf(const SegmentDescriptor& descriptor);
  // Offset of the first entry from the start of the pool; a multiple of 64.
  static uint64_t DataOffsetOf(const SegmentDescriptor& descriptor);

 private:
  // Checks state, checksum, bounds and, if it costs no page of entries, the header of one descriptor.
  Status Check(const SegmentDescriptor& descriptor) const;
  Status CheckHeader(const SegmentDescriptor& descriptor) const;
  Status CheckOverlap(const std::vector<SegmentDescriptor*>& descriptors) const;
  Status CheckGenerations(const std::vector<SegmentDescriptor*>& descriptors) const;
  // Returns a Corruption of this region's directory.
  Status Damaged(const char* what) const;
  uint64_t BlockTag(uint64_t number, uint64_t object_offset) const;
  DirectoryBlock* BlockAt(uint64_t object_offset) const;
  // Stores and flushes the word; the next drain makes it durable.
  void StoreStateWord(SegmentDescriptor* descriptor, uint64_t word);
  Status PersistStateWord(SegmentDescriptor* descriptor, uint64_t word);
  // Draws the seed of a new use of a segment; 0 in a region of version 1.
  uint64_t NewEntrySeed() const;
  SegmentHeader* HeaderOf(const SegmentDescriptor& descriptor) const;

  Region* const region_;
  ObjectId* last_link_ = nullptr;  // the null link at the end of the list, to which AddBlock links a block
  uint64_t block_count_ = 0;
  uint64_t next_generation_ = 0;   // the next one to give out
  uint64_t generation_limit_ = 0;  // the durable limit; generations below may be given out
};

}  // namespace braiddb
