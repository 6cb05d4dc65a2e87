#include "tools/child_job.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <thread>

#include "braiddb/db.h"
#include "db/temporary_place.h"
#include "tools/command.h"
#include "tools/interrupt.h"
#include "tools/progress.h"
#include "util/file.h"

namespace braiddb::tools {
namespace {

constexpr auto kPause = std::chrono::milliseconds(5);

[[noreturn]] void RunChild(const ChildJob& job, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kCannotLook);  // the parent died before prctl
  std::signal(SIGINT, SIG_IGN);                 // the parent decides
  std::signal(SIGTERM, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  if (job.outlives_reader) std::signal(SIGPIPE, SIG_IGN);  // FinishOutput says that output is lost
  const int exit_code = FinishOutput(job.work());
  std::fflush(nullptr);
  _exit(exit_code);
}

}  // namespace

int ChildJob::Run() const {
  std::fflush(nullptr);
  InterruptGuard guard;
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return CannotLook(StatusFromErrno(errno, "fork"));
  if (child == 0) RunChild(*this, parent);
  int status = 0;
  {
    std::optional<Progress> progress;
    if (done) progress.emplace(action, Progress::Unit::kBytes, total);
    while (waitpid(child, &status, WNOHANG) == 0) {
      if (IsInterrupted()) kill(child, SIGKILL);
      if (progress) progress->UpdateNow(done());
      std::this_thread::sleep_for(kPause);
    }
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  guard.IgnoreFromNowOn();
  const Status cleaned = clean ? clean() : Status::OK();
  EndProgress();
  if (WTERMSIG(status) == SIGPIPE) {
    std::signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
  }
  const std::string why = IsInterrupted() ? "stopped" : "ended by signal " + std::to_string(WTERMSIG(status));
  std::fprintf(stderr, "braiddb: %s: %s; %s\n", action, why.c_str(),
               cleaned.ok() ? after().c_str() : ("what it left is not removed: " + cleaned.ToString()).c_str());
  return kCannotLook;
}

Status RemoveUnfinishedCopy(const std::string& path) {
  return TemporaryPlace::RemoveUnfinished(path, [](const std::string& directory) { return DB::Destroy({}, directory); });
}

uint64_t BytesOnDisk(const char* path) {
  namespace fs = std::filesystem;
  struct stat entry {};
  if (stat(path, &entry) != 0) return 0;
  if (!S_ISDIR(entry.st_mode)) return static_cast<uint64_t>(entry.st_blocks) * 512;
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(path, error); !error && it != fs::recursive_directory_iterator();
       it.increment(error)) {
    if (stat(it->path().c_str(), &entry) == 0 && S_ISREG(entry.st_mode)) bytes += static_cast<uint64_t>(entry.st_blocks) * 512;
  }
  return bytes;
}

}  // namespace braiddb::tools
