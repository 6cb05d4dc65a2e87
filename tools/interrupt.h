// Ctrl-C: a verb that catches it stops at a point from which it can go on, or removes what it began.
#pragma once

namespace braiddb::tools {

// While an object exists, SIGINT and SIGTERM set a flag; a second signal ends the process. At most one object exists at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

// True after a signal under an InterruptGuard. Thread safety: any thread may call it.
bool IsInterrupted();

}  // namespace braiddb::tools
