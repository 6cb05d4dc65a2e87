// Test support: forked children, and how they end.
#pragma once

#include <unistd.h>

// Of the coverage build; null in others.
extern "C" void __gcov_dump() __attribute__((weak));

namespace braiddb::test {

// Whether a child must not allocate much if its parent had other threads: AddressSanitizer's allocator may be locked at a fork,
// by a thread that the child does not have.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kForkMayLock = true;
#else
inline constexpr bool kForkMayLock = false;
#endif

// Ends the process at once, without destructors. What it counted of the code that it passed is kept.
[[noreturn]] inline void LeaveChild(int code) {
  if (__gcov_dump != nullptr) __gcov_dump();
  _exit(code);
}

}  // namespace braiddb::test
