// Huge pages, where the system has them: fewer TLB misses for structures that are reached at random. A refusal costs speed only.
#pragma once

#include <cstddef>

namespace braiddb {

// Anonymous memory, before it is touched.
void AdviseHugePages(void* address, size_t bytes);

// Shared memory (a mapped file on tmpfs): gives the range huge pages now, with the content it has; about 0.4 ms per MiB. What was
// collapsed once stays so for as long as the file lives. Linux 6.1 or later.
void CollapseHugePages(void* address, size_t bytes);

}  // namespace braiddb
