// Sends results as bytes between two processes of the same program.
#pragma once

#include <cstdio>
#include <optional>

#include "db_bench/results.h"

namespace braiddb::bench {

// Returns false after a write error.
bool WriteResult(const Result& result, std::FILE* to);

// Returns none at the end, and if the rest is not a complete result.
std::optional<Result> ReadResult(std::FILE* from);

// The same for the counts of a thread. They return false after an error.
bool WriteStats(Stats* stats, std::FILE* to);
bool ReadStats(std::FILE* from, Stats* stats);

}  // namespace braiddb::bench
