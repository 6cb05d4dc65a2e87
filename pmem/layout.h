// Layout: the structures that pmem/ itself keeps in a pool. This file has their bytes and nothing else; layout_check.h has the
// hashes, segment_directory.h and region_root.cc have the stores.
//
// LAYOUT  One libpmemobj pool per region. Its root object is a RegionRoot. The root starts a linked list of DirectoryBlocks.
//         Each block holds SegmentDescriptors. Each descriptor owns at most one pool object, the segment:
//
//         RegionRoot ──directory──► DirectoryBlock ──next──► DirectoryBlock ──next──► null
//              │ metadata[slot]        └ descriptor[i].object ──► pool object: SegmentHeader, data…
//              └──► pool object, one for each slot in use
//
//         A pool object starts at a multiple of 16. Its content starts at the next multiple of 64 (AlignToLine), so every
//         structure here begins on a cache line. All integers are little-endian.
// ATOMICITY  Words that change while a region is open are 8 bytes and aligned to 8, so a crash leaves the old or the new value.
//         An ObjectId has two words. PMDK stores both from its redo log, so a crash in between is finished at the next open.
// HASHES  Every structure carries hashes of its fields. No hash is needed for crashes: the order of stores leaves valid states
//         only. Hashes detect damaged media.
#pragma once

#include <cstddef>
#include <cstdint>

namespace braiddb {

// The version of the part list. A list of another version is refused with NotSupported.
inline constexpr uint32_t kRegionFormatVersion = 1;
// The known versions of a RegionRoot. A root of another version is refused with NotSupported. A region of version 1 has no
// secret, and its segments have no entry_seed: both words are zero and stay zero.
inline constexpr uint32_t kOldestRootFormatVersion = 1;
inline constexpr uint32_t kRootFormatVersion = 2;

// The same 16 bytes as PMDK's PMEMoid: the destination of each failure-atomic allocation. Null if offset is 0.
//     0  pool    u64  identity of the pool (PoolView::identity)
//     8  offset  u64  of the object, from the start of the pool
struct ObjectId {
  uint64_t pool;
  uint64_t offset;
};
static_assert(sizeof(ObjectId) == 16 && alignof(ObjectId) == 8 && offsetof(ObjectId, offset) == 8);

// Type numbers of pool objects, which PMDK stores in the header of each object. BraidDB does not read them.
enum class PoolObject : uint64_t { kDirectoryBlock = 1, kSegment = 2, kMetadata = 3 };

// Returns the smallest multiple of the cache line that is at least `offset`.
inline constexpr uint64_t AlignToLine(uint64_t offset) { return (offset + 63) & ~uint64_t{63}; }

// RegionRoot: the root object of a region's pool.
//
// LAYOUT        640 bytes, ten cache lines; offsets below. [0, 32) is the identity of the region.
// COMMIT POINT  Of the creation: the removal of the mark CREATING, after the whole root is durable. Of a raise of the
//               generation limit: the store of generation_word. Of a metadata object: PMDK's store of metadata[slot].
// PERSIST ORDER Of a metadata slot: region_root.cc. Of the directory: the link in the last block (or `directory`), then
//               directory_blocks. [CC-32] [CC-34]
// RECOVERY      A root is valid if and only if the version is known, checksum and secret_check match the identity, and the
//               identity is that of the part list.
// CONCURRENCY   The identity never changes. generation_word: one thread at a time, under the region's generation_mutex.
//               Metadata slots: under Region::metadata_mutex_. directory_blocks: the thread that adds a block, under
//               take_mutex.
// LIFETIME      As the pool.
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
  uint64_t generation_word;           //  40  generation limit << 16 | 16 bits of its XXH3; used generations are below the limit
  ObjectId directory;                 //  48  first DirectoryBlock
  ObjectId metadata[kMetadataSlots];  //  64
  uint64_t metadata_bytes[kMetadataSlots];  // 320  size asked for
  uint64_t metadata_check[kMetadataSlots];  // 448  hash of both; 0: the slot is empty, or its allocation was cut short
  uint64_t directory_blocks;                // 576  lower bound of the number of linked blocks; detects a lost link
  uint64_t secret;                          // 584  random, never 0, shared by the regions; version 1: 0
  uint64_t secret_check;                    // 592  XXH3 of bytes [0, 32), seeded with `secret`; version 1: 0
  uint64_t unused2[5];                      // 600  zero
};
static_assert(sizeof(RegionRoot) == 640);
static_assert(offsetof(RegionRoot, magic) == 0 && offsetof(RegionRoot, format_version) == 8);
static_assert(offsetof(RegionRoot, region) == 12 && offsetof(RegionRoot, database_id) == 16);
static_assert(offsetof(RegionRoot, region_count) == 24 && offsetof(RegionRoot, unused) == 28);
static_assert(offsetof(RegionRoot, checksum) == 32 && offsetof(RegionRoot, generation_word) == 40);
static_assert(offsetof(RegionRoot, directory) == 48 && offsetof(RegionRoot, metadata) == 64);
static_assert(offsetof(RegionRoot, metadata_bytes) == 320 && offsetof(RegionRoot, metadata_check) == 448);
static_assert(offsetof(RegionRoot, directory_blocks) == 576 && offsetof(RegionRoot, secret) == 584);
static_assert(offsetof(RegionRoot, secret_check) == 592 && offsetof(RegionRoot, unused2) == 600);
static_assert(offsetof(RegionRoot, generation_word) % 8 == 0 && offsetof(RegionRoot, directory_blocks) % 8 == 0,
              "words that change are stored atomically");

// SegmentDescriptor: a slot of the directory, with the state and the facts of one segment.
//
// LAYOUT        One cache line. `object` is written by PMDK's allocator alone.
// COMMIT POINT  The 8-byte store of state_word: SegmentState in the low byte, above it 56 bits of XXH3 over the fields that the
//               state gives a meaning to (SegmentStateWord). The value 0 marks a slot that is not in use.
// PERSIST ORDER Fields, then state_word: segment_directory.h has the order of each transition. [CC-35] [CC-36]
// RECOVERY      Valid if and only if the upper bits of state_word match, or the object is null and the state is kUnused or
//               kFree. kUnused with an object: an allocation that was cut short. kFree without an object: a return to the pool
//               that was cut short. An open finishes both.
// CONCURRENCY   One thread changes a descriptor: the thread that owns its segment. Other threads read the DRAM handle
//               (Segment). A process that reads the files sees a descriptor that does not match its state word, and reads
//               again.
// LIFETIME      As its block. A slot is reused after the state word 0 is durable.
// IMITATION     Each use of a segment draws a random `entry_seed`, with the top bit set, which seeds the checksums of its
//               entries. A user's value that holds the bytes of an entry may remain behind the end of a later log. Its checksum
//               does not match there: the user wrote the value before the seed of the later use was drawn. A copy of the files
//               reveals the seeds of earlier uses only.
struct SegmentDescriptor {
  ObjectId object;                //  0  the segment
  uint64_t chunks;                // 16  its size in units of kChunkBytes
  uint64_t generation;            // 24  in use: generation of this use
  uint64_t sealed_bytes;          // 32  kSealed: bytes of valid entries
  uint64_t sealed_last_sequence;  // 40  kSealed: largest sequence number in it
  uint64_t state_word;            // 48
  uint64_t entry_seed;            // 56  in use: seed of this use; 0: the generation is the seed (version 1)
};
static_assert(sizeof(SegmentDescriptor) == 64 && offsetof(SegmentDescriptor, entry_seed) == 56);
static_assert(offsetof(SegmentDescriptor, object) == 0 && offsetof(SegmentDescriptor, chunks) == 16);
static_assert(offsetof(SegmentDescriptor, generation) == 24 && offsetof(SegmentDescriptor, sealed_bytes) == 32);
static_assert(offsetof(SegmentDescriptor, sealed_last_sequence) == 40 && offsetof(SegmentDescriptor, state_word) == 48);
static_assert(offsetof(SegmentDescriptor, state_word) % 8 == 0, "the commit point is one atomic store");

// DirectoryBlock: 63 descriptors and the link to the next block.
//
// LAYOUT        4096 bytes; a header of one line, then the descriptors.
// COMMIT POINT  PMDK's store of the link that leads to the block: RegionRoot::directory, or `next` of the block before.
// PERSIST ORDER P1 zeros and `tag`  P2 the link, by PMDK  P3 RegionRoot::directory_blocks. [CC-34]
// RECOVERY      A linked block is valid if and only if its tag matches. The tag includes the number of the block in the list,
//               so a cycle is detected as a damaged link.
// LIFETIME      Blocks are never freed.
struct DirectoryBlock {
  static constexpr uint32_t kDescriptors = 63;

  ObjectId next;                                //  0
  uint64_t tag;                                 // 16  hash of database id, region, number and place of this block
  uint64_t unused[5];                           // 24  zero
  SegmentDescriptor descriptors[kDescriptors];  // 64
};
static_assert(sizeof(DirectoryBlock) == 4096 && offsetof(DirectoryBlock, descriptors) == 64);
static_assert(offsetof(DirectoryBlock, next) == 0 && offsetof(DirectoryBlock, tag) == 16);

// SegmentHeader: the first line of a segment. It identifies the segment when the descriptor is lost, so that a repair finds it.
//
// PERSIST ORDER The whole header, then the descriptor's state_word. [CC-36]
// RECOVERY      Valid if and only if the magic, the checksum and the mark match. A magic of 0: the copies in the segment are
//               being discarded. [CC-47]
// LIFETIME      Written at each Allocate; the bytes remain when the segment is freed.
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
  uint64_t mark;         // 56  XXH3 of bytes [0, 56), seeded with the root's secret, which no user's value knows; version 1: 0
};
static_assert(sizeof(SegmentHeader) == 64 && offsetof(SegmentHeader, checksum) == 40);
static_assert(offsetof(SegmentHeader, magic) == 0 && offsetof(SegmentHeader, database_id) == 8);
static_assert(offsetof(SegmentHeader, region) == 16 && offsetof(SegmentHeader, unused0) == 20);
static_assert(offsetof(SegmentHeader, generation) == 24 && offsetof(SegmentHeader, capacity) == 32);
static_assert(offsetof(SegmentHeader, entry_seed) == 48 && offsetof(SegmentHeader, mark) == 56);

// Geometry of a segment. PMDK allocates large objects in chunks of 256 KiB and uses 16 bytes of the first chunk. A segment of n
// chunks:
//   chunk start │ 16 PMDK │ 48 alignment │ 64 SegmentHeader │ data: n · 256 KiB − 128
inline constexpr uint64_t kChunkBytes = 256ull << 10;
inline constexpr uint64_t kObjectHeaderBytes = 16;
inline constexpr uint64_t kSegmentOverhead = kObjectHeaderBytes + 48 + sizeof(SegmentHeader);
static_assert(kSegmentOverhead == 128);

}  // namespace braiddb
