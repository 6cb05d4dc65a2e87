// RegionFiles: the directory of one region and its files: creation, checks, growth and removal. PMDK opens the pool afterwards.
//
// LAYOUT  <directory>/
//           region.set      PMDK's poolset: address space to reserve, and this directory. Derived: an open rewrites it. Missing
//           if
//                           PMDK cannot parse the path
//           PARTS           the part list (part_list.h)
//           DEVICES         the memory modules of the region, if it has any (device_record.h)
//           000000.pmem …   the parts, mapped one after the other. The only part of a region on a device is a symbolic link
//                           to the device (dax_device.h)
//           CREATING        the mark of an unfinished creation: the identity and the directory of the database
//         and, after a crash, *.tmp of one of them. Other files are never touched.
//
// OWNERSHIP  PARTS and CREATING hold the identity of the database. CREATING is written before every other file, and removed
//         after PARTS is durable. A removal deletes PARTS, and then CREATING, after all other files. So at every instant one of
//         the two tells the owner of the files. [CC-60]
// NAMES   A file is the region's if its name is one of the above, with or without the suffix .tmp. A file *.pmem that PARTS
//         does not list is refused at an open, since PMDK would map it. A part announced by `next` may exist or not.
// CONCURRENCY  The lock of the directory (Lock) excludes other processes. One thread uses an object at a time.
//
// GOAL    AddPart makes the region larger. A crash at any instant leaves a region that opens, and an incomplete file is never
//         taken for a part. [CC-31]
// STEPS   1. <part>.tmp is created, allocated in full and synced      a full file system shows here; nothing has changed
//         2. PARTS says `next <part> <bytes>`                         a file of that name and size is now the region's
//         3. <part>.tmp is renamed to <part>, the directory synced
//         4. PMDK maps the part and stores the larger heap size       (Region::Extend)
//         5. PARTS says `part <part> <bytes>`                         (CommitPart)
// CRASH   after 1, 2: the next open removes <part>.tmp. After 3: the part exists, and the heap's size does not include it: the
//         open removes it. After 4: the heap's size includes the part: the open adds it to the list. After 5: nothing is left
//         to do.
// WHAT A READER SEES  A process that reads the files (pool_files.h) finds the part from step 3 on: it is announced and exists.
// COST    Three renames with their syncs, and one allocation of blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "braiddb/status.h"
#include "pmem/free_ranges.h"
#include "pmem/part_list.h"
#include "pmem/posix.h"

namespace braiddb {

class DaxDevice;

// Sizes of new parts are multiples of this number of bytes, so that huge pages fit.
inline constexpr uint64_t kPartAlignment = 2ull << 20;

// The owner of the files in a directory.
struct RegionIdentity {
  enum class Kind {
    kNone,      // no file of a region
    kCreating,  // files of an unfinished creation
    kRegion,    // files of a region
    kUnknown,   // there are files, but PARTS and CREATING are missing or damaged
  };
  Kind kind = Kind::kNone;
  uint64_t database_id = 0;
  std::string database_path;  // kCreating: the database's directory, absolute
};

// Thread safety: one thread at a time.
class RegionFiles {
 public:
  // REQUIRES: `directory` is canonical. It need not exist for FindFiles and ReadIdentity.
  explicit RegionFiles(std::string directory) : directory_(std::move(directory)) {}

  const std::string& directory() const { return directory_; }
  std::string set_path() const { return Path("region.set"); }
  std::string part_path(size_t index) const { return Path(PartName(index)); }
  std::string creating_path() const { return Path("CREATING"); }
  const PartList& list() const { return list_; }

  // For a creation: sets the device of the only part; empty if parts are files. For an existing region ReadList finds the
  // device.
  void SetDevice(const std::string& device) { device_ = device; }
  const std::string& device() const { return device_; }
  // InvalidArgument: the device is no persistent memory, or its first page is not zero. Busy: another process uses it.
  Status CheckDeviceIsFree() const;
  // Clears the whole device durably, and then creates the link to it, durably.
  Status LinkDevice() const;
  // InvalidArgument: `named`, an element of region_paths, is a device, and the first part is not a link to it.
  Status CheckDevice(const std::string& named) const;

  // Locks the directory until destruction, by flock(2). Busy: another process or object has the lock. OK on a file system
  // without locks: PMDK locks the parts as well.
  Status Lock();
  // Sets *found if the directory has a file with the name of a region's file, complete or not. An unfinished temporary mark
  // does not count. NotFound: the directory does not exist.
  Status FindFiles(bool* found) const;
  // Returns true if the mark CREATING exists.
  bool CreationUnfinished() const;
  // Finds the owner of the files. kNone, with OK, if the directory does not exist. The mark CREATING counts before PARTS.
  Status ReadIdentity(RegionIdentity* identity) const;

  // Writes and removes the mark CREATING, durably.
  Status WriteCreatingMark(uint64_t database_id, const std::string& database_path);
  Status RemoveCreatingMark();
  // Removes the temporary file of a mark that a killed creation of this database was writing. The mark of another database stays.
  // REQUIRES: the directory is locked.
  Status RemoveUnfinishedMark(uint64_t database_id) const;
  // For a creation: makes the first part, with a pool in it (MakeSmallPool). `syncs`: syncs the file; false if the caller syncs
  // all of its pages later. The entry in the directory is durable in both cases.
  Status MakeFirstPart(bool checks_bad_blocks, bool syncs) const;
  // The range of FillFirstPart. kChunks: the chunks that PMDK can allocate. kWhole: the whole part, before the region grows.
  enum class Filled : uint8_t { kChunks, kWhole };
  // Allocates blocks for the holes of a first part that MakeFirstPart has made. The part may be mapped and written meanwhile;
  // its bytes stay. NoSpace: the file system is full.
  Status FillFirstPart(Filled filled);
  // Opens the first part for FillFirstPart, and keeps it open: when the blocks are needed, the process may have other
  // permissions, or no free file descriptor.
  Status HoldFirstPart();
  // For a creation: writes PARTS with the first part, durably. REQUIRES: the first part exists.
  Status CommitFirstPart(uint64_t database_id, uint32_t region, uint32_t region_count);

  // Reads PARTS and finds the device. Corruption: PARTS is missing or damaged. NotSupported: another version wrote it.
  Status ReadList();
  // Checks the files against the list, and finishes or undoes an AddPart that was cut short. Then gives blocks to all holes in
  // which a store may come before the segment allocator takes blocks for it. Corruption: a part is missing, has another size,
  // or does not begin with a pool; or the directory has a part that is not listed. NoSpace: the file system has too little space
  // for the holes. REQUIRES: ReadList has returned OK, and the directory is locked.
  Status CheckParts();
  // Returns true if CheckParts has left holes inside free segments.
  bool has_free_holes() const { return has_free_holes_; }
  // Checks the sizes of all parts again, after they were mapped. A part that was truncated meanwhile is an error then;
  // otherwise an access behind its end would end the process.
  Status CheckSizes() const;
  // The poolset by which PMDK opens or creates the pool. The object must live during that call.
  struct PoolSet {
    std::string path;
    posix::Fd file;  // of a poolset in memory
  };
  // Makes the poolset: the file region.set. If PMDK cannot parse the path of the directory, a file in memory that names the
  // directory by its descriptor in /proc/self/fd. NotSupported: that needs /proc, which is missing. REQUIRES: locked.
  Status MakeSet(uint64_t reserve_bytes, PoolSet* set);

  // Steps 1 to 3. `fill`, if any, may allocate blocks of the new file with zeros, for example as huge pages; AddPart allocates
  // the rest. NoSpace: the file system is full; nothing has changed.
  using Fill = std::function<void(int fd, uint64_t bytes)>;
  Status AddPart(uint64_t bytes, const Fill& fill = nullptr);
  // Step 5. If it fails, the part is in use nevertheless, and the next AddPart repeats the step.
  Status CommitPart();

  // Removes the files of a region except the mark CREATING; PARTS last. Files that PARTS does not list stay. A device is
  // cleared first, so that it is free. IOError, before anything is removed: one of the names is no regular file. Corruption,
  // likewise: the device has the pool of another region. REQUIRES: the files belong to the caller's database.
  // CRASH  PARTS is removed after all other removals are durable, so a repetition knows the owner of the remaining files.
  Status RemoveFiles();

  // Returns the bytes of the file system that are free for this user; 0 for a device; UINT64_MAX if unknown.
  uint64_t AvailableBytes() const;
  // Returns a number that directories of one file system share; 0 if unknown.
  uint64_t FileSystemId() const;
  // Returns the bytes of the file system, or of the device; UINT64_MAX if unknown.
  uint64_t CapacityBytes() const;

 private:
  std::string Path(std::string_view name) const { return posix::JoinPath(directory_, name); }
  // Returns true if PMDK can parse the directory's path in a poolset.
  bool HasPlainPath() const;
  // Replaces region.set if its text differs.
  Status WriteSetFile(const std::string& text);
  // Checks type, size and signature of one part.
  Status CheckPart(size_t index, uint64_t bytes) const;
  // Allocates the blocks of a first part that may be mapped.
  Status FillMappedPart(int fd, Filled filled) const;
  // Allocates blocks for the holes of all parts, except the pages inside free segments. REQUIRES: no part is mapped. [CC-61]
  // [CC-66]
  Status FillHoles();
  // Returns true if the only part is a first part with holes of its own (pool_maker.h).
  bool IsSmallPool() const;
  // FillHoles of such a part. `blocks`: bytes of the file that have blocks.
  Status FillSmallPool(int fd, uint64_t blocks) const;
  // Clears the first page of the region's device, so that the device is free.
  Status ReleaseDevice() const;
  // Returns true if the pool on the device is this region's, or a pool without a root.
  bool IsPoolOfThisRegion(const DaxDevice& device) const;
  // Finishes an announced part if the heap's size includes it; otherwise removes it. Then replaces PARTS.
  Status FinishAddPart();
  // Removes temporary files. Corruption: there is a *.pmem that is no part.
  Status CheckNoOthers() const;
  // Gives blocks to the holes of the range.
  Status FillRangeOfPool(PoolRange range) const;

  const std::string directory_;
  posix::Fd lock_;
  posix::Fd first_part_;  // HoldFirstPart has opened it; closed when its chunks have blocks
  std::string device_;    // path of the only part if that is a device; else empty
  PartList list_;
  bool commit_pending_ = false;  // list_ has a part that PARTS does not list yet
  bool has_free_holes_ = false;  // CheckParts has left holes inside free segments
};

// The bounds of a pool's heap, in bytes from the start of the pool, and its number of lanes.
struct PoolExtent {
  uint64_t heap_begin = 0;
  uint64_t heap_end = 0;
  uint64_t lanes = 0;
};
// Reads the extent from the first part. Trusts the words: the caller compares heap_end with the parts. NotSupported: another
// pool format. IOError: the part is too short or cannot be read.
Status ReadPoolExtent(const std::string& first_part, PoolExtent* extent);

}  // namespace braiddb
