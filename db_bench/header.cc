#include "db_bench/header.h"

#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>

#include "util/numa_topology.h"

namespace braiddb::bench {

namespace {

struct Cpu {
  int count = 0;
  std::string model;
  std::string cache;
};

Cpu DescribeCpu() {
  Cpu cpu;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("model name")) {
      ++cpu.count;
      cpu.model = line.substr(colon + 2);
    } else if (line.starts_with("cache size")) {
      cpu.cache = line.substr(colon + 2);
    }
  }
  return cpu;
}

const char* Name(PersistMode mode) {
  switch (mode) {
    case PersistMode::kAuto:
      return "auto";
    case PersistMode::kCacheLine:
      return "cacheline";
    case PersistMode::kEadr:
      return "eadr";
    case PersistMode::kPage:
      return "page";
    case PersistMode::kEmulated:
      return "emulated";
  }
  return "unknown";
}

void PrintEnvironment() {
  const std::time_t now = std::time(nullptr);
  char date[64];
  std::tm local;
  localtime_r(&now, &local);
  std::strftime(date, sizeof date, "%a %b %e %H:%M:%S %Y", &local);
  const Cpu cpu = DescribeCpu();
  std::printf("BraidDB:    version %s\n", BRAIDDB_VERSION);
  std::printf("Date:       %s\n", date);
  std::printf("CPU:        %d * %s\n", cpu.count, cpu.model.c_str());
  std::printf("CPUCache:   %s\n", cpu.cache.c_str());
  std::printf("NUMA nodes: %u\n", NumaNodeCount());
}

void PrintWarnings() {
#ifndef NDEBUG
  std::printf("WARNING: Assertions are enabled; benchmarks unnecessarily slow\n");
#endif
#ifndef __OPTIMIZE__
  std::printf("WARNING: Optimization is disabled: benchmarks unnecessarily slow\n");
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  std::printf("WARNING: A sanitizer is on; benchmarks unnecessarily slow\n");
#endif
}

}  // namespace

void PrintHeader(const Flags& flags) {
  PrintEnvironment();
  const auto entries = static_cast<double>(flags.num);
  const auto entry_bytes = static_cast<double>(flags.key_size + flags.value_size);
  std::printf("Keys:       %llu bytes each\n", static_cast<unsigned long long>(flags.key_size));
  std::printf("Values:     %llu bytes each\n", static_cast<unsigned long long>(flags.value_size));
  std::printf("Entries:    %lld\n", static_cast<long long>(flags.num));
  std::printf("RawSize:    %.1f MB (estimated)\n", entries * entry_bytes / 1048576.0);
  std::printf("Write rate: %lld bytes/second\n", static_cast<long long>(flags.benchmark_write_rate_limit));
  std::printf("Read rate:  %lld ops/second\n", static_cast<long long>(flags.benchmark_read_rate_limit));
  std::printf("Regions:    %u (0: one per NUMA node)\n", flags.options.regions);
  std::printf("Persist:    %s\n", Name(flags.options.persist_mode));
  std::printf("Threads:    %u\n", flags.threads);
  std::printf("Seed:       %llu\n", static_cast<unsigned long long>(flags.seed));
  PrintWarnings();
  std::printf("------------------------------------------------\n");
  std::fflush(stdout);
}

}  // namespace braiddb::bench
