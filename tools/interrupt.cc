#include "tools/interrupt.h"

#include <csignal>

namespace braiddb::tools {
namespace {

volatile std::sig_atomic_t interrupted = 0;

// No SA_RESTART: a read from a terminal or a pipe ends with the signal.
void Handle(void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted = 0;
  Handle([](int) { interrupted = 1; }, static_cast<int>(SA_RESETHAND));
}

InterruptGuard::~InterruptGuard() { Handle(SIG_DFL, 0); }

bool IsInterrupted() { return interrupted != 0; }

}  // namespace braiddb::tools
