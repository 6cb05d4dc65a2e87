// RegionImage: the part files of a region that is not open, mapped privately: what is stored into it stays in this process, and
// the files never change. For looking at a database that may be damaged; a file that is short or missing reads as zeros there.
// A device (dax_device.h) is copied to DRAM, but for its pages of zeros.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/status.h"
#include "pmem/part_list.h"
#include "pmem/posix.h"

namespace braiddb {

// Thread safety: immutable after Map, but for what the caller stores. The files must not be cut while it lives.
class RegionImage {
 public:
  // Gets what is wrong with the files, each with the path of the file.
  using Report = std::function<void(const std::string& file, const std::string& what)>;

  // Locks the directory shared, for reading only, and maps what is there. NotFound: no part; Busy: open somewhere; IOError: no
  // permission; NotSupported: another format. Damage is reported and leaves as much of an image as there is.
  static Status Map(const std::string& directory, const Report& report, std::unique_ptr<RegionImage>* result);
  // The same for who has the directory locked already.
  static Status MapLocked(const std::string& directory, const Report& report, std::unique_ptr<RegionImage>* result);
  ~RegionImage();
  RegionImage(const RegionImage&) = delete;
  RegionImage& operator=(const RegionImage&) = delete;

  const std::string& directory() const { return directory_; }
  // As PARTS says, with a part that was being added if the heap has it. Sizes found in the directory if PARTS is damaged.
  const PartList& list() const { return list_; }
  bool list_is_sound() const { return list_is_sound_; }

  uint8_t* base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  bool Contains(uint64_t offset, uint64_t bytes) const { return offset <= bytes_ && bytes <= bytes_ - offset; }
  // What PARTS has and no file: missing parts, and what short ones lack.
  struct Absent {
    std::string path;
    uint64_t bytes;
  };
  const std::vector<Absent>& absent() const { return absent_; }
  // "<path of the part>, byte <n>".
  std::string Place(uint64_t offset) const;

 private:
  explicit RegionImage(std::string directory) : directory_(std::move(directory)) {}

  Status ReadList(const Report& report);
  Status MapPart(size_t index, uint64_t offset, const Report& report);

  const std::string directory_;
  posix::Fd lock_;
  PartList list_;
  bool list_is_sound_ = false;
  std::vector<Absent> absent_;
  uint8_t* base_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace braiddb
