// PoolFormat: PMDK's own structures in a pool, as far as BraidDB reads them without PMDK.
//
// WHY     libpmemobj follows the pointers of a pool without checks and ends the process if they are damaged. An open checks
//         them before PMDK does. A read-only open, a check and a repair do not use PMDK at all, since PMDK writes to each pool
//         that it opens.
//
// LAYOUT  Pool format 6 of libpmemobj, unchanged since 1.4 (src/core/pool_hdr.h, src/libpmemobj/obj.h, heap_layout.h,
//         memops.h, ulog.h):
//              0  pool header, 4096 bytes: signature, version, features, identity; Fletcher checksum of the first 2048 bytes.
//              The
//                 shutdown state lies behind these
//           4096  descriptor, 2048 bytes: offsets of lanes and heap; Fletcher checksum. Words that change lie behind the
//                 descriptor: the offset of the root object, the run id, the heap's size lanes, 3072 bytes each, 1024 or
//                 kFewLanes (pool_maker.h): redo and undo logs heap header, 1024 bytes; Fletcher checksum zones, each 512 KiB
//                 of chunk headers and up to 65,528 chunks of 256 KiB
// COMMIT POINT  Of an allocation or a release: the checksum of a redo log in a lane. PMDK then stores the words that the log
//         lists. A crash in between leaves a pending log, which PMDK's next open applies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace braiddb {

// Offsets in the first part.
inline constexpr char kPoolSignature[8] = "PMEMOBJ";
inline constexpr uint64_t kPoolMajorOffset = 8;
inline constexpr uint32_t kPoolMajor = 6;
inline constexpr uint64_t kPoolFeaturesOffset = 16;  // 4 bytes: features that a program must know to open the pool
inline constexpr uint32_t kPoolHasShutdownState = 4;
inline constexpr uint64_t kPoolShutdownStateOffset = 4024;  // 64 bytes, not under the checksum
inline constexpr uint64_t kPoolShutdownStateBytes = 64;
inline constexpr uint64_t kPoolHeaderChecksumOffset = 4088;
inline constexpr uint64_t kPoolHeaderBytes = 4096;
inline constexpr uint64_t kPoolDescriptorBytes = 2048;
inline constexpr uint64_t kPoolLayoutOffset = 4096;             // name of the layout, which pmemobj_open compares
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
inline constexpr uint64_t kPmdkLanes = 1024;  // lanes of a pool that libpmemobj has made
inline constexpr uint64_t kFewLanes = 2;      // lanes of a pool that BraidDB has made
// A log in a lane. Each lane has three: the internal redo log, the external redo log and the undo log. The header of a log has
// 64 bytes: its checksum, 0 if the log is empty; the offset of its continuation; its capacity in bytes. The entries follow.
struct LaneLog {
  uint64_t offset;
  uint64_t bytes;  // capacity for entries
};
inline constexpr uint64_t kLaneLogCapacity = 16;
inline constexpr uint64_t kLaneLogEntries = 64;
inline constexpr LaneLog kLaneLogs[] = {{0, 192}, {kLaneLogEntries + 192, 640}, {2 * kLaneLogEntries + 192 + 640, 2048}};
static_assert(kLaneLogs[2].offset + kLaneLogEntries + kLaneLogs[2].bytes == kPoolLaneBytes);
inline constexpr char kHeapSignature[16] = "MEMORY_HEAP_HDR";

// PMDK's heap: a header of 1 KiB, then zones. The headers of a zone take 512 KiB: one ZoneHeader and a ChunkHeader for each
// chunk.
inline constexpr uint64_t kHeapHeaderBytes = 1024;
inline constexpr uint64_t kZoneHeaderBytes = 512ull << 10;
inline constexpr uint64_t kZoneChunks = 65528;
// PMDK's header of a zone. Zero in a zone that PMDK has not initialized yet.
struct ZoneHeader {
  static constexpr uint32_t kMagic = 0xc3f0a2d2;
  uint32_t magic;
  uint32_t chunks;
  uint64_t reserved[7];
};
static_assert(sizeof(ZoneHeader) == 64 && offsetof(ZoneHeader, chunks) == 4);

// PMDK's header of a run of chunks that belong together. The headers of its further chunks have no meaning, except the last one
// of a free run, which is a footer with the length of the run.
struct ChunkHeader {
  enum Type : uint16_t { kFooter = 1, kFree = 2, kUsed = 3, kRun = 4 };
  uint16_t type;
  uint16_t flags;
  uint32_t chunks;
};
static_assert(sizeof(ChunkHeader) == 8 && offsetof(ChunkHeader, flags) == 2 && offsetof(ChunkHeader, chunks) == 4);
static_assert(sizeof(ZoneHeader) + kZoneChunks * sizeof(ChunkHeader) <= kZoneHeaderBytes);

// PoolView: a pool in memory, with all of its parts, for reading. Does not own the memory. Trusts no byte: each check reads
// only what the checks before it have found sound. Thread safety: const methods may be called concurrently if nobody writes the
// bytes.
class PoolView {
 public:
  PoolView(const uint8_t* pool, uint64_t bytes) : pool_(pool), bytes_(bytes) {}

  // Returns null if header, descriptor and heap header are sound and fit the pool, else the damage. FindLaneDamage, RedoPending
  // and ForEachChunks REQUIRE that the lanes and the heap lie in the bytes, as a null result shows.
  const char* FindDamage() const;

  // The methods up to root_size() read the head of the pool only: its first kPoolHeaderBytes + kPoolDescriptorBytes + 64 bytes.

  // Returns true if signature, version and checksum of the header are right. The checksum may also be that of the header with
  // the other value of the bit kPoolHasShutdownState: a crash leaves such a header (pool_repair.h).
  bool HeaderIsSound() const;
  // Returns true if the header has PMDK's shutdown state, or if a crash interrupted its removal. REQUIRES: HeaderIsSound().
  bool ShutdownStateIsThere() const;
  // Returns the checksum of the header as it would be with these features.
  uint64_t HeaderChecksum(uint32_t features) const;
  uint32_t features() const;
  // Returns the Fletcher checksum of a structure whose last 8 bytes hold the checksum.
  uint64_t ChecksumOf(uint64_t offset, uint64_t bytes) const;
  // Returns true if the run id is odd. PMDK refuses such a pool.
  bool RunIdIsOdd() const { return Word(kPoolRunIdOffset) % 2 != 0; }

  uint64_t lanes() const { return Word(kPoolLaneCountOffset); }
  uint64_t heap_begin() const { return Word(kPoolHeapOffset); }
  uint64_t heap_end() const { return heap_begin() + Word(kPoolHeapSizeOffset); }
  uint64_t root_offset() const { return Word(kPoolRootOffset); }
  uint64_t root_size() const { return Word(kPoolRootSizeOffset); }
  // Returns the identity of the pool, the `pool` field of each ObjectId in it: PMDK folds the pool's UUID to 8 bytes.
  uint64_t identity() const;
  // Returns null, or the damage of the logs in the lanes. BraidDB's logs have no continuation, and its undo logs, which belong
  // to transactions, are always empty. The targets of redo entries are not checked: a log counts only if its checksum matches.
  const char* FindLaneDamage() const;
  // Returns true if a redo log is pending: an allocation or a release was cut short, and PMDK's next open finishes it. Until
  // then its chunk headers and its ObjectId may have the old or the new values.
  bool RedoPending() const;

  // kRun: a chunk that small objects share.
  enum class Chunks : uint8_t { kFree, kObject, kRun };
  // Calls `visit` for each run of chunks that belong together, in address order. `offset`: begin of the run. Returns null, or
  // the damage that ended the walk.
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
