// Benchmark: runs the workloads of --benchmarks one after the other on one engine, and prints their results.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db_bench/engine.h"
#include "db_bench/flags.h"
#include "db_bench/reporter.h"
#include "db_bench/results.h"
#include "db_bench/workloads.h"

namespace braiddb::bench {

// One of --benchmarks: a name, and in brackets how often it runs, as "readrandom[X3]", "readrandom[X3-W1]".
struct BenchmarkRequest {
  const Workload* workload = nullptr;
  std::string label;  // of its results: the name, and if others before have it, "#2" and so on
  uint32_t warm_ups = 0;
  uint32_t times = 1;
};

// All of --benchmarks; none, with a message on the standard error, if one of them is not there.
std::optional<std::vector<BenchmarkRequest>> ParseBenchmarks(const std::vector<std::string>& texts);

class Benchmark {
 public:
  // `engine` and `round` are for the results, which are added to *results; `path` is the database's. `part`: how many times the
  // turn's process was replaced by another one before; what the one before left is then gone on with. All that is pointed to
  // must outlive the object.
  Benchmark(const Flags& flags, const std::string& engine, uint32_t round, uint32_t part, const std::string& path, Driver* driver,
            ReportFile* report_file, std::vector<Result>* results);

  // One after the other, and Finish.
  void Run(const std::vector<BenchmarkRequest>& requests);
  // Draws for all of them, before any database is open: what goes on in the background of one gets no time by it. These are to
  // be run next, in this order.
  void DrawAhead(const std::vector<BenchmarkRequest>& requests);
  void RunOne(const BenchmarkRequest& request);
  // Prints --statistics and closes the database.
  void Finish();

 private:
  // Of one run: for each thread its seed, and what its operations are drawn from.
  struct Drawn {
    std::vector<uint64_t> seeds;
    std::vector<Draws> draws;
  };

  bool IsSkipped(const BenchmarkRequest& request) const;
  void PrepareDb(bool fresh);
  void OpenDb(bool exists);
  void CloseDb();
  void RunRequest(const BenchmarkRequest& request);
  // None if there is nothing to report.
  std::optional<Measurement> RunWorkload(const Workload& workload, const Flags& flags);
  std::optional<Measurement> RunOpen();
  std::optional<Measurement> RunThreads(const Workload& workload, const Flags& flags, const Body& body, Engine* engine);
  void AddResult(uint32_t threads, Result* result);
  Drawn DrawForRun(const Workload& workload, const Flags& flags);

  const Flags& flags_;
  const std::string name_;
  const uint32_t round_;
  const bool goes_on_;
  const std::string path_;
  Driver* const driver_;
  ReportFile* const report_file_;
  std::vector<Result>* const results_;
  std::unique_ptr<Engine> engine_;
  YcsbRecords ycsb_;
  std::string label_;         // of the request that runs, for results
  std::deque<Drawn> ahead_;   // of the runs that come next
  uint64_t threads_started_;  // of all benchmarks: each has its own random numbers
};

}  // namespace braiddb::bench
