// Patience with locks of files that nobody holds any more.
//
// A lock of flock ends when the last reference to the open file goes. Whoever looks at /proc/<pid>/fd at this moment, as
// monitors do, has one too: so a lock can outlast its close, or the death of its process, for some microseconds.
#pragma once

#include <cerrno>
#include <chrono>
#include <thread>

#include "util/sync_point.h"

namespace braiddb {

inline constexpr std::chrono::milliseconds kLockPatience(100);

// Calls `attempt`, which returns 0 or an errno, again while it returns EWOULDBLOCK, for kLockPatience at the most. Returns
// its last result.
template <class Attempt>
int RetryWhileLocked(const Attempt& attempt) {
  const auto end = std::chrono::steady_clock::now() + kLockPatience;
  for (;;) {
    const int error = attempt();
    if (error != EWOULDBLOCK || std::chrono::steady_clock::now() >= end) return error;
    BRAIDDB_SYNC_POINT("RetryWhileLocked:Locked");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace braiddb
