#include "db_bench/turn.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "db_bench/result_stream.h"

namespace braiddb::bench {

namespace {

using Requests = std::vector<BenchmarkRequest>;

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "db_bench: %s: %m\n", what);
  std::fflush(stdout);
  _exit(1);
}

// Runs in the child. Results are sent one by one, so a failure keeps the earlier results.
[[noreturn]] void RunPart(const TurnRequest& turn, uint32_t part, const Requests& requests, bool crashes, std::FILE* to) {
  std::vector<Result> results;
  // Never destroyed: the destructor would close the database, or engine threads would use destroyed objects.
  auto* const benchmark =
      new Benchmark(turn.flags, turn.engine, turn.round, part, turn.path, turn.driver, turn.report_file, &results);
  const auto send = [&] {
    for (const Result& result : results) {
      if (!WriteResult(result, to)) Fail("results cannot be handed over");
    }
    results.clear();
  };
  benchmark->DrawAhead(requests);
  for (const BenchmarkRequest& request : requests) {
    benchmark->RunOne(request);
    send();
  }
  if (!crashes) benchmark->Finish();
  std::fflush(stdout);
  _exit(0);
}

// Describes how a process ended. Empty after success.
std::string DescribeEnd(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status) == 0 ? "" : "ended with exit code " + std::to_string(WEXITSTATUS(status));
  return "was ended by signal " + std::to_string(WTERMSIG(status)) + ", " + strsignal(WTERMSIG(status));
}

// Frees the memory for the next engine. After a failure the directory may hold no valid database.
[[noreturn]] void Remove(const std::string& path, bool is_ours, Driver* driver) {
  const Status status = driver->Destroy(path);
  std::error_code error;
  if (is_ours) {
    std::filesystem::remove_all(path, error);  // no effect if the engine has removed it
  } else {
    rmdir(path.c_str());  // fails if files of others are there
  }
  if (!status.ok() || error) {
    std::fprintf(stderr, "db_bench: cannot remove %s: %s\n", path.c_str(),
                 error ? error.message().c_str() : status.ToString().c_str());
  }
  std::fflush(nullptr);
  _exit(0);
}

// Forks a process that ends with this process. Returns its id in the parent, 0 in the child.
pid_t Fork() {
  std::fflush(nullptr);  // otherwise both processes would write buffered output
  const pid_t parent = getpid(), child = fork();
  if (child < 0) Fail("fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
  }
  return child;
}

int WaitFor(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// Returns how the child process ended.
std::string RunPartInChild(const TurnRequest& turn, uint32_t part, const Requests& requests, bool crashes,
                           std::vector<Result>* results) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) Fail("pipe");
  const pid_t child = Fork();
  if (child == 0) {
    close(ends[0]);
    RunPart(turn, part, requests, crashes, fdopen(ends[1], "w"));
  }
  close(ends[1]);
  std::FILE* const from = fdopen(ends[0], "r");
  while (std::optional<Result> result = ReadResult(from)) results->push_back(*std::move(result));
  std::fclose(from);
  return DescribeEnd(WaitFor(child));
}

}  // namespace

std::optional<Failure> RunTurn(const TurnRequest& turn, const Requests& requests, std::vector<Result>* results) {
  uint32_t part = 0;
  for (auto begin = requests.begin();; ++part) {
    const auto crash =
        std::find_if(begin, requests.end(), [](const BenchmarkRequest& request) { return request.workload->ends_process; });
    const bool crashes = crash != requests.end();
    const std::string what = RunPartInChild(turn, part, Requests(begin, crash), crashes, results);
    if (!what.empty()) return Failure{turn.engine, turn.round, what};
    if (!crashes) return std::nullopt;
    begin = crash + 1;
  }
}

void RemoveDatabase(const std::string& path, bool is_ours, Driver* driver) {
  const pid_t child = Fork();
  if (child == 0) Remove(path, is_ours, driver);
  const std::string end = DescribeEnd(WaitFor(child));
  if (!end.empty())
    std::fprintf(stderr, "db_bench: %s may still exist: the process that removes it %s\n", path.c_str(), end.c_str());
}

}  // namespace braiddb::bench
