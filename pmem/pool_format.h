// PoolFormat: what is looked at from outside of PMDK's own structures in a pool, whether PMDK has it open or not.
//
// LAYOUT  Pool format 6 of libpmemobj, unchanged since 1.4 (src/core/pool_hdr.h, src/libpmemobj/obj.h, heap_layout.h,
//         memops.h, ulog.h):
//              0  pool header, 4096 bytes: signature, version, features, identity; Fletcher checksum of the first 2048 bytes.
//                 Behind them the shutdown state
//           4096  descriptor, 2048 bytes: where lanes and heap begin; Fletcher checksum. Behind it the root object and the
//                 heap's size, which change
//                 lanes, 3072 bytes each, 1024 or few (pool_maker.h): redo and undo logs
//                 heap header, 1024 bytes; Fletcher checksum. Then zones: 512 KiB of chunk headers, chunks of 256 KiB
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace braiddb {

// Offsets in the first part.
inline constexpr char kPoolSignature[8] = "PMEMOBJ";
inline constexpr uint64_t kPoolMajorOffset = 8;
inline constexpr uint32_t kPoolMajor = 6;
inline constexpr uint64_t kPoolFeaturesOffset = 16;  // 4 bytes: the features that a program must know
inline constexpr uint32_t kPoolHasShutdownState = 4;
inline constexpr uint64_t kPoolShutdownStateOffset = 4024;  // 64 bytes, not under the checksum
inline constexpr uint64_t kPoolShutdownStateBytes = 64;
inline constexpr uint64_t kPoolHeaderChecksumOffset = 4088;
inline constexpr uint64_t kPoolHeaderBytes = 4096;
inline constexpr uint64_t kPoolDescriptorBytes = 2048;
inline constexpr uint64_t kPoolLayoutOffset = 4096;             // the name of what is in the pool
inline constexpr char kPoolLayout[] = "braiddb";                // with PMDK's 1,024 lanes
inline constexpr char kFewLanesLayout[] = "braiddb-few-lanes";  // with fewer: see pool_maker.h
inline constexpr uint64_t kPoolLanesOffset = 4096 + 1024;
inline constexpr uint64_t kPoolLaneCountOffset = 4096 + 1024 + 8;
inline constexpr uint64_t kPoolHeapOffset = 4096 + 1024 + 16;
inline constexpr uint64_t kPoolRootOffset = 4096 + 2048;
inline constexpr uint64_t kPoolRunIdOffset = 4096 + 2048 + 8;  // even; PMDK adds 2 at each open
inline constexpr uint64_t kPoolRootSizeOffset = 4096 + 2048 + 16;
inline constexpr uint64_t kPoolHeapSizeOffset = 4096 + 2048 + 32;

inline constexpr uint64_t kPoolFirstLane = 8192;
inline constexpr uint64_t kPoolLaneBytes = 3072;
inline constexpr uint64_t kPmdkLanes = 1024;  // of a pool that libpmemobj made
inline constexpr uint64_t kFewLanes = 2;      // of a pool that BraidDB made
// The logs in a lane: the internal and the external redo log, the undo log. A log begins with its checksum, 0 when it is empty,
// with where it goes on, and with its capacity in bytes; its entries begin behind a header of 64 bytes.
struct LaneLog {
  uint64_t offset;
  uint64_t bytes;  // of entries
};
inline constexpr uint64_t kLaneLogCapacity = 16;
inline constexpr uint64_t kLaneLogEntries = 64;
inline constexpr LaneLog kLaneLogs[] = {{0, 192}, {kLaneLogEntries + 192, 640}, {2 * kLaneLogEntries + 192 + 640, 2048}};
static_assert(kLaneLogs[2].offset + kLaneLogEntries + kLaneLogs[2].bytes == kPoolLaneBytes);
inline constexpr char kHeapSignature[16] = "MEMORY_HEAP_HDR";

// PMDK's heap: a header of 1 KiB, then zones of 512 KiB of chunk headers and up to 65528 chunks.
inline constexpr uint64_t kHeapHeaderBytes = 1024;
inline constexpr uint64_t kZoneHeaderBytes = 512ull << 10;
inline constexpr uint64_t kZoneChunks = 65528;
struct ZoneHeader {
  static constexpr uint32_t kMagic = 0xc3f0a2d2;
  uint32_t magic;
  uint32_t chunks;
  uint64_t reserved[7];
};
static_assert(sizeof(ZoneHeader) == 64);

struct ChunkHeader {
  enum Type : uint16_t { kFooter = 1, kFree = 2, kUsed = 3, kRun = 4 };
  uint16_t type;
  uint16_t flags;
  uint32_t chunks;
};
static_assert(sizeof(ChunkHeader) == 8);

// A pool in memory, all of its parts; only read. Thread safety: as of the memory.
class PoolView {
 public:
  PoolView(const uint8_t* pool, uint64_t bytes) : pool_(pool), bytes_(bytes) {}

  // Null if header, descriptor and heap header are sound and fit the pool, else what is wrong. The rest REQUIRES that.
  const char* FindDamage() const;

  // What follows needs the first kPoolHeaderBytes + kPoolDescriptorBytes + 64 bytes only.
  // Whether signature, version and checksum of the header are right. The checksum may also be the one of the header with the
  // other value of the bit kPoolHasShutdownState: a crash leaves such a header (pool_repair.h).
  bool HeaderIsSound() const;
  // Whether the header has PMDK's shutdown state, or a crash came while it was dropped. REQUIRES: HeaderIsSound().
  bool ShutdownStateIsThere() const;
  // The checksum that the header has to have with these features.
  uint64_t HeaderChecksum(uint32_t features) const;
  uint32_t features() const;
  // The checksum of a structure, whose last 8 bytes are the checksum's place.
  uint64_t ChecksumOf(uint64_t offset, uint64_t bytes) const;
  // PMDK opens no pool with an odd one.
  bool RunIdIsOdd() const { return Word(kPoolRunIdOffset) % 2 != 0; }

  uint64_t lanes() const { return Word(kPoolLaneCountOffset); }
  uint64_t heap_begin() const { return Word(kPoolHeapOffset); }
  uint64_t heap_end() const { return heap_begin() + Word(kPoolHeapSizeOffset); }
  uint64_t root_offset() const { return Word(kPoolRootOffset); }
  uint64_t root_size() const { return Word(kPoolRootSizeOffset); }
  // What the `pool` field of an ObjectId says.
  uint64_t identity() const;
  // Null, or what is wrong with the logs in the lanes. No log of ours goes on elsewhere, and undo logs, which belong to
  // transactions, are never used. Where an entry of a redo log leads is not looked at: if the log counts, its checksum is right.
  const char* FindLaneDamage() const;
  // An allocation or a release was cut short; PMDK's next open finishes it. Until then its chunks may be as before or as after.
  bool RedoPending() const;

  enum class Chunks : uint8_t { kFree, kObject, kRun };  // kRun: small objects share it
  // Calls `visit` for each stretch of chunks that belongs together; `offset` is where the stretch begins. Null, or what is wrong.
  const char* ForEachChunks(const std::function<void(Chunks kind, uint64_t offset, uint64_t chunks)>& visit) const;

 private:
  uint64_t Word(uint64_t offset) const;
  bool FletcherMatches(uint64_t offset, uint64_t bytes) const {
    return Word(offset + bytes - sizeof(uint64_t)) == ChecksumOf(offset, bytes);
  }

  const uint8_t* const pool_;
  const uint64_t bytes_;
};

}  // namespace braiddb
