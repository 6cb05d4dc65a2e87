// Prefetching: starts to fetch the cache line of an address, and returns at once. An address that is not mapped does no harm.
//
// Not __builtin_prefetch alone: GCC takes a function that does nothing but prefetch for one without any effect, and leaves out
// calls of it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace braiddb {

[[gnu::always_inline]] inline void Prefetch(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}

// The same of each line that has some of so many bytes.
[[gnu::always_inline]] inline void PrefetchAll(const void* address, size_t bytes) {
  constexpr uintptr_t kLine = 64;
  const auto begin = reinterpret_cast<uintptr_t>(address);
  for (uintptr_t line = begin & ~(kLine - 1); line < begin + bytes; line += kLine) Prefetch(reinterpret_cast<const void*>(line));
}

// As Prefetch, and the line will be written: it is taken from other CPUs' caches.
[[gnu::always_inline]] inline void PrefetchForWrite(const void* address) {
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));  // a builtin's would not be without -mprfchw
}

}  // namespace braiddb
