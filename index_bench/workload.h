// What index_bench runs on its trees.
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
  // Only of counting runs.
  uint64_t lines = 0;
  uint64_t fences = 0;
  uint64_t xp_lines = 0;
  IndexStats stats;  // so far
};

// By tree, one for each benchmark.
using IndexMeasurements = std::map<IndexKind, std::vector<IndexMeasurement>>;

// All benchmarks on new trees, which take turns at each of them, so that a machine whose speed varies is the same for all;
// `count`: instead of time. What went wrong, or nothing; a wrong answer of a tree is an error too.
std::string RunRound(const IndexBenchFlags& flags, uint32_t node_bytes, bool count, IndexMeasurements* measurements);

}  // namespace braiddb
