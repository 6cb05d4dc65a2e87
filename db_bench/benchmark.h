// Benchmark: runs the workloads of --benchmarks in sequence on one engine and prints their results.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db_bench/engine.h"
#include "db_bench/flags.h"
#include "db_bench/reader_processes.h"
#include "db_bench/reporter.h"
#include "db_bench/results.h"
#include "db_bench/workloads.h"

namespace braiddb::bench {

// One element of --benchmarks: a name, and in brackets the number of runs, as "readrandom[X3]" or "readrandom[X3-W1]".
struct BenchmarkRequest {
  const Workload* workload = nullptr;
  std::string label;  // label of its results: the name; repeated names get "#2" and so on
  uint32_t warm_ups = 0;
  uint32_t times = 1;
};

// Parses all elements of --benchmarks. Returns none if one of them does not exist, and prints a message on the standard error.
std::optional<std::vector<BenchmarkRequest>> ParseBenchmarks(const std::vector<std::string>& texts);

class Benchmark {
 public:
  // `engine` and `round` identify the results, which are appended to *results. `path`: the database. `part`: number of processes
  // of this turn that ran before; the benchmark continues with their database. All pointers must outlive the object. REQUIRES:
  // this process has one thread.
  Benchmark(const Flags& flags, const std::string& engine, uint32_t round, uint32_t part, const std::string& path, Driver* driver,
            ReportFile* report_file, std::vector<Result>* results);

  // Runs all requests and then calls Finish.
  void Run(const std::vector<BenchmarkRequest>& requests);
  // Draws the random numbers for all requests before any database is open, so that background work gets no extra time. These
  // requests must run next, in this order.
  void DrawAhead(const std::vector<BenchmarkRequest>& requests);
  void RunOne(const BenchmarkRequest& request);
  // Prints --statistics and closes the database.
  void Finish();

 private:
  // The random numbers of one run: per thread its seed and its draws.
  struct Drawn {
    std::vector<uint64_t> seeds;
    std::vector<Draws> draws;
  };

  bool IsSkipped(const BenchmarkRequest& request) const;
  void PrepareDb(bool fresh);
  void OpenDb(bool exists);
  void CloseDb();
  void RunRequest(const BenchmarkRequest& request);
  // Returns none if the benchmark has no result.
  std::optional<Measurement> RunWorkload(const Workload& workload, const Flags& flags);
  std::optional<Measurement> RunOpen();
  std::optional<Measurement> RunThreads(const Workload& workload, const Flags& flags, const Body& body, Engine* engine);
  void AddResult(uint32_t threads, Result* result);
  // Whether a thread of the benchmark runs in one of readers_.
  bool IsReaderProcess(const Workload& workload, uint32_t thread) const {
    return flags_.reader_processes > 0 && OnlyReads(workload, thread);
  }
  Drawn DrawForRun(const Workload& workload, const Flags& flags);

  const Flags& flags_;
  const std::string name_;
  const uint32_t round_;
  const bool goes_on_;
  const std::string path_;
  Driver* const driver_;
  ReportFile* const report_file_;
  std::vector<Result>* const results_;
  ReaderProcesses readers_;
  std::unique_ptr<Engine> engine_;
  YcsbRecords ycsb_;
  std::string label_;         // label of the running request
  std::deque<Drawn> ahead_;   // draws of the next runs
  uint64_t threads_started_;  // over all benchmarks: each thread has its own random numbers
};

}  // namespace braiddb::bench
