// Layout: the bytes that pmem/ itself keeps on media, and nothing else.
//
// LAYOUT  One libpmemobj pool per region. Its root object is a RegionRoot. The root starts a linked list of DirectoryBlocks; each
//         holds SegmentDescriptors; each descriptor owns at most one pool object, the segment:
//
//         RegionRoot ──directory──► DirectoryBlock ──next──► DirectoryBlock ──next──► null
//              │ metadata[slot]        └ descriptor[i].object ──► pool object: SegmentHeader, data…
//              └──► pool object, one for each slot in use
//
//         A pool object starts at an offset that is 16 modulo 64 or any other multiple of 16; what is kept in it starts at the
//         next multiple of 64 (AlignToLine), so every structure here begins on a cache line. All integers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>

namespace braiddb {

// The version of the part list. Another one is refused.
inline constexpr uint32_t kRegionFormatVersion = 1;
// The versions of a RegionRoot that are known. Another one is refused. Those of the oldest version have no secret, their segments
// no entry_seed; both words are zero there, and stay so.
inline constexpr uint32_t kOldestRootFormatVersion = 1;
inline constexpr uint32_t kRootFormatVersion = 2;

// Media twin of PMDK's PMEMoid: the destination of each failure-atomic allocation. Null if offset is 0.
struct ObjectId {
  uint64_t pool;
  uint64_t offset;
};

// Type numbers of pool objects.
enum class PoolObject : uint64_t { kDirectoryBlock = 1, kSegment = 2, kMetadata = 3 };

inline constexpr uint64_t AlignToLine(uint64_t offset) { return (offset + 63) & ~uint64_t{63}; }

// Identity is written once at creation and checked at every open.
struct RegionRoot {
  static constexpr uint64_t kMagic = 0x31474552'44415242;  // "BRADREG1"
  static constexpr uint32_t kMetadataSlots = 16;

  uint64_t magic;                     //   0
  uint32_t format_version;            //   8
  uint32_t region;                    //  12  index of this region
  uint64_t database_id;               //  16  random, shared by the regions of one database
  uint32_t region_count;              //  24
  uint32_t unused;                    //  28  zero
  uint64_t checksum;                  //  32  XXH3 of bytes [0, 32)
  uint64_t generation_word;           //  40  generation limit << 16 | 16 bits of its XXH3; no generation at or above was used
  ObjectId directory;                 //  48  first DirectoryBlock
  ObjectId metadata[kMetadataSlots];  //  64
  uint64_t metadata_bytes[kMetadataSlots];  // 320  size asked for
  uint64_t metadata_check[kMetadataSlots];  // 448  hash of both; 0: the slot is empty, or its allocation was cut short
  uint64_t directory_blocks;                // 576  at least so many blocks are linked (a lost link shows)
  uint64_t secret;                          // 584  random, never 0, shared by the regions; version 1: 0
  uint64_t secret_check;                    // 592  XXH3 of bytes [0, 32), seeded with `secret`; version 1: 0
  uint64_t unused2[5];                      // 600  zero
};
static_assert(sizeof(RegionRoot) == 640);
static_assert(offsetof(RegionRoot, checksum) == 32 && offsetof(RegionRoot, generation_word) == 40);
static_assert(offsetof(RegionRoot, directory) == 48 && offsetof(RegionRoot, metadata) == 64);
static_assert(offsetof(RegionRoot, metadata_bytes) == 320 && offsetof(RegionRoot, metadata_check) == 448);
static_assert(offsetof(RegionRoot, directory_blocks) == 576 && offsetof(RegionRoot, secret) == 584);

// LAYOUT        One cache line. `object` is written by PMDK's allocator alone.
// COMMIT POINT  The 8-byte store of state_word: SegmentState in the low byte, above it 56 bits of XXH3 over the fields that the
//               state gives a meaning to (segment_directory.cc, StateWord). 0 is a slot that is not in use.
// RECOVERY      Valid if and only if the upper bits of state_word match, or the object is null and the state is kUnused or kFree.
//               kUnused with an object: an allocation that was cut short. kFree without: a return to the pool that was cut short.
//               Open finishes both.
// IMITATION     `entry_seed` is drawn at random for each use of the segment, with the top bit set, and seeds the checksums of the
//               entries. A user's value that holds bytes of an entry may come to lie behind the end of a later log, as what is
//               left of an earlier use. It has a wrong checksum there: when the value was written, nobody knew the number of the
//               later use. A copy of the files tells the numbers of the uses until then, and of none that begins after it.
struct SegmentDescriptor {
  ObjectId object;                //  0  the segment
  uint64_t chunks;                // 16  its size in units of kChunkBytes
  uint64_t generation;            // 24  in use: of this use
  uint64_t sealed_bytes;          // 32  kSealed: bytes of valid entries
  uint64_t sealed_last_sequence;  // 40  kSealed: largest sequence number in it
  uint64_t state_word;            // 48
  uint64_t entry_seed;            // 56  in use: of this use; 0: the generation is the seed (version 1)
};
static_assert(sizeof(SegmentDescriptor) == 64 && offsetof(SegmentDescriptor, entry_seed) == 56);
static_assert(offsetof(SegmentDescriptor, chunks) == 16 && offsetof(SegmentDescriptor, state_word) == 48);

// Zeroed and tagged before PMDK links it.
struct DirectoryBlock {
  static constexpr uint32_t kDescriptors = 63;

  ObjectId next;                                //  0
  uint64_t tag;                                 // 16  hash of database id, region, number and place of this block
  uint64_t unused[5];                           // 24  zero
  SegmentDescriptor descriptors[kDescriptors];  // 64
};
static_assert(sizeof(DirectoryBlock) == 4096 && offsetof(DirectoryBlock, descriptors) == 64);

// The first line of a segment: what this memory is, for whoever finds it without its descriptor. Rewritten at each Allocate.
struct SegmentHeader {
  static constexpr uint64_t kMagic = 0x31474553'44415242;  // "BRADSEG1"

  uint64_t magic;        //  0
  uint64_t database_id;  //  8
  uint32_t region;       // 16
  uint32_t unused0;      // 20  zero
  uint64_t generation;   // 24
  uint64_t capacity;     // 32  bytes of data after this header
  uint64_t checksum;     // 40  XXH3 of bytes [0, 40), seeded with entry_seed
  uint64_t entry_seed;   // 48  as in the descriptor
  uint64_t mark;         // 56  XXH3 of bytes [0, 56), seeded with the secret of the root: it is no user's value; version 1: 0
};
static_assert(sizeof(SegmentHeader) == 64 && offsetof(SegmentHeader, checksum) == 40);
static_assert(offsetof(SegmentHeader, entry_seed) == 48 && offsetof(SegmentHeader, mark) == 56);

// PMDK hands out large objects in chunks of 256 KiB and takes 16 bytes of the first one. A segment of n chunks:
//   chunk start │ 16 PMDK │ 48 alignment │ 64 SegmentHeader │ data: n · 256 KiB − 128
inline constexpr uint64_t kChunkBytes = 256ull << 10;
inline constexpr uint64_t kObjectHeaderBytes = 16;
inline constexpr uint64_t kSegmentOverhead = kObjectHeaderBytes + 48 + sizeof(SegmentHeader);
static_assert(kSegmentOverhead == 128);

}  // namespace braiddb
