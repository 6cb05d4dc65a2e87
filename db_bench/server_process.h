// ServerProcess: a server program that runs as a child of db_bench.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/status.h"

namespace braiddb::bench {

// Thread safety: one thread at a time.
class ServerProcess {
 public:
  // Starts a program. arguments[0] is its path, or a name that is searched in $PATH. Its output is appended to the file `log`.
  // Returns NotSupported, with the reason, if the program cannot be started. If db_bench ends, the program is killed.
  static Status Start(const std::vector<std::string>& arguments, const std::string& log, std::unique_ptr<ServerProcess>* server);
  // Kills the program if it still runs.
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  pid_t pid() const { return pid_; }
  bool IsRunning();
  // Waits until the program has ended by itself. Returns IOError if it ends with another code than 0, or not within the timeout.
  Status WaitForEnd(std::chrono::milliseconds timeout);

 private:
  explicit ServerProcess(pid_t pid) : pid_(pid) {}

  const pid_t pid_;
  bool has_ended_ = false;
  int state_ = 0;  // as waitpid(2) gives it
};

// The first line that a program prints. Returns NotSupported if the program cannot be started, or prints nothing.
Status FirstLineOf(const std::vector<std::string>& arguments, std::string* line);

}  // namespace braiddb::bench
