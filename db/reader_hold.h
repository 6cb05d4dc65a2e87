// ReaderHold, ReaderHolds: how a process that reads the segments of a database asks its writer to keep them for a moment.
//
// GOAL    A secondary's catch-up ends, however busy the primary is. The primary never waits, whatever a secondary does.
// HOW     A hold is a read lock (F_OFD_SETLK, of the open file) on one byte of the file LOCK. The byte is drawn at random for
//         each hold, so the writer can tell holds apart. Before the writer frees a segment it asks the system for such locks
//         (F_OFD_GETLK), one system call that takes no lock. While there is one, the segment is freed later
//         (SegmentAllocator::SetReaderCheck). flock(2), which says who writes, is another kind of lock: neither sees the other.
// WHO     Whoever may open LOCK to read: a process of the same user, or of root. A mount that is read-only will do, and so will
//         several readers at a time. Where there is no LOCK, or the system has no such locks, Take says false, and the reader
//         reads without a hold.
// WHY NOTHING IS LEFT  The kernel drops the lock with the open file. A child of fork(2) keeps none (util/fork_guard.h).
// WHY THE WRITER GOES ON  A hold counts for kHoldMs, and for the time in which the segments in use can be read at
//         kBytesReadPerMs, from when the writer has first seen it. After that the writer frees segments beside this hold, and
//         still respects others. With more than kMaxExpired holds that were kept too long, it respects none, until all are gone.
//         The space of segments that wait is bounded besides (SegmentAllocator).
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

  // Begins a hold on the database in this directory, after the end of the one that this object has. False: it has none.
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

  // REQUIRES: the caller has the database open to write, so that nobody replaces LOCK.
  explicit ReaderHolds(const std::string& directory);
  ~ReaderHolds();
  ReaderHolds(const ReaderHolds&) = delete;
  ReaderHolds& operator=(const ReaderHolds&) = delete;

  // Whether there is a hold that counts. `bytes_in_use`: of all segments.
  bool Any(uint64_t bytes_in_use);

 private:
  using Clock = std::chrono::steady_clock;

  // Sets *byte if a byte in [from, until) is locked; `until` 0: no end.
  bool FindLock(int64_t from, int64_t until, int64_t* byte) const;
  // Of a hold that was found.
  bool IsExpired(int64_t byte, uint64_t bytes_in_use);

  int fd_;
  std::map<int64_t, Clock::time_point> seen_;  // by byte: first
  std::map<int64_t, Clock::time_point> expired_;
};

}  // namespace braiddb
