// Turn: the benchmarks of one engine in a process of its own. What they do to memory, libraries and threads ends with it, and so
// does their failure; a benchmark `crash` is such an end, without closing the database.
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

// Runs them one after the other in child processes: one, and another one behind each `crash`. Adds to *results what was
// measured, also before a failure, and returns the failure, if there was one. REQUIRES: this process has one thread.
std::optional<Failure> RunTurn(const TurnRequest& turn, const std::vector<BenchmarkRequest>& requests,
                               std::vector<Result>* results);

// Removes the database, in a child process as well: a library that has begun a thread of its own here would believe in the next
// turn's process that it runs there. REQUIRES: as above.
void RemoveDatabase(const std::string& path, Driver* driver);

}  // namespace braiddb::bench
