// Test support: a forked child that can allocate, under AddressSanitizer too.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstddef>
#include <cstdlib>
#include <vector>
#endif

namespace braiddb::test {

#if defined(__SANITIZE_ADDRESS__)

// Allocates more of each size than a thread's cache holds, so it waits for each lock of the allocator.
inline void UseAllocator() {
  constexpr size_t kLargest = 256 << 10;
  constexpr size_t kSmall = 4096;
  std::vector<void*> blocks;
  for (size_t size = 16; size <= kLargest; size += size <= 128 ? 16 : size / 8) {
    for (int i = 0; i < (size <= kSmall ? 16 : 3); ++i) blocks.push_back(std::malloc(size));
  }
  for (void* block : blocks) std::free(block);
}

// fork() for tests in which other threads may run. At a fork such a thread may hold a lock of AddressSanitizer's allocator (up to
// that of GCC 13), which nobody frees in the child. Such a child is ended, and another one forked.
inline pid_t ForkChild() {
  constexpr int kPatienceMs = 10'000;
  for (;;) {
    int ends[2];
    if (pipe(ends) != 0) return -1;
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      UseAllocator();
      const bool is_told = write(ends[1], "", 1) == 1;
      close(ends[1]);
      if (!is_told) _exit(1);
      return 0;
    }
    close(ends[1]);
    pollfd answer{ends[0], POLLIN, 0};
    const bool answers = child > 0 && poll(&answer, 1, kPatienceMs) == 1;
    close(ends[0]);
    if (child < 0 || answers) return child;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

#else

inline pid_t ForkChild() { return fork(); }

#endif

}  // namespace braiddb::test
