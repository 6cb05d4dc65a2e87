// Ctrl-C, and the end of the terminal. A verb that catches them stops where it can go on later, or removes what it began.
#pragma once

#include <csignal>
#include <iterator>

namespace braiddb::tools {

// While an object exists, SIGINT, SIGTERM and SIGHUP set a flag. A second signal ends the process if it comes half a second later
// or more. SIGHUP stays ignored if it was. The destruction brings the handlers of before back. At most one object exists at a
// time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  // Also after the destruction, the signals have no effect: the work is being removed, and then the process ends.
  void IgnoreFromNowOn();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[std::size(kSignals)];
  bool ignores_ = false;
};

// Sets the handler of these signals, except of SIGHUP where it is ignored. SIG_DFL takes it back.
void CatchEnd(void (*handler)(int signal));

// True after a signal under an InterruptGuard. Thread safety: any thread may call it.
bool IsInterrupted();

}  // namespace braiddb::tools
