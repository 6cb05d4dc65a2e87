#include "pmem/region_image.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <utility>

#include "pmem/dax_device.h"
#include "pmem/part_blocks.h"
#include "pmem/region_files.h"
#include "util/check.h"
#include "util/file.h"

namespace braiddb {
namespace {

constexpr uint64_t kMaxImageBytes = uint64_t{1} << 46;  // half of a process's address space; larger sums are damage

// Bound of the holes that are mapped as zeros, of all regions together. Each costs two of the 65530 mappings that Linux allows a
// process by default.
constexpr uint64_t kMaxMappedHoles = 16384;

// Returns the size of a file or device; 0 if it cannot be opened.
uint64_t SizeOf(const std::string& path) {
  const posix::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return fd.valid() ? PartBytes(fd.get()) : 0;
}

}  // namespace

RegionImage::~RegionImage() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

// The lock is a shared one of the directory; an open to write takes it exclusively (RegionFiles::Lock).
Status RegionImage::Map(const std::string& directory, const Report& report, std::unique_ptr<RegionImage>* result) {
  posix::Fd lock(OpenGuarded(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), true);
  if (!lock.valid()) return posix::ErrnoStatus(errno, "open directory", directory);
  if (LockFile(lock.get(), LOCK_SH) == EWOULDBLOCK)
    return Status::Busy(directory + " is in use; close the database in the process that has it open");
  Status status = MapLocked(directory, report, result);
  if (status.ok()) (*result)->lock_ = std::move(lock);
  return status;
}

// STEPS  1 read the list  2 reserve address space of zeros for all parts  3 map each part over its range  4 map zeros over the
//        holes.
Status RegionImage::MapLocked(const std::string& directory, const Report& report, std::unique_ptr<RegionImage>* result) {
  std::unique_ptr<RegionImage> image(new RegionImage(directory));
  if (Status status = image->ReadList(report); !status.ok()) return status;
  image->bytes_ = image->list_.TotalBytes();
  if (image->bytes_ == 0) return Status::NotFound("no part of a region in " + directory);
  if (image->bytes_ > kMaxImageBytes)
    return Status::Corruption(directory + " has parts of an impossible size; restore the region's files from a backup");
  void* const memory = mmap(nullptr, image->bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return posix::ErrnoStatus(errno, "find address space for", directory);
  image->base_ = static_cast<uint8_t*>(memory);
  uint64_t offset = 0;
  for (size_t i = 0; i < image->list_.parts.size(); ++i) {
    if (Status status = image->MapPart(i, offset, report); !status.ok()) return status;
    offset += image->list_.parts[i];
  }
  image->MapHoles();
  *result = std::move(image);
  return Status::OK();
}

// A sound list decides which parts exist; other *.pmem files are reported. With a damaged list, the parts are the files
// 000000.pmem, 000001.pmem, … up to the first missing one, with their sizes.
Status RegionImage::ReadList(const Report& report) {
  const std::string path = posix::JoinPath(directory_, "PARTS");
  std::string text;
  Status status = posix::ReadSmallFile(path, kMaxPartListBytes, &text);
  if (status.ok()) status = PartList::Parse(text, path, &list_);
  if (!status.ok() && !status.IsCorruption() && !status.IsNotFound()) return status;
  std::vector<std::string> names;
  if (Status listed = posix::List(directory_, &names); !listed.ok()) return listed;
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(".pmem"); });
  list_is_sound_ = status.ok();
  if (!list_is_sound_) {
    list_ = PartList();
    for (const std::string& name : names) {
      if (name == PartName(list_.parts.size())) list_.parts.push_back(SizeOf(posix::JoinPath(directory_, name)));
    }
    if (!list_.parts.empty()) report(path, std::string(status.message()));
    return Status::OK();
  }
  const uint64_t next = std::exchange(list_.next, 0);
  const size_t allowed = list_.parts.size() + (next != 0 ? 1 : 0);
  PoolExtent extent;
  // As in an open, an announced part counts if the heap's size includes it.
  if (next != 0 && ReadPoolExtent(posix::JoinPath(directory_, PartName(0)), &extent).ok() &&
      extent.heap_end > list_.TotalBytes()) {
    list_.parts.push_back(next);
  }
  for (const std::string& name : names) {
    size_t index = 0;
    while (index < allowed && name != PartName(index)) ++index;
    if (index == allowed) report(posix::JoinPath(directory_, name), "is not a part of this region");
  }
  return Status::OK();
}

// STEPS  1 open the file, not through a link, except the link of the first part to a device  2 report what differs from the
//        list 3 map min(size, listed size) over the zeros of the image. An offset that is no multiple of a page cannot be
//        mapped; the part then counts as absent.
Status RegionImage::MapPart(size_t index, uint64_t offset, const Report& report) {
  const std::string path = posix::JoinPath(directory_, PartName(index));
  const uint64_t expected = list_.parts[index];
  BRAIDDB_DCHECK(base_ != nullptr && offset <= bytes_ && expected <= bytes_ - offset);
  // Only the first part may be a link: to a device.
  const int no_follow = index == 0 && IsCharacterDevice(path) ? 0 : O_NOFOLLOW;
  const posix::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | no_follow));
  if (!fd.valid() && errno == ENOENT) {
    report(path, "is missing");
    absent_.push_back({path, expected});
    return Status::OK();
  }
  if (!fd.valid()) return posix::ErrnoStatus(errno, "open", path);
  struct stat st;
  if (fstat(fd.get(), &st) != 0) return posix::ErrnoStatus(errno, "examine", path);
  const uint64_t size = S_ISREG(st.st_mode) ? static_cast<uint64_t>(st.st_size) : PartBytes(fd.get());
  if (!S_ISREG(st.st_mode) && size == 0) {
    report(path, "is not a regular file");
    absent_.push_back({path, expected});
    return Status::OK();
  }
  if (size != expected) {
    report(path, "has " + std::to_string(size) + " bytes, recorded are " + std::to_string(expected));
  }
  const uint64_t length = offset % 4096 == 0 ? std::min(size, expected) : 0;
  if (length < expected) absent_.push_back({path, expected - length});
  if (length == 0) return Status::OK();
  if (S_ISCHR(st.st_mode)) {  // cannot be mapped privately
    DaxDevice device;
    if (Status status = DaxDevice::Map(path, DaxDevice::Access::kRead, &device); !status.ok()) return status;
    device.CopyTo(base_ + offset, length);
    return Status::OK();
  }
  if (mmap(base_ + offset, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd.get(), 0) == MAP_FAILED)
    return posix::ErrnoStatus(errno, "map", path);
  std::vector<PoolRange> holes;
  FindHolesOfRange(fd.get(), 0, length, &holes);
  for (const PoolRange& hole : holes) holes_.push_back({offset + hole.begin, offset + hole.end});
  return Status::OK();
}

// The lock keeps writers away, so a hole stays a hole, or gets blocks of zeros (FindFreeRanges). If the system refuses a mapping,
// the other holes are read through the file.
void RegionImage::MapHoles() {
  std::vector<PoolRange> largest = holes_;
  const uint64_t most = kMaxMappedHoles / std::max<uint64_t>(1, list_.region_count);
  if (largest.size() > most) {
    std::ranges::sort(largest, std::greater<>(), [](const PoolRange& hole) { return hole.end - hole.begin; });
    largest.resize(most);
  }
  for (const PoolRange& hole : largest) {
    if (mmap(base_ + hole.begin, hole.end - hole.begin, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED)
      return;
  }
}

PoolRange RegionImage::NextHole(uint64_t offset) const {
  const auto hole = std::ranges::upper_bound(holes_, offset, {}, &PoolRange::end);
  return hole == holes_.end() ? PoolRange{bytes_, bytes_} : *hole;
}

// Subtracts the sizes of the parts before the offset.
std::string RegionImage::Place(uint64_t offset) const {
  size_t index = 0;
  while (index + 1 < list_.parts.size() && offset >= list_.parts[index]) offset -= list_.parts[index++];
  return posix::JoinPath(directory_, PartName(index)) + ", byte " + std::to_string(offset);
}

}  // namespace braiddb
