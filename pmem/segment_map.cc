#include "pmem/segment_map.h"

#include <sys/mman.h>

#include <string>

#include "util/check.h"

namespace braiddb {

SegmentMap::~SegmentMap() {
  if (cells_ != nullptr) munmap(static_cast<void*>(cells_), count_ * sizeof(Cell));
}

Status SegmentMap::Reserve(uint64_t region_bytes) {
  BRAIDDB_DCHECK(cells_ == nullptr);
  const uint64_t count = region_bytes / kBlockBytes + 1;
  void* const memory =
      mmap(nullptr, count * sizeof(Cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return Status::MemoryLimit("no address space for the segment map of " + std::to_string(region_bytes) +
                               " bytes; lower max_region_size or raise the limit (ulimit -v)");
  }
  // A fresh mapping is zero, and zero cells are null pointers. A constructor would give memory to all pages.
  cells_ = static_cast<Cell*>(memory);
  count_ = count;
  return Status::OK();
}

// release: pairs with the acquire in Find; the constant fields of the segment are set.
void SegmentMap::Store(const Segment* place, Segment* value) {
  const uint64_t begin = place->ptr(0).offset();
  const uint64_t end = begin + place->capacity();
  uint64_t block = begin / kBlockBytes;
  BRAIDDB_DCHECK(place->capacity() > 0 && (end - 1) / kBlockBytes < count_);
  if (begin % kBlockBytes != 0) cells_[block++].starts_behind.store(value, std::memory_order_release);
  for (; block * kBlockBytes < end; ++block) cells_[block].covers_first.store(value, std::memory_order_release);
}

}  // namespace braiddb
