// PoolMaker: writes the first part of a new region. The pool is one that pmemobj_create could have made, but it is small.
//
// LAYOUT  As in pool_format.h, with kFewLanes lanes in place of PMDK's 1,024, so the heap begins at kSmallHeapBegin. The zone
//         has room for kSmallChunks chunks. All lanes are empty. The heap has its header only: libpmemobj initializes the zone
//         at the first allocation.
// NAME    The name of the layout is kFewLanesLayout. A program that opens the pool as kPoolLayout would not limit libpmemobj to
//         the lanes of the pool (pmdk_lanes.h), so libpmemobj refuses it.
// HOLES   The part is sparse. Offsets:
//                        0 … kSmallHeadEnd        has blocks: headers, lanes, the headers of the zone's first chunks
//            kSmallHeadEnd … first chunk          a hole until the region grows: headers of chunks that the part does not have
//              first chunk … kBornChunks chunks   has blocks: chunks that the creation of a database allocates
//                     then … end                  a hole until more is allocated
//         A store into a hole ends the process (SIGBUS) if the file system is full. So no allocated object lies in a hole, and
//         libpmemobj stores nothing there: it takes chunks from the front of the zone's only free run. Before an allocation
//         that may need a hole, RegionFiles::FillFirstPart gives the holes blocks, and reports a full file system. The part is
//         mapped by then, so only fallocate(2) can do this. On a file system without fallocate(2) the part has no holes.
//         [CC-61]
// CRASH   The mark CREATING stands until the creation is complete. The next creation removes and rewrites the part. [CC-60]
#pragma once

#include <cstdint>

#include "braiddb/status.h"
#include "pmem/layout.h"
#include "pmem/pool_format.h"
#include "util/page_size.h"

namespace braiddb {

inline constexpr uint64_t kSmallPartBytes = 2ull << 20;  // the smallest part that PMDK opens

inline constexpr uint64_t kSmallHeapBegin = RoundUpToPage(kPoolFirstLane + kFewLanes * kPoolLaneBytes);
inline constexpr uint64_t kSmallZone = kSmallHeapBegin + kHeapHeaderBytes;
inline constexpr uint64_t kSmallFirstChunk = kSmallZone + kZoneHeaderBytes;
inline constexpr uint64_t kSmallChunks = (kSmallPartBytes - kSmallFirstChunk) / kChunkBytes;
inline constexpr uint64_t kSmallHeadEnd = RoundUpToPage(kSmallZone + sizeof(ZoneHeader) + kSmallChunks * sizeof(ChunkHeader));
// Chunks that have blocks from the start: one for the root, one for small objects, and one more, which is enough for an empty
// database.
inline constexpr uint64_t kBornChunks = 3;
static_assert(kBornChunks < kSmallChunks);

// Writes the sparse part into the open, empty file. The caller syncs the file. `path` is for messages. `checks_bad_blocks`:
// lets libpmemobj ask the kernel for bad blocks of the memory modules at each open, which takes about a hundred system calls.
// NoSpace: the file system is full.
Status MakeSmallPool(int fd, const std::string& path, bool checks_bad_blocks);

// Returns true if the file is as MakeSmallPool has made it, except for complete allocations in the first kBornChunks chunks.
// Returns false for a damaged file.
bool IsBornPool(int fd);

// Allocates the blocks of a range by fallocate(2). The bytes stay, also those that other threads store meanwhile. Returns 0, or
// an errno: EOPNOTSUPP if the file system has no fallocate(2).
int Allocate(int fd, uint64_t begin, uint64_t end);
// Returns true if Allocate works in this file. Allocates the first page.
bool CanAllocate(int fd);

// Allocates the blocks of a range; the bytes stay. Without fallocate(2), bytes are read and written again, so a concurrent
// store would be lost. NoSpace: the file system is full. REQUIRES: the file is not mapped.
Status FillRange(int fd, const std::string& path, uint64_t begin, uint64_t end);

}  // namespace braiddb
