#include "pmem/pool_repair.h"

#include <fcntl.h>
#include <libpmemobj.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "pmem/dax_device.h"
#include "pmem/pool_format.h"
#include "pmem/posix.h"
#include "util/check.h"

namespace braiddb {
namespace {

constexpr char kSetting[] = "sds.at_create";
constexpr uint64_t kBytesRead = kPoolRunIdOffset + sizeof(uint64_t);  // header, descriptor and run id

// Guards PMDK's setting sds.at_create, which belongs to the process.
std::mutex& SettingMutex() {
  static std::mutex mutex;
  return mutex;
}

// Writes all bytes, in several calls if the system writes fewer.
Status WriteAt(int fd, uint64_t offset, const void* bytes, size_t count, const std::string& path) {
  const char* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t n = pwrite(fd, from, count, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return posix::ErrnoStatus(errno, "write the pool header of", path);
    from += n;
    offset += static_cast<uint64_t>(n);
    count -= static_cast<size_t>(n);
  }
  return Status::OK();
}

// CRASH  After each write: the checksum matches one value of the feature bit (PERSIST ORDER in the header). A power cut may
//        lose any of the writes before the caller's fsync; the argument is the same.
Status DropShutdownState(int fd, const PoolView& pool, const std::string& path) {
  const uint32_t features = pool.features() & ~kPoolHasShutdownState;
  const uint64_t checksum = pool.HeaderChecksum(features);
  constexpr std::array<char, kPoolShutdownStateBytes> kNone = {};
  Status status = WriteAt(fd, kPoolFeaturesOffset, &features, sizeof(features), path);
  if (status.ok()) status = WriteAt(fd, kPoolShutdownStateOffset, kNone.data(), kNone.size(), path);
  if (status.ok()) status = WriteAt(fd, kPoolHeaderChecksumOffset, &checksum, sizeof(checksum), path);
  return status;
}

}  // namespace

NoShutdownStateScope::NoShutdownStateScope() : lock_(SettingMutex()) {
  int off = 0;
  BRAIDDB_CHECK(pmemobj_ctl_get(nullptr, kSetting, &before_) == 0 && pmemobj_ctl_set(nullptr, kSetting, &off) == 0);
}

NoShutdownStateScope::~NoShutdownStateScope() { (void)pmemobj_ctl_set(nullptr, kSetting, &before_); }

// STEPS  1 read the head  2 a short file or a damaged header stays as it is  3 drop the shutdown state  4 make the run id even
//        5 sync if something was written. A crash in between leaves a header that step 3 accepts again.
Status PreparePool(const std::string& first_part, std::string* what) {
  what->clear();
  if (IsCharacterDevice(first_part)) return Status::OK();
  const posix::Fd fd(open(first_part.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return posix::ErrnoStatus(errno, "open", first_part);
  std::array<uint8_t, kBytesRead> bytes;
  const ssize_t got = pread(fd.get(), bytes.data(), bytes.size(), 0);
  if (got < 0) return posix::ErrnoStatus(errno, "read the pool header of", first_part);
  const PoolView pool(bytes.data(), bytes.size());
  if (static_cast<size_t>(got) < bytes.size() || !pool.HeaderIsSound()) return Status::OK();
  if (pool.ShutdownStateIsThere()) {
    if (Status status = DropShutdownState(fd.get(), pool, first_part); !status.ok()) return status;
    *what = "dropped PMDK's shutdown state, which does not know parts that were added later";
  }
  if (pool.RunIdIsOdd()) {
    uint64_t run_id = 0;
    std::memcpy(&run_id, bytes.data() + kPoolRunIdOffset, sizeof(run_id));
    ++run_id;
    if (Status status = WriteAt(fd.get(), kPoolRunIdOffset, &run_id, sizeof(run_id), first_part); !status.ok()) return status;
    *what += std::string(what->empty() ? "" : "; ") + "repaired PMDK's run id, which was odd";
  }
  if (!what->empty() && fsync(fd.get()) != 0) return posix::ErrnoStatus(errno, "sync", first_part);
  return Status::OK();
}

}  // namespace braiddb
