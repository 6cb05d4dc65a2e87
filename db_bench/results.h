// Results: what all runs of this process gave, for the comparison of engines and for --json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db_bench/environment.h"
#include "db_bench/flags.h"
#include "db_bench/rate.h"
#include "db_bench/reporter.h"
#include "db_bench/stats.h"

namespace braiddb::bench {

// One run of one benchmark.
struct Result {
  std::string engine;     // its label: as it was asked for, and a number behind it if it was before
  uint32_t round = 0;     // of --rounds
  std::string benchmark;  // its name; the second in --benchmarks with a name has "#2" behind it, and so on
  uint32_t threads = 0;
  Measurement measured;
  double user_seconds = 0;    // CPU time of the process meanwhile, background threads included
  double system_seconds = 0;  // … in the kernel
  std::vector<Sample> samples;
  std::vector<SinePace::Demand> demands;  // with --sine_mix_rate
};

// What ran, before it ran.
struct EngineDescription {
  std::string engine;
  std::string version;
  std::string settings;
  std::string durability;
};

// Of numbers that need not be in order; of an even count the mean of the two in the middle. REQUIRES: there is one.
double Median(std::vector<double> numbers);

// A line per benchmark: each engine's median, and how many times that of the others the first one's is. With --histogram also
// P99.9 of each kind of operation.
void PrintComparison(const std::vector<std::string>& engines, const std::vector<Result>& results);

// All of it as one JSON document (docs/BENCHMARKING.md has its fields). False, with a message on the standard error, if the file
// cannot be written.
bool WriteJson(const std::string& path, const Flags& flags, const Environment& environment,
               const std::vector<EngineDescription>& engines, const std::vector<Result>& results);

}  // namespace braiddb::bench
