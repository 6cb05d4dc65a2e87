#include "tools/interrupt.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace braiddb::tools {
namespace {

// A program such as timeout(1) signals a process and then its group, so one request may come twice.
constexpr int64_t kAgainNs = 500'000'000;

// The time of the first signal; 0: none has come. A handler may use it, as it is free of locks.
std::atomic<int64_t> first_ns{0};
static_assert(std::atomic<int64_t>::is_always_lock_free);

int64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// Ends the process at a later signal.
void OnSignal(int signal) {
  const int error = errno;
  const int64_t now = NowNs();
  int64_t first = 0;
  if (!first_ns.compare_exchange_strong(first, now) && now - first > kAgainNs) {
    std::signal(signal, SIG_DFL);
    raise(signal);
  }
  errno = error;
}

bool IsIgnored(int signal) {
  struct sigaction now {};
  sigaction(signal, nullptr, &now);
  return now.sa_handler == SIG_IGN;
}

}  // namespace

// No SA_RESTART: a read from a terminal or a pipe ends with the signal.
InterruptGuard::InterruptGuard() {
  first_ns = 0;
  struct sigaction action {};
  action.sa_handler = OnSignal;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    const bool is_ignored = kSignals[i] == SIGHUP && IsIgnored(SIGHUP);
    sigaction(kSignals[i], is_ignored ? nullptr : &action, &before_[i]);
  }
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; !ignores_ && i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

void InterruptGuard::IgnoreFromNowOn() {
  ignores_ = true;
  for (const int signal : kSignals) std::signal(signal, SIG_IGN);
}

void CatchEnd(void (*handler)(int signal)) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (signal != SIGHUP || !IsIgnored(SIGHUP)) std::signal(signal, handler);
  }
}

bool IsInterrupted() { return first_ns.load(std::memory_order_relaxed) != 0; }

}  // namespace braiddb::tools
