// db_bench: measures BraidDB and other stores with the benchmarks, flags, and reports of RocksDB's db_bench.
#include "db_bench/flags.h"
#include "db_bench/program.h"
#include "util/standard_streams.h"

int main(int argc, char** argv) {
  braiddb::OpenStandardStreams();
  braiddb::bench::Flags flags;
  auto exit_code = braiddb::bench::ParseFlags(argc, argv, &flags);
  if (!exit_code) exit_code = braiddb::bench::RunProgram(flags);
  return braiddb::FinishStandardOutput("db_bench", *exit_code, 1);
}
