// PoolFiles: the pool of a region, read from its files by system calls, whether someone has them open to write or not.
//
// WHY IT IS SAFE  Files are only read, and nothing is mapped, so that one that shrinks is an error and no signal. What is read is
//   verified by its checksums; what changes while it is read may be of several times, and is then read again.
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

// A segment as its descriptor said at some moment.
struct ListedSegment {
  SegmentState state = SegmentState::kUnused;
  uint64_t generation = 0;
  uint64_t entry_seed = 0;
  uint64_t data = 0;      // offset of the first entry in the pool
  uint64_t capacity = 0;  // bytes of entries
  uint64_t sealed_bytes = 0;
};

// Thread safety: const methods may be called concurrently.
class PoolFiles {
 public:
  explicit PoolFiles(std::string directory) : directory_(std::move(directory)) {}

  // The part list and the root, verified. NotFound: there is no region; NotSupported: of another version.
  Status Open();
  const std::string& directory() const { return directory_; }
  // As they were at Open, without a part that was being added.
  const PartList& list() const { return list_; }
  const RegionRoot& root() const { return root_; }
  // What the `pool` field of an ObjectId says.
  uint64_t identity() const { return identity_; }

  // Also of parts that the region has grown by since Open.
  Status Read(uint64_t offset, uint64_t bytes, void* to) const;
  // To the bytes of *to from `at` on, which grows to hold them once it is known that the files have so many.
  Status Read(uint64_t offset, uint64_t bytes, std::vector<uint64_t>* to, uint64_t at) const;
  // The segments that are in use. Not one moment's: each as it was at some time of the call.
  Status ListSegments(std::vector<ListedSegment>* segments) const;
  Status Damaged(const std::string& what) const;

 private:
  Status ReadList(PartList* list) const;
  Status ReadRoot();
  // The list as of now, with a part that is being added, if bytes lie there that Open's list does not have. Corruption: they do
  // not lie in any.
  Status FindParts(uint64_t offset, uint64_t bytes, PartList* parts) const;
  Status ReadParts(const PartList& list, uint64_t offset, uint64_t bytes, void* to) const;
  Status ReadPart(size_t part, uint64_t offset, uint64_t bytes, uint8_t* to) const;
  Status ReadDescriptor(uint64_t place, SegmentDescriptor descriptor, std::vector<ListedSegment>* segments) const;

  std::string directory_;
  PartList list_;
  uint64_t identity_ = 0;
  RegionRoot root_;
};

}  // namespace braiddb
