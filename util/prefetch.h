// Prefetch: starts to load the cache line of an address and returns at once. An unmapped address is harmless.
//
// WHY NOT __builtin_prefetch ALONE  GCC treats a function that only prefetches as free of effects, and removes calls of it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace braiddb {

[[gnu::always_inline]] inline void Prefetch(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}

// Prefetches each line that contains at least one of the bytes.
[[gnu::always_inline]] inline void PrefetchAll(const void* address, size_t bytes) {
  constexpr uintptr_t kLine = 64;
  const auto begin = reinterpret_cast<uintptr_t>(address);
  for (uintptr_t line = begin & ~(kLine - 1); line < begin + bytes; line += kLine) Prefetch(reinterpret_cast<const void*>(line));
}

// Prefetches for a write: takes the line from other CPUs' caches.
[[gnu::always_inline]] inline void PrefetchForWrite(const void* address) {
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));  // the builtin needs -mprfchw for this
}

}  // namespace braiddb
