#include "pmem/pool_format.h"

#include <algorithm>
#include <cstring>

#include "pmem/layout.h"

namespace braiddb {
namespace {

constexpr uint64_t kPoolHeaderChecked = 2048;  // its checksum covers so much; what follows depends on the machine
constexpr uint64_t kIdentityOffset = 24;       // 16 bytes
constexpr uint64_t kLogNext = 8;
constexpr LaneLog kRedoLogs[] = {kLaneLogs[0], kLaneLogs[1]};
constexpr LaneLog kUndoLog = kLaneLogs[2];
// An entry of a redo log: a word with the place and, in its upper bits, what is to be done there; a word with the value. 0 ends
// the log. Entries that are done stay.
constexpr uint64_t kRedoEntryBytes = 16;
constexpr int kRedoOperationShift = 61;
constexpr uint64_t kLastRedoOperation = 2;  // set, and, or; others belong to undo logs, and have a length of their own

}  // namespace

uint64_t PoolView::Word(uint64_t offset) const {
  uint64_t word = 0;
  memcpy(&word, pool_ + offset, sizeof(word));
  return word;
}

namespace {

// PMDK's variant of Fletcher's checksum.
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

// The place of the checksum counts as zero.
uint64_t PoolView::ChecksumOf(uint64_t offset, uint64_t bytes) const {
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

uint64_t PoolView::HeaderChecksum(uint32_t features) const {
  Fletcher fletcher;
  for (uint64_t at = 0; at < kPoolHeaderBytes; at += sizeof(uint32_t)) {
    uint32_t word = 0;
    if (at < kPoolHeaderChecked) memcpy(&word, pool_ + at, sizeof(word));
    fletcher.Add(at == kPoolFeaturesOffset ? features : word);
  }
  return fletcher.sum();
}

bool PoolView::HeaderIsSound() const {
  uint32_t major = 0;
  memcpy(&major, pool_ + kPoolMajorOffset, sizeof(major));
  if (memcmp(pool_, kPoolSignature, sizeof(kPoolSignature)) != 0 || major != kPoolMajor) return false;
  const uint64_t checksum = Word(kPoolHeaderChecksumOffset);
  return checksum == HeaderChecksum(features()) || checksum == HeaderChecksum(features() ^ kPoolHasShutdownState);
}

bool PoolView::ShutdownStateIsThere() const {
  const uint32_t without = features() & ~kPoolHasShutdownState;
  return features() != without || Word(kPoolHeaderChecksumOffset) != HeaderChecksum(without);
}

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

uint64_t PoolView::identity() const {
  uint64_t identity = 0;
  for (uint64_t i = 0; i < 8; ++i) {
    identity = identity << 8 | static_cast<uint64_t>(pool_[kIdentityOffset + i] ^ pool_[kIdentityOffset + 8 + i]);
  }
  return identity;
}

const char* PoolView::FindLaneDamage() const {
  const uint64_t end = Word(kPoolLanesOffset) + lanes() * kPoolLaneBytes;
  for (uint64_t lane = Word(kPoolLanesOffset); lane < end; lane += kPoolLaneBytes) {
    for (const LaneLog& log : kLaneLogs) {
      if (Word(lane + log.offset + kLogNext) != 0) return "a log in a lane of the pool leads elsewhere";
    }
    if (Word(lane + kUndoLog.offset) != 0 || Word(lane + kUndoLog.offset + kLaneLogEntries) != 0)
      return "an undo log in a lane of the pool is not empty";
    for (const LaneLog& log : kRedoLogs) {
      // PMDK walks along the entries of empty logs too.
      for (uint64_t at = lane + log.offset + kLaneLogEntries, left = log.bytes / kRedoEntryBytes; left > 0 && Word(at) != 0;
           --left) {
        if (Word(at) >> kRedoOperationShift > kLastRedoOperation) return "a redo log in a lane of the pool is damaged";
        at += kRedoEntryBytes;
      }
    }
  }
  return nullptr;
}

bool PoolView::RedoPending() const {
  const uint64_t first = Word(kPoolLanesOffset);
  for (uint64_t lane = 0; lane < lanes(); ++lane) {
    for (const LaneLog& log : kLaneLogs) {
      if (Word(first + lane * kPoolLaneBytes + log.offset) != 0) return true;
    }
  }
  return false;
}

const char* PoolView::ForEachChunks(const std::function<void(Chunks, uint64_t, uint64_t)>& visit) const {
  const uint64_t end = heap_end();
  const uint64_t zone_bytes = kZoneHeaderBytes + kZoneChunks * kChunkBytes;
  for (uint64_t zone = heap_begin() + kHeapHeaderBytes; zone + kZoneHeaderBytes + kChunkBytes <= end; zone += zone_bytes) {
    ZoneHeader header;
    memcpy(&header, pool_ + zone, sizeof(header));
    if (header.magic == 0) continue;  // PMDK has not come to it yet
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
