// Benchmarks that fill, overwrite, and delete.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "db_bench/workloads.h"

namespace braiddb::bench {

namespace {

// A batch of updates that owns the bytes of its keys.
class Batch {
 public:
  Batch(uint64_t size, const KeyMaker& keys) : keys_(size, keys), updates_(size) {}

  template <class NextNumber>
  const std::vector<Update>& Puts(NextNumber next_number, ValueMaker* values) {
    for (size_t i = 0; i < updates_.size(); ++i) {
      const Slice key = keys_[i].Make(next_number());
      updates_[i] = {key, values->Make(key), false};
    }
    return updates_;
  }
  template <class NextNumber>
  const std::vector<Update>& Removals(NextNumber next_number) {
    for (size_t i = 0; i < updates_.size(); ++i) updates_[i] = {keys_[i].Make(next_number()), {}, true};
    return updates_;
  }

 private:
  std::vector<KeyMaker> keys_;
  std::vector<Update> updates_;
};

// Writes until the limit. `next_number` returns the number of each key.
template <class NextNumber>
void Fill(Worker* worker, OpLimit limit, NextNumber next_number) {
  const uint64_t batch_size = worker->flags.batch_size;
  const uint64_t update_bytes = worker->flags.key_size + worker->flags.value_size;
  Batch batch(batch_size, worker->keys);
  uint64_t bytes = 0;
  const bool deletes_ranges = worker->flags.range_deletions.writes_between > 0;
  int64_t written = 0;
  // RocksDB's text, although the number counts keys.
  if (worker->flags.fewer_keys) worker->stats.AddMessage("(" + std::to_string(worker->flags.num) + " ops)");
  while (!limit.Done(batch_size)) {
    worker->Pace(&worker->shared->write_rate, batch_size * update_bytes);
    if (batch_size == 1) {
      const Slice key = worker->keys.Make(next_number());
      ExitOnError(worker->db->Put(key, worker->values.Make(key)), "put");
    } else {
      ExitOnError(worker->db->Write(batch.Puts(next_number, &worker->values)), "put");
    }
    bytes += batch_size * update_bytes;
    for (uint64_t i = 0; i < batch_size && deletes_ranges; ++i) DeleteRangeIfDue(worker, ++written);
    worker->stats.FinishedOps(batch_size, Operation::kWrite);
  }
  worker->stats.AddBytes(bytes);
  worker->stats.AddWritten(bytes);
}

template <class NextNumber>
void Remove(Worker* worker, OpLimit limit, NextNumber next_number) {
  const uint64_t batch_size = worker->flags.batch_size;
  Batch batch(batch_size, worker->keys);
  while (!limit.Done(batch_size)) {
    if (batch_size == 1) {
      ExitOnError(worker->db->Delete(worker->keys.Make(next_number())), "delete");
    } else {
      ExitOnError(worker->db->Write(batch.Removals(next_number)), "delete");
    }
    worker->stats.FinishedOps(batch_size, Operation::kDelete);
  }
  worker->stats.AddWritten(worker->stats.done() * worker->flags.key_size);
}

}  // namespace

void DeleteRange(Worker* worker) {
  const RangeDeletions& ranges = worker->flags.range_deletions;
  const uint64_t first = worker->random.Uniform(static_cast<uint64_t>(worker->flags.num));
  KeyMaker begin(worker->keys), end(worker->keys);
  if (!ranges.expand) {
    ExitOnError(worker->db->DeleteRange(begin.Make(first), end.Make(first + ranges.width)), "delete range");
    return;
  }
  for (uint64_t i = 0; i < ranges.width; ++i) ExitOnError(worker->db->Delete(begin.Make(first + i)), "delete");
}

// In sequential order only the count ends the benchmark. --duration applies to random order, as in RocksDB.
void FillSequential(Worker* worker) {
  uint64_t number = 0;
  Fill(worker, worker->CountedLimit(worker->flags.Writes()), [&] { return number++; });
}

void FillRandom(Worker* worker) {
  const auto keys = static_cast<uint64_t>(worker->flags.num);
  Fill(worker, worker->Limit(worker->flags.Writes()), [&] { return worker->random.Uniform(keys); });
}

// Writes each number below num once.
void FillUnique(Worker* worker) {
  std::vector<uint64_t> numbers(static_cast<size_t>(worker->flags.num));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[worker->random.Uniform(i)]);
  worker->stats.Start();  // restarted: the shuffle is not measured
  size_t next = 0;
  const uint64_t writes = std::min<uint64_t>(worker->flags.Writes(), numbers.size());
  Fill(worker, worker->CountedLimit(writes), [&] { return numbers[next++]; });
}

void DeleteSequential(Worker* worker) {
  uint64_t number = 0;
  Remove(worker, worker->CountedLimit(worker->flags.Deletes()), [&] { return number++; });
}

void DeleteRandom(Worker* worker) {
  const auto keys = static_cast<uint64_t>(worker->flags.num);
  Remove(worker, worker->Limit(worker->flags.Deletes()), [&] { return worker->random.Uniform(keys); });
}

}  // namespace braiddb::bench
