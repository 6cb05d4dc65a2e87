// Observation: figures of a running benchmark, from the engine and from the operating system.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "db_bench/engine.h"

namespace braiddb::bench {

// The engine's State(), and two figures for every engine. "process_dram_bytes": resident anonymous memory of this process,
// including db_bench's own and the draws, but without mapped files. "file_bytes": space of the files below `path`. With a null
// engine only the first of the two.
std::vector<Figure> ObserveState(Engine* engine, const std::string& path);

// The engine's Counters(), and "file_written_bytes": the bytes that this process passed to write system calls. Stores to mapped
// files are not counted.
std::vector<Figure> ObserveCounters(Engine* engine);

// Resident anonymous memory of a process, in bytes. Returns 0 if there is no such process.
uint64_t AnonymousBytesOf(pid_t pid);

// Bytes of this process, DRAM and mapped files, on huge pages. Walks all pages of the process.
uint64_t BytesOnHugePages();

// The differences. A figure that `before` lacks counts from 0.
std::vector<Figure> Increase(const std::vector<Figure>& before, const std::vector<Figure>& after);

}  // namespace braiddb::bench
