#include "db_bench/header.h"

#include <cstdio>
#include <string>

#include "pmem/persist_mode.h"

namespace braiddb::bench {

void PrintHeader(const Flags& flags, const Environment& environment) {
  std::printf("BraidDB:    version %s\n", environment.version.c_str());
  std::printf("Date:       %s\n", environment.date.c_str());
  std::printf("CPU:        %u * %s\n", environment.cpus, environment.cpu.c_str());
  std::printf("CPUCache:   %s\n", environment.cpu_cache.c_str());
  std::printf("NUMA nodes: %u\n", environment.numa_nodes);
  const auto entries = static_cast<double>(flags.num);
  const auto entry_bytes = static_cast<double>(flags.key_size + flags.value_size);
  std::printf("Keys:       %llu bytes %s\n", static_cast<unsigned long long>(flags.key_size),
              flags.shaped_keys == nullptr ? "each" : "on average");
  std::printf("Values:     %llu bytes each\n", static_cast<unsigned long long>(flags.value_size));
  std::printf("Entries:    %lld\n", static_cast<long long>(flags.num));
  std::printf("RawSize:    %.1f MB (estimated)\n", entries * entry_bytes / 1048576.0);
  std::printf("Write rate: %lld bytes/second\n", static_cast<long long>(flags.benchmark_write_rate_limit));
  std::printf("Read rate:  %lld ops/second\n", static_cast<long long>(flags.benchmark_read_rate_limit));
  std::printf("Regions:    %u (0: one per NUMA node)\n", flags.options.regions);
  std::printf("Persist:    %s\n", NameOf(flags.options.persist_mode));
  std::printf("Threads:    %u\n", flags.threads);
  if (flags.reader_processes > 0) std::printf("Readers:    %u processes\n", flags.reader_processes);
  std::printf("Seed:       %llu\n", static_cast<unsigned long long>(flags.seed));
  std::printf("%s", environment.warnings.c_str());
  std::printf("------------------------------------------------\n");
  std::fflush(stdout);
}

std::string PagesOf(const Flags& flags, const Driver& driver) {
  return flags.no_huge_pages ? "4 KiB for all engines (--huge_pages=off), but on DAX" : driver.Pages();
}

void PrintEngine(const Flags& flags, const Driver& driver) {
  std::printf("Engine:     %s\n", driver.Version().c_str());
  std::printf("Settings:   %s\n", driver.Settings().c_str());
  std::printf("Pages:      %s\n", PagesOf(flags, driver).c_str());
  std::printf("An acknowledged write survives: %s\n", driver.Durability(flags.sync).c_str());
  std::fflush(stdout);
}

}  // namespace braiddb::bench
