// Observation: what is to be seen of a running benchmark from outside: what the engine tells, and what the system does.
#pragma once

#include <string>
#include <vector>

#include "db_bench/engine.h"

namespace braiddb::bench {

// The engine's State(), and two figures that every engine has: "process_dram_bytes", resident anonymous memory of this process,
// so also what was drawn and what db_bench itself takes, but no files that are mapped; "file_bytes", what the files below `path`
// take. Null engine: the first of the two alone.
std::vector<Figure> ObserveState(Engine* engine, const std::string& path);

// The engine's Counters(), and "file_written_bytes", what this process handed over in system calls that write. Stores to mapped
// files are not among these.
std::vector<Figure> ObserveCounters(Engine* engine);

// Bytes of this process, DRAM and mapped files, that are on huge pages. Walks all its pages.
uint64_t BytesOnHugePages();

// Figure by figure; what `before` lacks counts from 0.
std::vector<Figure> Increase(const std::vector<Figure>& before, const std::vector<Figure>& after);

}  // namespace braiddb::bench
