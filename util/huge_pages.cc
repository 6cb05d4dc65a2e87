#include "util/huge_pages.h"

#include <sys/mman.h>

namespace braiddb {
namespace {

#ifdef MADV_COLLAPSE
constexpr int kCollapse = MADV_COLLAPSE;
#else
constexpr int kCollapse = 25;  // C libraries older than the kernel do not name it
#endif

}  // namespace

void AdviseHugePages(void* address, size_t bytes) { (void)madvise(address, bytes, MADV_HUGEPAGE); }

void CollapseHugePages(void* address, size_t bytes) { (void)madvise(address, bytes, kCollapse); }

}  // namespace braiddb
