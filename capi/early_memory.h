// Memory from malloc for a value that is not there yet.
//
// A get is a chain of cache misses, at the end of which the value's size is known. If its memory is taken only then, what malloc
// does, what the caller's free does with that memory, and so the begin of the next get, all wait for the misses. So it is taken
// before, as large as the last values of this thread were: the CPU does it beside the misses, and the next get's as well.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <utility>

namespace braiddb::capi {

// Two values of one size in a row let expect a third. Of a thread's gets of either kind.
struct ExpectedMemory {
  size_t bytes = 0;  // 0: nothing is expected
  size_t last = 0;
};
inline constinit thread_local ExpectedMemory t_expected_memory;

class EarlyMemory {
 public:
  EarlyMemory() : bytes_(t_expected_memory.bytes) {
    if (bytes_ != 0) memory_ = std::malloc(bytes_);
  }
  EarlyMemory(const EarlyMemory&) = delete;
  EarlyMemory& operator=(const EarlyMemory&) = delete;
  ~EarlyMemory() {
    if (memory_ != nullptr) GiveUp();
  }

  // The memory, which is the caller's from now on. Null: there is none. Once.
  void* Take(size_t bytes) {
    if (__builtin_expect(bytes != bytes_, 0)) Change(bytes);
    return std::exchange(memory_, nullptr);
  }

 private:
  // More would be too much to take and give back for a value that is not there.
  static constexpr size_t kMostBytes = 1088;

  [[gnu::noinline]] void Change(size_t bytes) {
    std::free(memory_);
    memory_ = std::malloc(bytes);
    ExpectedMemory& expected = t_expected_memory;
    expected = {bytes == expected.last && bytes <= kMostBytes ? bytes : 0, bytes};
  }
  // There was no value.
  [[gnu::noinline]] void GiveUp() {
    std::free(memory_);
    t_expected_memory = {};
  }

  const size_t bytes_;
  void* memory_ = nullptr;
};

}  // namespace braiddb::capi
