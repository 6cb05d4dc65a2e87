// Benchmarks that read, scan, and read beside a writer.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "db_bench/workloads.h"
#include "util/format.h"

namespace braiddb::bench {

namespace {

template <class Start, class Step>
void Scan(Worker* worker, Start start, Step step) {
  const uint64_t reads = worker->flags.Reads();
  const std::unique_ptr<Iterator> iterator = NewIteratorOrExit(worker);
  uint64_t bytes = 0;
  start(iterator.get());
  for (uint64_t i = 0; i < reads && iterator->Valid(); ++i) {
    bytes += iterator->key().size() + iterator->value().size();
    worker->stats.FinishedOps(1, Operation::kRead);
    step(iterator.get());
  }
  ExitOnError(iterator->status(), "iterator");
  worker->stats.AddBytes(bytes);
}

// Overwrites until all other threads of the benchmark have finished. Not in the report's line, but in its message.
void WriteInBackground(Worker* worker) {
  worker->exclude_from_report = true;
  const uint64_t bytes = worker->flags.key_size + worker->flags.value_size;
  while (worker->shared->finished.load(std::memory_order_relaxed) + 1 < worker->flags.threads) {
    worker->Pace(&worker->shared->write_rate, bytes);
    const Slice key = worker->RandomKey();
    ExitOnError(worker->db->Put(key, worker->values.Make()), "put");
    worker->stats.FinishedOps(1, Operation::kWrite);
  }
  worker->stats.AddWritten(worker->stats.done() * bytes);
}

// Runs to the end again and again, until all other threads of the benchmark have finished.
void ScanInBackground(Worker* worker) {
  worker->exclude_from_report = true;
  std::unique_ptr<Iterator> iterator;
  while (worker->shared->finished.load(std::memory_order_relaxed) + 1 < worker->flags.threads) {
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

}  // namespace

std::unique_ptr<Iterator> NewIteratorOrExit(Worker* worker) {
  std::unique_ptr<Iterator> iterator = worker->db->NewIterator();
  if (iterator == nullptr) ExitOnError(Status::NotSupported("this engine has no order"), "iterator");
  return iterator;
}

void* (*volatile const copy_bytes)(void*, const void*, size_t) = std::memcpy;

namespace {

// `wait` is asked before each read.
template <class Wait>
void ReadKeys(Worker* worker, Wait wait) {
  OpLimit limit(worker->flags.duration, worker->flags.Reads());
  std::string value;
  uint64_t read = 0, found = 0, bytes = 0;
  while (!limit.Done()) {
    wait();
    const Slice key = worker->RandomKey();
    ++read;
    if (GetOrExit(worker, key, &value)) {
      ++found;
      bytes += key.size() + value.size();
    }
    worker->stats.FinishedOps(1, Operation::kRead);
  }
  worker->stats.AddBytes(bytes);
  worker->stats.AddFound(found, read);
}

}  // namespace

void ReadRandom(Worker* worker) {
  ReadKeys(worker, [worker] { worker->Pace(&worker->shared->read_rate, 1); });
}

// Reads only: which operation a draw is for is not looked at.
void YcsbC(Worker* worker) {
  ReadKeys(worker, [worker] { worker->KeepSchedule(&worker->shared->ycsb_rate); });
}

void MultiReadRandom(Worker* worker) {
  const auto keys = static_cast<uint64_t>(worker->flags.num);
  const uint64_t stride = worker->flags.multiread_stride;
  const uint64_t batch_size = worker->flags.batch_size;
  OpLimit limit(worker->flags.duration, worker->flags.Reads());
  std::vector<KeyMaker> makers(batch_size, worker->keys);
  std::vector<Slice> slices(batch_size);
  std::vector<std::string> values;
  std::vector<Status> statuses;
  uint64_t read = 0, found = 0, bytes = 0;
  while (!limit.Done(batch_size)) {
    worker->Pace(&worker->shared->read_rate, batch_size);
    const uint64_t first = worker->RandomNumber();
    for (uint64_t i = 0; i < batch_size; ++i) {
      const uint64_t number = stride > 0 ? (first + i * stride) % keys : i == 0 ? first : worker->RandomNumber();
      slices[i] = makers[i].Make(number);
    }
    worker->db->MultiGet(slices, &values, &statuses);
    for (uint64_t i = 0; i < batch_size; ++i) {
      ++read;
      if (statuses[i].ok()) {
        ++found;
        bytes += slices[i].size() + values[i].size();
      } else if (!statuses[i].IsNotFound()) {
        ExitOnError(statuses[i], "multiget");
      }
    }
    worker->stats.FinishedOps(batch_size, Operation::kRead);
  }
  worker->stats.AddBytes(bytes);
  worker->stats.AddFound(found, read);
}

void ReadSequential(Worker* worker) {
  Scan(
      worker, [](Iterator* iterator) { iterator->SeekToFirst(); }, [](Iterator* iterator) { iterator->Next(); });
}

void ReadReverse(Worker* worker) {
  Scan(
      worker, [](Iterator* iterator) { iterator->SeekToLast(); }, [](Iterator* iterator) { iterator->Prev(); });
}

// A new iterator for each seek, as in RocksDB: so making one is part of what is measured.
void SeekRandom(Worker* worker) {
  OpLimit limit(worker->flags.duration, worker->flags.Reads());
  char copy[256];
  uint64_t read = 0, found = 0, bytes = 0;
  while (!limit.Done()) {
    worker->Pace(&worker->shared->read_rate, 1);
    const Slice key = worker->RandomKey();
    const std::unique_ptr<Iterator> iterator = NewIteratorOrExit(worker);
    iterator->Seek(key);
    ++read;
    if (iterator->Valid() && iterator->key() == key) ++found;
    for (uint64_t i = 0; i < worker->flags.seek_nexts && iterator->Valid(); ++i) {
      const Slice value = iterator->value();
      CopyValue(copy, value);
      bytes += iterator->key().size() + value.size();
      if (worker->flags.reverse_iterator) {
        iterator->Prev();
      } else {
        iterator->Next();
      }
    }
    ExitOnError(iterator->status(), "iterator");
    worker->stats.FinishedOps(1, Operation::kSeek);
  }
  worker->stats.AddBytes(bytes);
  worker->stats.AddFound(found, read);
}

void ReadWhileWriting(Worker* worker) {
  if (worker->id == 0) {
    WriteInBackground(worker);
  } else {
    ReadRandom(worker);
  }
}

void SeekRandomWhileWriting(Worker* worker) {
  if (worker->id == 0) {
    WriteInBackground(worker);
  } else {
    SeekRandom(worker);
  }
}

void ReadWhileScanning(Worker* worker) {
  if (worker->id == 0) {
    ScanInBackground(worker);
  } else {
    ReadRandom(worker);
  }
}

void NewIterators(Worker* worker) {
  OpLimit limit(worker->flags.duration, worker->flags.Reads());
  while (!limit.Done()) {
    NewIteratorOrExit(worker);
    worker->stats.FinishedOps(1, Operation::kOther);
  }
}

void NewIteratorsWhileWriting(Worker* worker) {
  if (worker->id == 0) {
    WriteInBackground(worker);
  } else {
    NewIterators(worker);
  }
}

// A get and a put of the same key, timed as one.
void UpdateRandom(Worker* worker) {
  OpLimit limit(worker->flags.duration, worker->flags.Reads());
  std::string value;
  uint64_t updates = 0, found = 0, bytes = 0;
  while (!limit.Done()) {
    worker->Pace(&worker->shared->write_rate, worker->flags.key_size + worker->flags.value_size);
    const Slice key = worker->RandomKey();
    if (GetOrExit(worker, key, &value)) {
      ++found;
      bytes += key.size() + value.size();
    }
    ExitOnError(worker->db->Put(key, worker->values.Make()), "put");
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
  OpLimit limit(worker->flags.duration, worker->flags.Reads());
  std::string value;
  uint64_t reads = 0, writes = 0, found = 0;
  while (!limit.Done()) {
    const Slice key = worker->RandomKey();
    if (worker->random.Uniform(100) < worker->flags.readwritepercent) {
      if (GetOrExit(worker, key, &value)) ++found;
      ++reads;
      worker->stats.FinishedOps(1, Operation::kRead);
    } else {
      ExitOnError(worker->db->Put(key, worker->values.Make()), "put");
      ++writes;
      worker->stats.FinishedOps(1, Operation::kWrite);
    }
  }
  worker->stats.AddWritten(writes * (worker->flags.key_size + worker->flags.value_size));
  worker->stats.AddMessage(Format("( reads:%llu writes:%llu total:%llu found:%llu)", static_cast<unsigned long long>(reads),
                                  static_cast<unsigned long long>(writes), static_cast<unsigned long long>(worker->flags.Reads()),
                                  static_cast<unsigned long long>(found)));
}

}  // namespace braiddb::bench
