#include "util/sync_point.h"

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace braiddb {

struct SyncPoints::State {
  std::mutex mutex;
  std::condition_variable changed;  // a point was passed, a callback ended, or the points were disabled
  std::map<std::string, std::vector<std::string>, std::less<>> predecessors;
  std::map<std::string, std::function<void(void*)>, std::less<>> callbacks;
  std::set<std::string, std::less<>> passed;
  uint32_t running_callbacks = 0;

  bool AllPassed(const std::vector<std::string>& points) const {
    for (const std::string& point : points) {
      if (!passed.contains(point)) return false;
    }
    return true;
  }
};

SyncPoints::SyncPoints() : state_(new State()) {}

SyncPoints& SyncPoints::Instance() {
  static auto* const instance = new SyncPoints();
  return *instance;
}

void SyncPoints::SetOrder(const std::vector<Order>& orders) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->predecessors.clear();
  for (const Order& order : orders) state_->predecessors[order.after].push_back(order.before);
}

void SyncPoints::SetCallback(std::string_view point, std::function<void(void*)> callback) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->callbacks.insert_or_assign(std::string(point), std::move(callback));
}

void SyncPoints::Enable() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->passed.clear();
  enabled_.store(true, std::memory_order_relaxed);
}

void SyncPoints::Disable() {
  std::unique_lock<std::mutex> lock(state_->mutex);
  enabled_.store(false, std::memory_order_relaxed);
  state_->changed.notify_all();
  state_->changed.wait(lock, [this] { return state_->running_callbacks == 0; });
}

void SyncPoints::Clear() {
  Disable();
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->predecessors.clear();
  state_->callbacks.clear();
  state_->passed.clear();
}

void SyncPoints::Pass(std::string_view point, void* argument) {
  std::unique_lock<std::mutex> lock(state_->mutex);
  if (const auto it = state_->predecessors.find(point); it != state_->predecessors.end()) {
    const std::vector<std::string> before = it->second;
    state_->changed.wait(lock, [&] { return !enabled() || state_->AllPassed(before); });
  }
  if (!enabled()) return;
  if (const auto it = state_->callbacks.find(point); it != state_->callbacks.end()) {
    const std::function<void(void*)> callback = it->second;
    ++state_->running_callbacks;
    lock.unlock();
    callback(argument);
    lock.lock();
    --state_->running_callbacks;
  }
  state_->passed.insert(std::string(point));
  state_->changed.notify_all();
}

}  // namespace braiddb
