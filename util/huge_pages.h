// Huge pages reduce TLB misses of structures with random access. All calls are hints: a refusal costs only speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace braiddb {

// For anonymous memory that is not touched yet.
void AdviseHugePages(void* address, size_t bytes);

// Allocates all pages of memory that will be written, with fewer costs than page faults. The bytes stay. Returns 0 or the error
// number: EFAULT if the file system of a mapped file is full, EINVAL before Linux 5.14. After an error, pages without memory are
// allocated when they are touched.
int PopulatePages(void* address, size_t bytes);

// Moves shared memory (a mapped tmpfs file) with its contents to huge pages. They remain for the file's life. Linux 6.1 or later.
// Returns 0 or the error number. The address need not be that of a page.
int CollapseHugePages(void* address, size_t bytes);

// Extends a new, empty tmpfs file to `bytes`, a multiple of 2 MiB, with zeroed huge pages. This is cheaper than collapsing small
// pages, which are copied. A range that the system refuses stays a hole, except for one page in each tried 2 MiB.
// `mapped`: called with the address of a temporary mapping of the file, before the file has any page. Linux 6.1 or later.
void FillWithHugePages(int fd, uint64_t bytes, const std::function<void(void* address)>& mapped);

}  // namespace braiddb
