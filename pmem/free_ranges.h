// FindFreeRanges: the pages of a closed region that may have no blocks in the file system. They lie inside free segments.
//
// WHY     A region gives the blocks of free segments back to the file system (part_blocks.h). An open gives blocks to every
//         other hole before PMDK maps the parts (RegionFiles), and so has to find the free segments without PMDK.
// TRUST   Only a directory without damage counts. If anything is damaged, or PMDK has an operation to finish, no range is
//         returned: the open then fills all holes, and reports the damage later.
// HOLES   A read of a hole through a mapping takes a block in tmpfs, and ends the process if there is none. So each page gets a
//         block before it is read.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "braiddb/status.h"

namespace braiddb {

// A range of a pool, in bytes from the start of the pool.
struct PoolRange {
  uint64_t begin = 0;
  uint64_t end = 0;

  bool empty() const { return begin >= end; }
};

// The unit in which blocks are given back and taken.
inline constexpr uint64_t kBlockPageBytes = 4096;

// Returns the pages that lie completely in the bytes [begin, end); an empty range if there are none.
inline PoolRange PagesInside(uint64_t begin, uint64_t end) {
  return {(begin + kBlockPageBytes - 1) / kBlockPageBytes * kBlockPageBytes, end / kBlockPageBytes * kBlockPageBytes};
}

// Sets *ranges to the pages inside the data of all kFree segments, in ascending order. `back`: gives blocks to all pages of a
// range; its errors are returned. REQUIRES: the caller holds the lock of the directory, and the parts have the sizes that PARTS
// lists.
Status FindFreeRanges(const std::string& directory, const std::function<Status(PoolRange)>& back, std::vector<PoolRange>* ranges);

}  // namespace braiddb
