#include "tools/interrupt.h"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <iterator>

namespace braiddb::tools {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
// A program such as timeout(1) signals a process and then its group, so one request may come twice.
constexpr int64_t kAgainNs = 500'000'000;

volatile std::sig_atomic_t interrupted = 0;
volatile int64_t first_ns = 0;
struct sigaction before[std::size(kSignals)];

int64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// Ends the process at a later signal.
void OnSignal(int signal) {
  const int error = errno;
  if (interrupted == 0) {
    first_ns = NowNs();
    interrupted = 1;
  } else if (NowNs() - first_ns > kAgainNs) {
    std::signal(signal, SIG_DFL);
    raise(signal);
  }
  errno = error;
}

}  // namespace

// No SA_RESTART: a read from a terminal or a pipe ends with the signal.
InterruptGuard::InterruptGuard() {
  interrupted = 0;
  struct sigaction action {};
  action.sa_handler = OnSignal;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], nullptr, &before[i]);
    const bool stays = kSignals[i] == SIGHUP && before[i].sa_handler == SIG_IGN;  // by nohup(1)
    if (!stays) sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    if (kSignals[i] != SIGHUP || before[i].sa_handler != SIG_IGN) std::signal(kSignals[i], SIG_DFL);
  }
}

void InterruptGuard::Ignore() {
  for (const int signal : kSignals) std::signal(signal, SIG_IGN);
}

void CatchEnd(void (*handler)(int signal)) {
  for (const int signal : kSignals) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    if (signal != SIGHUP || now.sa_handler != SIG_IGN) std::signal(signal, handler);
  }
}

bool IsInterrupted() { return interrupted != 0; }

}  // namespace braiddb::tools
