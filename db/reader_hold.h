// ReaderHold, ReaderHolds: a process that reads the segments of a database asks the writer to keep them for some time.
//
// GOAL    A secondary's catch-up ends, however many writes the primary makes. The primary never waits, whatever a secondary does.
// HOW     A hold is a read lock (F_OFD_SETLK, owned by the open file) on one byte of the file LOCK. The byte is drawn at random
//         for each hold, so the writer can tell holds apart. Before the writer frees a segment, it asks the system for such locks
//         (F_OFD_GETLK): one system call, which takes no lock. While a hold exists, the segment is freed later
//         (SegmentAllocator::SetReaderCheck). The lock that marks the writer is of flock(2), a different kind: neither kind sees
//         the other.
// WHO     Any process that may open LOCK to read: of the same user, or of root. A read-only mount is enough, and several readers
//         may hold at a time. If there is no LOCK, or the system has no such locks, Take returns false, and the reader reads
//         without a hold.
// WHY NO HOLD IS LEFT BEHIND  The kernel drops the lock when the file is closed. A child of fork(2) keeps no hold
//         (util/fork_guard.h).
// WHY THE WRITER IS NOT BLOCKED  A hold counts from the time when the writer first sees it, for kHoldMs plus the time that
//         reading the segments in use takes at kBytesReadPerMs. After that the hold has expired: the writer ignores it, and still
//         respects others. If more than kMaxExpired expired holds exist, the writer respects no hold until all have ended.
//         Besides, the space of segments that wait is bounded (SegmentAllocator).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace braiddb {

// Thread safety: one thread at a time.
class ReaderHold {
 public:
  ReaderHold() = default;
  ~ReaderHold() { Drop(); }
  ReaderHold(const ReaderHold&) = delete;
  ReaderHold& operator=(const ReaderHold&) = delete;

  // Takes a hold on the database in this directory, and drops the previous hold of this object. False: no hold was taken.
  bool Take(const std::string& directory);
  void Drop();

 private:
  int fd_ = -1;
};

// The writer's side. Thread safety: one thread at a time.
class ReaderHolds {
 public:
  static constexpr int64_t kHoldMs = 10'000;
  static constexpr uint64_t kBytesReadPerMs = 32 << 10;
  static constexpr size_t kMaxExpired = 8;
  static constexpr size_t kMaxSeen = 64;

  // REQUIRES: the caller has the database open to write, so that no other process replaces LOCK.
  explicit ReaderHolds(const std::string& directory);
  ~ReaderHolds();
  ReaderHolds(const ReaderHolds&) = delete;
  ReaderHolds& operator=(const ReaderHolds&) = delete;

  // Whether there is a hold that counts. `bytes_in_use`: the bytes of all segments.
  bool Any(uint64_t bytes_in_use);

 private:
  using Clock = std::chrono::steady_clock;

  // Sets *byte if a byte in [from, until) is locked; `until` 0: no end.
  bool FindLock(int64_t from, int64_t until, int64_t* byte) const;
  // Whether the hold on `byte` has expired. Notes the time when it is first seen.
  bool IsExpired(int64_t byte, uint64_t bytes_in_use);

  int fd_;
  std::map<int64_t, Clock::time_point> seen_;  // by byte: when the hold was first seen
  std::map<int64_t, Clock::time_point> expired_;
};

}  // namespace braiddb
