#include "pmem/layout_check.h"

#include <xxhash.h>

#include "util/check.h"

namespace braiddb {

uint64_t RootChecksum(const RegionRoot& root) { return XXH3_64bits(&root, offsetof(RegionRoot, checksum)); }

uint64_t RootSecretCheck(const RegionRoot& root) {
  return root.secret == 0 ? 0 : XXH3_64bits_withSeed(&root, offsetof(RegionRoot, checksum), root.secret);
}

uint64_t EncodeGenerationLimit(uint64_t limit) { return limit << 16 | (XXH3_64bits(&limit, sizeof(limit)) & 0xffff); }

uint64_t MetadataCheck(const RegionRoot& root, uint32_t slot) {
  BRAIDDB_DCHECK(slot < RegionRoot::kMetadataSlots);
  const uint64_t fields[] = {root.metadata[slot].pool, root.metadata[slot].offset, root.metadata_bytes[slot]};
  return XXH3_64bits(fields, sizeof(fields)) | 1;
}

uint64_t DirectoryBlockTag(uint64_t database_id, uint32_t region, uint64_t number, uint64_t object_offset) {
  const uint64_t fields[] = {database_id, region, number, object_offset};
  return XXH3_64bits(fields, sizeof(fields));
}

// A field without a meaning in the state counts as zero, so its bytes on media do not matter: stale fields of an earlier use,
// and fields that are stored for the next state before that state's word.
uint64_t SegmentStateWord(const SegmentDescriptor& d, SegmentState state) {
  uint64_t fields[8] = {static_cast<uint64_t>(state), d.chunks};
  if (state != SegmentState::kUnused) {
    fields[2] = d.object.pool;
    fields[3] = d.object.offset;
  }
  if (IsUsed(state)) fields[4] = d.generation;
  if (state == SegmentState::kSealed) {
    fields[5] = d.sealed_bytes;
    fields[6] = d.sealed_last_sequence;
  }
  if (IsUsed(state)) fields[7] = d.entry_seed;
  const size_t count = fields[7] != 0 ? 8 : 7;  // version 1 hashes seven fields
  const uint64_t word = (XXH3_64bits(fields, count * sizeof(uint64_t)) & ~uint64_t{0xff}) | static_cast<uint64_t>(state);
  return word != 0 ? word : uint64_t{1} << 63;  // 0 means that the slot is not in use
}

uint64_t SegmentHeaderChecksum(const SegmentHeader& header) {
  return XXH3_64bits_withSeed(&header, offsetof(SegmentHeader, checksum), header.entry_seed);
}

uint64_t SegmentHeaderMark(const SegmentHeader& header, uint64_t secret) {
  return secret == 0 ? 0 : XXH3_64bits_withSeed(&header, offsetof(SegmentHeader, mark), secret);
}

}  // namespace braiddb
