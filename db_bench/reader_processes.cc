#include "db_bench/reader_processes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "db_bench/result_stream.h"
#include "db_bench/worker.h"

namespace braiddb::bench {

namespace {

constexpr char kReady = 'r';
constexpr char kGo = 'g';

[[noreturn]] void Fail(const std::string& what) { ExitWithError(Status::IOError("it has ended: " + what), "reader process"); }

}  // namespace

Flags FlagsOf(const Workload& workload, const Flags& flags) {
  Flags own = flags;
  if (own.reader_processes > 0 && OnlyReads(workload, 1)) own.threads = own.reader_processes;
  if (workload.adjust != nullptr) workload.adjust(&own);
  return own;
}

void RunBody(const Body& body, Worker* worker) {
  const uint32_t perf_level = worker->flags.perf_level;
  const bool counts = perf_level > 1 && worker->db != nullptr;
  if (counts) worker->db->BeginCounting(perf_level);
  worker->stats.Start();
  body(worker);
  worker->stats.Stop();
  if (counts) worker->stats.AddPerf(worker->db->EndCounting());
}

struct ReaderProcesses::Job {
  uint32_t workload;  // index in Workloads()
  uint32_t thread;
  uint64_t seed;
};

ReaderProcesses::ReaderProcesses(const Flags& flags, const std::string& path, Driver* driver)
    : flags_(flags), path_(path), driver_(driver) {
  for (uint32_t i = 0; i < flags.reader_processes; ++i) {
    int jobs[2], answers[2];
    if (pipe2(jobs, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0)
      ExitWithError(Status::IOError("no pipe to a reader process; raise the limit of open files (ulimit -n)"), "start");
    std::fflush(nullptr);  // otherwise both processes would write buffered output
    const pid_t parent = getpid(), child = fork();
    if (child < 0) ExitWithError(Status::IOError("cannot start a reader process"), "fork");
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      for (const Process& other : processes_) {
        close(fileno(other.to));
        close(fileno(other.from));
      }
      close(jobs[1]);
      close(answers[0]);
      Serve(fdopen(jobs[0], "r"), fdopen(answers[1], "w"));
    }
    close(jobs[0]);
    close(answers[1]);
    processes_.push_back({child, fdopen(jobs[1], "w"), fdopen(answers[0], "r")});
  }
}

ReaderProcesses::~ReaderProcesses() {
  for (const Process& process : processes_) {
    std::fclose(process.to);  // the process sees the end of its jobs
    std::fclose(process.from);
    while (waitpid(process.id, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

void ReaderProcesses::Prepare(uint32_t process, const Workload& workload, uint32_t thread, uint64_t seed) {
  const Process& to = processes_[process];
  const Job job{static_cast<uint32_t>(&workload - Workloads().data()), thread, seed};
  if (std::fwrite(&job, sizeof job, 1, to.to) != 1 || std::fflush(to.to) != 0 || std::fgetc(to.from) != kReady)
    Fail("no answer to a job");
}

CpuTime ReaderProcesses::Run(uint32_t process, Stats* stats) {
  const Process& to = processes_[process];
  CpuTime cpu;
  if (std::fputc(kGo, to.to) == EOF || std::fflush(to.to) != 0 || !ReadStats(to.from, stats) ||
      std::fread(&cpu, sizeof cpu, 1, to.from) != 1)
    Fail("no results");
  return cpu;
}

void ReaderProcesses::Serve(std::FILE* from, std::FILE* to) const {
  for (Job job; std::fread(&job, sizeof job, 1, from) == 1;) RunJob(job, from, to);
  _exit(0);
}

void ReaderProcesses::RunJob(const Job& job, std::FILE* from, std::FILE* to) const {
  const Workload& workload = Workloads()[job.workload];
  const Flags flags = FlagsOf(workload, flags_);
  std::unique_ptr<Engine> engine;
  ExitOnError(driver_->OpenToRead(path_, &engine), "open for reading");
  YcsbRecords ycsb;
  ycsb.count.store(static_cast<uint64_t>(flags_.num), std::memory_order_relaxed);
  Shared shared(flags, &ycsb);
  {
    std::unique_ptr<Session> session;
    ExitOnError(engine->NewSession(flags.sync, &session), "session");
    const auto draw = workload.draw != nullptr ? workload.draw : DrawKeys;
    Worker worker(flags, job.thread, job.seed, draw(flags, ~job.seed), engine.get(), std::move(session), &shared);
    if (std::fputc(kReady, to) == EOF || std::fflush(to) != 0 || std::fgetc(from) != kGo) _exit(1);
    const CpuTime before = CpuTimeOfProcess();
    RunBody(workload.body, &worker);
    const CpuTime after = CpuTimeOfProcess();
    const CpuTime cpu{after.user - before.user, after.system - before.system};
    if (!WriteStats(&worker.stats, to) || std::fwrite(&cpu, sizeof cpu, 1, to) != 1 || std::fflush(to) != 0) _exit(1);
  }
  ExitOnError(engine->Close(), "close");
}

}  // namespace braiddb::bench
