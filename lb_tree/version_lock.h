// VersionLock: a lock that readers do not write to: a version number, odd while a writer holds the lock.
//
// CONCURRENCY  A reader loads the version, reads, and checks that the version is still current; otherwise it drops what it read
//              and starts over. All data under the lock is read by LoadAcquire (or std::atomic, acquire) and written by
//              StoreRelease. So a reader that sees a store of a writer also sees the odd version that the writer stored before.
#pragma once

#include <atomic>
#include <cstdint>

#include "util/check.h"
#include "util/spin.h"

namespace braiddb {

class VersionLock {
 public:
  // Waits while a writer holds the lock. Returns the version, which is even.
  uint64_t BeginRead() const {
    uint64_t version = Load();
    for (SpinWait wait; IsHeld(version); version = Load()) wait.Once();
    return version;
  }
  // Returns true if no writer has taken the lock since `version` was loaded. The reads before it were acquire loads, so this load
  // comes after them.
  bool IsCurrent(uint64_t version) const { return version_.load(std::memory_order_relaxed) == version; }

  // Takes the lock if the version is still current. acquire: pairs with Unlock.
  bool TryLock(uint64_t version) { return version_.compare_exchange_strong(version, version + 1, std::memory_order_acq_rel); }
  bool TryLock() {
    const uint64_t version = Load();
    return !IsHeld(version) && TryLock(version);
  }
  void Lock() {
    for (SpinWait wait; !TryLock(); wait.Once()) {
    }
  }
  // release: pairs with the acquire of the next reader or writer.
  void Unlock() { version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
  // REQUIRES: the holder has changed nothing. Readers that began before need not start over.
  void UnlockUnchanged() { version_.store(version_.load(std::memory_order_relaxed) - 1, std::memory_order_release); }

 private:
  static bool IsHeld(uint64_t version) { return version % 2 != 0; }
  uint64_t Load() const { return version_.load(std::memory_order_acquire); }

  std::atomic<uint64_t> version_{0};
};

}  // namespace braiddb
