// InnerImage: the inner nodes as they were at a clean close, in persistent memory: the next open need not read the leaves.
//
// LAYOUT  One segment: ImageHeader, then `count` children, in order, each of 16 bytes: prefix u64, place of the leaf u64
//         with bit 0 set if the separator has a rest and the leaf's number of sorted elements in bits 56–63; the rest
//         follows: sequence number u64, key size u64, key, zero to seven bytes.
// COMMIT POINT   The store of NvTreeRoot::image.
// PERSIST ORDER  P1 the segment  P2 the link in the root  P3 at the next open: the link is 0, before any leaf changes. [CC-44]
// RECOVERY       The image is that of the leaves if and only if the root links to it and both checksums match. Without one the
//                inner nodes are rebuilt from the leaves, with the same result.
// CONCURRENCY    None: before the first and after the last call to the tree.
// LIFETIME       The segment stays the tree's, for the next close; one that became too small is released then, and one whose
//                header a crash left unfinished by the next open.
#pragma once

#include <cstdint>
#include <vector>

#include "braiddb/status.h"
#include "nvtree/inner_nodes.h"
#include "pmem/region_set.h"
#include "pmem/segment_allocator.h"

namespace braiddb {

struct ImageHeader {
  static constexpr uint64_t kMagic = 0x31494e49'44415242;  // "BRADINI1"

  uint64_t magic;          //  0
  uint64_t tree_id;        //  8
  uint64_t generation;     // 16  of the segment
  uint64_t bytes;          // 24  of the children
  uint64_t count;          // 32  of children
  uint64_t data_checksum;  // 40  XXH3 of the children
  uint64_t reserved;       // 48  zero
  uint64_t checksum;       // 56  XXH3 of bytes [0, 56)
};
static_assert(sizeof(ImageHeader) == kCacheLine && offsetof(ImageHeader, checksum) == 56);

// The image segments of a tree, whether they are linked or not.
std::vector<Segment*> FindImages(const SegmentAllocator& segments, uint64_t tree_id);

// Writes an image, durably, to *segment, or to a new segment if that is null or too small. NoSpace if there is none.
// REQUIRES: no image is linked.
Status WriteImage(RegionSet* regions, SegmentAllocator* segments, uint64_t tree_id,
                  const std::vector<InnerNodes::Child>& children, Segment** segment);

// Whether there is a whole image in a segment with that much room; its children are added then. Their places are not looked at.
bool ReadImage(const uint8_t* data, uint64_t capacity, uint64_t generation, uint64_t tree_id, InnerNodes::NewChildren* children);

}  // namespace braiddb
