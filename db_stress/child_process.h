// ChildProcess: a forked process and its end.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace braiddb::stress {

class ChildProcess {
 public:
  // Forks a child that runs `body` and exits with its result. The child dies with its parent, and ignores SIGINT and SIGTERM.
  // REQUIRES: the parent has one thread.
  explicit ChildProcess(const std::function<int()>& body);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Returns whether the child has ended.
  bool Ended();
  bool WaitFor(std::chrono::microseconds patience);
  // Sends the signal and waits for the end. If the child has ended before, keeps that result.
  void Kill(int signal);

  // REQUIRES: Ended().
  bool ended_well() const;
  bool was_killed() const;  // by SIGKILL
  std::string HowEnded() const;

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
};

}  // namespace braiddb::stress
