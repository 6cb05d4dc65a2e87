#include "pmem/dax_device.h"

#include <fcntl.h>
#include <libpmem.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "pmem/posix.h"
#include "util/check.h"
#include "util/file.h"
#include "util/page_size.h"

namespace braiddb {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kDefaultAlignment = 2ull << 20;

// Facts of a device that /sys has: its size, and the unit in which ranges of it can be mapped.
struct Geometry {
  uint64_t bytes = 0;
  uint64_t alignment = kDefaultAlignment;
};

// Returns the number at the begin of the file; 0 if there is none.
uint64_t NumberIn(const fs::path& file) {
  uint64_t number = 0;
  std::ifstream in(file);
  return in >> number ? number : 0;
}

// Reads the geometry of a device of the bus dax. Returns false for every other file. If /sys names no alignment, a device has 2
// MiB, the kernel's default.
bool FindGeometry(const struct stat& st, Geometry* geometry) {
  if (!S_ISCHR(st.st_mode)) return false;
  const fs::path directory = "/sys/dev/char/" + std::to_string(major(st.st_rdev)) + ":" + std::to_string(minor(st.st_rdev));
  std::error_code error;
  if (fs::canonical(directory / "subsystem", error).filename() != "dax" || error) return false;
  geometry->bytes = NumberIn(directory / "size");
  if (const uint64_t alignment = NumberIn(directory / "align"); alignment != 0) geometry->alignment = alignment;
  return geometry->bytes != 0;
}

// Returns the InvalidArgument for a path that is no device of persistent memory.
Status NotDax(const std::string& path) {
  return Status::InvalidArgument(path + " is a device, but not one of persistent memory; name a directory, or a device that " +
                                 "`ndctl create-namespace -m devdax` makes");
}

// Compares each byte with its successor, so memcmp does the whole work.
bool IsZero(const uint8_t* bytes, uint64_t count) {
  return count == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, count - 1) == 0);
}

}  // namespace

bool IsCharacterDevice(const std::string& path) {
  struct stat st;
  return stat(path.c_str(), &st) == 0 && S_ISCHR(st.st_mode);
}

bool IsSameDevice(const std::string& one, const std::string& other) {
  struct stat a, b;
  return stat(one.c_str(), &a) == 0 && stat(other.c_str(), &b) == 0 && S_ISCHR(a.st_mode) && S_ISCHR(b.st_mode) &&
         a.st_rdev == b.st_rdev;
}

DaxDevice::~DaxDevice() {
  if (base_ != nullptr) munmap(base_, bytes_);
  if (fd_ >= 0) close(fd_);
}

Status DaxDevice::FindBytes(const std::string& path, uint64_t* bytes) {
  struct stat st;
  if (stat(path.c_str(), &st) != 0) return posix::ErrnoStatus(errno, "examine", path);
  Geometry geometry;
  if (!FindGeometry(st, &geometry)) return NotDax(path);
  *bytes = geometry.bytes;
  return Status::OK();
}

// STEPS  1 find the size  2 open the device  3 lock it, if it is to be written  4 map it. After an error the destructor of
//        `device` closes what is open.
Status DaxDevice::Map(const std::string& path, Access access, DaxDevice* device) {
  if (Status status = FindBytes(path, &device->bytes_); !status.ok()) return status;
  const bool writes = access == Access::kWrite;
  device->fd_ = open(path.c_str(), (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  if (device->fd_ < 0) return posix::ErrnoStatus(errno, "open", path);
  // PMDK takes the same lock for the device of an open pool.
  if (writes && LockFile(device->fd_, LOCK_EX) == EWOULDBLOCK)
    return Status::Busy(path + " is in use; close the database in the process that has it open");
  void* const base = mmap(nullptr, device->bytes_, writes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, device->fd_, 0);
  if (base == MAP_FAILED) return posix::ErrnoStatus(errno, "map", path);
  device->base_ = static_cast<uint8_t*>(base);
  return Status::OK();
}

// One fence at the end makes all pages durable: no order among the pages is needed.
void DaxDevice::Clear(uint64_t bytes) {
  BRAIDDB_DCHECK(base_ != nullptr && bytes <= bytes_);
  for (uint64_t at = 0; at < bytes; at += kPageBytes) {
    const uint64_t count = std::min(kPageBytes, bytes - at);
    if (!IsZero(base_ + at, count)) pmem_memset_nodrain(base_ + at, 0, count);
  }
  pmem_drain();
}

void DaxDevice::CopyTo(uint8_t* memory, uint64_t bytes) const {
  BRAIDDB_DCHECK(base_ != nullptr);
  bytes = std::min(bytes, bytes_);
  for (uint64_t at = 0; at < bytes; at += kPageBytes) {
    const uint64_t count = std::min(kPageBytes, bytes - at);
    if (!IsZero(base_ + at, count)) std::memcpy(memory + at, base_ + at, count);
  }
}

// A device has no read(2), so the range is mapped, widened to the device's alignment, and copied.
int64_t ReadPartAt(int fd, void* to, uint64_t bytes, uint64_t offset) {
  struct stat st;
  Geometry geometry;
  if (fstat(fd, &st) != 0) return -1;
  if (!FindGeometry(st, &geometry)) return pread(fd, to, bytes, static_cast<off_t>(offset));
  if (offset >= geometry.bytes) return 0;
  bytes = std::min(bytes, geometry.bytes - offset);
  const uint64_t begin = offset / geometry.alignment * geometry.alignment;
  const uint64_t end = (offset + bytes + geometry.alignment - 1) / geometry.alignment * geometry.alignment;
  void* const window = mmap(nullptr, end - begin, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(begin));
  if (window == MAP_FAILED) return -1;
  std::memcpy(to, static_cast<const uint8_t*>(window) + (offset - begin), bytes);
  munmap(window, end - begin);
  return static_cast<int64_t>(bytes);
}

// fstat(2) reports a size of 0 for a device; /sys has its size.
uint64_t PartBytes(int fd) {
  struct stat st;
  Geometry geometry;
  if (fstat(fd, &st) != 0) return 0;
  if (FindGeometry(st, &geometry)) return geometry.bytes;
  return S_ISREG(st.st_mode) ? static_cast<uint64_t>(st.st_size) : 0;
}

}  // namespace braiddb
