#include "pmem/pool_maker.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "pmem/posix.h"
#include "util/check.h"

namespace braiddb {
namespace {

// ---- The pool header. Offsets of PMDK's struct pool_hdr.

constexpr uint64_t kCompatibleFeatures = 12;
constexpr uint32_t kCheckBadBlocks = 1;
constexpr uint32_t kSingleHeader = 1;
constexpr uint32_t kChecksum2K = 2;
constexpr uint64_t kPoolUuid = 24;
constexpr uint64_t kUuids[] = {40, 56, 72, 88, 104};  // UUIDs of the part, its neighbours, and the replica's neighbours
constexpr uint64_t kUuidBytes = 16;
constexpr uint64_t kCreationTime = 120;
constexpr uint64_t kAlignments = 128;
constexpr uint64_t kMachineClass = 136;
constexpr uint64_t kMachine = 142;

#if defined(__x86_64__)
constexpr uint16_t kThisMachine = 62;
#elif defined(__aarch64__)
constexpr uint16_t kThisMachine = 183;
#else
#error "PMDK has no number for this machine here"
#endif

// PMDK's description of a machine's alignments: four bits for each type, its alignment less one.
template <class... Types>
constexpr uint64_t AlignmentsOf() {
  uint64_t all = 0;
  int shift = 0;
  ((all |= uint64_t{(alignof(Types) - 1) & 15} << shift, shift += 4), ...);
  return all;
}
constexpr uint64_t kAlignmentsHere =
    AlignmentsOf<char, short, int, long, long long, size_t, off_t, float, double, long double, void*>();

template <class T>
void Put(std::vector<uint8_t>* pool, uint64_t offset, T value) {
  BRAIDDB_DCHECK(offset + sizeof(value) <= pool->size());
  std::memcpy(pool->data() + offset, &value, sizeof(value));
}

// Writes a random UUID of version 4 (RFC 4122).
Status PutRandom(std::vector<uint8_t>* pool, uint64_t offset) {
  BRAIDDB_DCHECK(offset + kUuidBytes <= pool->size());
  uint8_t* const uuid = pool->data() + offset;
  if (getrandom(uuid, kUuidBytes, 0) != static_cast<ssize_t>(kUuidBytes))
    return Status::IOError("no random bytes for a new pool");
  uuid[6] = static_cast<uint8_t>((uuid[6] & 0x0f) | 0x40);  // RFC 4122, version 4
  uuid[8] = static_cast<uint8_t>((uuid[8] & 0x3f) | 0x80);
  return Status::OK();
}

// Writes the pool header. The pool has one part with a header (SINGLEHDR), so all neighbours are the part itself.
Status PutHeader(std::vector<uint8_t>* pool, uint64_t creation_seconds, bool checks_bad_blocks) {
  std::memcpy(pool->data(), kPoolSignature, sizeof(kPoolSignature));
  Put(pool, kPoolMajorOffset, kPoolMajor);
  Put(pool, kCompatibleFeatures, checks_bad_blocks ? kCheckBadBlocks : 0);
  Put(pool, kPoolFeaturesOffset, kSingleHeader | kChecksum2K);
  Status status = PutRandom(pool, kPoolUuid);
  if (status.ok()) status = PutRandom(pool, kUuids[0]);
  if (!status.ok()) return status;
  for (const uint64_t place : kUuids) std::memcpy(pool->data() + place, pool->data() + kUuids[0], kUuidBytes);
  Put(pool, kCreationTime, creation_seconds);
  Put(pool, kAlignments, kAlignmentsHere);
  Put(pool, kMachineClass, uint8_t{2});      // 64 bits
  Put(pool, kMachineClass + 1, uint8_t{1});  // little-endian
  Put(pool, kMachine, kThisMachine);
  const PoolView view(pool->data(), pool->size());
  Put(pool, kPoolHeaderChecksumOffset, view.HeaderChecksum(view.features()));
  return Status::OK();
}

// ---- Descriptor, lanes, heap

// Writes the Fletcher checksum into the last 8 bytes of a structure.
void PutChecksum(std::vector<uint8_t>* pool, uint64_t offset, uint64_t bytes) {
  Put(pool, offset + bytes - sizeof(uint64_t), PoolView(pool->data(), pool->size()).ChecksumOf(offset, bytes));
}

// Writes the descriptor, the heap's size, and the capacities of the logs in the lanes, which are empty otherwise.
void PutDescriptor(std::vector<uint8_t>* pool) {
  std::memcpy(pool->data() + kPoolLayoutOffset, kFewLanesLayout, sizeof(kFewLanesLayout));
  Put(pool, kPoolLanesOffset, kPoolFirstLane);
  Put(pool, kPoolLaneCountOffset, kFewLanes);
  Put(pool, kPoolHeapOffset, kSmallHeapBegin);
  PutChecksum(pool, kPoolHeaderBytes, kPoolDescriptorBytes);
  Put(pool, kPoolHeapSizeOffset, kSmallPartBytes - kSmallHeapBegin);
  for (uint64_t lane = 0; lane < kFewLanes; ++lane) {
    for (const LaneLog& log : kLaneLogs)
      Put(pool, kPoolFirstLane + lane * kPoolLaneBytes + log.offset + kLaneLogCapacity, log.bytes);
  }
}

// Writes the header of the heap, whose zones are all zero: PMDK initializes a zone when it allocates there.
void PutHeapHeader(std::vector<uint8_t>* pool) {
  std::memcpy(pool->data() + kSmallHeapBegin, kHeapSignature, sizeof(kHeapSignature));
  const uint64_t words[] = {1, 0, 0, kChunkBytes, kZoneChunks};  // version 1.0; one word is unused
  std::memcpy(pool->data() + kSmallHeapBegin + sizeof(kHeapSignature), words, sizeof(words));
  PutChecksum(pool, kSmallHeapBegin, kHeapHeaderBytes);
}

}  // namespace

namespace {

constexpr uint64_t kLeastPiece = 64 << 10;

// Calls `allocate(begin, bytes)`, which returns 0 or an errno, for all of the range. EINTR is not an error: the call is repeated.
// A file system may take back what it has allocated when a signal arrives, so the pieces become smaller then, until one is done
// between two signals.
template <class AllocatePiece>
int AllocateInPieces(uint64_t begin, uint64_t end, const AllocatePiece& allocate) {
  BRAIDDB_DCHECK(begin < end);
  for (uint64_t piece = end - begin; begin < end;) {
    const uint64_t bytes = std::min(piece, end - begin);
    const int error = allocate(static_cast<off_t>(begin), static_cast<off_t>(bytes));
    if (error == 0) {
      begin += bytes;
    } else if (error == EINTR) {
      piece = std::max(kLeastPiece, piece / 2 / kLeastPiece * kLeastPiece);
    } else {
      return error;
    }
  }
  return 0;
}

}  // namespace

int Allocate(int fd, uint64_t begin, uint64_t end) {
  return AllocateInPieces(begin, end, [fd](off_t at, off_t bytes) { return fallocate(fd, 0, at, bytes) == 0 ? 0 : errno; });
}

// A full file system, for example, is no reason to give up holes: the error shows when the blocks are needed.
bool CanAllocate(int fd) {
  const int error = Allocate(fd, 0, kPageBytes);
  return error != EOPNOTSUPP && error != ENOSYS;
}

// Without fallocate(2), posix_fallocate(3) reads a byte of each block and writes it again.
Status FillRange(int fd, const std::string& path, uint64_t begin, uint64_t end) {
  const int error = AllocateInPieces(begin, end, [fd](off_t at, off_t bytes) { return posix_fallocate(fd, at, bytes); });
  return error == 0 ? Status::OK() : posix::ErrnoStatus(error, "reserve the blocks of", path);
}

// STEPS  1 set the size  2 allocate the blocks of the head and of the first chunks  3 compose the head in DRAM  4 write the
//        head.
Status MakeSmallPool(int fd, const std::string& path, bool checks_bad_blocks) {
  if (ftruncate(fd, kSmallPartBytes) != 0) return posix::ErrnoStatus(errno, "give its size to", path);
  const bool has_holes = CanAllocate(fd);
  Status status = FillRange(fd, path, 0, has_holes ? kSmallHeadEnd : kSmallPartBytes);
  if (status.ok() && has_holes) status = FillRange(fd, path, kSmallFirstChunk, kSmallFirstChunk + kBornChunks * kChunkBytes);
  if (!status.ok()) return status;
  struct stat file;
  if (fstat(fd, &file) != 0) return posix::ErrnoStatus(errno, "examine", path);
  std::vector<uint8_t> pool(kSmallHeadEnd);
  if (status = PutHeader(&pool, static_cast<uint64_t>(file.st_ctim.tv_sec), checks_bad_blocks); !status.ok()) return status;
  PutDescriptor(&pool);
  PutHeapHeader(&pool);
  const ssize_t written = pwrite(fd, pool.data(), pool.size(), 0);
  if (written < 0) return posix::ErrnoStatus(errno, "write", path);
  if (static_cast<size_t>(written) < pool.size()) return posix::ErrnoStatus(ENOSPC, "write", path);
  return Status::OK();
}

// STEPS  1 the head has the geometry of MakeSmallPool  2 no redo log is pending  3 the used chunks end within the first
//        kBornChunks, and one free run has all chunks behind them. The headers are read from the file, before PMDK maps it.
bool IsBornPool(int fd) {
  std::vector<uint8_t> head(kSmallHeadEnd);
  if (pread(fd, head.data(), head.size(), 0) != static_cast<ssize_t>(head.size())) return false;
  const PoolView pool(head.data(), head.size());
  uint64_t first_lane = 0;
  std::memcpy(&first_lane, head.data() + kPoolLanesOffset, sizeof(first_lane));
  if (first_lane != kPoolFirstLane || pool.lanes() != kFewLanes || pool.heap_begin() != kSmallHeapBegin ||
      pool.heap_end() != kSmallPartBytes)
    return false;
  if (pool.RedoPending()) return false;  // PMDK's open may finish the allocation in any chunk
  ZoneHeader zone;
  ChunkHeader chunks[kSmallChunks];
  std::memcpy(&zone, head.data() + kSmallZone, sizeof(zone));
  std::memcpy(chunks, head.data() + kSmallZone + sizeof(zone), sizeof(chunks));
  if (zone.magic != ZoneHeader::kMagic || zone.chunks != kSmallChunks) return false;
  uint64_t used = 0;
  while (used < kBornChunks && chunks[used].type != ChunkHeader::kFree) {
    if (chunks[used].chunks == 0) return false;
    used += chunks[used].chunks;
  }
  return used <= kBornChunks && chunks[used].type == ChunkHeader::kFree && chunks[used].chunks == kSmallChunks - used;
}

}  // namespace braiddb
