// Results: the results of all runs of this process, for the comparison of engines and for --json.
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
  std::string engine;     // label: the typed name, with a number if the name occurred before
  uint32_t round = 0;     // index of the round (--rounds)
  std::string benchmark;  // name; a repeated name in --benchmarks gets "#2" and so on
  uint32_t threads = 0;
  uint32_t reader_processes = 0;  // the number of threads that were processes (--reader_processes)
  Measurement measured;
  double user_seconds = 0;    // CPU time of the process during the run, with background threads
  double system_seconds = 0;  // the kernel's share
  uint64_t written = 0;       // bytes of keys and values, of all threads, with background writers
  Samples samples;
  uint64_t huge_page_bytes = 0;                 // huge pages of the process's DRAM and files after the run; with --json
  std::vector<Figure> counters;                 // increase during the run
  std::vector<SineRate::Demand> demands;        // with --sine_mix_rate
  std::vector<SineRate::Demand> write_demands;  // with --sine_write_rate, bytes per second
};

// Description of an engine, made before its run.
struct EngineDescription {
  std::string engine;
  std::string version;
  std::string settings;
  std::string durability;
  std::string pages;
};

// A failed turn of an engine in a comparison.
struct Failure {
  std::string engine;
  uint32_t round = 0;
  std::string what;  // how the process ended; the process has printed the reason
};

// The median. For an even count the mean of the two middle numbers. The numbers may be unsorted. REQUIRES: at least one.
double Median(std::vector<double> numbers);

// How many times better `ours` is than `theirs`: 2 for twice the operations or half the time. 0: unknown.
double TimesBetter(double ours, double theirs, bool more_is_better);

// Prints a line per benchmark: each engine's median, and how many times better the first engine's is. Then the CPU time per
// operation; with --settle also rate and CPU time including all merges; with --histogram P99.9 of each kind of operation. At the
// end the failures.
void PrintComparison(const std::vector<std::string>& engines, const std::vector<Result>& results,
                     const std::vector<Failure>& failures);

// Writes all results as one JSON document (docs/BENCHMARKING.md has the fields). Returns false if the file cannot be written, and
// prints a message on the standard error.
bool WriteJson(const std::string& path, const Flags& flags, const Environment& environment,
               const std::vector<EngineDescription>& engines, const std::vector<Result>& results,
               const std::vector<Failure>& failures);

}  // namespace braiddb::bench
