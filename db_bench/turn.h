// Turn: runs the benchmarks of one engine in a child process. Effects on memory, libraries, and threads end with the process, and
// so do failures. A benchmark `crash` ends the process without closing the database.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "db_bench/benchmark.h"

namespace braiddb::bench {

struct TurnRequest {
  const Flags& flags;
  const std::string& engine;  // its label
  uint32_t round;
  const std::string& path;
  Driver* driver;
  ReportFile* report_file;
};

// Runs the requests in sequence in a child process. After each `crash` a new child process continues. Appends the measured
// results to *results, also those before a failure. Returns the failure, if any. REQUIRES: this process has one thread.
std::optional<Failure> RunTurn(const TurnRequest& turn, const std::vector<BenchmarkRequest>& requests,
                               std::vector<Result>* results);

// Removes the database in a child process. A library that started a thread in this process would assume in later child processes
// that the thread exists there. `is_ours`: db_bench has made the directory for this engine, so all in it is removed. Otherwise
// files that are not the engine's stay. REQUIRES: this process has one thread.
void RemoveDatabase(const std::string& path, bool is_ours, Driver* driver);

}  // namespace braiddb::bench
