// Benchmarks that fill, overwrite and delete.
#include <algorithm>
#include <numeric>
#include <vector>

#include "braiddb/write_batch.h"
#include "db_bench/workloads.h"

namespace braiddb::bench {

namespace {

WriteOptions MakeWriteOptions(const Flags& flags) {
  WriteOptions options;
  options.sync = flags.sync;
  return options;
}

// Writes until the limit; `next_number` gives the number of each key.
template <class NextNumber>
void Fill(Worker* worker, OpLimit limit, NextNumber next_number) {
  const uint64_t batch_size = worker->flags.batch_size;
  const uint64_t update_bytes = worker->flags.key_size + worker->flags.value_size;
  const WriteOptions options = MakeWriteOptions(worker->flags);
  WriteBatch batch;
  uint64_t bytes = 0;
  while (!limit.Done(batch_size)) {
    worker->Pace(&worker->shared->write_rate, batch_size * update_bytes);
    if (batch_size == 1) {
      ExitOnError(worker->db->Put(options, worker->keys.Make(next_number()), worker->values.Make()), "put");
    } else {
      batch.Clear();
      for (uint64_t i = 0; i < batch_size; ++i) batch.Put(worker->keys.Make(next_number()), worker->values.Make());
      ExitOnError(worker->db->Write(options, batch), "put");
    }
    bytes += batch_size * update_bytes;
    worker->stats.FinishedOps(batch_size, Operation::kWrite);
  }
  worker->stats.AddBytes(bytes);
}

template <class NextNumber>
void Remove(Worker* worker, OpLimit limit, NextNumber next_number) {
  const uint64_t batch_size = worker->flags.batch_size;
  const WriteOptions options = MakeWriteOptions(worker->flags);
  WriteBatch batch;
  while (!limit.Done(batch_size)) {
    if (batch_size == 1) {
      ExitOnError(worker->db->Delete(options, worker->keys.Make(next_number())), "delete");
    } else {
      batch.Clear();
      for (uint64_t i = 0; i < batch_size; ++i) batch.Delete(worker->keys.Make(next_number()));
      ExitOnError(worker->db->Write(options, batch), "delete");
    }
    worker->stats.FinishedOps(batch_size, Operation::kDelete);
  }
}

}  // namespace

// In order there is no end but the count: --duration is for random order, as in RocksDB.
void FillSequential(Worker* worker) {
  uint64_t number = 0;
  Fill(worker, OpLimit(0, worker->flags.Writes()), [&] { return number++; });
}

void FillRandom(Worker* worker) {
  const auto keys = static_cast<uint64_t>(worker->flags.num);
  Fill(worker, OpLimit(worker->flags.duration, worker->flags.Writes()), [&] { return worker->random.Uniform(keys); });
}

// Every number below num once.
void FillUnique(Worker* worker) {
  std::vector<uint64_t> numbers(static_cast<size_t>(worker->flags.num));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[worker->random.Uniform(i)]);
  worker->stats.Start();  // again: the shuffle is not what is measured
  size_t next = 0;
  const uint64_t writes = std::min<uint64_t>(worker->flags.Writes(), numbers.size());
  Fill(worker, OpLimit(0, writes), [&] { return numbers[next++]; });
}

void DeleteSequential(Worker* worker) {
  uint64_t number = 0;
  Remove(worker, OpLimit(0, worker->flags.Deletes()), [&] { return number++; });
}

void DeleteRandom(Worker* worker) {
  const auto keys = static_cast<uint64_t>(worker->flags.num);
  Remove(worker, OpLimit(worker->flags.duration, worker->flags.Deletes()), [&] { return worker->random.Uniform(keys); });
}

}  // namespace braiddb::bench
