// What the compiler calls in code built with -fsanitize=thread: here not for races, but to trace stores to persistent memory and
// to offer switches of threads. Linked in place of the compiler's runtime.
//
// Plain stores are announced before they are made. Atomic operations are done here. memcpy and its like are called through the
// linker's --wrap, and the code is built with -fno-builtin, so that they are calls.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/crash_test/scheduler.h"
#include "tests/crash_test/store_tracer.h"

namespace braiddb::test {

thread_local CallStack call_stack;

namespace {

void Announce(void* address, size_t bytes) {
  if (StoreTracer* tracer = StoreTracer::Current()) tracer->Announce(address, bytes);
}

// Around an atomic operation that stores.
template <class Operation>
auto Traced(volatile void* address, size_t bytes, const Operation& operation) {
  scheduler::Offer();
  StoreTracer* tracer = StoreTracer::Current();
  if (tracer == nullptr) return operation();
  tracer->Resolve();
  const auto result = operation();
  tracer->Stored(const_cast<void*>(address), bytes);
  return result;
}

}  // namespace
}  // namespace braiddb::test

extern "C" {

using braiddb::test::Announce;
using braiddb::test::StoreTracer;
using braiddb::test::Traced;

void __tsan_init() {}
void __tsan_func_entry(void* caller) {
  auto& stack = braiddb::test::call_stack;
  if (stack.depth < braiddb::test::CallStack::kDepth) stack.callers[stack.depth] = caller;
  ++stack.depth;
}
void __tsan_func_exit() { --braiddb::test::call_stack.depth; }

#define BRAIDDB_PLAIN(size)                                                     \
  void __tsan_read##size(void*) {}                                              \
  void __tsan_write##size(void* address) { Announce(address, size); }           \
  void __tsan_unaligned_read##size(void*) {}                                    \
  void __tsan_unaligned_write##size(void* address) { Announce(address, size); } \
  void __tsan_volatile_read##size(void*) {}                                     \
  void __tsan_volatile_write##size(void* address) { Announce(address, size); }
BRAIDDB_PLAIN(1)
BRAIDDB_PLAIN(2)
BRAIDDB_PLAIN(4)
BRAIDDB_PLAIN(8)
BRAIDDB_PLAIN(16)
#undef BRAIDDB_PLAIN
void __tsan_read_range(void*, size_t) {}
void __tsan_write_range(void* address, size_t bytes) { Announce(address, bytes); }
void __tsan_vptr_read(void*) {}
void __tsan_vptr_update(void** address, void*) { Announce(address, sizeof(void*)); }

// The order is always the strongest: one thread runs at a time.
#define BRAIDDB_FETCH(bits, name)                                                                         \
  uint##bits##_t __tsan_atomic##bits##_fetch_##name(volatile uint##bits##_t* at, uint##bits##_t v, int) { \
    return Traced(at, bits / 8, [&] { return __atomic_fetch_##name(at, v, __ATOMIC_SEQ_CST); });          \
  }
#define BRAIDDB_EXCHANGE(bits, kind)                                                                                         \
  int __tsan_atomic##bits##_compare_exchange_##kind(volatile uint##bits##_t* at, uint##bits##_t* expected, uint##bits##_t v, \
                                                    int, int) {                                                              \
    return Traced(at, bits / 8, [&] {                                                                                        \
      return __atomic_compare_exchange_n(at, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ? 1 : 0;                \
    });                                                                                                                      \
  }
#define BRAIDDB_ATOMIC(bits)                                                                          \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t* at, int) {                 \
    braiddb::test::scheduler::Offer();                                                                \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                     \
  }                                                                                                   \
  void __tsan_atomic##bits##_store(volatile uint##bits##_t* at, uint##bits##_t v, int) {              \
    Traced(at, bits / 8, [&] {                                                                        \
      __atomic_store_n(at, v, __ATOMIC_SEQ_CST);                                                      \
      return 0;                                                                                       \
    });                                                                                               \
  }                                                                                                   \
  uint##bits##_t __tsan_atomic##bits##_exchange(volatile uint##bits##_t* at, uint##bits##_t v, int) { \
    return Traced(at, bits / 8, [&] { return __atomic_exchange_n(at, v, __ATOMIC_SEQ_CST); });        \
  }                                                                                                   \
  BRAIDDB_FETCH(bits, add)                                                                            \
  BRAIDDB_FETCH(bits, sub)                                                                            \
  BRAIDDB_FETCH(bits, and)                                                                            \
  BRAIDDB_FETCH(bits, or)                                                                             \
  BRAIDDB_FETCH(bits, xor)                                                                            \
  BRAIDDB_FETCH(bits, nand)                                                                           \
  BRAIDDB_EXCHANGE(bits, strong)                                                                      \
  BRAIDDB_EXCHANGE(bits, weak)
BRAIDDB_ATOMIC(8)
BRAIDDB_ATOMIC(16)
BRAIDDB_ATOMIC(32)
BRAIDDB_ATOMIC(64)
#undef BRAIDDB_ATOMIC
#undef BRAIDDB_EXCHANGE
#undef BRAIDDB_FETCH
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}

// ---- --wrap

void* __real_memcpy(void* to, const void* from, size_t bytes);
void* __real_memmove(void* to, const void* from, size_t bytes);
void* __real_memset(void* to, int value, size_t bytes);

void* __wrap_memcpy(void* to, const void* from, size_t bytes) {
  StoreTracer* const tracer = StoreTracer::Current();
  if (tracer == nullptr || !tracer->Owns(to)) return __real_memcpy(to, from, bytes);
  tracer->Resolve();
  __real_memcpy(to, from, bytes);
  tracer->Stored(to, bytes);
  return to;
}
void* __wrap_memmove(void* to, const void* from, size_t bytes) {
  StoreTracer* const tracer = StoreTracer::Current();
  if (tracer == nullptr || !tracer->Owns(to)) return __real_memmove(to, from, bytes);
  tracer->Resolve();
  __real_memmove(to, from, bytes);
  tracer->Stored(to, bytes);
  return to;
}
void* __wrap_memset(void* to, int value, size_t bytes) {
  StoreTracer* const tracer = StoreTracer::Current();
  if (tracer == nullptr || !tracer->Owns(to)) return __real_memset(to, value, bytes);
  tracer->Resolve();
  __real_memset(to, value, bytes);
  tracer->Stored(to, bytes);
  return to;
}

}  // extern "C"
