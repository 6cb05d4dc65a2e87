// ReaderProcesses: processes that read a database which this process has open for writing (--reader_processes).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "db_bench/engine.h"
#include "db_bench/flags.h"
#include "db_bench/settle.h"
#include "db_bench/stats.h"
#include "db_bench/workloads.h"

namespace braiddb::bench {

// The flags of one benchmark. Its readers are as many as --reader_processes, if there are any.
Flags FlagsOf(const Workload& workload, const Flags& flags);

// Runs a body in the calling thread, with its counts.
void RunBody(const Body& body, Worker* worker);

// USE     Made before this process has opened a database, since a child of a process with threads cannot use one. For each run,
//         Prepare and then Run.
// CLOCK   The counts have the times of the machine's clock, so those of several processes can be merged.
// FAILURES  If a process has failed, it has printed the reason, and this process ends.
// Thread safety: calls for different processes may be concurrent.
class ReaderProcesses {
 public:
  // Starts --reader_processes processes. The flags, the path and the driver must outlive the object. REQUIRES: this process has
  // one thread.
  ReaderProcesses(const Flags& flags, const std::string& path, Driver* driver);
  // Ends the processes.
  ~ReaderProcesses();
  ReaderProcesses(const ReaderProcesses&) = delete;
  ReaderProcesses& operator=(const ReaderProcesses&) = delete;

  // Has a process open the database and draw the random numbers of a thread. Returns when it can begin.
  void Prepare(uint32_t process, const Workload& workload, uint32_t thread, uint64_t seed);
  // Has the process run the body. Returns its counts, and its CPU time.
  CpuTime Run(uint32_t process, Stats* stats);

 private:
  struct Job;
  struct Process {
    pid_t id = 0;
    std::FILE* to = nullptr;
    std::FILE* from = nullptr;
  };
  [[noreturn]] void Serve(std::FILE* from, std::FILE* to) const;
  void RunJob(const Job& job, std::FILE* from, std::FILE* to) const;

  const Flags& flags_;
  const std::string& path_;
  Driver* const driver_;
  std::vector<Process> processes_;
};

}  // namespace braiddb::bench
