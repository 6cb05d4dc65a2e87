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
    if (fcntl(fd, F_GETFD) == -1)
      (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);  // gets `fd`, as all lower ones are open
  }
}

// Says so if output of this program is lost. Returns `exit_code`, or `failure` if output is lost and `exit_code` is 0.
inline int FinishStandardOutput(const char* program, int exit_code, int failure) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  std::fprintf(stderr, "%s: the output cannot be written\n", program);
  return exit_code == 0 ? failure : exit_code;
}

}  // namespace braiddb
