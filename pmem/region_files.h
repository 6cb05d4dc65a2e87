// RegionFiles: the directory of one region and the files in it, up to the point where PMDK takes over.
//
// LAYOUT  <directory>/
//           region.set      PMDK's poolset: address space to reserve, and this directory. Derived: rewritten at open; not there
//                           if PMDK cannot take the path
//           PARTS           the part list (part_list.h)
//           DEVICES         the memory modules that the region lies on, if there are any (device_record.h)
//           000000.pmem …   the parts, mapped one after the other. The only part of a region on a device is a symbolic link
//                           to the device (dax_device.h)
//           CREATING        only until the creation of the whole database is complete: its identity and its directory
//         and, after a crash, *.tmp of one of them. No other file is ever touched.
//
// OWNERSHIP  PARTS and CREATING name the identity of the database. CREATING is there before every other file, and goes after
//         PARTS is there. A removal takes PARTS, and then CREATING, after all other files. So at every instant one of them says
//         whose files these are. [CC-60]
//
// GOAL    AddPart makes the region larger, so that a crash at any instant leaves a region that opens, and no file is taken for
//         a part before it is whole.
// STEPS   1. <part>.tmp is created, allocated in full and synced      a full file system shows here; nothing has changed
//         2. PARTS says `next <part> <bytes>`                         from now on a file of that name and size is ours
//         3. <part>.tmp is renamed to <part>, the directory synced
//         4. PMDK maps the part and stores the larger heap size       (Region::Grow); pool_files.h reads: after 2, 3
//         5. PARTS says `part <part> <bytes>`                         (CommitPart)
// CRASH   after 1, 2: Open removes <part>.tmp. After 3: the part is there, the heap does not know it: Open removes it. After
//         4: the heap knows it: Open takes it into the list. After 5: done.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "braiddb/status.h"
#include "pmem/part_list.h"
#include "pmem/posix.h"

namespace braiddb {

class DaxDevice;

inline constexpr uint64_t kPartAlignment = 2ull << 20;  // part sizes are multiples of it, so that huge pages fit

// Whose the files in a directory are.
struct RegionIdentity {
  enum class Kind {
    kNone,      // no file of a region
    kCreating,  // of a creation that is not complete
    kRegion,    // of a region
    kUnknown,   // what says so is missing or damaged
  };
  Kind kind = Kind::kNone;
  uint64_t database_id = 0;
  std::string database_path;  // kCreating: absolute
};

// Thread safety: one thread at a time.
class RegionFiles {
 public:
  // `directory` exists and is canonical.
  explicit RegionFiles(std::string directory) : directory_(std::move(directory)) {}

  const std::string& directory() const { return directory_; }
  std::string set_path() const { return Path("region.set"); }
  std::string part_path(size_t index) const { return Path(PartName(index)); }
  std::string creating_path() const { return Path("CREATING"); }
  const PartList& list() const { return list_; }

  // At creation: the only part lies on this device; empty: parts are files. ReadList finds it for a region that is there.
  void SetDevice(const std::string& device) { device_ = device; }
  const std::string& device() const { return device_; }
  // InvalidArgument if it is no persistent memory, or is not free.
  Status CheckDeviceIsFree() const;
  // Clears the device, and puts the link to it into the directory.
  Status LinkDevice() const;
  // InvalidArgument if `named`, one of region_paths, is a device, and the first part is not a link to it.
  Status CheckDevice(const std::string& named) const;

  // Holds the directory for this process until destruction or Unlock; Busy if someone has it.
  Status Lock();
  // Whether any file of a region is there, whole or not. NotFound if the directory does not exist.
  Status FindFiles(bool* found) const;
  // A Create that did not get to its end left these files.
  bool CreationUnfinished() const;
  // OK and kNone if the directory does not exist.
  Status ReadIdentity(RegionIdentity* identity) const;

  Status WriteCreatingMark(uint64_t database_id, const std::string& database_path);
  Status RemoveCreatingMark();
  // At creation: makes the first part, with a pool in it (MakeSmallPool). `syncs`: not if the caller syncs all of its pages.
  Status MakeFirstPart(bool checks_bad_blocks, bool syncs) const;
  // Gives blocks to the holes of a first part that MakeFirstPart made. kChunks: to all that can be allocated; kWhole: to all of
  // it, before the region grows. NoSpace if the file system is full; whatever was allocated before stays as it is.
  enum class Filled : uint8_t { kChunks, kWhole };
  // The part may be mapped, and be written meanwhile.
  Status FillFirstPart(Filled filled);
  // Keeps the file open for FillFirstPart: a process may change its rights, or have no descriptor left, when the blocks are
  // needed.
  Status HoldFirstPart();
  // At creation, when the first part is there.
  Status CommitFirstPart(uint64_t database_id, uint32_t region, uint32_t region_count);

  Status ReadList();
  // Checks the files against the list and finishes or takes back an AddPart that was cut short. REQUIRES: ReadList was OK.
  Status CheckParts();
  // Whether all parts still have the size that the list says: after they were mapped, so that one that was cut since is an error
  // and not the end of the process that touches it.
  Status CheckSizes() const;
  // What PMDK opens or creates the pool by; while it does, the object lives.
  struct PoolSet {
    std::string path;
    posix::Fd file;  // of a set that is in memory
  };
  // The set is the file region.set. Where PMDK cannot take the path of the directory, it is a file in memory that names the
  // directory by its descriptor in /proc/self/fd; then there is no region.set. REQUIRES: locked.
  Status MakeSet(uint64_t reserve_bytes, PoolSet* set);

  // Steps 1 to 3. NoSpace changes nothing. `fill` may allocate as much as it likes of the new file, which is empty, all zeros;
  // what it leaves is allocated then.
  using Fill = std::function<void(int fd, uint64_t bytes)>;
  Status AddPart(uint64_t bytes, const Fill& fill = nullptr);
  // Step 5. If it fails the part is in use all the same, and the next AddPart repeats it.
  Status CommitPart();

  // Removes the files of a region except the mark CREATING, and no other; PARTS last. A file that PARTS does not list stays. An
  // error, before anything is removed, if one of the names is not that of a regular file. A device is cleared first, so that it
  // is free; Corruption if the pool on it is of another region. REQUIRES: they are the caller's.
  Status RemoveFiles();

  // What the file system has free for this user, and in all; bytes.
  uint64_t AvailableBytes() const;
  // The same for directories of one file system; 0 if that cannot be known.
  uint64_t FileSystemId() const;
  uint64_t CapacityBytes() const;

 private:
  std::string Path(std::string_view name) const { return posix::JoinPath(directory_, name); }
  bool HasPlainPath() const;
  Status WriteSetFile(const std::string& text);
  Status CheckPart(size_t index, uint64_t bytes) const;
  Status FillMappedPart(int fd, Filled filled) const;
  // Gives blocks to holes where something may be allocated. `blocks`: bytes of the file that have blocks. [CC-61]
  Status FillHoles(size_t index, int fd, uint64_t bytes, uint64_t blocks) const;
  Status ReleaseDevice() const;
  bool IsPoolOfThisRegion(const DaxDevice& device) const;
  Status FinishAddPart();
  Status CheckNoOthers() const;

  const std::string directory_;
  posix::Fd lock_;
  posix::Fd first_part_;  // of HoldFirstPart, until its chunks have blocks
  std::string device_;
  PartList list_;
  bool commit_pending_ = false;  // list_ has a part that PARTS does not have yet
};

// Where the heap of the pool starts and ends, in bytes from the start of the pool, and how many lanes the pool has; read from the
// header of its first part.
struct PoolExtent {
  uint64_t heap_begin = 0;
  uint64_t heap_end = 0;
  uint64_t lanes = 0;
};
Status ReadPoolExtent(const std::string& first_part, PoolExtent* extent);

}  // namespace braiddb
