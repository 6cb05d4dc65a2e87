// Failing: an allocation of DRAM fails. Gives the program that includes it, in one file, an operator new of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace braiddb::test {

enum class Who { kNobody, kThisThread, kOthers };

inline std::atomic<Who> whose{Who::kNobody};
inline std::atomic<int64_t> left{0};  // allocations until one fails
inline std::atomic<int64_t> failed{0};
inline std::atomic<int64_t> failures{1};  // in a row
inline thread_local bool this_thread = false;

inline bool FailsNow() {
  const Who who = whose.load(std::memory_order_relaxed);
  if (who == Who::kNobody || (who == Who::kThisThread) != this_thread) return false;
  const int64_t number = left.fetch_sub(1);
  if (number > 0 || number <= -failures.load()) return false;
  failed.fetch_add(1);
  return true;
}

}  // namespace braiddb::test

// All forms of new that the program uses: AddressSanitizer's own would be left for the others.
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return braiddb::test::FailsNow() ? nullptr : std::malloc(bytes);
}
[[gnu::noinline]] void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  const auto align = static_cast<size_t>(alignment);
  return braiddb::test::FailsNow() ? nullptr : std::aligned_alloc(align, (bytes + align - 1) / align * align);
}
[[gnu::noinline]] void* operator new(size_t bytes) {
  void* const memory = operator new(bytes, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(size_t bytes, std::align_val_t alignment) {
  void* const memory = operator new(bytes, alignment, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace braiddb::test {

// While it lives, allocation number `at` of those threads fails, and as many after it as `times` says.
class Failing {
 public:
  Failing(Who who, int64_t at, int64_t times = 1) {
    left = at;
    failed = 0;
    failures = times;
    whose = who;
  }
  ~Failing() { whose = Who::kNobody; }
};

}  // namespace braiddb::test
