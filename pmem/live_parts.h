// LiveParts: a shared, read-only mapping of the part files of a region that another process may have open to write. It follows
// the region's growth.
//
// GUARANTEE    A load in [base, base + reserved_bytes() + guard_bytes()) never ends the process: a byte that no part has reads as
//              zero. Two exceptions: LIMITS. Addresses never change. No file changes, and no lock is taken or waited for.
// WHAT A READER SEES  Each store of the writer, as another thread of the writer sees it, durable or not.
// GROWTH       A part belongs to the region when the heap's size includes it (region_files.h, STEPS 4). The heap's size is a word
//              of the mapped pool, so a check for new parts costs two loads. PARTS then lists the part or announces it as `next`.
//              The writer may replace PARTS between two reads, so the list is read again until it fits the heap.
// ADDRESS SPACE  Zero pages span the whole reservation. Parts are mapped over these. Base and parts are aligned to 2 MiB, so huge
//              pages of a file are mapped as huge pages. A reservation of 1 GiB and more is aligned to 1 GiB, the largest
//              alignment of a device.
// LIMITS       A load ends the process by SIGBUS
//                - where another program has truncated a part
//                - in a hole of a part on tmpfs, if that file system is full: tmpfs gives a block to a hole that is read. Only
//                  pages inside free segments, and unused chunks of a small first part, may be holes (part_blocks.h).
// CONCURRENCY  One thread at a time calls Open, Reserve and MapNewParts. Other threads may read mapped parts meanwhile.
// LIFETIME     A file that is removed or replaced stays mapped with its bytes (CheckInPlace).
#pragma once

#include <cstdint>
#include <string>

#include "braiddb/status.h"
#include "pmem/part_blocks.h"
#include "pmem/part_list.h"

namespace braiddb {

class LiveParts {
 public:
  explicit LiveParts(std::string directory) : directory_(std::move(directory)) {}
  ~LiveParts();
  LiveParts(const LiveParts&) = delete;
  LiveParts& operator=(const LiveParts&) = delete;

  // Reads PARTS. Call once, first. Corruption: PARTS is missing or damaged. NotSupported: another version wrote it. IOError: no
  // permission.
  Status Open() { return ReadList(&list_); }
  // Reserves address space for `bytes` bytes and a guard of `guard_bytes` behind these. If the process has less address space,
  // reserves no guard, and then fewer bytes, but never less than the listed parts. IOError: there is no address space.
  // REQUIRES: Open has returned OK.
  Status Reserve(uint64_t bytes, uint64_t guard_bytes);
  // Maps all listed parts at the first call, and later the parts that the region has grown by. Parts that are mapped before an
  // error stay mapped. Corruption: a part is missing or has a wrong size, or the files are of another region. NotSupported: a
  // device refuses the mapping. NoSpace: the region has outgrown the reserved address space. REQUIRES: Reserve has returned OK.
  Status MapNewParts();
  // NotFound: the first part was removed, or another file has its name.
  Status CheckInPlace() const;

  const std::string& directory() const { return directory_; }
  // The list as Open read it, with all parts that are mapped.
  const PartList& list() const { return list_; }
  uint8_t* base() const { return base_; }
  uint64_t mapped_bytes() const { return mapped_bytes_; }
  uint64_t reserved_bytes() const { return reserved_bytes_; }
  uint64_t guard_bytes() const { return guard_bytes_; }

 private:
  Status ReadList(PartList* list) const;
  // Reserves exactly these bytes. Returns false if there is no address space.
  bool TryReserve(uint64_t bytes, uint64_t guard_bytes, uint64_t alignment);
  // Returns the end of the heap, as the mapped pool has it now; 0 if no pool is mapped.
  uint64_t HeapEnd() const;
  // Maps the parts of `list` that are not mapped yet, and an announced part that the heap includes.
  Status MapParts(const PartList& list);
  // Maps the next part, of `bytes` bytes.
  Status MapPart(uint64_t bytes);
  Status Damaged(const std::string& what) const;

  const std::string directory_;
  PartList list_;
  FileId first_part_;
  size_t mapped_parts_ = 0;
  uint64_t mapped_bytes_ = 0;
  uint8_t* base_ = nullptr;
  uint64_t reserved_bytes_ = 0;
  uint64_t guard_bytes_ = 0;
};

}  // namespace braiddb
