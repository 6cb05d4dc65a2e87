// Results from one process to another one that is made of the same program, as bytes.
#pragma once

#include <cstdio>
#include <optional>

#include "db_bench/results.h"

namespace braiddb::bench {

// False if it could not be written.
bool WriteResult(const Result& result, std::FILE* to);

// None at the end, and if the rest is not a whole result.
std::optional<Result> ReadResult(std::FILE* from);

}  // namespace braiddb::bench
