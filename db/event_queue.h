// EventQueue: calls the user's functions (listeners, the receiver of the info log) in order, from a thread of its own. A caller
// of Post neither waits for these functions nor calls them with locks held.
#pragma once

#include <condition_variable>
#include <cstdint>
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

  // Starts the thread; throws std::system_error if there is none. `listeners`: none is null.
  explicit EventQueue(std::vector<std::shared_ptr<EventListener>> listeners);
  // As Stop.
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  bool has_listeners() const { return !listeners_.empty(); }

  // Queues an event. `make` is called later by the queue's thread, with no lock held. It returns the function that is called with
  // each listener, or an empty function. The event is skipped if there is no memory, or if Stop was called.
  template <class Make>
  void Post(Make&& make) noexcept try {
    Push(std::forward<Make>(make));
  } catch (const std::bad_alloc&) {
  }
  // Returns when all events that were posted before the call have been delivered. Later events, which listeners may cause without
  // end, wait for Stop. Until Stop the thread calls no listener. REQUIRES: not called by a listener.
  void Pause();
  // Delivers the events that were posted before the call, and ends the thread. REQUIRES: as Pause.
  void Stop();

 private:
  void Push(std::function<Event()> make);
  void Run();

  const std::vector<std::shared_ptr<EventListener>> listeners_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<Event()>> events_;
  uint64_t posted_ = 0;
  uint64_t told_ = 0;            // delivered events; the queue is first in, first out
  uint64_t limit_ = UINT64_MAX;  // events from this number on are not delivered
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace braiddb
