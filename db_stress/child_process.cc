#include "db_stress/child_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <thread>

namespace braiddb::stress {

namespace {

constexpr auto kPause = std::chrono::microseconds(200);
constexpr int kNoFork = 255 << 8;  // status of a child that could not be forked

}  // namespace

ChildProcess::ChildProcess(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) {
    std::perror("db_stress: fork");
    status_ = kNoFork;
  }
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent died before prctl
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  _exit(body());
}

ChildProcess::~ChildProcess() { Kill(SIGKILL); }

bool ChildProcess::Ended() {
  int status = 0;
  if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return status_.has_value();
}

bool ChildProcess::WaitFor(std::chrono::microseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!Ended()) {
    const auto left = std::chrono::duration_cast<std::chrono::microseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    std::this_thread::sleep_for(std::min(left, kPause));
  }
  return true;
}

void ChildProcess::Kill(int signal) {
  if (Ended()) return;
  kill(pid_, signal);
  int status = 0;
  if (waitpid(pid_, &status, 0) == pid_) status_ = status;
}

bool ChildProcess::ended_well() const { return WIFEXITED(*status_) && WEXITSTATUS(*status_) == 0; }
bool ChildProcess::was_killed() const { return WIFSIGNALED(*status_) && WTERMSIG(*status_) == SIGKILL; }

std::string ChildProcess::HowEnded() const {
  if (WIFSIGNALED(*status_)) return std::string("died: ") + strsignal(WTERMSIG(*status_));
  return "ended with " + std::to_string(WEXITSTATUS(*status_));
}

}  // namespace braiddb::stress
