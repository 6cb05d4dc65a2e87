#include "db/reader_hold.h"

#include <fcntl.h>
#include <unistd.h>

#include "pmem/region_set.h"
#include "util/file.h"
#include "util/fork_guard.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// The bytes of LOCK on which holds are taken. The file is empty; locks may lie behind the end of a file.
constexpr int64_t kFirstByte = 1;
constexpr int64_t kBytes = int64_t{1} << 62;

int OpenLock(const std::string& directory) { return OpenOwnFile(directory + "/LOCK", O_RDONLY, true); }

bool SetLock(int fd, short type, int64_t byte) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = type == F_UNLCK ? 0 : 1;
  return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

}  // namespace

bool ReaderHold::Take(const std::string& directory) {
  Drop();
  fd_ = OpenLock(directory);
  if (fd_ < 0) return false;
  const auto drawn = static_cast<int64_t>(RegionSet::NewDatabaseId() % static_cast<uint64_t>(kBytes));
  if (SetLock(fd_, F_RDLCK, kFirstByte + drawn)) return true;
  Drop();
  return false;
}

void ReaderHold::Drop() {
  if (fd_ < 0) return;
  (void)SetLock(fd_, F_UNLCK, 0);  // a child of clone(2) may share the open file, which would keep the lock
  CloseGuarded(fd_);
  fd_ = -1;
}

ReaderHolds::ReaderHolds(const std::string& directory) : fd_(OpenLock(directory)) {}

ReaderHolds::~ReaderHolds() {
  if (fd_ >= 0) CloseGuarded(fd_);
}

bool ReaderHolds::FindLock(int64_t from, int64_t until, int64_t* byte) const {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = from;
  lock.l_len = until == 0 ? 0 : until - from;
  if (fcntl(fd_, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return false;
  *byte = lock.l_start;
  return true;
}

bool ReaderHolds::IsExpired(int64_t byte, uint64_t bytes_in_use) {
  int64_t limit_ms = kHoldMs + static_cast<int64_t>(bytes_in_use / kBytesReadPerMs);
  BRAIDDB_SYNC_POINT_ARG("ReaderHolds::IsExpired", &limit_ms);
  const Clock::time_point now = Clock::now();
  // Most seen holds have ended; a hold that has not starts its time again.
  if (seen_.size() > kMaxSeen && !seen_.contains(byte)) seen_.erase(seen_.begin());
  if (now - seen_.try_emplace(byte, now).first->second < std::chrono::milliseconds(limit_ms)) return false;
  expired_.insert(seen_.extract(byte));
  if (expired_.size() > kMaxExpired) {
    std::erase_if(expired_, [this](const auto& hold) {
      int64_t found = 0;
      return !FindLock(hold.first, hold.first + 1, &found);
    });
  }
  return true;
}

// Searches the gaps between expired holds for another hold. Each round of the outer loop ends the search, or finds one more
// expired hold.
bool ReaderHolds::Any(uint64_t bytes_in_use) {
  int64_t byte = 0;
  if (fd_ < 0 || !FindLock(0, 0, &byte)) {
    seen_.clear();
    expired_.clear();
    return false;
  }
  for (bool found = true; found && expired_.size() <= kMaxExpired;) {
    found = false;
    int64_t from = 0;
    for (auto gap = expired_.begin();; ++gap) {
      const bool is_last = gap == expired_.end();
      // A lock that begins outside of the gap is not a hold, or is known.
      if ((is_last || gap->first > from) && FindLock(from, is_last ? 0 : gap->first, &byte) && !expired_.contains(byte)) {
        if (!IsExpired(byte, bytes_in_use)) return true;
        found = true;
        break;
      }
      if (is_last) break;
      from = gap->first + 1;
    }
  }
  return false;
}

}  // namespace braiddb
