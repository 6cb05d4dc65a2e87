// What the compiler calls in code built with -fsanitize=thread, in place of its runtime: here to count.
#include <cstddef>
#include <cstdint>

#include "tests/growth/access_counter.h"

using braiddb::test::AccessCounter;

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

#define BRAIDDB_PLAIN(size)                                          \
  void __tsan_read##size(void*) { AccessCounter::Add(); }            \
  void __tsan_write##size(void*) { AccessCounter::Add(); }           \
  void __tsan_unaligned_read##size(void*) { AccessCounter::Add(); }  \
  void __tsan_unaligned_write##size(void*) { AccessCounter::Add(); } \
  void __tsan_volatile_read##size(void*) { AccessCounter::Add(); }   \
  void __tsan_volatile_write##size(void*) { AccessCounter::Add(); }
BRAIDDB_PLAIN(1)
BRAIDDB_PLAIN(2)
BRAIDDB_PLAIN(4)
BRAIDDB_PLAIN(8)
BRAIDDB_PLAIN(16)
#undef BRAIDDB_PLAIN
void __tsan_read_range(void*, size_t) { AccessCounter::Add(); }
void __tsan_write_range(void*, size_t) { AccessCounter::Add(); }
void __tsan_vptr_read(void*) {}
void __tsan_vptr_update(void**, void*) {}

// Threads that wait spin on atomics, so these are not counted: no structure is made of them alone.
#define BRAIDDB_FETCH(bits, name)                                                                         \
  uint##bits##_t __tsan_atomic##bits##_fetch_##name(volatile uint##bits##_t* at, uint##bits##_t v, int) { \
    return __atomic_fetch_##name(at, v, __ATOMIC_SEQ_CST);                                                \
  }
#define BRAIDDB_EXCHANGE(bits, kind)                                                                                         \
  int __tsan_atomic##bits##_compare_exchange_##kind(volatile uint##bits##_t* at, uint##bits##_t* expected, uint##bits##_t v, \
                                                    int, int) {                                                              \
    return __atomic_compare_exchange_n(at, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ? 1 : 0;                  \
  }
#define BRAIDDB_ATOMIC(bits)                                                                          \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t* at, int) {                 \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                     \
  }                                                                                                   \
  void __tsan_atomic##bits##_store(volatile uint##bits##_t* at, uint##bits##_t v, int) {              \
    __atomic_store_n(at, v, __ATOMIC_SEQ_CST);                                                        \
  }                                                                                                   \
  uint##bits##_t __tsan_atomic##bits##_exchange(volatile uint##bits##_t* at, uint##bits##_t v, int) { \
    return __atomic_exchange_n(at, v, __ATOMIC_SEQ_CST);                                              \
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

}  // extern "C"
