// LeafSpace: allocates leaves of a tree: blocks of one leaf each in segments of the regions.
//
// LAYOUT  A segment of a tree begins with a SpaceHeader. Behind it, from the first aligned block on (BlockStart), the segment has
//         blocks, which are leaves or free. Media do not say which: a block is a leaf if and only if the list of leaves contains
//         it, so a crash cannot leak blocks.
// COMMIT POINT   The header, flushed and fenced, before a block of the segment is given out.
// RECOVERY       A kIndex segment holds leaves if and only if its header has a matching checksum, the tree's id, and the
//                segment's generation. A header of an earlier use has another generation. [CC-42] A segment with neither leaves
//                nor inner nodes was allocated just before a crash. No link leads into it, and the open releases it.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "braiddb/status.h"
#include "pmem/persistence.h"
#include "pmem/pm_ptr.h"
#include "pmem/region_set.h"
#include "pmem/segment_allocator.h"

namespace braiddb {

struct SpaceHeader {
  static constexpr uint64_t kMagic = 0x3153464c'44415242;  // "BRADLFS1"

  uint64_t magic;        //  0
  uint64_t tree_id;      //  8
  uint64_t generation;   // 16  of the segment
  uint64_t leaf_bytes;   // 24
  uint64_t reserved[3];  // 32  zero
  uint64_t checksum;     // 56  XXH3 of bytes [0, 56)
};
static_assert(sizeof(SpaceHeader) == kCacheLine && offsetof(SpaceHeader, checksum) == 56);

// Returns true if the header belongs to a segment of this tree.
bool IsSpaceHeader(const SpaceHeader& header, uint64_t tree_id, uint64_t generation, uint32_t leaf_bytes);

// The start of the blocks of a segment. kAtLeafSize: one leaf behind the segment's start. kAtXpLine: the first address behind the
// header that is a multiple of 256, the size of Optane memory's units of writing, so that a leaf of 256 bytes is one unit.
enum class BlockStart : uint8_t { kAtLeafSize, kAtXpLine };

// Thread safety: Allocate, Free and the statistics may be called concurrently; the other methods only before them.
class LeafSpace {
 public:
  static constexpr uint64_t kXpLineBytes = 256;

  LeafSpace(RegionSet* regions, SegmentAllocator* segments, uint64_t tree_id, uint32_t leaf_bytes,
            BlockStart start = BlockStart::kAtLeafSize);

  // Finds the tree's segments and registers them; none of their blocks is free yet. False if a persist failed.
  [[nodiscard]] bool FindSegments();
  const std::vector<Segment*>& segments() const { return segments_; }
  bool Owns(const Segment* segment) const { return index_of_.contains(segment); }
  // Number and addresses of the blocks of a registered segment.
  uint64_t Blocks(const Segment& segment) const { return (segment.capacity() - Start(segment)) / leaf_bytes_; }
  PmPtr Block(const Segment& segment, uint64_t i) const { return segment.ptr(Start(segment) + i * leaf_bytes_); }

  struct Place {
    size_t segment;  // index in segments()
    uint64_t block;
  };
  // Returns false if `block` is not the address of a block.
  bool Locate(PmPtr block, Place* place) const;

  // Frees all blocks except `used`, which must be distinct. False if a pointer in `used` is not a block or occurs twice; nothing
  // is freed then.
  bool FreeOthers(const std::vector<PmPtr>& used);

  // Offset of the first block in a segment that begins at `segment`.
  static uint64_t FirstBlock(BlockStart start, PmPtr segment, uint32_t leaf_bytes) {
    if (start == BlockStart::kAtLeafSize) return leaf_bytes;
    const uint64_t begin = segment.raw();
    return (begin + sizeof(SpaceHeader) + kXpLineBytes - 1) / kXpLineBytes * kXpLineBytes - begin;
  }

  // Allocates a block with undefined contents, from the regions in rotation. NoSpace if no region has room.
  Status Allocate(PmPtr* block);
  void Free(PmPtr block) noexcept;

  uint64_t free_blocks() const;

 private:
  uint64_t Start(const Segment& segment) const { return FirstBlock(start_, segment.ptr(0), leaf_bytes_); }
  // Adds a new segment to a region. NoSpace: the region has no room.
  Status Grow(uint32_t region);
  // Registers a segment and reserves room in free_ for its blocks.
  void Add(Segment* segment);

  RegionSet* const regions_;
  SegmentAllocator* const allocator_;
  const uint64_t tree_id_;
  const uint32_t leaf_bytes_;
  const BlockStart start_;
  mutable std::mutex mutex_;
  std::vector<Segment*> segments_;
  std::unordered_map<const Segment*, size_t> index_of_;  // index in segments_
  // Free blocks per region. Capacity is reserved for all blocks, so that Free needs no memory.
  std::vector<std::vector<PmPtr>> free_;
  std::vector<uint64_t> blocks_;
  uint32_t next_region_ = 0;
};

}  // namespace braiddb
