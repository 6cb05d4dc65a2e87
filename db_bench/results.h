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
  uint64_t written = 0;       // bytes of keys and values, of all threads, in the background too
  Samples samples;
  uint64_t huge_page_bytes = 0;                 // of the process's DRAM and files behind the run; with --json
  std::vector<Figure> counters;                 // how much they became more
  std::vector<SineRate::Demand> demands;        // with --sine_mix_rate
  std::vector<SineRate::Demand> write_demands;  // with --sine_write_rate, bytes a second
};

// What ran, before it ran.
struct EngineDescription {
  std::string engine;
  std::string version;
  std::string settings;
  std::string durability;
  std::string pages;
};

// A turn of an engine in a comparison that did not come to its end.
struct Failure {
  std::string engine;
  uint32_t round = 0;
  std::string what;  // how the process ended; why, it has said itself
};

// Of numbers that need not be in order; of an even count the mean of the two in the middle. REQUIRES: there is one.
double Median(std::vector<double> numbers);

// How many times better `ours` is than `theirs`: 2 if it does twice as many operations, or takes half the time. 0: not known.
double TimesBetter(double ours, double theirs, bool more_is_better);

// A line per benchmark: each engine's median, and how many times better the first one's is; then its CPU time an operation, with
// --settle also the rate and the CPU time with all merges done, and with --histogram P99.9 of each kind of operation. At the
// end, who failed.
void PrintComparison(const std::vector<std::string>& engines, const std::vector<Result>& results,
                     const std::vector<Failure>& failures);

// All of it as one JSON document (docs/BENCHMARKING.md has its fields). False, with a message on the standard error, if the file
// cannot be written.
bool WriteJson(const std::string& path, const Flags& flags, const Environment& environment,
               const std::vector<EngineDescription>& engines, const std::vector<Result>& results,
               const std::vector<Failure>& failures);

}  // namespace braiddb::bench
