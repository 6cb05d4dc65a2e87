// Sync points: named positions in the code at which a test can stop a thread, order threads, or run a callback.
//
// COST    One relaxed load per point while disabled, as in all programs except tests.
// LIMITS  The points are global to the process, since the code that passes them knows no test. Tests that use them must not run
//         at the same time in one process.
//
// From: RocksDB's test_util/sync_point.h (idea and terms).
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

  // A thread at `after` waits until a thread has passed `before` since the last Enable or Clear.
  struct Order {
    std::string before;
    std::string after;
  };
  void SetOrder(const std::vector<Order>& orders);
  // Runs `callback` in the thread that passes the point, without a lock of this class. `argument`: the point's argument.
  void SetCallback(std::string_view point, std::function<void(void* argument)> callback);

  void Enable();
  // Releases all waiting threads and returns when no callback is running. REQUIRES: not called from a callback.
  void Disable();
  // Disables, and removes all orders, callbacks and passed points.
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
