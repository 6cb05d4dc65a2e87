// Huge pages, where the system has them: fewer TLB misses for structures that are reached at random. A refusal costs speed only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace braiddb {

// Anonymous memory, before it is touched.
void AdviseHugePages(void* address, size_t bytes);

// Anonymous memory that will all be written: its pages come at once, which takes less than a fault for each. What there is no
// memory for comes when it is touched. Linux 5.14 or later.
void PopulatePages(void* address, size_t bytes);

// Shared memory (a mapped file on tmpfs): gives the range huge pages now, with the content it has; about 0.4 ms per MiB. What was
// collapsed once stays so for as long as the file lives. Linux 6.1 or later.
void CollapseHugePages(void* address, size_t bytes);

// Gives a new, empty file on tmpfs its first `bytes`, a multiple of 2 MiB, as huge pages of zeros: about 0.06 ms per MiB, a
// ninth of what it takes to collapse small ones, which are copied. What the system refuses, or has no memory for, stays a
// hole, but for a page of each 2 MiB that were tried.
// `mapped`: called with the address at which the file is mapped meanwhile, before it has any page. Linux 6.1 or later.
void FillWithHugePages(int fd, uint64_t bytes, const std::function<void(void* address)>& mapped);

}  // namespace braiddb
