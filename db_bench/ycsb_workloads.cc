// The core workloads of YCSB (Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC '10), by its properties files:
// ycsb_load, ycsb_a to ycsb_f. A record is one key and one value of --value_size bytes (YCSB: 1000). The key is the hash of the
// record's number, so records that are neighbours in popularity or age are not neighbours in key order. ycsb_c only reads and is
// in read_workloads.cc.
#include <algorithm>
#include <string>

#include "db_bench/workloads.h"
#include "util/format.h"

namespace braiddb::bench {

namespace {

enum class Choice : uint8_t { kZipf, kLatest };

// Percentages. The remainder to 100 are reads.
struct Mix {
  uint32_t updates = 0, inserts = 0, scans = 0, read_modify_writes = 0;
  Choice choice = Choice::kZipf;
};

constexpr uint64_t kMostScanned = 100;  // records; scan lengths are uniform from 1 to this

Slice RecordKey(Worker* worker, uint64_t record) { return worker->keys.Make(YcsbKey(worker->flags, record)); }

class YcsbThread {
 public:
  YcsbThread(Worker* worker, const Mix& mix)
      : worker_(worker), mix_(mix), first_insert_(worker->shared->ycsb->count.load(std::memory_order_relaxed)) {}

  void Run() {
    OpLimit limit = worker_->Limit(worker_->flags.Reads());
    const Draws& draws = worker_->draws;
    for (size_t next = 0; !limit.Done(); next = next + 1 == draws.keys.size() ? 0 : next + 1) {
      const uint64_t draw = draws.keys[next];
      const uint32_t percent = draws.percents[next];
      worker_->KeepSchedule(&worker_->shared->ycsb_rate);
      if (percent < mix_.updates) {
        Put(KeyOf(draw), Operation::kUpdate);
      } else if (percent < mix_.updates + mix_.inserts) {
        Insert();
      } else if (percent < mix_.updates + mix_.inserts + mix_.scans) {
        Scan(KeyOf(draw));
      } else if (percent < mix_.updates + mix_.inserts + mix_.scans + mix_.read_modify_writes) {
        ReadModifyWrite(KeyOf(draw));
      } else {
        Get(KeyOf(draw));
        worker_->stats.FinishedOps(1, Operation::kRead);
      }
    }
    worker_->stats.AddBytes(bytes_);
    worker_->stats.AddWritten(written_);
    worker_->stats.AddFound(found_, looked_up_);
  }

 private:
  Slice KeyOf(uint64_t draw) const {
    if (mix_.choice == Choice::kZipf) return worker_->keys.Make(draw);
    // The draw is a rank: the newest record is the most popular. Ranks cover the records that are known to exist.
    return RecordKey(worker_, worker_->shared->ycsb->count.load(std::memory_order_relaxed) - 1 - draw);
  }

  void Get(Slice key) {
    ++looked_up_;
    if (!GetOrExit(worker_, key, &value_)) return;
    ++found_;
    bytes_ += key.size() + value_.size();
  }

  void Put(Slice key, Operation operation) {
    const Slice value = worker_->values.Make(key);
    ExitOnError(worker_->db->Put(key, value), "put");
    bytes_ += key.size() + value.size();
    written_ += key.size() + value.size();
    worker_->stats.FinishedOps(1, operation);
  }

  void ReadModifyWrite(Slice key) {
    Get(key);
    Put(key, Operation::kReadModifyWrite);
  }

  // Threads insert numbers in turn. All numbers below a bound exist when each thread has inserted its share of them.
  void Insert() {
    const uint64_t threads = worker_->flags.threads;
    std::vector<std::atomic<uint64_t>>& inserted = worker_->shared->ycsb_inserted;
    const uint64_t mine = inserted[worker_->id].load(std::memory_order_relaxed);
    Put(RecordKey(worker_, first_insert_ + mine * threads + worker_->id), Operation::kInsert);
    inserted[worker_->id].store(mine + 1, std::memory_order_relaxed);
    uint64_t least = UINT64_MAX;
    for (const std::atomic<uint64_t>& count : inserted) least = std::min(least, count.load(std::memory_order_relaxed));
    std::atomic<uint64_t>& records = worker_->shared->ycsb->count;
    uint64_t known = records.load(std::memory_order_relaxed);
    const uint64_t complete = first_insert_ + least * threads;
    while (known < complete && !records.compare_exchange_weak(known, complete, std::memory_order_relaxed)) {
    }
  }

  void Scan(Slice key) {
    char copy[256];
    const uint64_t length = 1 + worker_->random.Uniform(kMostScanned);
    const std::unique_ptr<Iterator> iterator = NewIteratorOrExit(worker_);
    iterator->Seek(key);
    ++looked_up_;
    if (iterator->Valid() && iterator->key() == key) ++found_;
    for (uint64_t i = 0; i < length && iterator->Valid(); ++i) {
      const Slice value = iterator->value();
      CopyValue(copy, value);
      worker_->Verify(iterator->key(), value);
      bytes_ += iterator->key().size() + value.size();
      iterator->Next();
    }
    ExitOnError(iterator->status(), "iterator");
    worker_->stats.FinishedOps(1, Operation::kScan);
  }

  Worker* const worker_;
  const Mix mix_;
  const uint64_t first_insert_;
  std::string value_;
  uint64_t found_ = 0, looked_up_ = 0, bytes_ = 0, written_ = 0;
};

void Run(Worker* worker, const Mix& mix) { YcsbThread(worker, mix).Run(); }

}  // namespace

// Each thread loads its share of --num records.
void YcsbLoad(Worker* worker) {
  const auto records = static_cast<uint64_t>(worker->flags.num);
  uint64_t bytes = 0;
  for (uint64_t record = worker->id; record < records; record += worker->flags.threads) {
    worker->KeepSchedule(&worker->shared->ycsb_rate);
    const Slice key = RecordKey(worker, record), value = worker->values.Make(key);
    ExitOnError(worker->db->Put(key, value), "put");
    bytes += key.size() + value.size();
    worker->stats.FinishedOps(1, Operation::kInsert);
  }
  worker->stats.AddBytes(bytes);
  worker->stats.AddWritten(bytes);
}

void YcsbA(Worker* worker) { Run(worker, {.updates = 50}); }
void YcsbB(Worker* worker) { Run(worker, {.updates = 5}); }
void YcsbD(Worker* worker) { Run(worker, {.inserts = 5, .choice = Choice::kLatest}); }
void YcsbE(Worker* worker) { Run(worker, {.inserts = 5, .scans = 95}); }
void YcsbF(Worker* worker) { Run(worker, {.read_modify_writes = 50}); }

}  // namespace braiddb::bench
