// Command line flags of index_bench.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "index_bench/ordered_index.h"

namespace braiddb {

struct IndexBenchFlags {
  std::string path;
  std::vector<IndexKind> trees;
  std::vector<uint32_t> node_bytes;
  std::vector<std::string> benchmarks;
  uint64_t num = 0;
  uint64_t rounds = 0;
  uint64_t seed = 0;
  uint32_t insert_percent = 0;  // of the benchmark `mixed`
  uint32_t fill_percent = 0;    // of the benchmark `load`
  uint32_t write_latency_ns = 0;
  bool flush_invalidates = false;
  bool count = false;
  std::string csv;
};

const char* NameOf(IndexKind kind);

// Returns the exit code if the program must end at once.
std::optional<int> ParseIndexBenchFlags(int argc, char** argv, IndexBenchFlags* flags);

}  // namespace braiddb
