// db_bench: measures BraidDB with the benchmarks, flags and reports of RocksDB's program of that name.
#include "db_bench/benchmark.h"
#include "db_bench/flags.h"

int main(int argc, char** argv) {
  braiddb::bench::Flags flags;
  if (const auto exit_code = braiddb::bench::ParseFlags(argc, argv, &flags)) return *exit_code;
  return braiddb::bench::Benchmark(flags).Run();
}
