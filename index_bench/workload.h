// What index_bench runs on one tree.
#pragma once

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

// All benchmarks on a new tree; `count`: instead of time. An error also if the tree gives a wrong answer.
Status RunWorkload(const IndexBenchFlags& flags, IndexKind kind, uint32_t node_bytes, bool count,
                   std::vector<IndexMeasurement>* measurements);

}  // namespace braiddb
