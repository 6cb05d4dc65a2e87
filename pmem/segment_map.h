// SegmentMap: finds the segment that contains an address of a region, with a few loads and without a lock.
//
// STRUCTURE    The region is divided into blocks of 256 KiB. No segment is smaller, so at most one segment covers the first
//              byte of a block, and at most one starts behind it in the block. A block has a cell with two pointers for these.
//              The array of cells spans the largest size of the region. Only pages of cells in use have memory.
// CONCURRENCY  Readers load a pointer with acquire, and then ask the segment whether it contains the address. So a reader may
//              find a segment that is erased meanwhile: its handle stays valid (Segment), with another generation.
// COST         Find: at most two cells' loads and two range checks.
#pragma once

#include <atomic>
#include <cstdint>

#include "braiddb/status.h"
#include "pmem/segment_allocator.h"

namespace braiddb {

// Thread safety: Insert and Erase of one segment by one thread at a time. Calls for different segments, and Find, may be
// concurrent.
class SegmentMap {
 public:
  SegmentMap() = default;
  ~SegmentMap();
  SegmentMap(const SegmentMap&) = delete;
  SegmentMap& operator=(const SegmentMap&) = delete;

  // Reserves address space for a region of up to `region_bytes` bytes. Call once, before all others. MemoryLimit: there is no
  // address space.
  Status Reserve(uint64_t region_bytes);
  // Enters the segment in the cells of all blocks that it touches. REQUIRES: no other entered segment overlaps it.
  void Insert(Segment* segment) { Store(segment, segment); }
  // Removes the segment. REQUIRES: its capacity is as at Insert.
  void Erase(Segment* segment) { Store(segment, nullptr); }

  // Returns the segment that contains p, null if there is none. Accepts every p of this region, also a damaged one.
  Segment* Find(PmPtr p) const {
    const uint64_t block = p.offset() / kBlockBytes;
    if (block >= count_) return nullptr;
    // acquire: pairs with the release in Store; the segment's constant fields are set.
    Segment* const behind = cells_[block].starts_behind.load(std::memory_order_acquire);
    if (behind != nullptr && behind->Contains(p)) return behind;
    Segment* const first = cells_[block].covers_first.load(std::memory_order_acquire);
    return first != nullptr && first->Contains(p) ? first : nullptr;
  }

 private:
  static constexpr uint64_t kBlockBytes = 256ull << 10;
  struct Cell {
    std::atomic<Segment*> covers_first;   // the segment that covers the first byte of the block
    std::atomic<Segment*> starts_behind;  // the segment that starts in the block, behind its first byte
  };

  // Stores `value` in all cells of the range of `place`.
  void Store(const Segment* place, Segment* value);

  Cell* cells_ = nullptr;
  uint64_t count_ = 0;
};

}  // namespace braiddb
