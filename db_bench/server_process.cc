#include "db_bench/server_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

namespace braiddb::bench {

namespace {

// Starts a program whose standard output and standard error are `output`.
Status Spawn(const std::vector<std::string>& arguments, int output, pid_t* pid) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  int failure[2];  // the child writes errno to it if it cannot run the program
  if (pipe2(failure, O_CLOEXEC) != 0) return Status::IOError(std::string("pipe: ") + strerror(errno));
  *pid = fork();
  if (*pid == 0) {
    // Only calls that are safe between fork and exec.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    const int null = open("/dev/null", O_RDONLY);
    if (null >= 0) dup2(null, STDIN_FILENO);
    execvp(argv[0], argv.data());
    const int error = errno;
    (void)!write(failure[1], &error, sizeof(error));
    _exit(127);
  }
  const int fork_error = errno;
  close(failure[1]);
  int error = 0;
  const bool failed = *pid < 0 || read(failure[0], &error, sizeof(error)) == static_cast<ssize_t>(sizeof(error));
  close(failure[0]);
  if (!failed) return Status::OK();
  if (*pid > 0) waitpid(*pid, nullptr, 0);
  return Status::NotSupported("cannot run " + arguments[0] + ": " + strerror(*pid < 0 ? fork_error : error));
}

}  // namespace

Status ServerProcess::Start(const std::vector<std::string>& arguments, const std::string& log,
                            std::unique_ptr<ServerProcess>* server) {
  const int output = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (output < 0) return Status::IOError("cannot write " + log + ": " + strerror(errno));
  pid_t pid = 0;
  const Status status = Spawn(arguments, output, &pid);
  close(output);
  if (status.ok()) server->reset(new ServerProcess(pid));
  return status;
}

ServerProcess::~ServerProcess() {
  if (!IsRunning()) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, &state_, 0);
}

bool ServerProcess::IsRunning() {
  if (!has_ended_) has_ended_ = waitpid(pid_, &state_, WNOHANG) != 0;
  return !has_ended_;
}

Status ServerProcess::WaitForEnd(std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (IsRunning()) {
    if (std::chrono::steady_clock::now() > end) return Status::IOError("the server does not end");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (WIFEXITED(state_) && WEXITSTATUS(state_) == 0) return Status::OK();
  return Status::IOError(WIFEXITED(state_) ? "the server ended with code " + std::to_string(WEXITSTATUS(state_))
                                           : "the server ended by signal " + std::to_string(WTERMSIG(state_)));
}

Status FirstLineOf(const std::vector<std::string>& arguments, std::string* line) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::IOError(std::string("pipe: ") + strerror(errno));
  pid_t pid = 0;
  const Status status = Spawn(arguments, ends[1], &pid);
  close(ends[1]);
  line->clear();
  if (status.ok()) {
    std::array<char, 512> buffer;
    for (ssize_t size; (size = read(ends[0], buffer.data(), buffer.size())) > 0;) {
      line->append(buffer.data(), static_cast<size_t>(size));
    }
    waitpid(pid, nullptr, 0);
    line->resize(std::min(line->size(), line->find('\n')));
  }
  close(ends[0]);
  if (!status.ok() || !line->empty()) return status;
  return Status::NotSupported(arguments[0] + " prints nothing");
}

}  // namespace braiddb::bench
