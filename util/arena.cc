#include "util/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "util/huge_pages.h"

namespace braiddb {
namespace {

#ifdef MADV_POPULATE_WRITE
constexpr int kPopulate = MADV_POPULATE_WRITE;
#else
constexpr int kPopulate = 23;  // C libraries older than the kernel do not name it
#endif

uint64_t RoundUp(uint64_t bytes) {
  constexpr uint64_t kHugePage = 2ull << 20;
  return (bytes + kHugePage - 1) & ~(kHugePage - 1);
}

}  // namespace

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
  const uint64_t used = std::min(used_.load(std::memory_order_relaxed), kReserve);
  touched_ = std::max(touched_, used);
  keep_bytes = RoundUp(std::min(keep_bytes, kReserve));
  if (touched_ > keep_bytes) {
    madvise(base_ + keep_bytes, touched_ - keep_bytes, MADV_DONTNEED);
    touched_ = keep_bytes;
  }
  memset(base_, 0, std::min(used, keep_bytes));
  used_.store(kFirst, std::memory_order_relaxed);
}

void Arena::Populate(uint64_t bytes) {
  bytes = RoundUp(std::min(bytes, kReserve));
  if (madvise(base_, bytes, kPopulate) == 0) touched_ = std::max(touched_, bytes);
}

}  // namespace braiddb
