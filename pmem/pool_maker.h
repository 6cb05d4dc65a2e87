// PoolMaker: the first part of a new region, as pmemobj_create would make it, but small.
//
// LAYOUT  pool_format.h. kFewLanes lanes in place of PMDK's 1,024, so the heap begins at kSmallHeapBegin. The zone has room for
//         kSmallChunks chunks. All lanes are empty. The heap has its header only: libpmemobj initializes the zone when it
//         allocates from the heap for the first time.
//         The name of the layout is kFewLanesLayout. A program that opens the pool as kPoolLayout does not know that it must
//         limit libpmemobj to the lanes of the pool (pmdk_lanes.h), and is refused.
// HOLES   The part is sparse. Offsets:
//                        0 … kSmallHeadEnd        has blocks: headers, lanes, the headers of the zone's first chunks
//            kSmallHeadEnd … first chunk          a hole until the region grows: headers of chunks that the part does not have
//              first chunk … kBornChunks chunks   has blocks: what the creation of a database allocates
//                     then … end                  a hole until more is allocated
//         A store into a hole would end the process if the file system is full. So nothing that is allocated lies in a hole, and
//         libpmemobj stores nothing there: it takes chunks from the front of the zone's only free run. RegionFiles::FillFirstPart
//         gives holes their blocks, and reports a full file system, before an allocation that may need them. The part is mapped
//         by then: that takes fallocate(2). Where the file system has none, the part has no holes.
// CRASH   The mark CREATING stands until the creation is complete. What a crash leaves is made anew. [CC-60]
#pragma once

#include <cstdint>

#include "braiddb/status.h"
#include "pmem/layout.h"
#include "pmem/pool_format.h"

namespace braiddb {

inline constexpr uint64_t kSmallPartBytes = 2ull << 20;  // PMDK opens no smaller part
inline constexpr uint64_t kPageBytes = 4096;             // PMDK's unit of headers

constexpr uint64_t RoundUpToPage(uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

inline constexpr uint64_t kSmallHeapBegin = RoundUpToPage(kPoolFirstLane + kFewLanes * kPoolLaneBytes);
inline constexpr uint64_t kSmallZone = kSmallHeapBegin + kHeapHeaderBytes;
inline constexpr uint64_t kSmallFirstChunk = kSmallZone + kZoneHeaderBytes;
inline constexpr uint64_t kSmallChunks = (kSmallPartBytes - kSmallFirstChunk) / kChunkBytes;
inline constexpr uint64_t kSmallHeadEnd = RoundUpToPage(kSmallZone + sizeof(ZoneHeader) + kSmallChunks * sizeof(ChunkHeader));
// The chunks of the root, of small objects, and one more: what an empty database has.
inline constexpr uint64_t kBornChunks = 3;
static_assert(kBornChunks < kSmallChunks);

// Makes the sparse part in the open, empty file, which the caller syncs. `path` is for the messages. `checks_bad_blocks`:
// libpmemobj asks the kernel for bad blocks of the memory modules at each open, in a hundred system calls.
Status MakeSmallPool(int fd, const std::string& path, bool checks_bad_blocks);

// Whether the file is as MakeSmallPool made it, but for allocations in the first kBornChunks chunks that are complete. False for
// what is damaged.
bool IsBornPool(int fd);

// Gives a range of the file blocks by fallocate(2), which leaves what other threads store there meanwhile. Returns an error
// number, EOPNOTSUPP where the file system cannot do that.
int Allocate(int fd, uint64_t begin, uint64_t end);
bool CanAllocate(int fd);

// Gives a range of the file blocks; what it holds stays. NoSpace if the file system is full. REQUIRES: nobody has mapped the
// file.
Status FillRange(int fd, const std::string& path, uint64_t begin, uint64_t end);

}  // namespace braiddb
