#include "util/arena.h"

#include <sys/mman.h>

#include <algorithm>

#include "util/huge_pages.h"

namespace braiddb {

std::unique_ptr<Arena> Arena::Create(bool huge) {
  void* base = mmap(nullptr, kReserve, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  if (huge) AdviseHugePages(base, kReserve);
  madvise(base, kReserve, MADV_DONTDUMP);
  return std::unique_ptr<Arena>(new Arena(static_cast<uint8_t*>(base)));
}

Arena::~Arena() { munmap(base_, kReserve); }

uint32_t Arena::AllocateBlock(uint64_t bytes) {
  const uint64_t start = used_.fetch_add(bytes, std::memory_order_relaxed);
  if (start + bytes > kReserve) return 0;
  return static_cast<uint32_t>(start / 8);
}

void Arena::Reset(uint64_t keep_bytes) {
  touched_ = std::max(touched_, std::min(used_.load(std::memory_order_relaxed), kReserve));
  keep_bytes = (keep_bytes + (2u << 20) - 1) & ~((uint64_t{2} << 20) - 1);
  if (touched_ > keep_bytes) {
    madvise(base_ + keep_bytes, touched_ - keep_bytes, MADV_DONTNEED);
    touched_ = keep_bytes;
  }
  used_.store(kFirst, std::memory_order_relaxed);
}

}  // namespace braiddb
