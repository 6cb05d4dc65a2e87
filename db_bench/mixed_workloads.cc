// Benchmarks that read and write: in one thread, or beside a background thread that writes, merges, or scans.
#include <algorithm>
#include <cstdio>
#include <string>

#include "db_bench/workloads.h"
#include "util/format.h"

namespace braiddb::bench {

namespace {

bool OthersHaveFinished(const Worker& worker) {
  return worker.shared->finished.load(std::memory_order_relaxed) + 1 >= worker.flags.threads;
}

// Writes until all other threads have finished, or with --finish_after_writes until --writes are done. Excluded from the report
// line; its rate is in the message. `write` takes a key.
template <class Write>
void WriteInBackground(Worker* worker, Operation operation, Write write) {
  worker->exclude_from_report = true;
  const Flags& flags = worker->flags;
  const uint64_t bytes = flags.key_size + flags.value_size;
  const uint64_t writes = flags.finish_after_writes ? flags.Writes() : UINT64_MAX;
  uint64_t written = 0;
  for (; written < writes && (flags.finish_after_writes || !OthersHaveFinished(*worker)); ++written) {
    worker->Pace(&worker->shared->write_rate, bytes);
    const uint64_t number = flags.bgwriter_num > 0 ? worker->random.Uniform(flags.bgwriter_num) : worker->RandomNumber();
    write(worker->keys.Make(number));
    DeleteRangeIfDue(worker, static_cast<int64_t>(written + 1));
    worker->stats.FinishedOps(1, operation);
  }
  if (flags.finish_after_writes) {
    std::fprintf(stderr, "Exiting the writer after %llu writes...\n", static_cast<unsigned long long>(written));
  }
  worker->stats.AddWritten(written * bytes);
}

void PutInBackground(Worker* worker) {
  WriteInBackground(worker, Operation::kWrite,
                    [worker](Slice key) { ExitOnError(worker->db->Put(key, worker->values.Make(key)), "put"); });
}

void MergeInBackground(Worker* worker) {
  WriteInBackground(worker, Operation::kMerge, [worker](Slice key) { MergeOrExit(worker, key, worker->values.Make(key)); });
}

// Scans the whole database repeatedly until all other threads have finished.
void ScanInBackground(Worker* worker) {
  worker->exclude_from_report = true;
  std::unique_ptr<Iterator> iterator;
  while (!OthersHaveFinished(*worker)) {
    if (iterator == nullptr || !iterator->Valid()) {
      if (iterator != nullptr) ExitOnError(iterator->status(), "iterator");
      iterator = NewIteratorOrExit(worker);
      iterator->SeekToFirst();
    } else {
      iterator->Next();
    }
    worker->stats.FinishedOps(1, Operation::kSeek);
  }
}

// The first thread runs `background`, the other threads run `body`.
void Beside(Worker* worker, void (*background)(Worker*), void (*body)(Worker*)) {
  if (worker->id == 0) {
    background(worker);
  } else {
    body(worker);
  }
}

}  // namespace

void MergeOrExit(Worker* worker, Slice key, Slice operand) {
  if (worker->flags.merge_operator.empty()) ExitWithError(Status::InvalidArgument("--merge_operator names none"), "merge");
  ExitOnError(worker->db->Merge(key, operand), "merge");
}

void ReadWhileWriting(Worker* worker) { Beside(worker, PutInBackground, ReadRandom); }
void ReadWhileMerging(Worker* worker) { Beside(worker, MergeInBackground, ReadRandom); }
void ReadWhileScanning(Worker* worker) { Beside(worker, ScanInBackground, ReadRandom); }
void MultiReadWhileWriting(Worker* worker) { Beside(worker, PutInBackground, MultiReadRandom); }
void SeekRandomWhileWriting(Worker* worker) { Beside(worker, PutInBackground, SeekRandom); }
void SeekRandomWhileMerging(Worker* worker) { Beside(worker, MergeInBackground, SeekRandom); }
void NewIteratorsWhileWriting(Worker* worker) { Beside(worker, PutInBackground, NewIterators); }

// A get and a put of the same key, timed as one operation.
void UpdateRandom(Worker* worker) {
  OpLimit limit = worker->Limit(worker->flags.ReadWrites());
  std::string value;
  uint64_t updates = 0, found = 0, bytes = 0;
  while (!limit.Done()) {
    worker->Pace(&worker->shared->write_rate, worker->flags.key_size + worker->flags.value_size);
    const Slice key = worker->RandomKey();
    if (GetOrExit(worker, key, &value)) {
      ++found;
      bytes += key.size() + value.size();
    }
    ExitOnError(worker->db->Put(key, worker->values.Make(key)), "put");
    bytes += worker->flags.key_size + worker->flags.value_size;
    ++updates;
    worker->stats.FinishedOps(1, Operation::kUpdate);
  }
  worker->stats.AddBytes(bytes);
  worker->stats.AddWritten(updates * (worker->flags.key_size + worker->flags.value_size));
  worker->stats.AddMessage(
      Format("( updates:%llu found:%llu)", static_cast<unsigned long long>(updates), static_cast<unsigned long long>(found)));
}

void ReadRandomWriteRandom(Worker* worker) {
  OpLimit limit = worker->Limit(worker->flags.ReadWrites());
  std::string value;
  uint64_t reads = 0, writes = 0, found = 0;
  while (!limit.Done()) {
    const Slice key = worker->RandomKey();
    // Of each hundred operations first the reads, then the writes, as in RocksDB.
    if ((reads + writes) % 100 < worker->flags.readwritepercent) {
      if (GetOrExit(worker, key, &value)) ++found;
      ++reads;
      worker->stats.FinishedOps(1, Operation::kRead);
    } else {
      ExitOnError(worker->db->Put(key, worker->values.Make(key)), "put");
      ++writes;
      worker->stats.FinishedOps(1, Operation::kWrite);
    }
  }
  worker->stats.AddWritten(writes * (worker->flags.key_size + worker->flags.value_size));
  worker->stats.AddMessage(Format("( reads:%llu writes:%llu total:%llu found:%llu)", static_cast<unsigned long long>(reads),
                                  static_cast<unsigned long long>(writes),
                                  static_cast<unsigned long long>(worker->flags.ReadWrites()),
                                  static_cast<unsigned long long>(found)));
}

void MergeRandom(Worker* worker) {
  OpLimit limit = worker->Limit(worker->flags.ReadWrites());
  const uint64_t operand_bytes = worker->flags.key_size + worker->flags.value_size;
  uint64_t merges = 0;
  for (; !limit.Done(); ++merges) {
    worker->Pace(&worker->shared->write_rate, operand_bytes);
    const Slice key = worker->keys.Make(worker->random.Uniform(worker->flags.merge_keys));
    MergeOrExit(worker, key, worker->values.Make(key));
    worker->stats.FinishedOps(1, Operation::kMerge);
  }
  worker->stats.AddBytes(merges * operand_bytes);
  worker->stats.AddWritten(merges * operand_bytes);
  worker->stats.AddMessage(Format("( updates:%llu)", static_cast<unsigned long long>(merges)));
}

void ReadRandomMergeRandom(Worker* worker) {
  OpLimit limit = worker->Limit(worker->flags.ReadWrites());
  std::string value;
  uint64_t reads = 0, merges = 0, found = 0;
  size_t longest = 0;
  while (!limit.Done()) {
    const Slice key = worker->keys.Make(worker->random.Uniform(worker->flags.merge_keys));
    if (worker->random.Uniform(100) < worker->flags.mergereadpercent) {
      MergeOrExit(worker, key, worker->values.Make(key));
      ++merges;
      worker->stats.FinishedOps(1, Operation::kMerge);
    } else {
      if (GetOrExit(worker, key, &value)) {
        ++found;
        longest = std::max(longest, value.size());
      }
      ++reads;
      worker->stats.FinishedOps(1, Operation::kRead);
    }
  }
  worker->stats.AddWritten(merges * (worker->flags.key_size + worker->flags.value_size));
  worker->stats.AddMessage(Format("(reads:%llu merges:%llu total:%llu hits:%llu maxlength:%llu)",
                                  static_cast<unsigned long long>(reads), static_cast<unsigned long long>(merges),
                                  static_cast<unsigned long long>(worker->flags.ReadWrites()),
                                  static_cast<unsigned long long>(found), static_cast<unsigned long long>(longest)));
}

}  // namespace braiddb::bench
