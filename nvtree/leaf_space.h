// LeafSpace: the space of leaves: segments of the regions, cut into blocks of one leaf each.
//
// LAYOUT  A segment that belongs to a tree begins with a SpaceHeader, in a block of its own; the other blocks of it are leaves or
//         free. Nothing on media says which: a leaf is what the list of leaves reaches, so that nothing can leak.
// COMMIT POINT   The header, flushed and fenced, before a block of the segment is given out.
// RECOVERY       A kIndex segment holds leaves if and only if its header's checksum matches, it carries the tree's id, and the
//                segment's generation: what an earlier use left behind does not. [CC-42] One that holds neither leaves nor inner
//                nodes was taken just before a crash; nothing leads into it, and the open releases it.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "braiddb/status.h"
#include "nvtree/leaf.h"
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

// Whether it is that of such a segment.
bool IsSpaceHeader(const SpaceHeader& header, uint64_t tree_id, uint64_t generation, uint32_t leaf_bytes);

// Thread safety: Allocate, Free and the statistics may be called concurrently; all else before that.
class LeafSpace {
 public:
  LeafSpace(RegionSet* regions, SegmentAllocator* segments, uint64_t tree_id, uint32_t leaf_bytes);

  // Takes the segments of the tree into use: none of their blocks is free yet. False if a persist failed.
  [[nodiscard]] bool FindSegments();
  const std::vector<Segment*>& segments() const { return segments_; }
  bool Owns(const Segment* segment) const { return index_of_.contains(segment); }
  // Number and places of the blocks of one of them.
  uint64_t Blocks(const Segment& segment) const { return segment.capacity() / leaf_bytes_ - 1; }
  PmPtr Block(const Segment& segment, uint64_t i) const { return segment.ptr((i + 1) * leaf_bytes_); }

  struct Place {
    size_t segment;  // of segments()
    uint64_t block;
  };
  // Whether there is such a block.
  bool Locate(PmPtr block, Place* place) const;

  // All blocks but these, which are all different, are free. False if one of them is none; nothing changes then.
  bool FreeOthers(const std::vector<PmPtr>& used);

  // A block with any content, from the regions in turn. NoSpace if none of them has room.
  Status Allocate(PmPtr* block);
  void Free(PmPtr block) noexcept;

  uint64_t free_blocks() const;

 private:
  Status Grow(uint32_t region);
  void Add(Segment* segment);

  RegionSet* const regions_;
  SegmentAllocator* const allocator_;
  const uint64_t tree_id_;
  const uint32_t leaf_bytes_;
  mutable std::mutex mutex_;
  std::vector<Segment*> segments_;
  std::unordered_map<const Segment*, size_t> index_of_;  // in segments_
  // By region. There is room for all blocks: Free needs no memory.
  std::vector<std::vector<PmPtr>> free_;
  std::vector<uint64_t> blocks_;
  uint32_t next_region_ = 0;
};

}  // namespace braiddb
