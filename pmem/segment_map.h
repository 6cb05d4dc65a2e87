// SegmentMap: from a place in a region to the segment that has it, in a few loads and without a lock.
//
// The region is cut into blocks of 256 KiB. As segments are not smaller, at most one covers the first byte of a block and at most
// one starts behind it; a block has a cell of two pointers for these. The array spans the largest size of the region; its pages
// have memory only where segments are.
#pragma once

#include <atomic>
#include <cstdint>

#include "braiddb/status.h"
#include "pmem/segment_allocator.h"

namespace braiddb {

// CONCURRENCY: Insert and Erase of one segment by one thread at a time; different segments and Find concurrently.
class SegmentMap {
 public:
  SegmentMap() = default;
  ~SegmentMap();
  SegmentMap(const SegmentMap&) = delete;
  SegmentMap& operator=(const SegmentMap&) = delete;

  Status Reserve(uint64_t region_bytes);
  void Insert(Segment* segment) { Store(segment, segment); }
  void Erase(Segment* segment) { Store(segment, nullptr); }

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
    std::atomic<Segment*> covers_first;
    std::atomic<Segment*> starts_behind;
  };

  void Store(const Segment* place, Segment* value);

  Cell* cells_ = nullptr;
  uint64_t count_ = 0;
};

}  // namespace braiddb
