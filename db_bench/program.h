// The program: all engines, all rounds, all benchmarks.
#pragma once

#include "db_bench/flags.h"

namespace braiddb::bench {

// Does what the flags say. Returns the process's exit code.
int RunProgram(const Flags& flags);

}  // namespace braiddb::bench
