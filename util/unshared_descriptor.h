// UnsharedDescriptor: owns a descriptor that children of fork(2) do not inherit.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "util/fork_guard.h"

namespace braiddb {

// Closes the descriptor in the process that opened the descriptor. In a child, all methods see no descriptor.
// Thread safety: const methods may be called concurrently.
class UnsharedDescriptor {
 public:
  UnsharedDescriptor() = default;
  // `open` returns a descriptor, or -1 and sets errno. The constructor keeps errno.
  explicit UnsharedDescriptor(const std::function<int()>& open)
      : fd_(OpenUnshared(open)), generation_(fork_generation.load(std::memory_order_relaxed)) {}
  ~UnsharedDescriptor() { Close(); }
  UnsharedDescriptor(UnsharedDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)), generation_(other.generation_) {}
  UnsharedDescriptor& operator=(UnsharedDescriptor&& other) noexcept {
    if (this == &other) return *this;
    Close();
    fd_ = std::exchange(other.fd_, -1);
    generation_ = other.generation_;
    return *this;
  }

  // -1 if there is no descriptor.
  int get() const { return generation_ == fork_generation.load(std::memory_order_relaxed) ? fd_ : -1; }
  bool is_open() const { return get() >= 0; }

  void Close() {
    if (is_open()) CloseUnshared(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
  uint32_t generation_ = 0;
};

}  // namespace braiddb
