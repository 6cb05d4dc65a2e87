#include "util/piece_heap.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

#include "util/huge_pages.h"

namespace braiddb {
namespace {

void* MapPrivate(uint64_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

// Whole huge pages: more is mapped, and what lies outside of them is given back.
void* MapAligned(uint64_t bytes, uint64_t alignment) {
  auto* const memory = static_cast<char*>(MapPrivate(bytes + alignment));
  if (memory == nullptr) return nullptr;
  const uint64_t before = (alignment - reinterpret_cast<uintptr_t>(memory) % alignment) % alignment;
  if (before > 0) munmap(memory, before);
  if (before < alignment) munmap(memory + before + bytes, alignment - before);
  AdviseHugePages(memory + before, bytes);
  return memory + before;
}

}  // namespace

PieceHeap::~PieceHeap() {
  for (Slab& slab : slabs_) Unmap(&slab);
}

void PieceHeap::Expect(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  expected_ = bytes;
  since_ = 0;
}

uint64_t PieceHeap::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

uint64_t PieceHeap::mapped_bytes() const {
  const std::lock_guard lock(mutex_);
  return mapped_;
}

PieceHeap::Piece PieceHeap::Allocate(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const uint64_t count = (bytes + kGranule - 1) / kGranule;
  try {
    if (free_ids_.empty()) {
      pieces_.push_back({});
      free_ids_.reserve(pieces_.capacity());
      free_ids_.push_back(static_cast<uint32_t>(pieces_.size() - 1));
    }
    uint64_t first = 0;
    for (Slab& slab : slabs_) {
      if (slab.longest >= count && FindRange(&slab, count, &first)) return Take(&slab, first, count);
    }
    Slab* const slab = AddSlab(count * kGranule);
    return slab == nullptr ? Piece() : Take(slab, 0, count);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

PieceHeap::Piece PieceHeap::Take(Slab* slab, uint64_t first, uint64_t count) {
  Mark(slab, first, count, true);
  const uint32_t id = free_ids_.back();
  free_ids_.pop_back();
  pieces_[id] = {static_cast<uint32_t>(slab - slabs_.data()), static_cast<uint32_t>(first), static_cast<uint32_t>(count), 1};
  used_ += count * kGranule;
  expected_ -= std::min(expected_, count * kGranule);
  since_ += count * kGranule;
  return {slab->memory + first * kGranule, id};
}

void PieceHeap::Free(uint32_t id) {
  const Range& range = pieces_[id];
  Slab& slab = slabs_[range.slab];
  Mark(&slab, range.first, range.count, false);
  slab.longest = slab.free;
  used_ -= range.count * kGranule;
  free_ids_.push_back(id);
  if (slab.free * kGranule == slab.bytes) Unmap(&slab);
}

bool PieceHeap::FindRange(Slab* slab, uint64_t count, uint64_t* first) {
  const uint64_t granules = slab->bytes / kGranule;
  uint64_t longest = 0;
  uint64_t run = 0;  // free ones before `at`
  for (uint64_t at = 0; at < granules;) {
    const uint64_t in_word = at % kWordBits;
    const uint64_t word = slab->used[at / kWordBits] >> in_word;
    const uint64_t free = std::min<uint64_t>(std::countr_zero(word), kWordBits - in_word);
    run += free;
    at += free;
    if (run >= count) {
      *first = at - run;
      return true;
    }
    if (free == kWordBits - in_word) continue;  // it may go on in the next word
    longest = std::max(longest, run);
    run = 0;
    at += std::countr_one(word >> free);
  }
  slab->longest = std::max(longest, run);
  return false;
}

void PieceHeap::Mark(Slab* slab, uint64_t first, uint64_t count, bool is_used) {
  slab->free += is_used ? -count : count;
  for (const uint64_t end = first + count; first < end;) {
    const uint64_t in_word = first % kWordBits;
    const uint64_t bits = std::min(end - first, kWordBits - in_word);
    const uint64_t mask = (bits == kWordBits ? ~uint64_t{0} : (uint64_t{1} << bits) - 1) << in_word;
    uint64_t& word = slab->used[first / kWordBits];
    word = is_used ? word | mask : word & ~mask;
    first += bits;
  }
}

PieceHeap::Slab* PieceHeap::AddSlab(uint64_t bytes) {
  const uint64_t later = std::max({kMinSlabBytes, std::bit_floor(mapped_ / kShare), std::bit_floor(since_)});
  const uint64_t wanted = std::clamp(expected_ > 0 ? expected_ : later, bytes, kSlabBytes);
  auto slab = std::find_if(slabs_.begin(), slabs_.end(), [](const Slab& unmapped) { return unmapped.memory == nullptr; });
  if (slab == slabs_.end()) slab = slabs_.emplace(slabs_.end());
  const uint64_t size = (wanted + kPage - 1) / kPage * kPage;
  slab->used.assign(size / kGranule / kWordBits, 0);
  Map(&*slab, size);
  if (slab->memory == nullptr) return nullptr;
  slab->bytes = size;
  slab->free = slab->longest = size / kGranule;
  mapped_ += size;
  return &*slab;
}

// Advice has no effect on pages of a SharedHeap, so a slab of a huge page gets its pages, which are then collapsed.
void PieceHeap::Map(Slab* slab, uint64_t bytes) const {
  slab->heap_offset = shared_ == nullptr ? 0 : shared_->AllocateOptional(bytes);
  if (slab->heap_offset != 0) {
    slab->memory = reinterpret_cast<char*>(shared_->At(slab->heap_offset));
    if (bytes == kSlabBytes && PopulatePages(slab->memory, bytes) == 0) (void)CollapseHugePages(slab->memory, bytes);
    return;
  }
  slab->memory = static_cast<char*>(bytes == kSlabBytes ? MapAligned(bytes, kSlabBytes) : MapPrivate(bytes));
  if (slab->memory != nullptr) (void)madvise(slab->memory, bytes, MADV_DONTDUMP);
}

void PieceHeap::Unmap(Slab* slab) {
  if (slab->memory == nullptr) return;
  if (slab->heap_offset != 0) {
    shared_->Free(slab->heap_offset, slab->bytes);
  } else {
    munmap(slab->memory, slab->bytes);
  }
  mapped_ -= slab->bytes;
  slab->memory = nullptr;
  slab->bytes = slab->heap_offset = slab->free = slab->longest = 0;
}

}  // namespace braiddb
