// The program: runs all engines, rounds, and benchmarks.
#pragma once

#include "db_bench/flags.h"

namespace braiddb::bench {

// Executes the flags. Returns the exit code of the process.
int RunProgram(const Flags& flags);

}  // namespace braiddb::bench
