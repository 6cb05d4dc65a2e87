// Prefetching: starts to fetch the cache line of an address, and returns at once. An address that is not mapped does no harm.
//
// Not __builtin_prefetch alone: GCC takes a function that does nothing but prefetch for one without any effect, and leaves out
// calls of it.
#pragma once

namespace braiddb {

[[gnu::always_inline]] inline void Prefetch(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}

// The same, and the line will be written: it is taken from other CPUs' caches.
[[gnu::always_inline]] inline void PrefetchForWrite(const void* address) {
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));  // a builtin's would not be without -mprfchw
}

}  // namespace braiddb
