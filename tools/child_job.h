// ChildJob: work that cannot be stopped half way, in a process that can.
#pragma once

#include <cstdint>
#include <functional>

#include "braiddb/status.h"

namespace braiddb::tools {

// Forks a child that runs `work`, and waits for it. SIGINT, SIGTERM and SIGHUP kill the child; then `clean` removes what it left.
// `done` returns the bytes written so far, for the progress line. The result is the exit code that `work` returns, and
// kCannotLook after an interrupt or if the child died.
// REQUIRES: this process has one thread and has no database open.
struct ChildJob {
  const char* action;
  std::function<int()> work;
  std::function<Status()> clean;
  std::function<uint64_t()> done;
  uint64_t total = 0;  // bytes, an estimate; 0 if unknown

  int Run() const;
};

// The bytes of all files in a directory and below; of a file, its own. 0 if there is none.
uint64_t BytesOnDisk(const char* path);

}  // namespace braiddb::tools
