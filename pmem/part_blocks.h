// PartBlocks: gives blocks of a region's part files back to the file system, and takes them again.
//
// GUARANTEE  The length of a file never changes. A page without blocks reads as zeros. After Take has returned OK, a store to a
//            page of the range needs no new block, so a full file system cannot end the process by SIGBUS.
// WHO DECIDES  The segment allocator: it gives back pages of kFree segments only, and takes the blocks before the segment has
//            another use (segment_allocator.h, BLOCKS). [CC-66]
// CRASH      in GiveBack: each block of the range is there or not. In Take: the same. Both are the file system's metadata, which
//            its journal keeps consistent. In tmpfs a crash of the machine loses all files.
// WHY TAKE NEEDS NO SYNC  With DAX, the parts are mapped with MAP_SYNC: the first store to a page waits until the page's block is
//            durable. In kPage, the msync that makes an entry durable makes its block durable too.
// MEDIA      fallocate(2) with FALLOC_FL_PUNCH_HOLE: tmpfs, ext4, xfs and others, with and without DAX. A device without a file
//            system has no blocks to give back.
// WHICH FILES  The files that Start and AddPart have found under the parts' names, by device and inode. A directory that was
//            moved may have other files in its place, for example a copy of the database: these are never touched.
// CONCURRENCY  All methods may be called concurrently, for ranges that do not overlap.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "braiddb/status.h"
#include "pmem/free_ranges.h"

namespace braiddb {

// Which file it is, whatever its name. No file has the default value.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;

  bool operator==(const FileId&) const = default;
};

class PartBlocks {
 public:
  // `directory`: of the region. `parts`: bytes of its parts. REQUIRES: the parts under their names are the region's.
  void Start(std::string directory, const std::vector<uint64_t>& parts);
  // The region has grown by a part.
  void AddPart(uint64_t bytes);

  // Gives the blocks of the range back. The range then has none, except blocks that the file system keeps although it reports no
  // error, or after an error perhaps some. NotSupported: the file system
  // cannot do that. IOError: the system refused, or a part was moved or replaced. REQUIRES: the range consists of pages of
  // existing parts.
  Status GiveBack(PoolRange range);
  // Gives blocks to all pages of the range, whose bytes do not change. NoSpace: the file system is full; some pages may have
  // blocks. IOError: a part was moved or replaced, or there is no free file descriptor. REQUIRES: no other thread stores to the
  // range.
  Status Take(PoolRange range);

  // kAll: a store to any page of the range needs no block. kNone: no page of the range has data. kUnknown: anything else.
  enum class Found : uint8_t { kAll, kNone, kUnknown };
  Found Find(PoolRange range) const;

 private:
  // Calls `visit` with the open file, its path, and the offsets in the file, for each part that has a piece of the range. Ends at
  // the first error.
  using Visit = std::function<Status(int fd, const std::string& path, uint64_t begin, uint64_t end)>;
  Status ForEachPart(PoolRange range, const Visit& visit) const;

  std::string directory_;
  struct Part {
    uint64_t end;  // offset behind the part, from the start of the pool
    FileId file;
  };
  mutable std::mutex mutex_;  // guards parts_; held for moments only
  std::vector<Part> parts_;
};

// Gives blocks to the holes of [begin, end) of an open file. The bytes stay. Where the file system cannot tell holes from blocks
// that were never written, these are allocated again, which changes nothing. NoSpace: the file system is full. REQUIRES: no
// other thread stores to the range.
Status FillHolesOfRange(int fd, const std::string& path, uint64_t begin, uint64_t end);

// Appends the holes of [begin, end) of an open file to *holes, in ascending order, in whole pages. Blocks that were never written
// are reported as holes too. Appends no more holes where the file system does not tell them.
void FindHolesOfRange(int fd, uint64_t begin, uint64_t end, std::vector<PoolRange>* holes);

}  // namespace braiddb
