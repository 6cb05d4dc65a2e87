// db_bench: measures BraidDB and other stores with the benchmarks, flags, and reports of RocksDB's db_bench.
#include "db_bench/flags.h"
#include "db_bench/program.h"

int main(int argc, char** argv) {
  braiddb::bench::Flags flags;
  if (const auto exit_code = braiddb::bench::ParseFlags(argc, argv, &flags)) return *exit_code;
  return braiddb::bench::RunProgram(flags);
}
