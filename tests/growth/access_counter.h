// AccessCounter: how often the library's code reads and writes memory: a measure of work that is the same on every machine.
//
// The library is compiled as for crash_test, so that the compiler announces each access. tests/growth/access_hooks.cc counts
// them. What shared libraries do (allocation, copies of bytes), and vector instructions, are not counted.
#pragma once

#include <atomic>
#include <cstdint>

namespace braiddb::test {

// Thread safety: any thread counts.
class AccessCounter {
 public:
  static uint64_t count() { return count_.load(std::memory_order_relaxed); }
  static void Add() { count_.fetch_add(1, std::memory_order_relaxed); }

 private:
  inline static std::atomic<uint64_t> count_{0};
};

}  // namespace braiddb::test
