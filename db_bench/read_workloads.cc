// Benchmarks that read and scan.
#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "db_bench/workloads.h"
#include "util/format.h"

namespace braiddb::bench {

namespace {

template <class Start, class Step>
void Scan(Worker* worker, Start start, Step step) {
  const uint64_t reads = worker->flags.Reads();
  worker->stats.Expect(std::min(reads, static_cast<uint64_t>(worker->flags.num)), 0);
  PinSnapshotIfAsked(worker);
  const std::unique_ptr<Iterator> iterator = NewIteratorOrExit(worker);
  uint64_t bytes = 0;
  start(iterator.get());
  for (uint64_t i = 0; i < reads && iterator->Valid(); ++i) {
    bytes += iterator->key().size() + iterator->value().size();
    worker->Verify(iterator->key(), iterator->value());
    worker->stats.FinishedOps(1, Operation::kRead);
    step(iterator.get());
  }
  ExitOnError(iterator->status(), "iterator");
  worker->stats.AddBytes(bytes);
}

}  // namespace

std::unique_ptr<Iterator> NewIteratorOrExit(Worker* worker) {
  std::unique_ptr<Iterator> iterator = worker->db->NewIterator();
  if (iterator == nullptr) ExitOnError(Status::NotSupported("this engine has no order"), "iterator");
  return iterator;
}

void PinSnapshotIfAsked(Worker* worker) {
  if (worker->flags.explicit_snapshot) ExitOnError(worker->db->PinSnapshot(), "snapshot");
}

void* (*volatile const copy_bytes)(void*, const void*, size_t) = std::memcpy;

namespace {

// Calls `wait` before each read.
template <class Wait>
void ReadKeys(Worker* worker, Wait wait) {
  OpLimit limit = worker->Limit(worker->flags.Reads());
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

// Only reads: the drawn operation kind is ignored.
void YcsbC(Worker* worker) {
  ReadKeys(worker, [worker] { worker->KeepSchedule(&worker->shared->ycsb_rate); });
}

void MultiReadRandom(Worker* worker) {
  const auto keys = static_cast<uint64_t>(worker->flags.num);
  const uint64_t stride = worker->flags.multiread_stride;
  const uint64_t batch_size = worker->flags.batch_size;
  OpLimit limit = worker->Limit(worker->flags.Reads());
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
        worker->Verify(slices[i], values[i]);
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

// Draws keys below the next power of two, so up to half of them do not exist, as in RocksDB.
void ReadRandomFast(Worker* worker) {
  const auto keys = static_cast<uint64_t>(worker->flags.num);
  const uint64_t numbers = std::bit_ceil(keys);
  OpLimit limit = worker->Limit(worker->flags.Reads());
  std::string value;
  uint64_t read = 0, found = 0, beyond = 0;
  while (!limit.Done()) {
    worker->Pace(&worker->shared->read_rate, 1);
    const uint64_t number = worker->random.Uniform(numbers);
    if (number >= keys) ++beyond;
    if (GetOrExit(worker, worker->keys.Make(number), &value)) ++found;
    ++read;
    worker->stats.FinishedOps(1, Operation::kRead);
  }
  worker->stats.AddMessage(Format("(%llu of %llu found, issued %llu non-exist keys)", static_cast<unsigned long long>(found),
                                  static_cast<unsigned long long>(read), static_cast<unsigned long long>(beyond)));
}

namespace {

// The iterators of one seek of seekrandom, with the bounds of --max_scan_distance.
class SeekIterators {
 public:
  explicit SeekIterators(Worker* worker) : worker_(worker), bound_(worker->keys) {}

  std::unique_ptr<Iterator> Make(uint64_t sought) {
    const uint64_t distance = worker_->flags.max_scan_distance;
    if (distance == 0) return NewIteratorOrExit(worker_);
    std::unique_ptr<Iterator> iterator;
    if (worker_->flags.reverse_iterator) {
      iterator = worker_->db->NewBoundedIterator(bound_.Make(sought - std::min(sought, distance)), std::nullopt);
    } else {
      const uint64_t end = std::min(static_cast<uint64_t>(worker_->flags.num), sought + distance);
      iterator = worker_->db->NewBoundedIterator(std::nullopt, bound_.Make(end));
    }
    if (iterator == nullptr) ExitWithError(Status::NotSupported("this engine's iterators have no bounds"), "iterator");
    return iterator;
  }

 private:
  Worker* const worker_;
  KeyMaker bound_;
};

void Advance(Worker* worker, Iterator* iterator) {
  if (worker->flags.reverse_iterator) {
    iterator->Prev();
  } else {
    iterator->Next();
  }
}

}  // namespace

// Creates an iterator for each seek, as RocksDB does, so the creation is measured too.
void SeekRandom(Worker* worker) {
  const Flags& flags = worker->flags;
  PinSnapshotIfAsked(worker);
  SeekIterators iterators(worker);
  if (flags.seek_missing_prefix) worker->keys.MarkMissing();
  OpLimit limit = worker->Limit(flags.Reads());
  char copy[256];
  uint64_t read = 0, found = 0, bytes = 0;
  while (!limit.Done()) {
    worker->Pace(&worker->shared->read_rate, 1);
    const uint64_t number = worker->RandomNumber();
    const Slice key = worker->keys.Make(number);
    const std::unique_ptr<Iterator> iterator = iterators.Make(number);
    iterator->Seek(key);
    ++read;
    if (iterator->Valid() && iterator->key() == key) ++found;
    if (flags.verify && iterator->Valid()) worker->Verify(iterator->key(), iterator->value());
    for (uint64_t i = 0; i < flags.seek_nexts && iterator->Valid(); ++i) {
      const Slice value = iterator->value();
      CopyValue(copy, value);
      worker->Verify(iterator->key(), value);
      bytes += iterator->key().size() + value.size();
      Advance(worker, iterator.get());
    }
    for (uint64_t i = 0; i < flags.seek_nexts_to_delete && iterator->Valid(); ++i) {
      ExitOnError(worker->db->Delete(iterator->key()), "delete");
      Advance(worker, iterator.get());
    }
    ExitOnError(iterator->status(), "iterator");
    worker->stats.FinishedOps(1, Operation::kSeek);
  }
  worker->stats.AddBytes(bytes);
  worker->stats.AddFound(found, read);
}

void NewIterators(Worker* worker) {
  PinSnapshotIfAsked(worker);
  OpLimit limit = worker->Limit(worker->flags.Reads());
  while (!limit.Done()) {
    NewIteratorOrExit(worker);
    worker->stats.FinishedOps(1, Operation::kOther);
  }
}

}  // namespace braiddb::bench
