// Ctrl-C, and the end of the terminal: a verb that catches them stops where it can go on later, or removes what it began.
#pragma once

namespace braiddb::tools {

// While an object exists, SIGINT, SIGTERM and SIGHUP set a flag. A second signal ends the process if it comes half a second later
// or more. SIGHUP stays ignored if it was. At most one object exists at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  // From now on the signals have no effect until the destruction: the work is being removed.
  static void Ignore();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

// Sets the handler of these signals, except of SIGHUP where it is ignored. SIG_DFL takes it back.
void CatchEnd(void (*handler)(int signal));

// True after a signal under an InterruptGuard. Thread safety: any thread may call it.
bool IsInterrupted();

}  // namespace braiddb::tools
