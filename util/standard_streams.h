// The standard streams of a program: that they are open, and that all output was written.
#pragma once

#include <fcntl.h>

#include <cstdio>

namespace braiddb {

// Opens what the caller of the program has closed of the descriptors 0, 1 and 2. Otherwise a file of a database would get such a
// descriptor, and output would be written into it. Reads and writes of these streams fail, so lost output is noticed.
// Call it first in main().
inline void OpenStandardStreams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) == -1) (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);  // takes the lowest one that is closed
  }
}

// Returns `exit_code` if all output of this program has been written, otherwise says so and returns `failure`.
inline int FinishStandardOutput(const char* program, int exit_code, int failure) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  std::fprintf(stderr, "%s: the output cannot be written\n", program);
  return failure;
}

}  // namespace braiddb
