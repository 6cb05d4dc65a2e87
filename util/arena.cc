#include "util/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "util/huge_pages.h"
#include "util/page_size.h"

namespace braiddb {
// Huge pages need an address that is a multiple of their size, so a larger range is mapped and trimmed.
uint8_t* Arena::Map(uint64_t bytes, bool huge) {
  const uint64_t slack = huge && bytes >= kHugePageBytes ? kHugePageBytes : 0;
  void* const range = mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return nullptr;
  auto* begin = static_cast<uint8_t*>(range);
  if (slack != 0) {
    auto* const aligned = reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(begin) + slack - 1) & ~(slack - 1));
    if (aligned != begin) munmap(begin, static_cast<size_t>(aligned - begin));
    if (aligned != begin + slack) munmap(aligned + bytes, static_cast<size_t>(begin + slack - aligned));
    begin = aligned;
    AdviseHugePages(begin, bytes);
  }
  (void)madvise(begin, bytes, MADV_DONTDUMP);
  return begin;
}

Arena::Arena(uint8_t* base, uint64_t first_bytes, bool huge, SharedHeap* heap, const SharedMemory* memory, uint64_t heap_offset)
    : base_(base), first_units_(first_bytes / 8), huge_(huge), heap_(heap), memory_(memory), heap_offset_(heap_offset) {}

std::unique_ptr<Arena> Arena::Create(bool huge, uint64_t first_bytes, SharedHeap* heap) {
  const uint64_t bytes = std::bit_ceil(std::clamp(first_bytes, kLeastFirst, kMost / 2));
  const uint64_t offset = heap == nullptr ? 0 : heap->Allocate(bytes);
  if (heap != nullptr && offset == 0) return nullptr;
  uint8_t* const base = heap == nullptr ? Map(bytes, huge) : heap->At(offset);
  if (base == nullptr) return nullptr;
  std::unique_ptr<Arena> arena(new (std::nothrow) Arena(base, bytes, huge, heap, nullptr, offset));
  if (arena != nullptr) return arena;
  if (heap != nullptr) {
    heap->Free(offset, bytes);
  } else {
    munmap(base, bytes);
  }
  return nullptr;
}

std::unique_ptr<Arena> Arena::Attach(const SharedMemory* memory, uint64_t offset, uint64_t first_bytes) {
  return std::unique_ptr<Arena>(new (std::nothrow) Arena(memory->base() + offset, first_bytes, false, nullptr, memory, offset));
}

Arena::~Arena() {
  if (memory_ != nullptr) return;
  for (uint32_t i = 0; i < kMostLater; ++i) FreeLater(i);
  if (heap_ != nullptr) {
    heap_->Free(heap_offset_, first_bytes());
  } else {
    munmap(base_, first_bytes());
  }
}

void Arena::FreeLater(uint32_t later) {
  uint8_t* const extent = later_[later].exchange(nullptr, std::memory_order_relaxed);
  if (extent == nullptr) return;
  if (heap_ != nullptr) {
    heap_->Free(head()->later[later].load(std::memory_order_relaxed), first_bytes() << later);
  } else {
    munmap(extent, first_bytes() << later);
  }
}

uint8_t* Arena::AtForeign(uint32_t reference) const {
  uint8_t* const guard = memory_->base() + memory_->bytes();
  if (reference >= kMost / 8) return guard;
  const uint32_t later = LaterOf(reference);
  // Extents begin at pages. So a block that is aligned in its arena is aligned here, whatever the word is.
  const uint64_t offset = head()->later[later].load(std::memory_order_acquire) / kPageBytes * kPageBytes;
  const uint64_t bytes = (reference - (first_units_ << later)) * 8;
  static_assert(kMost / 2 == kMostInGuard);  // `bytes` is less: the last extent has half of the arena
  return offset == 0 || offset >= memory_->bytes() ? guard : memory_->base() + offset + bytes;
}

uint32_t Arena::AllocateBlock(uint64_t bytes) {
  const uint64_t start = used_.fetch_add(bytes, std::memory_order_relaxed);
  if (__builtin_expect(start + bytes <= first_bytes(), 1)) return static_cast<uint32_t>(start / 8);
  return AllocateLater(start, bytes);
}

// Tries further positions until the block lies in one extent.
uint32_t Arena::AllocateLater(uint64_t start, uint64_t bytes) {
  for (; start + bytes <= kMost; start = used_.fetch_add(bytes, std::memory_order_relaxed)) {
    if (start < first_bytes()) continue;  // the block does not fit in the first extent
    const uint32_t later = LaterOf(start / 8);
    if (start + bytes > first_bytes() << (later + 1)) continue;
    return MapLater(later) ? static_cast<uint32_t>(start / 8) : 0;
  }
  return 0;
}

bool Arena::MapLater(uint32_t later) {
  if (later_[later].load(std::memory_order_acquire) != nullptr) return true;
  std::lock_guard lock(map_mutex_);
  if (later_[later].load(std::memory_order_relaxed) != nullptr) return true;
  const uint64_t bytes = first_bytes() << later;
  uint8_t* extent = nullptr;
  if (heap_ == nullptr) {
    extent = Map(bytes, huge_);
  } else if (const uint64_t offset = heap_->Allocate(bytes); offset != 0) {
    extent = heap_->At(offset);
    head()->later[later].store(offset, std::memory_order_release);
  }
  later_[later].store(extent, std::memory_order_release);
  return extent != nullptr;
}

uint64_t Arena::RoundUp(uint64_t bytes) const {
  const uint64_t page = huge_ ? kHugePageBytes : kPageBytes;
  return std::min((std::min(bytes, kMost) + page - 1) / page * page, first_bytes());
}

// used_ may exceed the limit after failed allocations.
uint64_t Arena::used_bytes() const { return std::min(used_.load(std::memory_order_relaxed), kMost); }

void Arena::Reset(uint64_t keep_bytes) {
  for (uint32_t i = 0; i < kMostLater; ++i) FreeLater(i);
  const uint64_t used = std::min(used_bytes(), first_bytes());
  touched_ = std::max(touched_, used);
  keep_bytes = RoundUp(keep_bytes);
  uint64_t to_zero = used;
  // The system keeps some memory, for example locked memory; this is zeroed here.
  if (touched_ > keep_bytes && EmptyFrom(keep_bytes, touched_ - keep_bytes)) {
    touched_ = keep_bytes;
    to_zero = std::min(used, keep_bytes);
  }
  memset(base_, 0, to_zero);
  used_.store(kFirst, std::memory_order_relaxed);
}

bool Arena::EmptyFrom(uint64_t offset, uint64_t bytes) {
  if (heap_ == nullptr) return madvise(base_ + offset, bytes, MADV_DONTNEED) == 0;
  const uint64_t end = std::min((offset + bytes + kPageBytes - 1) / kPageBytes * kPageBytes, first_bytes());
  return heap_->Empty(heap_offset_ + offset, end - offset);
}

void Arena::Populate(uint64_t bytes) {
  bytes = RoundUp(bytes);
  (void)PopulatePages(base_, bytes);
  touched_ = std::max(touched_, bytes);  // also if the system stopped on the way
}

}  // namespace braiddb
