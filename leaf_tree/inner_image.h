// InnerImage: a copy of the inner nodes in persistent memory, written by a clean close, so that the next open need not read the
// leaves.
//
// LAYOUT  One segment: ImageHeader, then `count` children in order. A child has 16 bytes: prefix u64; address of the leaf u64,
//         with bit 0 set if the separator has a rest, and the leaf's hint (InnerNodes::Child) in bits 56–63. The rest of the
//         separator follows: sequence number u64, key size u64, key, zeros to a multiple of 8.
// COMMIT POINT   The store of LeafTreeRoot::image.
// PERSIST ORDER  P1 the segment  P2 the link in the root  P3 at the next open: the link is 0, before any leaf changes. [CC-44]
// RECOVERY       The image describes the leaves if and only if the root links to it and both checksums match. Otherwise the inner
//                nodes are rebuilt from the leaves, with the same result.
// CONCURRENCY    None: used before the first and after the last other call to the tree.
// LIFETIME       The tree keeps the segment for the next close. A close releases a segment that is too small. The next open
//                releases a segment whose header was not finished before a crash.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "braiddb/status.h"
#include "leaf_tree/inner_nodes.h"
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
  uint64_t elements;       // 48  one more than all leaves have; 0: unknown
  uint64_t checksum;       // 56  XXH3 of bytes [0, 56)
};
static_assert(sizeof(ImageHeader) == kCacheLine && offsetof(ImageHeader, checksum) == 56);

// All segments with an image header of this tree, linked or not.
std::vector<Segment*> FindImages(const SegmentAllocator& segments, uint64_t tree_id);

// `elements`: in all leaves; none: unknown.
// Writes an image durably to *segment, or to a new segment if *segment is null or too small. NoSpace: no segment was free.
// REQUIRES: no image is linked.
Status WriteImage(RegionSet* regions, SegmentAllocator* segments, uint64_t tree_id,
                  const std::vector<InnerNodes::Child>& children, std::optional<uint64_t> elements, Segment** segment);

// Returns true and adds the children if the segment contains a valid image. Does not check the leaves' addresses.
bool ReadImage(const uint8_t* data, uint64_t capacity, uint64_t generation, uint64_t tree_id, InnerNodes::NewChildren* children,
               std::optional<uint64_t>* elements);

}  // namespace braiddb
