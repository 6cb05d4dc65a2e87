// PoolFiles: reads a region's pool from its files by system calls, also while another process has the database open and writes.
//
// WHY IT IS SAFE  Files are only read and never mapped, so a file that shrinks meanwhile is an error and no signal. Structures
//   are verified by their checksums. A structure that changes while it is read does not match its checksum, and is read again.
// WHAT A READER SEES  The owner stores fields before the word that makes them count (CC-34 to CC-36), and the kernel shows a
//   file's bytes as the owner's mapping has them. So a structure whose hash matches is one that the owner has stored as a
//   whole. It may be newer than what is durable: if the machine fails, the owner's next open may find the older state.
// CONCURRENCY     No lock is taken, and the owner of the database is not disturbed. The results of different calls may be from
//   different times.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "braiddb/status.h"
#include "pmem/layout.h"
#include "pmem/part_list.h"
#include "pmem/segment_allocator.h"

namespace braiddb {

// The facts of a segment, as its descriptor had them at one moment.
struct ListedSegment {
  SegmentState state = SegmentState::kUnused;
  uint64_t generation = 0;
  uint64_t entry_seed = 0;
  uint64_t data = 0;                           // offset of the first entry, from the start of the pool
  uint64_t capacity = 0;                       // room for entries, bytes
  uint64_t sealed_bytes = 0;                   // kSealed: bytes of valid entries
  uint64_t sealed_last_sequence = UINT64_MAX;  // kSealed: largest sequence number in it
};

// The slot of the directory that has the largest generation, whether its segment is in use or not. A slot keeps the fields of its
// last use.
struct NewestSlot {
  uint64_t generation = 0;  // 0: no segment was ever used
  bool is_used = false;
  uint64_t sealed_last_sequence = 0;  // changes when the segment is sealed
};

// Thread safety: const methods may be called concurrently.
class PoolFiles {
 public:
  explicit PoolFiles(std::string directory) : directory_(std::move(directory)) {}

  // Reads and verifies the part list and the root. NotFound: there is no region. NotSupported: another version wrote the
  // region. Corruption: list, pool header or root are damaged. The methods below REQUIRE that Open has returned OK.
  Status Open();
  const std::string& directory() const { return directory_; }
  // The part list as it was at Open, without a part that was being added.
  const PartList& list() const { return list_; }
  const RegionRoot& root() const { return root_; }
  // The identity of the pool, which is the `pool` field of each ObjectId in it.
  uint64_t identity() const { return identity_; }

  // Copies bytes of the pool. Also reads parts that the region has grown by since Open. Corruption: no part has these bytes.
  Status Read(uint64_t offset, uint64_t bytes, void* to) const;
  // Copies bytes of the pool to byte `at` of *to, which grows if needed. *to grows only if the files have these bytes, so a
  // damaged size takes no memory.
  Status Read(uint64_t offset, uint64_t bytes, std::vector<uint64_t>* to, uint64_t at) const;
  // Lists the segments in use. Each is read at some moment of the call; together they are no snapshot. *newest, if not null: no
  // segment that was taken before the call has a larger generation. If the newest slot is not used, it may be about to be used.
  Status ListSegments(std::vector<ListedSegment>* segments, NewestSlot* newest = nullptr) const;
  // Returns the Corruption of this region, with the damage `what` and advice.
  Status Damaged(const std::string& what) const;

 private:
  Status ReadList(PartList* list) const;
  Status ReadRoot();
  // Returns a list whose parts have the range: the list of Open, or else the present list with a part that is being added.
  // Corruption: the range lies in neither.
  Status FindParts(uint64_t offset, uint64_t bytes, PartList* parts) const;
  // Reads a range as if the parts of the list were one file.
  Status ReadParts(const PartList& list, uint64_t offset, uint64_t bytes, void* to) const;
  Status ReadPart(size_t part, uint64_t offset, uint64_t bytes, uint8_t* to) const;
  // Reads a link to a block of the directory again while it is being stored. *link: as read with its block.
  Status ReadLink(uint64_t place, ObjectId* link) const;
  // Appends the segment of a descriptor at `place` to *segments if it is in use. `descriptor`: as read with its block.
  Status ReadDescriptor(uint64_t place, SegmentDescriptor descriptor, std::vector<ListedSegment>* segments) const;

  std::string directory_;
  PartList list_;
  uint64_t identity_ = 0;
  RegionRoot root_;
};

}  // namespace braiddb
