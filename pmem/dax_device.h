// DaxDevice: the mapping of a character device of persistent memory (/dev/daxX.Y), which has no file system.
//
// LAYOUT  The region's directory lies in the database's directory, on an ordinary file system. The first part of the region is
//         a symbolic link to the device. The pool takes the whole device and never grows.
// LIMITS  A device supports shared mappings in units of its alignment, and nothing else: no read(), no write(), no private
//         mapping. Its size is in /sys.
// CLEAR   A creation clears the whole device before it makes a pool there. Otherwise entries of an earlier database, whose
//         checksums match, could be taken for entries of the new one. A device whose first page is not zero is refused. Destroy
//         clears the first page.
// CONCURRENCY  A mapping with Access::kWrite holds an exclusive flock(2) of the device, as PMDK does for the device of an open
//         pool. So one process writes to a device at a time. A mapping with Access::kRead takes no lock.
#pragma once

#include <cstdint>
#include <string>

#include "braiddb/status.h"

namespace braiddb {

// A device whose first kDeviceHeaderBytes bytes are zero is free: a pool has its header there.
inline constexpr uint64_t kDeviceHeaderBytes = 4096;

// Returns true if the path, or the target of its symbolic links, is a character device. False if it does not exist.
bool IsCharacterDevice(const std::string& path);
// Returns true if both paths lead to the same character device, by device number.
bool IsSameDevice(const std::string& one, const std::string& other);

// A mapping of a whole device. Thread safety: immutable after Map.
class DaxDevice {
 public:
  enum class Access : uint8_t { kRead, kWrite };

  // Maps the whole device. InvalidArgument: the path is no device of the bus dax. Busy: Access::kWrite, and another user holds
  // the lock of the device. IOError, NotFound: the device cannot be opened or mapped. `device` is a default-constructed object;
  // after an error it is destroyed only.
  static Status Map(const std::string& path, Access access, DaxDevice* device);
  // Returns the size of the device without mapping it. Errors as of Map, except Busy.
  static Status FindBytes(const std::string& path, uint64_t* bytes);

  DaxDevice() = default;
  ~DaxDevice();
  DaxDevice(const DaxDevice&) = delete;
  DaxDevice& operator=(const DaxDevice&) = delete;

  const uint8_t* base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  // Clears the first `bytes` bytes durably. Skips pages that are zero already. REQUIRES: Access::kWrite, and bytes <= bytes().
  void Clear(uint64_t bytes);
  // Copies the first `bytes` bytes of the device to `memory`, or the whole device if it is smaller. Skips pages of zeros, so
  // these take no memory in a fresh anonymous mapping. REQUIRES: `memory` is zero.
  void CopyTo(uint8_t* memory, uint64_t bytes) const;

 private:
  int fd_ = -1;
  uint8_t* base_ = nullptr;
  uint64_t bytes_ = 0;
};

// Reads as pread(2), from a file or a device. Returns the number of bytes read, 0 at the end, or -1 with errno. The read of a
// device maps the range for the time of the copy.
int64_t ReadPartAt(int fd, void* to, uint64_t bytes, uint64_t offset);
// Returns the size in bytes of an open regular file or dax device; 0 for anything else.
uint64_t PartBytes(int fd);

}  // namespace braiddb
