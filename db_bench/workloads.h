// Workloads: the benchmarks by name.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "db_bench/flags.h"
#include "db_bench/worker.h"

namespace braiddb::bench {

using Body = std::function<void(Worker*)>;

struct Workload {
  const char* name;
  // Runs in every thread.
  void (*body)(Worker*);
  // Starts from an empty database.
  bool fresh_db = false;
  // Changes the flags for this benchmark; may be null.
  void (*adjust)(Flags*) = nullptr;
  // Instead of body: prepares, in the main thread and not timed, and returns the body. Such a benchmark needs no database.
  Body (*prepare)(const Flags&) = nullptr;
};

const std::vector<Workload>& Workloads();
// Null if there is none of that name.
const Workload* FindWorkload(std::string_view name);

// Writes
void FillSequential(Worker* worker);
void FillRandom(Worker* worker);
void FillUnique(Worker* worker);
void DeleteSequential(Worker* worker);
void DeleteRandom(Worker* worker);

// Reads
void ReadRandom(Worker* worker);
void MultiReadRandom(Worker* worker);
void ReadSequential(Worker* worker);
void ReadReverse(Worker* worker);
void SeekRandom(Worker* worker);
void ReadWhileWriting(Worker* worker);
void ReadRandomWriteRandom(Worker* worker);

// Administration
void Compact(Worker* worker);
void FlushMemtable(Worker* worker);
void WaitForCompaction(Worker* worker);
void PrintStats(Worker* worker);
void PrintLevels(Worker* worker);

// The memory's limits
Body PreparePmAppend(const Flags& flags);
Body PreparePmRead(const Flags& flags);

}  // namespace braiddb::bench
