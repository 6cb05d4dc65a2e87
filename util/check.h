// CHECK: ends the process with the source position of a programmer's error. Bad media and bad arguments return a Status instead.
#pragma once

namespace braiddb {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace braiddb

#define BRAIDDB_CHECK(condition) \
  (__builtin_expect(static_cast<bool>(condition), 1) ? void(0) : ::braiddb::CheckFailed(__FILE__, __LINE__, #condition))

// Only in builds with assertions.
#ifdef NDEBUG
#define BRAIDDB_DCHECK(condition) (true ? void(0) : BRAIDDB_CHECK(condition))
#else
#define BRAIDDB_DCHECK(condition) BRAIDDB_CHECK(condition)
#endif
