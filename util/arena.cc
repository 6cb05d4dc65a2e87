#include "util/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "util/huge_pages.h"

namespace braiddb {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kHugePage = 2ull << 20;

}  // namespace

std::unique_ptr<Arena> Arena::Create(bool huge) {
  void* base = mmap(nullptr, kReserve, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  if (huge) AdviseHugePages(base, kReserve);
  madvise(base, kReserve, MADV_DONTDUMP);
  std::unique_ptr<Arena> arena(new (std::nothrow) Arena(static_cast<uint8_t*>(base), huge ? kHugePage : kPage));
  if (arena == nullptr) munmap(base, kReserve);
  return arena;
}

Arena::~Arena() { munmap(base_, kReserve); }

uint32_t Arena::AllocateBlock(uint64_t bytes) {
  const uint64_t start = used_.fetch_add(bytes, std::memory_order_relaxed);
  if (start + bytes > kReserve) return 0;
  return static_cast<uint32_t>(start / 8);
}

uint64_t Arena::RoundUp(uint64_t bytes) const { return (std::min(bytes, kReserve) + page_ - 1) / page_ * page_; }

// More may have been asked for.
uint64_t Arena::used_bytes() const { return std::min(used_.load(std::memory_order_relaxed), kReserve); }

void Arena::Reset(uint64_t keep_bytes) {
  const uint64_t used = used_bytes();
  touched_ = std::max(touched_, used);
  keep_bytes = RoundUp(keep_bytes);
  uint64_t to_zero = used;
  // Memory that is locked, for example, is not taken back; then it is zeroed like the rest.
  if (touched_ > keep_bytes && madvise(base_ + keep_bytes, touched_ - keep_bytes, MADV_DONTNEED) == 0) {
    touched_ = keep_bytes;
    to_zero = std::min(used, keep_bytes);
  }
  memset(base_, 0, to_zero);
  used_.store(kFirst, std::memory_order_relaxed);
}

void Arena::Populate(uint64_t bytes) {
  bytes = RoundUp(bytes);
  PopulatePages(base_, bytes);
  touched_ = std::max(touched_, bytes);  // it may have failed on the way
}

}  // namespace braiddb
