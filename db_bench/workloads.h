// Workloads: the benchmarks by name.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
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
  // What is drawn for each thread before; null: as DrawKeys.
  Draws (*draw)(const Flags& flags, uint64_t seed) = nullptr;
  // Instead of body: prepares, in the main thread and not timed, and returns the body. Such a benchmark needs no database.
  Body (*prepare)(const Flags&) = nullptr;
  // Instead of body: the opening of the database is what is measured.
  bool times_open = false;
  // Instead of body: the process ends without closing the database, and another one goes on with the next benchmark.
  bool ends_process = false;
};

const std::vector<Workload>& Workloads();
// Null if there is none of that name.
const Workload* FindWorkload(std::string_view name);
// Why a benchmark of RocksDB's is not here; null if RocksDB has none of that name either.
const char* WhyNoWorkload(std::string_view name);

// Writes
void FillSequential(Worker* worker);
void FillRandom(Worker* worker);
void FillUnique(Worker* worker);
void DeleteSequential(Worker* worker);
void DeleteRandom(Worker* worker);

// What bodies share
// True if found; anything but found and not found ends the process.
inline bool GetOrExit(Worker* worker, Slice key, std::string* value) {
  const Status status = worker->db->Get(key, value);
  if (!status.ok() && !status.IsNotFound()) ExitWithError(status, "get");
  if (status.ok()) worker->Verify(key, *value);
  return status.ok();
}
std::unique_ptr<Iterator> NewIteratorOrExit(Worker* worker);
// With --explicit_snapshot, all iterators that follow see what is there now.
void PinSnapshotIfAsked(Worker* worker);
void MergeOrExit(Worker* worker, Slice key, Slice operand);
// `writes`: of this thread so far. What a deletion takes is in the latency of the write before it, and is no operation.
void DeleteRange(Worker* worker);
inline void DeleteRangeIfDue(Worker* worker, int64_t writes) {
  if (__builtin_expect(worker->flags.range_deletions.DueAt(writes), 0)) DeleteRange(worker);
}
// memcpy, called and not expanded: the compiler would leave a copy out that no one reads, or make it a string instruction, which
// takes longer to start than a step of an iterator.
extern void* (*volatile const copy_bytes)(void*, const void*, size_t);
// What a reader does with a value at least, up to 256 bytes.
inline void CopyValue(char (&copy)[256], Slice value) { copy_bytes(copy, value.data(), std::min(value.size(), sizeof copy)); }

// Reads
void ReadRandom(Worker* worker);
void MultiReadRandom(Worker* worker);
void ReadSequential(Worker* worker);
void ReadReverse(Worker* worker);
void SeekRandom(Worker* worker);
void ReadRandomFast(Worker* worker);
void NewIterators(Worker* worker);

// Reads beside a thread that writes, merges or scans
void ReadWhileWriting(Worker* worker);
void ReadWhileMerging(Worker* worker);
void ReadWhileScanning(Worker* worker);
void MultiReadWhileWriting(Worker* worker);
void SeekRandomWhileWriting(Worker* worker);
void SeekRandomWhileMerging(Worker* worker);
void NewIteratorsWhileWriting(Worker* worker);

// Reads and writes by one thread
void ReadRandomWriteRandom(Worker* worker);
void MergeRandom(Worker* worker);
void ReadRandomMergeRandom(Worker* worker);
void UpdateRandom(Worker* worker);

// Models of real workloads
void MixGraph(Worker* worker);
void YcsbLoad(Worker* worker);
void YcsbA(Worker* worker);
void YcsbB(Worker* worker);
void YcsbC(Worker* worker);
void YcsbD(Worker* worker);
void YcsbE(Worker* worker);
void YcsbF(Worker* worker);

// Administration
void Compact(Worker* worker);
void FlushMemtable(Worker* worker);
void WaitForCompaction(Worker* worker);
void VerifyChecksum(Worker* worker);
void PrintStats(Worker* worker);
void PrintLevels(Worker* worker);

// The memory's limits
Body PreparePmAppend(const Flags& flags);
Body PreparePmAppendStream(const Flags& flags);
Body PreparePmRead(const Flags& flags);
Body PreparePmReadIndependent(const Flags& flags);

}  // namespace braiddb::bench
