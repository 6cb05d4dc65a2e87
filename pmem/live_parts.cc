#include "pmem/live_parts.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "pmem/dax_device.h"
#include "pmem/persistence.h"
#include "pmem/pool_format.h"
#include "pmem/posix.h"
#include "pmem/region_files.h"
#include "util/check.h"
#include "util/page_size.h"

namespace braiddb {
namespace {

constexpr uint64_t kLargestAlignment = 1ull << 30;
constexpr uint64_t kMaxReservedBytes = 1ull << 46;  // half of a process's address space; larger sums are damage
// Reads of PARTS that do not fit the heap, before that counts as damage. The writer needs one or two steps in between.
constexpr int kListTries = 50;
constexpr auto kListPause = std::chrono::milliseconds(1);

constexpr uint64_t RoundUp(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

constexpr int kZeros = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

}  // namespace

LiveParts::~LiveParts() {
  if (base_ != nullptr) munmap(base_, reserved_bytes_ + guard_bytes_);
}

Status LiveParts::Damaged(const std::string& what) const {
  return Status::Corruption("the region in " + directory_ + " cannot be mapped: " + what +
                            "; restore the region's files from a backup");
}

// The writer replaces the list by renames, so a read finds a complete list.
Status LiveParts::ReadList(PartList* list) const {
  const std::string path = posix::JoinPath(directory_, "PARTS");
  std::string text;
  Status status = posix::ReadSmallFile(path, kMaxPartListBytes, &text);
  if (status.IsNotFound()) return Damaged("its part list " + path + " is missing");
  return status.ok() ? PartList::Parse(text, path, list) : status;
}

// ---- Address space

Status LiveParts::Reserve(uint64_t bytes, uint64_t guard_bytes) {
  BRAIDDB_DCHECK(base_ == nullptr && !list_.parts.empty());
  const uint64_t total = list_.TotalBytes();
  if (total > kMaxReservedBytes) return Damaged("its parts have impossible sizes");
  const uint64_t least = RoundUp(total, kPartAlignment);
  bytes = std::max(RoundUp(bytes, kPartAlignment), least);
  for (;; bytes = std::max(RoundUp(bytes / 2, kPartAlignment), least)) {
    const uint64_t largest = bytes < kLargestAlignment ? kPartAlignment : kLargestAlignment;
    if (TryReserve(bytes, guard_bytes, largest) || TryReserve(bytes, 0, kPartAlignment)) return Status::OK();
    if (bytes == least) return posix::ErrnoStatus(ENOMEM, "find address space for", directory_);
  }
}

// Reserves more, so that it has an aligned range, and gives the rest back. Pages that are only read are not accounted as memory.
bool LiveParts::TryReserve(uint64_t bytes, uint64_t guard_bytes, uint64_t alignment) {
  const uint64_t all = bytes + guard_bytes;
  void* const memory = mmap(nullptr, all + alignment, PROT_READ, kZeros, -1, 0);
  if (memory == MAP_FAILED) return false;
  auto* const begin = static_cast<uint8_t*>(memory);
  const uint64_t skipped = RoundUp(reinterpret_cast<uintptr_t>(begin), alignment) - reinterpret_cast<uintptr_t>(begin);
  if (skipped > 0) munmap(begin, skipped);
  if (skipped < alignment) munmap(begin + skipped + all, alignment - skipped);
  base_ = begin + skipped;
  reserved_bytes_ = bytes;
  guard_bytes_ = guard_bytes;
  return true;
}

// ---- Parts

// Words behind the mapped parts read as zeros, so a short part has no signature. A damaged size is found by PoolView.
uint64_t LiveParts::HeapEnd() const {
  if (mapped_parts_ == 0 || memcmp(base_, kPoolSignature, sizeof(kPoolSignature)) != 0) return 0;
  const auto word = [this](uint64_t offset) { return reinterpret_cast<const uint64_t*>(base_ + offset); };
  // acquire: the size before the files and PARTS, which the writer has changed before it stored the size.
  return LoadRelaxed(word(kPoolHeapOffset)) + LoadAcquire(word(kPoolHeapSizeOffset));
}

// STEPS  1 compare the heap's end with the mapped bytes  2 read PARTS  3 check that it continues the mapped list  4 check and
//        map the new parts. The steps are repeated until the heap ends in the mapped bytes, since the writer
//        may replace PARTS, or grow again, meanwhile. A step that maps a part does not count as a try.
Status LiveParts::MapNewParts() {
  BRAIDDB_DCHECK(base_ != nullptr);
  Status status;
  for (int tries = 0; tries < kListTries; ++tries) {
    if (mapped_parts_ > 0 && HeapEnd() <= mapped_bytes_) return Status::OK();
    if (tries > 1) std::this_thread::sleep_for(kListPause);
    PartList list;
    status = ReadList(&list);
    if (status.ok() && mapped_parts_ > 0) status = CheckInPlace();
    if (!status.ok()) return status;
    const size_t before = mapped_parts_;
    status = MapParts(list);
    if (!status.ok() && !status.IsCorruption()) return status;
    if (mapped_parts_ > before) tries = 0;
  }
  return status.ok() ? Damaged("its heap is larger than its parts") : status;
}

Status LiveParts::MapParts(const PartList& list) {
  if (list.database_id != list_.database_id || list.region != list_.region || list.region_count != list_.region_count ||
      list.parts.size() < mapped_parts_ ||
      !std::equal(list.parts.begin(), list.parts.begin() + static_cast<ptrdiff_t>(mapped_parts_), list_.parts.begin())) {
    return Damaged("its part list is that of other files");
  }
  for (size_t part = mapped_parts_; part < list.parts.size(); ++part) {
    if (Status status = MapPart(list.parts[part]); !status.ok()) return status;
  }
  return list.next != 0 && HeapEnd() > mapped_bytes_ ? MapPart(list.next) : Status::OK();
}

// STEPS  1 open the file; only the first part may be a link, to a device  2 check type and size  3 map the file over the zeros.
//        Linux replaces a mapping atomically for other threads. If it refuses, zeros are mapped again.
Status LiveParts::MapPart(uint64_t bytes) {
  const std::string path = posix::JoinPath(directory_, PartName(mapped_parts_));
  if (bytes > reserved_bytes_ - mapped_bytes_) {
    return Status::NoSpace("the region in " + directory_ + " has outgrown the " + std::to_string(reserved_bytes_) +
                           " bytes of address space that were reserved to read it; close it and open it again, with a larger " +
                           "max_region_size if that is set");
  }
  if (bytes % kPageBytes != 0) return Damaged("its part " + path + " has an impossible size");
  const int no_follow = mapped_parts_ == 0 && IsCharacterDevice(path) ? 0 : O_NOFOLLOW;
  const posix::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | no_follow));
  if (!fd.valid() && errno == ENOENT) return Damaged("its part " + path + " is missing");
  if (!fd.valid() && errno == ELOOP) return Damaged("its part " + path + " is not a regular file");
  if (!fd.valid()) return posix::ErrnoStatus(errno, "open", path);
  struct stat st;
  if (fstat(fd.get(), &st) != 0) return posix::ErrnoStatus(errno, "examine", path);
  const uint64_t size = PartBytes(fd.get());
  if (!S_ISREG(st.st_mode) && size == 0) return Damaged("its part " + path + " is not a regular file");
  if (size != bytes) {
    return Damaged("its part " + path + " has " + std::to_string(size) + " bytes, recorded are " + std::to_string(bytes));
  }
  uint8_t* const to = base_ + mapped_bytes_;
  if (mmap(to, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd.get(), 0) == MAP_FAILED) {
    const int error = errno;
    BRAIDDB_CHECK(mmap(to, bytes, PROT_READ, kZeros | MAP_FIXED, -1, 0) == to);
    if (S_ISREG(st.st_mode)) return posix::ErrnoStatus(error, "map", path);
    return Status::NotSupported("the device of " + path + " cannot be mapped for reading beside a process that writes: " +
                                std::strerror(error) + "; open the database in one process");
  }
  if (mapped_parts_ == 0) first_part_ = {st.st_dev, st.st_ino};
  if (mapped_parts_ == list_.parts.size()) list_.parts.push_back(bytes);
  BRAIDDB_DCHECK(list_.parts[mapped_parts_] == bytes);
  ++mapped_parts_;
  mapped_bytes_ += bytes;
  return Status::OK();
}

Status LiveParts::CheckInPlace() const {
  const std::string path = posix::JoinPath(directory_, PartName(0));
  struct stat st;
  if (stat(path.c_str(), &st) == 0 && FileId{st.st_dev, st.st_ino} == first_part_) return Status::OK();
  return Status::NotFound(path + " was removed, moved or replaced after it was mapped; close the database and open it again");
}

}  // namespace braiddb
