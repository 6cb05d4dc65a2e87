// EarlyMemory: allocates the memory for a value before the value is found.
//
// A get is a chain of cache misses, and the size of the value is known only at the end of the chain. If malloc runs then, malloc
// and the later free wait for the misses. EarlyMemory calls malloc first, with the size of the thread's recent values. The CPU
// executes malloc while the misses are pending.
//
// The copy of the value has the expected size, too: size() is a number that the CPU knows early. With the size that was read, the
// addresses that the copy writes to are known late. Then loads of the next get may have to wait for them, and gets do not
// overlap. Whether they wait depends on where the code lies: gets took up to 1.7 times as long in some builds.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <utility>

namespace braiddb::capi {

// A size that occurred twice in a row is expected a third time. One per thread, shared by both kinds of get.
struct ExpectedMemory {
  size_t bytes = 0;  // 0: no size is expected
  size_t last = 0;
};
inline constinit thread_local ExpectedMemory t_expected_memory;

class EarlyMemory {
 public:
  EarlyMemory() : bytes_(t_expected_memory.bytes), size_(bytes_) {
    asm("" : "+r"(size_));  // the compiler must not take the size that was read instead, which is equal
    if (bytes_ != 0) memory_ = std::malloc(bytes_);
  }
  EarlyMemory(const EarlyMemory&) = delete;
  EarlyMemory& operator=(const EarlyMemory&) = delete;
  ~EarlyMemory() {
    if (memory_ != nullptr) GiveUp();
  }

  // Transfers the memory to the caller. Returns null if memory is short. May be called once.
  void* Take(size_t bytes) {
    if (__builtin_expect(bytes != bytes_, 0)) Change(bytes);
    return std::exchange(memory_, nullptr);
  }
  // The size that was given to Take.
  size_t size() const { return size_; }

 private:
  // Larger values are not allocated early, because a get that finds nothing would waste the allocation.
  static constexpr size_t kMostBytes = 1088;

  [[gnu::noinline]] void Change(size_t bytes) {
    std::free(memory_);
    memory_ = std::malloc(bytes);
    size_ = bytes;
    ExpectedMemory& expected = t_expected_memory;
    expected = {bytes == expected.last && bytes <= kMostBytes ? bytes : 0, bytes};
  }
  // Frees the memory of a get that found no value.
  [[gnu::noinline]] void GiveUp() {
    std::free(memory_);
    t_expected_memory = {};
  }

  const size_t bytes_;
  size_t size_;
  void* memory_ = nullptr;
};

}  // namespace braiddb::capi
