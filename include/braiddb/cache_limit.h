// CacheLimit: one upper limit for the lookup caches of several databases.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#pragma GCC visibility push(default)
namespace braiddb {

// Databases with the same Options::lookup_cache_limit take memory for their lookup caches from it, as their caches grow, and give
// it back when they are idle or closed. Who comes first is served first.
// Thread safety: all methods, by any number of threads.
class CacheLimit {
 public:
  // Bytes.
  explicit CacheLimit(uint64_t capacity) : capacity_(capacity) {}
  CacheLimit(const CacheLimit&) = delete;
  CacheLimit& operator=(const CacheLimit&) = delete;

  uint64_t capacity() const { return capacity_.load(std::memory_order_relaxed); }
  // If less is taken, caches grow up to the new capacity. If more is taken, no cache grows, and idle databases give back.
  void SetCapacity(uint64_t capacity) { capacity_.store(capacity, std::memory_order_relaxed); }
  // Bytes that are taken. More than the capacity only if that was lowered, or by the first 32 KiB at most of each database.
  uint64_t usage() const { return usage_.load(std::memory_order_relaxed); }

  // ---- For databases

  // Takes up to `most` bytes, and returns how many; 0 if fewer than `least` are left, which makes is_short() true.
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
  // Takes bytes in any case.
  void Force(uint64_t bytes) { usage_.fetch_add(bytes, std::memory_order_relaxed); }
  void Give(uint64_t bytes) {
    usage_.fetch_sub(bytes, std::memory_order_relaxed);
    is_short_.store(false, std::memory_order_relaxed);
  }
  // A database wanted more than there was, and nothing was given back since.
  bool is_short() const { return is_short_.load(std::memory_order_relaxed) || usage() > capacity(); }

 private:
  std::atomic<uint64_t> capacity_;
  std::atomic<uint64_t> usage_{0};
  std::atomic<bool> is_short_{false};
};

}  // namespace braiddb
#pragma GCC visibility pop
