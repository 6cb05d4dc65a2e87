// ThreadCounter: counts for one thread, and is read by all.
#pragma once

#include <atomic>
#include <cstdint>

namespace braiddb {

// A counter with one writer at a time and any readers.
class ThreadCounter {
 public:
  void Add(uint64_t n) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace braiddb
