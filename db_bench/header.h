// What is measured and on what: the lines above the results.
#pragma once

#include "db_bench/flags.h"

namespace braiddb::bench {

void PrintHeader(const Flags& flags);

}  // namespace braiddb::bench
