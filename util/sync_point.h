// Sync points: named places in the code where a test can stop a thread, order it after another, or run something.
//
// Off, which is everywhere but in tests, a point costs one relaxed load. The points belong to the process, because the code
// that passes them knows no test; so tests that use them must not run at the same time in one process.
// From: RocksDB's test_util/sync_point.h, whose idea and words these are.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace braiddb {

// Thread safety: all methods may be called concurrently.
class SyncPoints {
 public:
  static SyncPoints& Instance();

  // `after` waits until `before` was passed, each time after it was armed, i.e. since the last Enable or Clear.
  struct Order {
    std::string before;
    std::string after;
  };
  void SetOrder(const std::vector<Order>& orders);
  // Runs `callback` in the thread that passes the point, outside any lock of this class. `argument` is what the point hands over.
  void SetCallback(std::string_view point, std::function<void(void* argument)> callback);

  void Enable();
  // Lets every waiting thread go, and returns when no callback is running any more. Not to be called from a callback.
  void Disable();
  // Disables, and forgets orders, callbacks and what was passed.
  void Clear();

  static bool enabled() { return enabled_.load(std::memory_order_relaxed); }
  void Pass(std::string_view point, void* argument);

 private:
  SyncPoints();
  ~SyncPoints() = delete;  // lives as long as the process

  inline static std::atomic<bool> enabled_{false};
  struct State;
  State* const state_;
};

}  // namespace braiddb

#define BRAIDDB_SYNC_POINT(name) BRAIDDB_SYNC_POINT_ARG(name, nullptr)
#define BRAIDDB_SYNC_POINT_ARG(name, argument)                                                             \
  do {                                                                                                     \
    if (__builtin_expect(::braiddb::SyncPoints::enabled(), 0)) {                                           \
      ::braiddb::SyncPoints::Instance().Pass(name, const_cast<void*>(static_cast<const void*>(argument))); \
    }                                                                                                      \
  } while (false)
