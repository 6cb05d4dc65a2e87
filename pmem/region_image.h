// RegionImage: a private mapping of the part files of a region that is not open. Stores stay in this process; files never
// change.
//
// USE          Opens for reading only, checks and repairs. It needs no PMDK, and read permission is enough.
// DAMAGE       A missing or short file is reported, and reads as zeros. A damaged PARTS is reported; the parts are then those
//              that the directory has.
// HOLES        A hole of a part reads as zeros and takes no block: pages of zeros in DRAM lie over the hole. Without them, a
//              read of a hole takes a block in tmpfs, and ends the process by SIGBUS if the file system is full. Exceptions: a
//              file system that does not tell holes, and the smallest holes beyond kMaxMappedHoles.
// DEVICES      A device (dax_device.h) cannot be mapped privately. Its pages are copied to DRAM, except pages of zeros.
// CONCURRENCY  The shared lock of the directory keeps processes that write from opening the region. A file that another program
//              truncates meanwhile ends this process when it touches the lost pages.
// COST         DRAM for pages that are stored to, and for non-zero pages of a device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/status.h"
#include "pmem/free_ranges.h"
#include "pmem/part_list.h"
#include "pmem/posix.h"

namespace braiddb {

// Thread safety: immutable after Map, except for stores of the caller.
class RegionImage {
 public:
  // Receives each damage, with the path of the file.
  using Report = std::function<void(const std::string& file, const std::string& what)>;

  // Locks the directory shared, and maps the parts that exist. NotFound: there is no part. Busy: a process has the region open
  // to write. IOError: no permission. NotSupported: another format version. Corruption: the parts have impossible sizes. Other
  // damage is reported, and the image has the rest.
  static Status Map(const std::string& directory, const Report& report, std::unique_ptr<RegionImage>* result);
  // As Map, for a caller that holds the lock of the directory.
  static Status MapLocked(const std::string& directory, const Report& report, std::unique_ptr<RegionImage>* result);
  ~RegionImage();
  RegionImage(const RegionImage&) = delete;
  RegionImage& operator=(const RegionImage&) = delete;

  const std::string& directory() const { return directory_; }
  // The parts as PARTS lists them, with an announced part if the heap's size includes it. If PARTS is damaged: the parts that
  // the directory has, with the sizes of the files.
  const PartList& list() const { return list_; }
  bool list_is_sound() const { return list_is_sound_; }

  uint8_t* base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  bool Contains(uint64_t offset, uint64_t bytes) const { return offset <= bytes_ && bytes <= bytes_ - offset; }
  // Bytes that PARTS lists and the files do not have: missing parts, and the missing ends of short parts.
  struct Absent {
    std::string path;
    uint64_t bytes;
  };
  const std::vector<Absent>& absent() const { return absent_; }
  // Returns the first hole that ends behind `offset`, and may contain it. The hole is in offsets of the pool, and consists of
  // whole pages. Returns {bytes(), bytes()} if there is none.
  PoolRange NextHole(uint64_t offset) const;
  // Returns "<path of the part>, byte <n>" for an offset in the pool.
  std::string Place(uint64_t offset) const;

 private:
  explicit RegionImage(std::string directory) : directory_(std::move(directory)) {}

  // Sets list_ and list_is_sound_.
  Status ReadList(const Report& report);
  // Maps one part at `offset` of the image, or copies a device there. Damage is reported.
  Status MapPart(size_t index, uint64_t offset, const Report& report);
  // Maps zeros over the largest holes.
  void MapHoles();

  const std::string directory_;
  posix::Fd lock_;
  PartList list_;
  bool list_is_sound_ = false;
  std::vector<Absent> absent_;
  std::vector<PoolRange> holes_;  // ascending
  uint8_t* base_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace braiddb
