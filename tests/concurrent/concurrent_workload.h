// What the concurrency tests share: threads that stop at the first violation, and values that say which write they came from.
//
// The tests' own counters are relaxed atomics on purpose: x86 orders them well enough for the checks, and under ThreadSanitizer
// they create no order between the threads that could hide a race of the database.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/db_test_util.h"

namespace braiddb::test {

// Which write a value came from: any number, in its first 8 bytes; length and all other bytes follow from it.
inline std::string TaggedValue(uint64_t tag) {
  const size_t size = tag * 0x9e3779b97f4a7c15 >> 56;  // 0 to 255
  std::string value(8, '\0');
  std::memcpy(value.data(), &tag, 8);
  return value + PatternedValue(tag, size);
}

// Nothing if the value is not exactly what some write wrote.
inline std::optional<uint64_t> TagOf(Slice value) {
  if (value.size() < 8) return std::nullopt;
  uint64_t tag;
  std::memcpy(&tag, value.data(), 8);
  if (value != TaggedValue(tag)) return std::nullopt;
  return tag;
}

// Threads of one test. A body returns early when stopped() says so.
class Crew {
 public:
  ~Crew() { Join(); }

  void Start(std::function<void()> body) { threads_.emplace_back(std::move(body)); }
  void Join() {
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }

  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  void Stop() { stopped_.store(true, std::memory_order_relaxed); }

  // Ends the test with this message; only the first few are kept.
  void Fail(const std::string& message) {
    Stop();
    std::lock_guard lock(mutex_);
    if (++failures_ <= 5) ADD_FAILURE() << message;
  }
  // False, after Fail, unless OK.
  bool Check(const Status& status, const char* what) {
    if (!status.ok()) Fail(std::string(what) + ": " + status.ToString());
    return status.ok();
  }

 private:
  std::vector<std::thread> threads_;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  int failures_ = 0;
};

}  // namespace braiddb::test
