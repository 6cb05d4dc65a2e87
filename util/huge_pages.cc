#include "util/huge_pages.h"

#include <sys/mman.h>
#include <unistd.h>

namespace braiddb {
namespace {

#ifdef MADV_COLLAPSE
constexpr int kCollapse = MADV_COLLAPSE;
#else
constexpr int kCollapse = 25;  // C libraries older than the kernel do not name it
#endif

constexpr uint64_t kHugePage = 2ull << 20;

}  // namespace

void AdviseHugePages(void* address, size_t bytes) { (void)madvise(address, bytes, MADV_HUGEPAGE); }

void CollapseHugePages(void* address, size_t bytes) { (void)madvise(address, bytes, kCollapse); }

// A range without any page is not collapsed, and one with a page has the holes around it zeroed in place. That page comes by a
// write, which says so when the file system is full; a store would end the process.
void FillWithHugePages(int fd, uint64_t bytes, const std::function<void(void* address)>& mapped) {
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) return;
  const uint64_t reserved = bytes + kHugePage;
  void* const range = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return;
  auto* const aligned = reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(range) + kHugePage - 1) & ~(kHugePage - 1));
  if (mmap(aligned, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == aligned) {
    mapped(aligned);
    for (uint64_t offset = 0; offset < bytes; offset += kHugePage) {
      const char zero = 0;
      if (pwrite(fd, &zero, 1, static_cast<off_t>(offset)) != 1 || madvise(aligned + offset, kHugePage, kCollapse) != 0) break;
    }
  }
  munmap(range, reserved);
}

}  // namespace braiddb
