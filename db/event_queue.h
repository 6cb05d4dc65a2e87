// EventQueue: tells listeners of events, in order, from a thread of its own, so that whoever notes one neither waits nor calls
// out with locks held.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "braiddb/event_listener.h"

namespace braiddb {

// Thread safety: Post may be called concurrently with everything, with any lock held.
class EventQueue {
 public:
  // Called with each listener.
  using Event = std::function<void(EventListener*)>;

  // Starts the thread; throws std::system_error if there is none. `listeners`: not empty, and none null.
  explicit EventQueue(std::vector<std::shared_ptr<EventListener>> listeners);
  // As Stop.
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  // `make` is called later, by the queue's thread: it gives what listeners are called with, or nothing. Without memory the event
  // is not told.
  template <class Make>
  void Post(Make&& make) noexcept try {
    Push(std::forward<Make>(make));
  } catch (const std::bad_alloc&) {
  }
  // Returns when all that was posted has been told. REQUIRES: nothing is posted any more; not called by a listener.
  void Stop();

 private:
  void Push(std::function<Event()> make);
  void Run();

  const std::vector<std::shared_ptr<EventListener>> listeners_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<Event()>> events_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace braiddb
