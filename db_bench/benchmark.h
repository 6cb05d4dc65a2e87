// Benchmark: runs the workloads of --benchmarks one after the other and prints their results.
#pragma once

#include <memory>
#include <string>

#include "braiddb/db.h"
#include "db_bench/flags.h"
#include "db_bench/reporter.h"
#include "db_bench/workloads.h"

namespace braiddb::bench {

class Benchmark {
 public:
  explicit Benchmark(const Flags& flags);

  // The process's exit code.
  int Run();

 private:
  bool OpenReportFile();
  void PrepareDb(bool fresh);
  void OpenDb();
  void CloseDb();
  void RunWorkload(const Workload& workload);
  void RunThreads(const std::string& name, const Flags& flags, const Body& body, DB* db);

  const Flags flags_;
  std::unique_ptr<ReportFile> report_file_;
  std::unique_ptr<DB> db_;
  uint64_t threads_started_ = 0;  // of all benchmarks: each has its own random numbers
};

}  // namespace braiddb::bench
