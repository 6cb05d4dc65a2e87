// The lines above the results: configuration and machine.
#pragma once

#include <string>

#include "db_bench/engine.h"
#include "db_bench/environment.h"
#include "db_bench/flags.h"

namespace braiddb::bench {

void PrintHeader(const Flags& flags, const Environment& environment);
// Page sizes of one engine.
std::string PagesOf(const Flags& flags, const Driver& driver);
void PrintEngine(const Flags& flags, const Driver& driver);

}  // namespace braiddb::bench
