// mixgraph: RocksDB's benchmark of gets, puts, and scans.
#include <algorithm>
#include <cstring>
#include <string>

#include "db_bench/workloads.h"
#include "util/format.h"

namespace braiddb::bench {

namespace {

struct Counts {
  uint64_t gets = 0, puts = 0, seeks = 0, found = 0, bytes = 0;
  uint64_t value_bytes = 0;  // of puts
  uint64_t steps = 0;        // of scans
};

void Scan(Worker* worker, const MixQuery& query, Counts* counts) {
  char copy[256];
  const Slice key = worker->keys.Make(query.key);
  const std::unique_ptr<Iterator> iterator = NewIteratorOrExit(worker);
  iterator->Seek(key);
  if (iterator->Valid() && iterator->key() == key) ++counts->found;
  uint32_t steps = 0;
  for (; steps < query.length && iterator->Valid(); ++steps) {
    const Slice value = iterator->value();
    CopyValue(copy, value);
    worker->Verify(iterator->key(), value);
    counts->bytes += iterator->key().size() + value.size();
    iterator->Next();
  }
  ExitOnError(iterator->status(), "iterator");
  ++counts->seeks;
  counts->steps += steps;
}

Status PutMixed(Worker* worker, const MixQuery& query) {
  const Slice key = worker->keys.Make(query.key);
  return worker->db->Put(key, worker->values.Make(key, query.length));
}

void Report(const Counts& counts, Worker* worker) {
  const uint64_t reads = counts.gets + counts.seeks;
  const auto average = [](uint64_t sum, uint64_t count) {
    return static_cast<double>(sum) / static_cast<double>(std::max<uint64_t>(count, 1));
  };
  worker->stats.AddBytes(counts.bytes);
  worker->stats.AddWritten(counts.puts * worker->flags.key_size + counts.value_bytes);
  worker->stats.AddMessage(Format("( Gets:%llu Puts:%llu Seek:%llu, reads %llu in %llu found, avg size: %.1f value, %.1f scan)",
                                  static_cast<unsigned long long>(counts.gets), static_cast<unsigned long long>(counts.puts),
                                  static_cast<unsigned long long>(counts.seeks), static_cast<unsigned long long>(counts.found),
                                  static_cast<unsigned long long>(reads), average(counts.value_bytes, counts.puts),
                                  average(counts.steps, counts.seeks)));
}

// Waits for the rate. Reads and writes count separately.
void KeepPace(Worker* worker, bool is_write, uint64_t done) {
  if (!worker->shared->sine.active() || done % SinePace::kOperations != 0) return;
  if (is_write) {
    worker->shared->sine.RequestWrites();
  } else {
    worker->shared->sine.RequestReads();
  }
  worker->stats.ResetLastOpTime();
}

}  // namespace

void MixGraph(Worker* worker) {
  OpLimit limit = worker->Limit(worker->flags.Reads());
  const std::vector<MixQuery>& queries = worker->draws.queries;
  std::string value;
  Counts counts;
  for (size_t next = 0; !limit.Done(); next = next + 1 == queries.size() ? 0 : next + 1) {
    const MixQuery& query = queries[next];
    const bool is_write = query.operation == MixOperation::kPut;
    if (is_write) {
      worker->Pace(&worker->shared->write_rate, worker->flags.key_size + query.length);
    } else {
      worker->Pace(&worker->shared->read_rate, 1);
    }
    switch (query.operation) {
      case MixOperation::kGet: {
        const Slice key = worker->keys.Make(query.key);
        if (GetOrExit(worker, key, &value)) {
          ++counts.found;
          counts.bytes += key.size() + value.size();
        }
        ++counts.gets;
        worker->stats.FinishedOps(1, Operation::kRead);
        break;
      }
      case MixOperation::kPut:
        ExitOnError(PutMixed(worker, query), "put");
        counts.value_bytes += query.length;
        counts.bytes += worker->flags.key_size + query.length;
        ++counts.puts;
        worker->stats.FinishedOps(1, Operation::kWrite);
        break;
      case MixOperation::kSeek:
        Scan(worker, query, &counts);
        worker->stats.FinishedOps(1, Operation::kSeek);
        break;
    }
    KeepPace(worker, is_write, is_write ? counts.puts : counts.gets + counts.seeks);
  }
  Report(counts, worker);
}

}  // namespace braiddb::bench
