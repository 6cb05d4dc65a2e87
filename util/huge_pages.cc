#include "util/huge_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "util/page_size.h"

namespace braiddb {
namespace {

#ifdef MADV_COLLAPSE
constexpr int kCollapse = MADV_COLLAPSE;
#else
constexpr int kCollapse = 25;  // older C libraries do not define it
#endif

#ifdef MADV_POPULATE_WRITE
constexpr int kPopulate = MADV_POPULATE_WRITE;
#else
constexpr int kPopulate = 23;
#endif

}  // namespace

void AdviseHugePages(void* address, size_t bytes) { (void)madvise(address, bytes, MADV_HUGEPAGE); }

int PopulatePages(void* address, size_t bytes) {
  while (madvise(address, bytes, kPopulate) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

int CollapseHugePages(void* address, size_t bytes) {
  // madvise accepts only addresses of pages.
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address) & ~(page - 1);
  const size_t length = reinterpret_cast<uintptr_t>(address) + bytes - begin;
  return madvise(reinterpret_cast<void*>(begin), length, kCollapse) == 0 ? 0 : errno;
}

// WHY A PAGE IS WRITTEN FIRST  A range without any page is not collapsed. In a range with one page, the holes around it are
//   zeroed in place. The page is written by pwrite, which returns an error if the file system is full; a store to the mapping
//   would end the process.
void FillWithHugePages(int fd, uint64_t bytes, const std::function<void(void* address)>& mapped) {
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) return;
  const uint64_t reserved = bytes + kHugePageBytes;
  void* const range = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return;
  auto* const aligned =
      reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(range) + kHugePageBytes - 1) & ~(kHugePageBytes - 1));
  if (mmap(aligned, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == aligned) {
    mapped(aligned);
    // In pieces, so that after a refusal no further pages are written in vain.
    constexpr uint64_t kPiece = 16 * kHugePageBytes;
    for (uint64_t begin = 0, end = 0; begin < bytes; begin = end) {
      end = std::min(begin + kPiece, bytes);
      const char zero = 0;
      bool written = true;
      for (uint64_t offset = begin; written && offset < end; offset += kHugePageBytes) {
        written = pwrite(fd, &zero, 1, static_cast<off_t>(offset)) == 1;
      }
      if (!written) break;
      // EAGAIN and EBUSY concern one place at one moment. After any other error, the rest would fail as well.
      if (madvise(aligned + begin, end - begin, kCollapse) != 0 && errno != EAGAIN && errno != EBUSY) break;
    }
  }
  munmap(range, reserved);
}

}  // namespace braiddb
