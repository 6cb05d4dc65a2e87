#include "pmem/persist_mode.h"

#include <fcntl.h>
#include <libpmem.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

#include "pmem/dax_device.h"
#include "pmem/posix.h"

namespace braiddb {
namespace {

// What makes stores durable: cache flushes (kDax, kDeviceDax), nothing (kMemory), or msync (kDisk).
enum class Medium : uint8_t { kDax, kDeviceDax, kMemory, kDisk };

// Finds the medium of a file. The kernel grants MAP_SYNC exactly where a flush of CPU caches makes stores durable, so a trial
// mapping of one page tells DAX from a disk.
Status FindMedium(const std::string& file, Medium* medium) {
  if (IsCharacterDevice(file)) {
    uint64_t bytes = 0;
    *medium = Medium::kDeviceDax;
    return DaxDevice::FindBytes(file, &bytes);
  }
  const posix::Fd fd(open(file.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return posix::ErrnoStatus(errno, "open", file);
  struct statfs fs;
  if (fstatfs(fd.get(), &fs) != 0) return posix::ErrnoStatus(errno, "examine the file system of", file);
  if (fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC) {
    *medium = Medium::kMemory;
    return Status::OK();
  }
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const probe = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, fd.get(), 0);
  *medium = probe == MAP_FAILED ? Medium::kDisk : Medium::kDax;
  if (probe != MAP_FAILED) munmap(probe, page);
  return Status::OK();
}

// Returns true if the platform writes out CPU caches at a power failure (eADR).
bool HasEadr() { return pmem_has_auto_flush() == 1; }

// Returns the InvalidArgument for a mode that is not safe for the file.
Status Refuse(const std::string& file, const char* why) {
  return Status::InvalidArgument("persist_mode for " + file + ": " + why);
}

}  // namespace

// These names are written to options files, so they never change.
std::span<const PersistModeName> PersistModeNames() {
  static constexpr PersistModeName kNames[] = {{PersistMode::kAuto, "auto"},
                                               {PersistMode::kCacheLine, "cache-line"},
                                               {PersistMode::kEadr, "eadr"},
                                               {PersistMode::kPage, "page"},
                                               {PersistMode::kEmulated, "emulated"}};
  return kNames;
}

const char* NameOf(PersistMode mode) {
  for (const PersistModeName& known : PersistModeNames()) {
    if (known.mode == mode) return known.name;
  }
  return "unknown";
}

// kPage is allowed on every file system: msync works on DAX and on tmpfs as well. A mode of cache lines is allowed on DAX only.
Status ResolvePersistMode(const std::string& file, PersistMode requested, PersistMode* resolved) {
  Medium medium = Medium::kDisk;
  Status status = FindMedium(file, &medium);
  if (!status.ok()) return status;
  *resolved = requested;
  switch (requested) {
    case PersistMode::kAuto:
      *resolved = medium == Medium::kMemory ? PersistMode::kEmulated
                  : medium == Medium::kDisk ? PersistMode::kPage
                  : HasEadr()               ? PersistMode::kEadr
                                            : PersistMode::kCacheLine;
      return Status::OK();
    case PersistMode::kPage:
      if (medium != Medium::kDeviceDax) return Status::OK();
      return Refuse(file, "a device has no pages to sync; use kAuto, and regions that are all on persistent memory");
    case PersistMode::kEmulated:
      if (medium == Medium::kMemory) return Status::OK();
      return Refuse(file, "kEmulated needs tmpfs; use kAuto here, or a path on tmpfs such as /dev/shm");
    case PersistMode::kCacheLine:
    case PersistMode::kEadr:
      if (medium == Medium::kMemory) return Refuse(file, "tmpfs is not persistent memory; use kEmulated or kAuto");
      if (medium == Medium::kDisk) {
        return Refuse(file, "the file system is not mounted with DAX, cache flushes do not reach the disk; use kPage or kAuto");
      }
      if (requested == PersistMode::kEadr && !HasEadr()) {
        return Refuse(file, "the platform does not flush CPU caches at power failure; use kCacheLine or kAuto");
      }
      return Status::OK();
  }
  return Refuse(file, "unknown value");
}

}  // namespace braiddb
