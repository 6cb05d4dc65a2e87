// DaxDevice: a region's part on a character device of persistent memory (/dev/daxX.Y), which has no file system.
//
// LAYOUT  The region's directory lies in the database's directory, on an ordinary file system. In place of the file of the first
//         part it has a symbolic link to the device. The pool takes the whole device and never grows.
// LIMITS  Such a device can be mapped, shared and in units of its alignment, and nothing else: there is no read(), no write(), no
//         private mapping. Its size is in /sys.
// CLEAR   A device is cleared before a pool is made on it: entries of an earlier database could pass for entries of the new one,
//         since their checksums are right. A device whose first page is not zero is refused before. Destroy clears that page.
#pragma once

#include <cstdint>
#include <string>

#include "braiddb/status.h"

namespace braiddb {

inline constexpr uint64_t kDeviceHeaderBytes = 4096;  // a device with zeros there is free

// Whether the path, or what it links to, is a character device. False if it does not exist.
bool IsCharacterDevice(const std::string& path);
// Whether both paths lead to the same character device.
bool IsSameDevice(const std::string& one, const std::string& other);

// A mapping of a whole device. Thread safety: immutable after Map.
class DaxDevice {
 public:
  enum class Access : uint8_t { kRead, kWrite };

  // InvalidArgument: a character device that is no persistent memory. Busy: Access::kWrite, and an open region has the device.
  static Status Map(const std::string& path, Access access, DaxDevice* device);
  // The size, without a mapping. Errors as of Map.
  static Status FindBytes(const std::string& path, uint64_t* bytes);

  DaxDevice() = default;
  ~DaxDevice();
  DaxDevice(const DaxDevice&) = delete;
  DaxDevice& operator=(const DaxDevice&) = delete;

  const uint8_t* base() const { return base_; }
  uint64_t bytes() const { return bytes_; }
  // Makes the first `bytes` zero, durably. Pages that are zero are not stored to. REQUIRES: Access::kWrite.
  void Clear(uint64_t bytes);
  // Copies the device to zeroed memory; pages of zeros take no memory there.
  void CopyTo(uint8_t* memory, uint64_t bytes) const;

 private:
  int fd_ = -1;
  uint8_t* base_ = nullptr;
  uint64_t bytes_ = 0;
};

// pread() of a file or a device: the number of bytes read, or -1 and errno.
int64_t ReadPartAt(int fd, void* to, uint64_t bytes, uint64_t offset);
// The size of an open file or device; 0 if it is neither.
uint64_t PartBytes(int fd);

}  // namespace braiddb
