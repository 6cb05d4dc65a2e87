#include "pmem/pool_format.h"

#include <algorithm>
#include <cstring>

#include "pmem/layout.h"
#include "util/check.h"

namespace braiddb {
namespace {

constexpr uint64_t kPoolHeaderChecked = 2048;  // bytes under the header's checksum; the bytes behind depend on the machine
constexpr uint64_t kIdentityOffset = 24;       // the pool's UUID, 16 bytes
constexpr uint64_t kLogNext = 8;
constexpr LaneLog kRedoLogs[] = {kLaneLogs[0], kLaneLogs[1]};
constexpr LaneLog kUndoLog = kLaneLogs[2];
// An entry of a redo log has two words: the offset with an operation in its upper bits, and the value. A zero word ends the
// log. Applied entries stay in the log.
constexpr uint64_t kRedoEntryBytes = 16;
constexpr int kRedoOperationShift = 61;
constexpr uint64_t kLastRedoOperation = 2;  // 0 set, 1 and, 2 or; larger ones belong to undo logs and have another length

}  // namespace

// Words of a damaged pool may be unaligned, so they are copied. REQUIRES: offset + 8 <= bytes_.
uint64_t PoolView::Word(uint64_t offset) const {
  BRAIDDB_DCHECK(offset <= bytes_ && bytes_ - offset >= sizeof(uint64_t));
  uint64_t word = 0;
  memcpy(&word, pool_ + offset, sizeof(word));
  return word;
}

namespace {

// PMDK's variant of Fletcher's checksum: two 32-bit sums over 32-bit words.
class Fletcher {
 public:
  void Add(uint32_t word) {
    low_ += word;
    high_ += low_;
  }
  uint64_t sum() const { return uint64_t{high_} << 32 | low_; }

 private:
  uint32_t low_ = 0;
  uint32_t high_ = 0;
};

}  // namespace

// The last 8 bytes, which hold the checksum, count as zero.
uint64_t PoolView::ChecksumOf(uint64_t offset, uint64_t bytes) const {
  BRAIDDB_DCHECK(bytes % sizeof(uint32_t) == 0 && bytes > sizeof(uint64_t) && offset + bytes <= bytes_);
  Fletcher fletcher;
  for (uint64_t at = 0; at < bytes; at += sizeof(uint32_t)) {
    uint32_t word = 0;
    if (at < bytes - sizeof(uint64_t)) memcpy(&word, pool_ + offset + at, sizeof(word));
    fletcher.Add(word);
  }
  return fletcher.sum();
}

uint32_t PoolView::features() const {
  uint32_t features = 0;
  memcpy(&features, pool_ + kPoolFeaturesOffset, sizeof(features));
  return features;
}

// The bytes behind kPoolHeaderChecked count as zero, as in PMDK with the feature CKSUM_2K.
uint64_t PoolView::HeaderChecksum(uint32_t features) const {
  Fletcher fletcher;
  for (uint64_t at = 0; at < kPoolHeaderBytes; at += sizeof(uint32_t)) {
    uint32_t word = 0;
    if (at < kPoolHeaderChecked) memcpy(&word, pool_ + at, sizeof(word));
    fletcher.Add(at == kPoolFeaturesOffset ? features : word);
  }
  return fletcher.sum();
}

// The checksum may match either value of the bit kPoolHasShutdownState (pool_repair.h).
bool PoolView::HeaderIsSound() const {
  uint32_t major = 0;
  memcpy(&major, pool_ + kPoolMajorOffset, sizeof(major));
  if (memcmp(pool_, kPoolSignature, sizeof(kPoolSignature)) != 0 || major != kPoolMajor) return false;
  const uint64_t checksum = Word(kPoolHeaderChecksumOffset);
  return checksum == HeaderChecksum(features()) || checksum == HeaderChecksum(features() ^ kPoolHasShutdownState);
}

// True with the bit, and also without it if the checksum is still that of the header with the bit.
bool PoolView::ShutdownStateIsThere() const {
  const uint32_t without = features() & ~kPoolHasShutdownState;
  return features() != without || Word(kPoolHeaderChecksumOffset) != HeaderChecksum(without);
}

// STEPS  1 length  2 signature, version and checksum of the header  3 checksum of the descriptor  4 the heap ends where the
//        parts do  5 the lanes lie before the heap  6 signature and checksum of the heap header. Each step reads only bytes
//        that the steps before have shown to exist.
const char* PoolView::FindDamage() const {
  if (bytes_ < kPoolHeaderBytes + 2 * kPoolDescriptorBytes) return "the pool is shorter than its header";
  if (memcmp(pool_, kPoolSignature, sizeof(kPoolSignature)) != 0) return "it has no pool signature";
  uint32_t major = 0;
  memcpy(&major, pool_ + kPoolMajorOffset, sizeof(major));
  if (major != kPoolMajor) return "it has an unknown pool format of PMDK";
  if (!HeaderIsSound()) return "the checksum of the pool header is wrong";
  if (!FletcherMatches(kPoolHeaderBytes, kPoolDescriptorBytes)) return "the checksum of the pool descriptor is wrong";
  if (heap_begin() > bytes_ || Word(kPoolHeapSizeOffset) != bytes_ - heap_begin() ||
      Word(kPoolHeapSizeOffset) < kHeapHeaderBytes + kZoneHeaderBytes) {
    return "the heap does not end where the parts do";
  }
  if (Word(kPoolLanesOffset) > heap_begin() || lanes() > (heap_begin() - Word(kPoolLanesOffset)) / kPoolLaneBytes)
    return "the lanes do not fit the pool";
  if (memcmp(pool_ + heap_begin(), kHeapSignature, sizeof(kHeapSignature)) != 0 ||
      !FletcherMatches(heap_begin(), kHeapHeaderBytes)) {
    return "the heap header is damaged";
  }
  return nullptr;
}

// PMDK XORs the two halves of the UUID. Bytes are combined in big-endian order.
uint64_t PoolView::identity() const {
  uint64_t identity = 0;
  for (uint64_t i = 0; i < 8; ++i) {
    identity = identity << 8 | static_cast<uint64_t>(pool_[kIdentityOffset + i] ^ pool_[kIdentityOffset + 8 + i]);
  }
  return identity;
}

// A log whose `next` is 0 has no continuation. The first word of an undo log, and of its entries, is 0 if the log is empty.
const char* PoolView::FindLaneDamage() const {
  const uint64_t end = Word(kPoolLanesOffset) + lanes() * kPoolLaneBytes;
  for (uint64_t lane = Word(kPoolLanesOffset); lane < end; lane += kPoolLaneBytes) {
    for (const LaneLog& log : kLaneLogs) {
      if (Word(lane + log.offset + kLogNext) != 0) return "a log in a lane of the pool leads elsewhere";
    }
    if (Word(lane + kUndoLog.offset) != 0 || Word(lane + kUndoLog.offset + kLaneLogEntries) != 0)
      return "an undo log in a lane of the pool is not empty";
    for (const LaneLog& log : kRedoLogs) {
      // PMDK walks along the entries of an empty log as well, so these are checked in every log.
      for (uint64_t at = lane + log.offset + kLaneLogEntries, left = log.bytes / kRedoEntryBytes; left > 0 && Word(at) != 0;
           --left) {
        if (Word(at) >> kRedoOperationShift > kLastRedoOperation) return "a redo log in a lane of the pool is damaged";
        at += kRedoEntryBytes;
      }
    }
  }
  return nullptr;
}

// The first word of a log is its checksum; 0 marks an empty log.
bool PoolView::RedoPending() const {
  const uint64_t first = Word(kPoolLanesOffset);
  for (uint64_t lane = 0; lane < lanes(); ++lane) {
    for (const LaneLog& log : kLaneLogs) {
      if (Word(first + lane * kPoolLaneBytes + log.offset) != 0) return true;
    }
  }
  return false;
}

// STEPS  for each zone that PMDK has initialized: 1 check the zone's header  2 walk from run to run by the lengths in the
//        headers of their first chunks. A length of 0, or beyond the zone, is damage.
const char* PoolView::ForEachChunks(const std::function<void(Chunks, uint64_t, uint64_t)>& visit) const {
  const uint64_t end = heap_end();
  const uint64_t zone_bytes = kZoneHeaderBytes + kZoneChunks * kChunkBytes;
  for (uint64_t zone = heap_begin() + kHeapHeaderBytes; zone + kZoneHeaderBytes + kChunkBytes <= end; zone += zone_bytes) {
    ZoneHeader header;
    memcpy(&header, pool_ + zone, sizeof(header));
    if (header.magic == 0) continue;  // PMDK has not initialized this zone yet
    const uint64_t room = std::min(kZoneChunks, (end - zone - kZoneHeaderBytes) / kChunkBytes);
    if (header.magic != ZoneHeader::kMagic || header.chunks > room) return "the header of a heap zone is damaged";
    const uint64_t first = zone + kZoneHeaderBytes;
    for (uint64_t chunk = 0; chunk < header.chunks;) {
      ChunkHeader stretch;
      memcpy(&stretch, pool_ + zone + sizeof(ZoneHeader) + chunk * sizeof(ChunkHeader), sizeof(stretch));
      if (stretch.chunks == 0 || stretch.chunks > header.chunks - chunk || stretch.type < ChunkHeader::kFree ||
          stretch.type > ChunkHeader::kRun) {
        return "a chunk header of the heap is damaged";
      }
      const Chunks kind = stretch.type == ChunkHeader::kFree   ? Chunks::kFree
                          : stretch.type == ChunkHeader::kUsed ? Chunks::kObject
                                                               : Chunks::kRun;
      visit(kind, first + chunk * kChunkBytes, stretch.chunks);
      chunk += stretch.chunks;
    }
  }
  return nullptr;
}

}  // namespace braiddb
