// CacheLimit: one upper limit for the lookup caches of several databases.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#pragma GCC visibility push(default)
namespace braiddb {

// Databases with the same Options::lookup_cache_limit share its capacity. Their lookup caches take memory from it as they grow,
// first come, first served, and return memory when a database is idle or closed.
// Thread safety: any number of threads may call every method at once.
class CacheLimit {
 public:
  // `capacity` in bytes.
  explicit CacheLimit(uint64_t capacity) : capacity_(capacity) {}
  CacheLimit(const CacheLimit&) = delete;
  CacheLimit& operator=(const CacheLimit&) = delete;

  uint64_t capacity() const { return capacity_.load(std::memory_order_relaxed); }
  // If usage() is below the new capacity, caches grow up to it. If it is above, no cache grows, and idle databases return memory.
  void SetCapacity(uint64_t capacity) { capacity_.store(capacity, std::memory_order_relaxed); }
  // Bytes in use. Above the capacity if the capacity was lowered, or by the first 32 KiB or less of each database.
  uint64_t usage() const { return usage_.load(std::memory_order_relaxed); }

  // ---- For databases

  // Takes up to `most` bytes and returns their number. If fewer than `least` are left, returns 0 and makes is_short() true.
  uint64_t Take(uint64_t least, uint64_t most) {
    uint64_t taken = usage_.load(std::memory_order_relaxed);
    for (;;) {
      const uint64_t left = capacity() - std::min(capacity(), taken);
      const uint64_t bytes = std::min(left, most);
      if (bytes < least) {
        is_short_.store(true, std::memory_order_relaxed);
        return 0;
      }
      if (usage_.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed)) return bytes;
    }
  }
  // Takes `bytes` even beyond the capacity.
  void Force(uint64_t bytes) { usage_.fetch_add(bytes, std::memory_order_relaxed); }
  void Give(uint64_t bytes) {
    usage_.fetch_sub(bytes, std::memory_order_relaxed);
    is_short_.store(false, std::memory_order_relaxed);
  }
  // A Take failed and no memory was returned after it, or usage() is above the capacity.
  bool is_short() const { return is_short_.load(std::memory_order_relaxed) || usage() > capacity(); }

 private:
  std::atomic<uint64_t> capacity_;
  std::atomic<uint64_t> usage_{0};
  std::atomic<bool> is_short_{false};
};

}  // namespace braiddb
#pragma GCC visibility pop
