// The benchmarks of index_bench.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "index_bench/flags.h"

namespace braiddb {

struct IndexMeasurement {
  std::string benchmark;
  uint64_t operations = 0;
  double seconds = 0;
  // Set only by counting runs.
  uint64_t lines = 0;
  uint64_t fences = 0;
  uint64_t xp_lines = 0;
  IndexStats stats;  // totals so far
};

// By tree. One measurement per benchmark.
using IndexMeasurements = std::map<IndexKind, std::vector<IndexMeasurement>>;

// Runs all benchmarks on new trees. The trees take turns within each benchmark, so changes of the machine's speed affect all
// alike. `count`: counts lines and fences instead of time. Returns an error text, or an empty text; a wrong answer of a tree is
// an error too.
std::string RunRound(const IndexBenchFlags& flags, uint32_t node_bytes, bool count, IndexMeasurements* measurements);

}  // namespace braiddb
