#include "index_bench/workload.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "pmem/write_counter.h"
#include "util/random.h"

namespace braiddb {
namespace {

constexpr uint64_t kSegmentSize = 8ull << 20;
// Number of turns for each pair of benchmark and tree.
constexpr uint64_t kTurns = 50;

// A tree and the operations on it. A key is a bijection of its number, so all keys differ.
class Workload {
 public:
  Workload(const IndexBenchFlags& flags, IndexKind kind) : flags_(flags), kind_(kind), random_(flags.seed) {
    region_options_.database_path = flags.path + "/" + NameOf(kind);
    region_options_.regions = 1;
    region_options_.persist_mode =
        flags.flush_invalidates || flags.write_latency_ns != 0 ? PersistMode::kEmulated : PersistMode::kAuto;
    region_options_.emulation.flush_invalidates = flags.flush_invalidates;
    region_options_.emulation.write_latency_ns = flags.write_latency_ns;
  }

  Status Create(uint32_t node_bytes) {
    std::error_code error;
    std::filesystem::create_directories(region_options_.database_path, error);
    Status status = RegionSet::Create(region_options_, &regions_);
    is_there_ = status.ok();
    if (status.ok()) status = SegmentAllocator::Open(regions_.get(), kSegmentSize, &segments_);
    return status.ok() ? NewIndex(kind_, regions_.get(), segments_.get(), node_bytes, &index_) : status;
  }

  // Removes only what Create has made.
  Status Remove() {
    index_.reset();
    segments_.reset();
    regions_.reset();
    Status status;
    if (is_there_) status = RegionSet::Destroy(region_options_);
    std::error_code error;
    std::filesystem::remove(region_options_.database_path, error);
    return status;
  }

  // Draws the operations of a benchmark.
  Status Prepare(const std::string& benchmark) {
    order_.resize(flags_.num);
    std::iota(order_.begin(), order_.end(), 0);
    for (uint64_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random_.Uniform(i)]);
    kinds_.clear();
    if (benchmark == "insert" || benchmark == "dense" || benchmark == "load") {
      first_ = std::exchange(next_, next_ + flags_.num);
      is_dense_ = benchmark == "dense";
      has_keys_ = true;
    }
    sorted_.clear();
    if (benchmark == "load") {
      for (uint64_t i = 0; i < flags_.num; ++i) sorted_.push_back({Key(i), i});
      std::sort(sorted_.begin(), sorted_.end());
    }
    if (!has_keys_) return Status::InvalidArgument(benchmark + " needs keys: run load, insert or dense before it");
    if (benchmark == "delete") has_keys_ = false;
    if (benchmark != "mixed") return Status::OK();
    for (uint64_t i = 0; i < flags_.num; ++i) kinds_.push_back(random_.Uniform(100) < flags_.insert_percent);
    return Status::OK();
  }

  // Runs the operations [begin, end) of the benchmark and adds them to the measurement.
  Status Run(uint64_t begin, uint64_t end, bool count, IndexMeasurement* measurement) {
    WriteCounter counter;
    if (count) regions_->persistence()->SetObserver(&counter);
    const auto start = std::chrono::steady_clock::now();
    Status status;
    if (measurement->benchmark != "load") {
      status = Operate(measurement->benchmark, std::span(order_).subspan(begin, end - begin));
    } else if (begin == 0) {  // all keys at once, in the first turn
      status = index_->BulkLoad(sorted_, flags_.fill_percent / 100.0);
    }
    measurement->seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    regions_->persistence()->SetObserver(nullptr);
    measurement->operations += end - begin;
    const PmWrites writes = counter.writes();
    measurement->lines += writes.lines;
    measurement->fences += writes.fences;
    measurement->xp_lines += writes.xp_lines;
    measurement->stats = index_->GetStats();
    return status;
  }

  IndexKind kind() const { return kind_; }

 private:
  // A key of the last `load`, `insert` or `dense`.
  uint64_t Key(uint64_t i) const { return is_dense_ ? KeyOf(first_) + i : KeyOf(first_ + i); }
  uint64_t NewKey() { return KeyOf(next_++); }
  uint64_t KeyOf(uint64_t number) const { return Mix64(number ^ flags_.seed << 40); }
  Status Search(uint64_t i) {
    uint64_t value = 0;
    return index_->Search(Key(i), &value) ? Status::OK() : Status::NotFound("a key is missing: the tree is wrong");
  }
  Status Operate(const std::string& benchmark, std::span<const uint64_t> order) {
    if (benchmark == "insert" || benchmark == "dense")
      return ForEach(order, [this](uint64_t i) { return index_->Insert(Key(i), i); });
    if (benchmark == "update") return ForEach(order, [this](uint64_t i) { return index_->Update(Key(i), i + 1); });
    if (benchmark == "delete") return ForEach(order, [this](uint64_t i) { return index_->Remove(Key(i)); });
    if (benchmark == "search") return ForEach(order, [this](uint64_t i) { return Search(i); });
    return ForEach(order, [this](uint64_t i) { return kinds_[i] ? index_->Insert(NewKey(), i) : Search(i); });
  }
  template <class Operation>
  static Status ForEach(std::span<const uint64_t> order, const Operation& operation) {
    for (const uint64_t i : order) {
      Status status = operation(i);
      if (!status.ok()) return status;
    }
    return Status::OK();
  }

  const IndexBenchFlags& flags_;
  const IndexKind kind_;
  RegionSetOptions region_options_;
  bool is_there_ = false;
  std::unique_ptr<RegionSet> regions_;
  std::unique_ptr<SegmentAllocator> segments_;
  std::unique_ptr<OrderedIndex> index_;
  Random random_;
  std::vector<uint64_t> order_;
  std::vector<std::pair<uint64_t, uint64_t>> sorted_;  // for `load`: keys and values
  std::vector<bool> kinds_;                            // for `mixed`: whether operation i is an insert
  uint64_t first_ = 0;                                 // number of the first key of the last `load`, `insert` or `dense`
  bool is_dense_ = false;                              // these keys are adjacent
  uint64_t next_ = 0;                                  // all numbers from here on are unused
  bool has_keys_ = false;
};

using Workloads = std::vector<std::unique_ptr<Workload>>;

std::string ErrorOf(const Workload& workload, const Status& status) {
  return status.ok() ? "" : std::string(NameOf(workload.kind())) + ": " + status.ToString();
}

std::string RunBenchmark(const IndexBenchFlags& flags, const std::string& benchmark, bool count, const Workloads& workloads,
                         IndexMeasurements* measurements) {
  std::string error;
  for (const auto& workload : workloads) {
    if (error.empty()) error = ErrorOf(*workload, workload->Prepare(benchmark));
    (*measurements)[workload->kind()].emplace_back().benchmark = benchmark;
  }
  for (uint64_t turn = 0; turn < kTurns; ++turn) {
    const uint64_t begin = flags.num * turn / kTurns, end = flags.num * (turn + 1) / kTurns;
    for (const auto& workload : workloads) {
      IndexMeasurement* const measurement = &(*measurements)[workload->kind()].back();
      if (error.empty()) error = ErrorOf(*workload, workload->Run(begin, end, count, measurement));
    }
  }
  return error;
}

}  // namespace

std::string RunRound(const IndexBenchFlags& flags, uint32_t node_bytes, bool count, IndexMeasurements* measurements) {
  Workloads workloads;
  std::string error;
  for (const IndexKind kind : flags.trees) {
    workloads.push_back(std::make_unique<Workload>(flags, kind));
    if (error.empty()) error = ErrorOf(*workloads.back(), workloads.back()->Create(node_bytes));
  }
  for (const std::string& benchmark : flags.benchmarks) {
    if (error.empty()) error = RunBenchmark(flags, benchmark, count, workloads, measurements);
  }
  for (const auto& workload : workloads) {
    const std::string of_removal = ErrorOf(*workload, workload->Remove());
    if (error.empty()) error = of_removal;
  }
  std::error_code not_empty;
  std::filesystem::remove(flags.path, not_empty);
  return error;
}

}  // namespace braiddb
