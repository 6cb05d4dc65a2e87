#include "db/event_queue.h"

#include <pthread.h>

#include <algorithm>

namespace braiddb {

EventQueue::EventQueue(std::vector<std::shared_ptr<EventListener>> listeners)
    : listeners_(std::move(listeners)), thread_([this] { Run(); }) {}

EventQueue::~EventQueue() { Stop(); }

void EventQueue::Push(std::function<Event()> make) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    events_.push_back(std::move(make));
    ++posted_;
  }
  changed_.notify_all();
}

void EventQueue::Pause() {
  std::unique_lock lock(mutex_);
  limit_ = posted_;
  changed_.wait(lock, [this] { return told_ == limit_; });
}

void EventQueue::Stop() {
  {
    const std::lock_guard lock(mutex_);
    limit_ = posted_;
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void EventQueue::Run() {
  pthread_setname_np(pthread_self(), "braid-events");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || told_ < std::min(posted_, limit_); });
    if (told_ == limit_ && stopping_) return;
    const auto make = std::move(events_.front());
    events_.pop_front();
    lock.unlock();
    try {
      if (const Event event = make()) {
        for (const auto& listener : listeners_) event(listener.get());
      }
    } catch (const std::bad_alloc&) {  // an event for which there is no memory is skipped
    }
    lock.lock();
    if (++told_ == limit_) changed_.notify_all();
  }
}

}  // namespace braiddb
