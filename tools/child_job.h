// ChildJob: work that cannot be stopped half way, in a process that can.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "braiddb/status.h"

namespace braiddb::tools {

// Forks a child that runs `work`, and waits for it. SIGINT, SIGTERM and SIGHUP kill the child; then `clean` removes what it left,
// and a message on the standard error says so. The result is the exit code that `work` returns, and kCannotLook after an
// interrupt or if the child died. If SIGPIPE ended the child, this process ends by SIGPIPE, too.
// REQUIRES: this process has one thread and has no database open.
struct ChildJob {
  const char* action;
  std::function<int()> work;
  // May be empty: there is nothing to remove.
  std::function<Status()> clean = {};
  // Returns the bytes written so far, for the progress line. May be empty: `work` shows its progress.
  std::function<uint64_t()> done = {};
  uint64_t total = 0;  // bytes, an estimate; 0 if unknown
  // Returns the end of the message, if `clean` is empty or OK.
  std::function<std::string()> after = [] { return "nothing is left of it"; };
  // Whether `work` goes on if nobody reads its output, because the work is worth more than its report.
  bool outlives_reader = true;

  int Run() const;
};

// Removes what an interrupted copy to the new database `path` left (db/temporary_place.h).
Status RemoveUnfinishedCopy(const std::string& path);

// The bytes of all files in a directory and below; of a file, its own. 0 if there is none.
uint64_t BytesOnDisk(const char* path);

}  // namespace braiddb::tools
