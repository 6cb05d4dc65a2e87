#include "index_bench/workload.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <utility>

#include "index_bench/write_counter.h"
#include "util/random.h"

namespace braiddb {
namespace {

constexpr uint64_t kSegmentSize = 8ull << 20;

// Keys are a bijection of their numbers, so all differ.
class Workload {
 public:
  Workload(const IndexBenchFlags& flags, OrderedIndex* index) : flags_(flags), index_(*index), random_(flags.seed) {}

  Status Prepare(const std::string& benchmark) {
    order_.resize(flags_.num);
    std::iota(order_.begin(), order_.end(), 0);
    for (uint64_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random_.Uniform(i)]);
    kinds_.clear();
    if (benchmark == "insert") {
      first_ = std::exchange(next_, next_ + flags_.num);
      has_keys_ = true;
    }
    if (!has_keys_) return Status::InvalidArgument(benchmark + " needs keys: run insert before it");
    if (benchmark == "delete") has_keys_ = false;
    if (benchmark != "mixed") return Status::OK();
    for (uint64_t i = 0; i < flags_.num; ++i) kinds_.push_back(random_.Uniform(100) < flags_.insert_percent);
    return Status::OK();
  }

  Status Run(const std::string& benchmark) {
    if (benchmark == "insert") return ForEach([this](uint64_t i) { return index_.Insert(Key(i), i); });
    if (benchmark == "update") return ForEach([this](uint64_t i) { return index_.Update(Key(i), i + 1); });
    if (benchmark == "delete") return ForEach([this](uint64_t i) { return index_.Remove(Key(i)); });
    if (benchmark == "search") return ForEach([this](uint64_t i) { return Search(i); });
    return ForEach([this](uint64_t i) { return kinds_[i] ? index_.Insert(NewKey(), i) : Search(i); });
  }

 private:
  // Of those that the last `insert` put in.
  uint64_t Key(uint64_t i) const { return KeyOf(first_ + i); }
  uint64_t NewKey() { return KeyOf(next_++); }
  uint64_t KeyOf(uint64_t number) const { return Mix64(number ^ flags_.seed << 40); }
  Status Search(uint64_t i) {
    uint64_t value = 0;
    return index_.Search(Key(i), &value) ? Status::OK() : Status::NotFound("a key is missing: the tree is wrong");
  }
  template <class Operation>
  Status ForEach(const Operation& operation) {
    for (const uint64_t i : order_) {
      Status status = operation(i);
      if (!status.ok()) return status;
    }
    return Status::OK();
  }

  const IndexBenchFlags& flags_;
  OrderedIndex& index_;
  Random random_;
  std::vector<uint64_t> order_;
  std::vector<bool> kinds_;  // mixed: whether to insert
  uint64_t first_ = 0;       // number of the first key of the last `insert`
  uint64_t next_ = 0;        // numbers from here on were never used
  bool has_keys_ = false;
};

}  // namespace

Status RunWorkload(const IndexBenchFlags& flags, IndexKind kind, uint32_t node_bytes, bool count,
                   std::vector<IndexMeasurement>* measurements) {
  RegionSetOptions options;
  options.database_path = flags.path;
  options.regions = 1;
  options.persist_mode = flags.flush_invalidates || flags.write_latency_ns != 0 ? PersistMode::kEmulated : PersistMode::kAuto;
  options.emulation.flush_invalidates = flags.flush_invalidates;
  options.emulation.write_latency_ns = flags.write_latency_ns;
  std::error_code error;
  std::filesystem::create_directories(flags.path, error);
  std::unique_ptr<RegionSet> regions;
  Status status = RegionSet::Create(options, &regions);
  if (!status.ok()) return status;
  std::unique_ptr<SegmentAllocator> segments;
  status = SegmentAllocator::Open(regions.get(), kSegmentSize, &segments);
  std::unique_ptr<OrderedIndex> index;
  if (status.ok()) status = NewIndex(kind, regions.get(), segments.get(), node_bytes, &index);
  if (status.ok()) {
    Workload workload(flags, index.get());
    WriteCounter counter;
    for (const std::string& benchmark : flags.benchmarks) {
      status = workload.Prepare(benchmark);
      if (!status.ok()) break;
      counter = WriteCounter();
      if (count) regions->persistence()->SetObserver(&counter);
      const auto start = std::chrono::steady_clock::now();
      status = workload.Run(benchmark);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      regions->persistence()->SetObserver(nullptr);
      if (!status.ok()) break;
      measurements->push_back(
          {benchmark, flags.num, seconds, counter.lines, counter.fences, counter.xp_lines, index->GetStats()});
    }
  }
  index.reset();
  segments.reset();
  regions.reset();
  const Status removed = RegionSet::Destroy(options);
  std::filesystem::remove(flags.path, error);
  return status.ok() ? removed : status;
}

}  // namespace braiddb
