#include "tests/crash_test/run_locks.h"

#include <sys/mman.h>

#include <cstdlib>

namespace braiddb::test {

void* RunLocks::Allocate(size_t bytes) {
  if (bytes < kLocksBytes || bytes > kHeapBytes) return nullptr;
  if (begin_ == kNone) {
    void* const memory = mmap(nullptr, kHeaps * kHeapBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    begin_ = reinterpret_cast<uintptr_t>(memory);
  }
  for (size_t i = 0; i < kHeaps; ++i) {
    if (used_[i]) continue;
    used_[i] = true;
    return reinterpret_cast<void*>(begin_ + i * kHeapBytes);
  }
  return nullptr;
}

void RunLocks::Free(void* memory) { used_[(reinterpret_cast<uintptr_t>(memory) - begin_) / kHeapBytes] = false; }

}  // namespace braiddb::test

extern "C" {

using braiddb::test::RunLocks;

void* __real_malloc(size_t bytes);
void* __wrap_malloc(size_t bytes) {
  void* const memory = RunLocks::Allocate(bytes);
  return memory != nullptr ? memory : __real_malloc(bytes);
}

void __real_free(void* memory);
void __wrap_free(void* memory) {
  if (memory != nullptr && RunLocks::Contain(memory)) {
    RunLocks::Free(memory);
  } else {
    __real_free(memory);
  }
}

}  // extern "C"
