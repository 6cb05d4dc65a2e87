#include "util/check.h"

#include <cstdio>
#include <cstdlib>

namespace braiddb {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s\n", file, line, condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace braiddb
