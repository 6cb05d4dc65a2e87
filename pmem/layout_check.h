// The hashes that layout.h names, and the geometry of a segment. One place for those who write them and those who only look.
#pragma once

#include <cstdint>

#include "pmem/layout.h"
#include "pmem/segment_allocator.h"

namespace braiddb {

uint64_t RootChecksum(const RegionRoot& root);
uint64_t RootSecretCheck(const RegionRoot& root);
// Of both. REQUIRES: the version is known.
inline bool IsRootSound(const RegionRoot& root) {
  return root.checksum == RootChecksum(root) && root.secret_check == RootSecretCheck(root) &&
         (root.secret != 0) == (root.format_version > kOldestRootFormatVersion);
}
inline bool IsKnownRootVersion(uint32_t version) { return version >= kOldestRootFormatVersion && version <= kRootFormatVersion; }
// The limit of generations as the root stores it: with 16 bits of its hash.
uint64_t EncodeGenerationLimit(uint64_t limit);
// Of one slot of metadata; never 0. A slot that lost its object does not match either.
uint64_t MetadataCheck(const RegionRoot& root, uint32_t slot);

// Of block `number` of the directory, counted from the root.
uint64_t DirectoryBlockTag(uint64_t database_id, uint32_t region, uint64_t number, uint64_t object_offset);
// The state in the low byte, above it a hash of the state and of the fields that mean something in it.
uint64_t SegmentStateWord(const SegmentDescriptor& descriptor, SegmentState state);
uint64_t SegmentHeaderChecksum(const SegmentHeader& header);
// `secret`: of the root. 0 for 0.
uint64_t SegmentHeaderMark(const SegmentHeader& header, uint64_t secret);
// What seeds the checksums of entries: of a descriptor or a header.
template <class Owner>
uint64_t EntrySeed(const Owner& owner) {
  return owner.entry_seed != 0 ? owner.entry_seed : owner.generation;
}
// The top bit of an entry_seed: none is a generation.
inline constexpr uint64_t kEntrySeedBit = uint64_t{1} << 63;

// Bytes of the pool object of a segment.
inline uint64_t SegmentObjectBytes(uint64_t chunks) { return chunks * kChunkBytes - kObjectHeaderBytes; }
inline uint64_t SegmentHeaderOffset(const SegmentDescriptor& descriptor) { return AlignToLine(descriptor.object.offset); }
inline uint64_t SegmentDataOffset(const SegmentDescriptor& descriptor) {
  return SegmentHeaderOffset(descriptor) + sizeof(SegmentHeader);
}
// Bytes of data; the last cache line that lies in the object whole ends them.
inline uint64_t SegmentCapacity(const SegmentDescriptor& descriptor) {
  const uint64_t end = (descriptor.object.offset + SegmentObjectBytes(descriptor.chunks)) & ~uint64_t{63};
  return end - SegmentDataOffset(descriptor);
}

}  // namespace braiddb
