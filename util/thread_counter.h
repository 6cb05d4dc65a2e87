// ThreadCounter: a counter with one writer at a time and any number of readers.
#pragma once

#include <atomic>
#include <cstdint>

namespace braiddb {

// CONCURRENCY  Add: one thread at a time. A load and a store are enough, so there is no locked instruction.
class ThreadCounter {
 public:
  void Add(uint64_t n) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  void Set(uint64_t n) { value_.store(n, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace braiddb
