// Test support: forked children under AddressSanitizer.
#pragma once

namespace braiddb::test {

// Whether a child must not allocate much if its parent had other threads: AddressSanitizer's allocator may be locked at a fork,
// by a thread that the child does not have.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kForkMayLock = true;
#else
inline constexpr bool kForkMayLock = false;
#endif

}  // namespace braiddb::test
