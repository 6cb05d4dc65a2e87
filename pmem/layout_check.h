// The hashes that layout.h names, and the geometry of a segment. Writers (region_root.cc, segment_directory.cc) and readers
// (check/, pool_files.cc) share these functions, so both compute the same words.
#pragma once

#include <cstdint>

#include "pmem/layout.h"
#include "pmem/segment_allocator.h"
#include "util/check.h"

namespace braiddb {

// Returns the XXH3 of the identity, bytes [0, 32) of the root.
uint64_t RootChecksum(const RegionRoot& root);
// Returns the XXH3 of the identity, seeded with the root's secret; 0 if there is no secret (version 1).
uint64_t RootSecretCheck(const RegionRoot& root);
// Returns true if checksum and secret_check match, and the root has a secret exactly if its version has one.
// REQUIRES: the version is known.
inline bool IsRootSound(const RegionRoot& root) {
  return root.checksum == RootChecksum(root) && root.secret_check == RootSecretCheck(root) &&
         (root.secret != 0) == (root.format_version > kOldestRootFormatVersion);
}
// Returns true if this program can open a region of that version.
inline bool IsKnownRootVersion(uint32_t version) { return version >= kOldestRootFormatVersion && version <= kRootFormatVersion; }
// Returns RegionRoot::generation_word for a limit. REQUIRES: limit < 2^48.
uint64_t EncodeGenerationLimit(uint64_t limit);
// Returns RegionRoot::metadata_check for a slot with an object: a hash of id and size, never 0. A slot that has lost its object
// does not match its check.
uint64_t MetadataCheck(const RegionRoot& root, uint32_t slot);

// Returns DirectoryBlock::tag for block `number`, counted from the root, whose pool object starts at `object_offset`.
uint64_t DirectoryBlockTag(uint64_t database_id, uint32_t region, uint64_t number, uint64_t object_offset);
// Returns SegmentDescriptor::state_word for a state: the state in the low byte, above it a hash of the state and of the fields
// that have a meaning in this state. Never 0, which marks a slot that is not in use.
uint64_t SegmentStateWord(const SegmentDescriptor& descriptor, SegmentState state);
// Returns SegmentHeader::checksum.
uint64_t SegmentHeaderChecksum(const SegmentHeader& header);
// Returns SegmentHeader::mark for the secret of the root; 0 if the secret is 0 (version 1).
uint64_t SegmentHeaderMark(const SegmentHeader& header, uint64_t secret);
// Returns the seed of the checksums of entries. `owner`: a SegmentDescriptor or a SegmentHeader.
template <class Owner>
uint64_t EntrySeed(const Owner& owner) {
  return owner.entry_seed != 0 ? owner.entry_seed : owner.generation;
}
// The top bit, set in every entry_seed. Generations have 48 bits, so no seed equals a generation.
inline constexpr uint64_t kEntrySeedBit = uint64_t{1} << 63;

// Returns the bytes of the pool object of a segment: its chunks without PMDK's header.
inline uint64_t SegmentObjectBytes(uint64_t chunks) {
  BRAIDDB_DCHECK(chunks > 0);
  return chunks * kChunkBytes - kObjectHeaderBytes;
}
// Returns the offset of the SegmentHeader, and of the first entry, from the start of the pool. Both are multiples of 64.
inline uint64_t SegmentHeaderOffset(const SegmentDescriptor& descriptor) { return AlignToLine(descriptor.object.offset); }
inline uint64_t SegmentDataOffset(const SegmentDescriptor& descriptor) {
  return SegmentHeaderOffset(descriptor) + sizeof(SegmentHeader);
}
// Returns the bytes for entries: from the first entry to the end of the last cache line that lies completely in the object.
// REQUIRES: chunks > 0.
inline uint64_t SegmentCapacity(const SegmentDescriptor& descriptor) {
  const uint64_t end = (descriptor.object.offset + SegmentObjectBytes(descriptor.chunks)) & ~uint64_t{63};
  return end - SegmentDataOffset(descriptor);
}

}  // namespace braiddb
