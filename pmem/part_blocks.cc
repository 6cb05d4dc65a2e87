#include "pmem/part_blocks.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "pmem/part_list.h"
#include "pmem/pool_maker.h"
#include "pmem/posix.h"
#include "util/check.h"
#include "util/file.h"

namespace braiddb {
namespace {

// Returns the first byte at or behind `at` that is a hole (SEEK_HOLE) or data (SEEK_DATA); `end` if there is none before; -1 if
// the file system does not tell.
int64_t Seek(int fd, uint64_t at, uint64_t end, int whence) {
  const off_t found = lseek(fd, static_cast<off_t>(at), whence);
  if (found < 0) return errno == ENXIO ? static_cast<int64_t>(end) : -1;
  return std::min(static_cast<int64_t>(found), static_cast<int64_t>(end));
}

// EINTR is not an error: the call is repeated.
int PunchHole(int fd, uint64_t begin, uint64_t end) {
  while (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin), static_cast<off_t>(end - begin)) !=
         0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

bool IsInMemory(int fd) {
  struct statfs fs;
  return fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

// Punches until no block is left. A single call is not enough in memory (tmpfs). If another thread or process uses a huge page
// just then, the kernel cannot split the page: it zeroes the range, keeps the blocks, and returns success. The tries are limited,
// and blocks that stay are no error.
int PunchAll(int fd, uint64_t begin, uint64_t end) {
  constexpr int kTries = 16;
  constexpr int kTriesWithoutPause = 4;
  for (int i = 0; i < kTries; ++i) {
    if (i >= kTriesWithoutPause) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (const int error = PunchHole(fd, begin, end); error != 0) return error;
    const int64_t data = Seek(fd, begin, end, SEEK_DATA);
    if (data < 0 || data == static_cast<int64_t>(end) || !IsInMemory(fd)) break;
  }
  return 0;
}

}  // namespace

void PartBlocks::Start(std::string directory, const std::vector<uint64_t>& parts) {
  directory_ = std::move(directory);
  for (const uint64_t bytes : parts) AddPart(bytes);
}

void PartBlocks::AddPart(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  struct stat st;
  const bool is_known = stat(posix::JoinPath(directory_, PartName(parts_.size())).c_str(), &st) == 0;
  parts_.push_back({(parts_.empty() ? 0 : parts_.back().end) + bytes, is_known ? FileId{st.st_dev, st.st_ino} : FileId{}});
}

// Files are opened for each call: a file descriptor for each part would be too many for a large region.
Status PartBlocks::ForEachPart(PoolRange range, const Visit& visit) const {
  BRAIDDB_DCHECK(range.begin % kBlockPageBytes == 0 && range.end % kBlockPageBytes == 0);
  while (!range.empty()) {
    size_t part = 0;
    uint64_t begin = 0;
    Part found{};
    {
      const std::lock_guard lock(mutex_);
      part = static_cast<size_t>(std::ranges::upper_bound(parts_, range.begin, {}, &Part::end) - parts_.begin());
      BRAIDDB_CHECK(part < parts_.size());
      begin = part == 0 ? 0 : parts_[part - 1].end;
      found = parts_[part];
    }
    const std::string path = posix::JoinPath(directory_, PartName(part));
    const posix::Fd fd(OpenOwnFile(path, O_RDWR));
    if (!fd.valid()) return posix::ErrnoStatus(errno, "open", path);
    struct stat st;
    if (fstat(fd.get(), &st) != 0) return posix::ErrnoStatus(errno, "examine", path);
    if (FileId{st.st_dev, st.st_ino} != found.file)
      return Status::IOError(path + " is another file than when the database was opened: its directory was moved or replaced");
    const uint64_t piece_end = std::min(range.end, found.end);
    if (Status status = visit(fd.get(), path, range.begin - begin, piece_end - begin); !status.ok()) return status;
    range.begin = piece_end;
  }
  return Status::OK();
}

Status PartBlocks::GiveBack(PoolRange range) {
  return ForEachPart(range, [](int fd, const std::string& path, uint64_t begin, uint64_t end) {
    const int error = PunchAll(fd, begin, end);
    if (error == 0) return Status::OK();
    if (error == EOPNOTSUPP || error == ENOSYS)
      return Status::NotSupported("the file system of " + path + " cannot take blocks back (fallocate with PUNCH_HOLE)");
    return posix::ErrnoStatus(error, "give blocks back of", path);
  });
}

Status PartBlocks::Take(PoolRange range) { return ForEachPart(range, FillHolesOfRange); }

PartBlocks::Found PartBlocks::Find(PoolRange range) const {
  bool has_holes = false;
  bool has_data = false;
  const Status status = ForEachPart(range, [&](int fd, const std::string&, uint64_t begin, uint64_t end) {
    has_holes |= Seek(fd, begin, end, SEEK_HOLE) != static_cast<int64_t>(end);
    has_data |= Seek(fd, begin, end, SEEK_DATA) != static_cast<int64_t>(end);
    return Status::OK();
  });
  if (!status.ok() || has_holes == has_data) return Found::kUnknown;
  return has_data ? Found::kAll : Found::kNone;
}

Status FillHolesOfRange(int fd, const std::string& path, uint64_t begin, uint64_t end) {
  while (begin < end) {
    const int64_t hole = Seek(fd, begin, end, SEEK_HOLE);
    if (hole == static_cast<int64_t>(end)) return Status::OK();
    const int64_t data = hole < 0 ? -1 : Seek(fd, static_cast<uint64_t>(hole), end, SEEK_DATA);
    if (data < 0) return FillRange(fd, path, begin, end);
    if (Status status = FillRange(fd, path, static_cast<uint64_t>(hole), static_cast<uint64_t>(data)); !status.ok())
      return status;
    begin = static_cast<uint64_t>(data);
  }
  return Status::OK();
}

void FindHolesOfRange(int fd, uint64_t begin, uint64_t end, std::vector<PoolRange>* holes) {
  while (begin < end) {
    const int64_t hole = Seek(fd, begin, end, SEEK_HOLE);
    if (hole < 0 || hole == static_cast<int64_t>(end)) return;
    const int64_t data = Seek(fd, static_cast<uint64_t>(hole), end, SEEK_DATA);
    if (data < 0) return;
    const PoolRange pages = PagesInside(static_cast<uint64_t>(hole), static_cast<uint64_t>(data));
    if (!pages.empty()) holes->push_back(pages);
    begin = static_cast<uint64_t>(data);
  }
}

}  // namespace braiddb
