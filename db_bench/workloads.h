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
  // Runs in each thread.
  void (*body)(Worker*);
  // Starts with an empty database.
  bool fresh_db = false;
  // Changes the flags for this benchmark. May be null.
  void (*adjust)(Flags*) = nullptr;
  // Draws the random numbers of each thread. Null: DrawKeys.
  Draws (*draw)(const Flags& flags, uint64_t seed) = nullptr;
  // Used instead of body: prepares in the main thread, not timed, and returns the body. Such a benchmark needs no database.
  Body (*prepare)(const Flags&) = nullptr;
  // Used instead of body: measures the opening of the database.
  bool times_open = false;
  // Used instead of body: ends the process without closing the database. Another process continues with the next benchmark.
  bool ends_process = false;
};

const std::vector<Workload>& Workloads();
// Returns null for an unknown name.
const Workload* FindWorkload(std::string_view name);
// Whether the thread only reads, and so can be in another process (--reader_processes).
bool OnlyReads(const Workload& workload, uint32_t thread);
// The reason why a benchmark of RocksDB is missing. Null if RocksDB has no such benchmark either.
const char* WhyNoWorkload(std::string_view name);

// Writes
void FillSequential(Worker* worker);
void FillRandom(Worker* worker);
void FillUnique(Worker* worker);
void DeleteSequential(Worker* worker);
void DeleteRandom(Worker* worker);

// Common parts of the bodies
// Returns whether the key was found. Ends the process after an error.
inline bool GetOrExit(Worker* worker, Slice key, std::string* value) {
  const Status status = worker->db->Get(key, value);
  if (!status.ok() && !status.IsNotFound()) ExitWithError(status, "get");
  if (status.ok()) worker->Verify(key, *value);
  return status.ok();
}
std::unique_ptr<Iterator> NewIteratorOrExit(Worker* worker);
// With --explicit_snapshot, later iterators see the current state.
void PinSnapshotIfAsked(Worker* worker);
void MergeOrExit(Worker* worker, Slice key, Slice operand);
// `writes`: number of writes of this thread. A deletion is no operation; its time is part of the latency of the previous write.
void DeleteRange(Worker* worker);
inline void DeleteRangeIfDue(Worker* worker, int64_t writes) {
  if (__builtin_expect(worker->flags.range_deletions.DueAt(writes), 0)) DeleteRange(worker);
}
// Calls memcpy through a pointer. Otherwise the compiler would omit the unread copy, or use a string instruction with a long
// start-up time.
extern void* (*volatile const copy_bytes)(void*, const void*, size_t);
// The minimal work of a reader with a value: copies up to 256 bytes.
inline void CopyValue(char (&copy)[256], Slice value) { copy_bytes(copy, value.data(), std::min(value.size(), sizeof copy)); }

// Reads
void ReadRandom(Worker* worker);
void MultiReadRandom(Worker* worker);
void ReadSequential(Worker* worker);
void ReadReverse(Worker* worker);
void SeekRandom(Worker* worker);
void ReadRandomFast(Worker* worker);
void NewIterators(Worker* worker);

// Reads beside a thread that writes, merges, or scans
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

// Limits of the memory
Body PreparePmAppend(const Flags& flags);
Body PreparePmAppendStream(const Flags& flags);
Body PreparePmRead(const Flags& flags);
Body PreparePmReadIndependent(const Flags& flags);

}  // namespace braiddb::bench
