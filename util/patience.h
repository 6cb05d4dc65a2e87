// Patience: retries for locks of files that were just released.
//
// WHY  A flock lock ends with the last reference to the open file. A process that reads /proc/<pid>/fd at this moment, as
//      monitors do, holds a reference too. A lock can therefore outlast its close, or its process, for some microseconds.
#pragma once

#include <cerrno>
#include <chrono>
#include <thread>

#include "util/sync_point.h"

namespace braiddb {

inline constexpr std::chrono::milliseconds kLockPatience(100);

// Calls `attempt`, which returns 0 or an errno, until the result is not EWOULDBLOCK, for at most kLockPatience. Returns the last
// result.
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
