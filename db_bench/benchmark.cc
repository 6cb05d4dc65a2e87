#include "db_bench/benchmark.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <latch>
#include <map>
#include <thread>
#include <utility>

#include "db_bench/observation.h"
#include "db_bench/settle.h"

namespace braiddb::bench {

namespace {

// Parses the part in brackets: X and W, each with a number, joined by '-'.
bool ParseRepetitions(const std::string& text, BenchmarkRequest* request) {
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('-', begin), text.size());
    const char kind = text[begin];
    int length = 0;
    unsigned count = 0;
    const std::string number = text.substr(begin + 1, end - begin - 1);
    if (std::sscanf(number.c_str(), "%u%n", &count, &length) != 1 || static_cast<size_t>(length) != number.size()) return false;
    if (kind == 'X' && count > 0) {
      request->times = count;
    } else if (kind == 'W') {
      request->warm_ups = count;
    } else {
      return false;
    }
    begin = end + 1;
  }
  return true;
}

// Statistics of repeated runs, with the texts of RocksDB's db_bench.
class Repetitions {
 public:
  void Add(const Measurement& measured) {
    operations_.push_back(measured.OperationsPerSecond());
    megabytes_.push_back(measured.MegabytesPerSecond());
  }
  void PrintInterval(const char* name) const {
    if (operations_.size() < 2) return;
    const Spread operations = SpreadOf(operations_), megabytes = SpreadOf(megabytes_);
    std::printf("%s [CI95 %zu runs] : (%.0f, %.0f) ops/sec; (%.1f, %.1f) MB/sec\n", name, operations_.size(),
                operations.mean - operations.confidence, operations.mean + operations.confidence,
                megabytes.mean - megabytes.confidence, megabytes.mean + megabytes.confidence);
  }
  void PrintAverage(const char* name) const {
    if (operations_.size() < 2) return;
    const Spread operations = SpreadOf(operations_), megabytes = SpreadOf(megabytes_);
    std::printf("%s [AVG %zu runs] : %.0f (± %.0f) ops/sec; %6.1f (± %.1f) MB/sec\n", name, operations_.size(), operations.mean,
                operations.confidence, megabytes.mean, megabytes.confidence);
  }
  void PrintFinal(const char* name) const {
    PrintAverage(name);
    if (operations_.size() < 2) return;
    std::printf("%s [MEDIAN %zu runs] : %.0f ops/sec; %6.1f MB/sec\n", name, operations_.size(), Median(operations_),
                Median(megabytes_));
  }

 private:
  struct Spread {
    double mean;
    double confidence;  // half width of the mean's 95 % confidence interval, by the normal distribution
  };
  static Spread SpreadOf(const std::vector<double>& numbers) {
    double sum = 0, squares = 0;
    for (const double number : numbers) sum += number;
    const auto count = static_cast<double>(numbers.size());
    const double mean = sum / count;
    for (const double number : numbers) squares += (number - mean) * (number - mean);
    return {mean, 1.96 * std::sqrt(squares / (count - 1) / count)};
  }

  std::vector<double> operations_;
  std::vector<double> megabytes_;
};

// Range of thread numbers for each part of a turn.
constexpr uint64_t kThreadsOfPart = uint64_t{1} << 24;
constexpr uint64_t kMostDrawnAhead = uint64_t{1} << 30;  // bytes

// Returns none if the benchmark does not exist, and prints a message on the standard error.
std::optional<BenchmarkRequest> ParseBenchmark(const std::string& text) {
  BenchmarkRequest request;
  const size_t bracket = text.find('[');
  const std::string name = text.substr(0, bracket);
  if (bracket != std::string::npos &&
      (text.back() != ']' || !ParseRepetitions(text.substr(bracket + 1, text.size() - bracket - 2), &request))) {
    std::fprintf(stderr, "db_bench: '%s' is not of the form name[X3] or name[X3-W1]: three runs, one more to warm up\n",
                 text.c_str());
    return std::nullopt;
  }
  request.workload = FindWorkload(name);
  if (request.workload != nullptr) return request;
  if (const char* why = WhyNoWorkload(name)) {
    std::fprintf(stderr, "db_bench: benchmark '%s' is not supported: %s\n", name.c_str(), why);
  } else {
    std::fprintf(stderr, "db_bench: unknown benchmark '%s'; --benchmarks=help lists all benchmarks\n", name.c_str());
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<BenchmarkRequest>> ParseBenchmarks(const std::vector<std::string>& texts) {
  std::vector<BenchmarkRequest> requests;
  std::map<std::string, int> times;
  for (const std::string& text : texts) {
    std::optional<BenchmarkRequest> request = ParseBenchmark(text);
    if (!request) return std::nullopt;
    const int before = times[request->workload->name]++;
    request->label = request->workload->name + (before == 0 ? std::string() : "#" + std::to_string(before + 1));
    requests.push_back(*std::move(request));
  }
  return requests;
}

Benchmark::Benchmark(const Flags& flags, const std::string& engine, uint32_t round, uint32_t part, const std::string& path,
                     Driver* driver, ReportFile* report_file, std::vector<Result>* results)
    : flags_(flags),
      name_(engine),
      round_(round),
      goes_on_(part > 0),
      path_(path),
      driver_(driver),
      report_file_(report_file),
      results_(results),
      readers_(flags, path_, driver),
      threads_started_(part * kThreadsOfPart) {}

void Benchmark::Run(const std::vector<BenchmarkRequest>& requests) {
  DrawAhead(requests);
  for (const BenchmarkRequest& request : requests) RunOne(request);
  Finish();
}

void Benchmark::DrawAhead(const std::vector<BenchmarkRequest>& requests) {
  uint64_t bytes = 0;
  for (const BenchmarkRequest& request : requests) {
    if (IsSkipped(request) || request.workload->times_open) continue;
    const Flags flags = FlagsOf(*request.workload, flags_);
    for (uint32_t run = 0; run < request.warm_ups + request.times; ++run) {
      // The rest is drawn on demand.
      if (bytes > kMostDrawnAhead) return;
      ahead_.push_back(DrawForRun(*request.workload, flags));
      for (const Draws& draws : ahead_.back().draws) bytes += draws.bytes();
    }
  }
}

bool Benchmark::IsSkipped(const BenchmarkRequest& request) const { return request.workload->fresh_db && flags_.use_existing_db; }

void Benchmark::RunOne(const BenchmarkRequest& request) {
  label_ = request.label;
  RunRequest(request);
}

void Benchmark::Finish() {
  if (flags_.statistics && engine_ != nullptr) {
    std::string text;
    if (engine_->GetText("statistics", &text)) std::printf("STATISTICS:\n%s", text.c_str());
  }
  CloseDb();
}

// Without --use_existing_db a run owns the directory. The directory starts empty, and is emptied for each benchmark that needs a
// fresh database.
void Benchmark::PrepareDb(bool fresh) {
  if (engine_ != nullptr && !fresh) return;
  CloseDb();
  const bool exists = flags_.use_existing_db || (goes_on_ && !fresh);
  if (!exists) ExitOnError(driver_->Destroy(path_), "destroy");
  ycsb_.count.store(0, std::memory_order_relaxed);
  OpenDb(exists);
}

void Benchmark::OpenDb(bool exists) {
  ExitOnError(driver_->Open(path_, exists, &engine_), "open");
  std::printf("DB path: [%s]\n", path_.c_str());
  std::fflush(stdout);
}

void Benchmark::CloseDb() {
  if (engine_ == nullptr) return;
  ExitOnError(engine_->Close(), "close");
  engine_.reset();
}

void Benchmark::RunRequest(const BenchmarkRequest& request) {
  const Workload& workload = *request.workload;
  if (IsSkipped(request)) {
    std::printf("%-12s : skipped (--use_existing_db is true)\n", workload.name);
    return;
  }
  const Flags flags = FlagsOf(workload, flags_);
  if (request.warm_ups > 0) std::printf("Running warm-up benchmark for %u times\n", request.warm_ups);
  for (uint32_t i = 0; i < request.warm_ups; ++i) {
    // A warm-up run: its results are dropped.
    const size_t results = results_->size();
    (void)RunWorkload(workload, flags);
    results_->resize(results);
  }
  if (request.times > 1) std::printf("Running benchmark for %u times\n", request.times);
  Repetitions repetitions;
  for (uint32_t i = 0; i < request.times; ++i) {
    const std::optional<Measurement> measured = RunWorkload(workload, flags);
    if (!measured) continue;
    Print(workload.name, *measured);
    repetitions.Add(*measured);
    if (flags_.confidence_interval_only) {
      repetitions.PrintInterval(workload.name);
    } else if (i + 1 < request.times) {
      repetitions.PrintAverage(workload.name);
    }
  }
  repetitions.PrintFinal(workload.name);
  std::fflush(stdout);
}

std::optional<Measurement> Benchmark::RunWorkload(const Workload& workload, const Flags& flags) {
  if (workload.prepare != nullptr) {
    // The limits of the memory are measured on an idle machine.
    if (engine_ != nullptr) {
      const Status idle = engine_->WaitForCompaction();
      if (!idle.IsNotSupported()) ExitOnError(idle, "waitforcompaction");
    }
    return RunThreads(workload, flags, workload.prepare(flags), nullptr);
  }
  if (workload.times_open) return RunOpen();
  PrepareDb(workload.fresh_db);
  if (ycsb_.count.load(std::memory_order_relaxed) == 0) {
    ycsb_.count.store(static_cast<uint64_t>(flags_.num), std::memory_order_relaxed);
  }
  return RunThreads(workload, flags, workload.body, engine_.get());
}

// Closes the database if it is open, or creates one if none exists. Neither is timed.
std::optional<Measurement> Benchmark::RunOpen() {
  if (engine_ == nullptr && !flags_.use_existing_db && !goes_on_) PrepareDb(true);
  CloseDb();
  Result result;
  const CpuTime before = CpuTimeOfProcess();
  const Clock::time_point start = Clock::now();
  OpenDb(true);
  result.measured.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const CpuTime after = CpuTimeOfProcess();
  result.measured.operations = 1;
  result.measured.micros_per_operation = result.measured.seconds * 1e6;
  result.user_seconds = after.user - before.user;
  result.system_seconds = after.system - before.system;
  result.measured.cpu_seconds = after.sum() - before.sum();
  result.counters = engine_->Counters();
  if (!flags_.json.empty()) result.samples.Add(0, 0, ObserveState(engine_.get(), path_));
  AddResult(1, &result);
  return result.measured;
}

void Benchmark::AddResult(uint32_t threads, Result* result) {
  result->engine = name_;
  result->round = round_;
  result->benchmark = label_;
  result->threads = threads;
  if (!flags_.json.empty()) result->huge_page_bytes = BytesOnHugePages();
  results_->push_back(*result);
}

Benchmark::Drawn Benchmark::DrawForRun(const Workload& workload, const Flags& flags) {
  Drawn drawn;
  std::vector<uint64_t>& seeds = drawn.seeds;
  for (uint32_t i = 0; i < flags.threads; ++i) {
    seeds.push_back(Mix64(flags.seed ^ Mix64(threads_started_++ + (uint64_t{round_} << 32))));
  }
  const auto draw = workload.draw != nullptr ? workload.draw : DrawKeys;
  std::vector<Draws>& draws = drawn.draws;
  draws.resize(seeds.size());
  std::vector<std::thread> threads;
  // Draws by at most as many threads at once as the machine has.
  const size_t at_once = std::min<size_t>(seeds.size(), std::max(1u, std::thread::hardware_concurrency()));
  for (size_t first = 0; first < at_once; ++first) {
    threads.emplace_back([&, first] {
      for (size_t i = first; i < seeds.size(); i += at_once) {
        if (!IsReaderProcess(workload, static_cast<uint32_t>(i))) draws[i] = draw(flags, ~seeds[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return drawn;
}

std::optional<Measurement> Benchmark::RunThreads(const Workload& workload, const Flags& flags, const Body& body, Engine* engine) {
  Drawn drawn;
  if (ahead_.empty()) {
    drawn = DrawForRun(workload, flags);
  } else {
    drawn = std::move(ahead_.front());
    ahead_.pop_front();
  }
  Shared shared(flags, &ycsb_);
  // Of a reader process, a worker has the counts only.
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<const Stats*> all_stats;
  uint32_t processes = 0;
  for (uint32_t i = 0; i < flags.threads; ++i) {
    std::unique_ptr<Session> session;
    if (IsReaderProcess(workload, i)) {
      ++processes;
    } else if (engine != nullptr) {
      ExitOnError(engine->NewSession(flags.sync, &session), "session");
    }
    workers.push_back(
        std::make_unique<Worker>(flags, i, drawn.seeds[i], std::move(drawn.draws[i]), engine, std::move(session), &shared));
    all_stats.push_back(&workers.back()->stats);
  }

  std::vector<CpuTime> cpu_of_readers(processes);
  std::latch ready(flags.threads + 1);
  std::vector<std::thread> threads;
  for (const auto& worker : workers) {
    threads.emplace_back([&, worker = worker.get()] {
      if (IsReaderProcess(workload, worker->id)) {
        const uint32_t process = worker->id + processes - flags.threads;
        readers_.Prepare(process, workload, worker->id, drawn.seeds[worker->id]);
        ready.arrive_and_wait();
        cpu_of_readers[process] = readers_.Run(process, &worker->stats);
      } else {
        ready.arrive_and_wait();
        RunBody(body, worker);
      }
      shared.finished.fetch_add(1, std::memory_order_relaxed);
    });
  }
  Result result;
  std::vector<Figure> counters;
  if (!flags.json.empty()) counters = ObserveCounters(engine);
  const CpuTime before = CpuTimeOfProcess();
  const Clock::time_point start = Clock::now();
  {
    const auto observe = [this, engine] { return ObserveState(engine, path_); };
    const Reporter reporter(flags, workload.name, all_stats, report_file_, observe,
                            flags.json.empty() ? nullptr : &result.samples);
    ready.arrive_and_wait();
    for (std::thread& thread : threads) thread.join();
  }
  CpuTime after = CpuTimeOfProcess();
  const Clock::time_point finished = Clock::now();
  for (const CpuTime& cpu : cpu_of_readers) {
    after.user += cpu.user;
    after.system += cpu.system;
  }
  if (!flags.json.empty()) result.counters = Increase(counters, ObserveCounters(engine));

  Stats* merged = nullptr;
  double background_ops_per_second = 0;
  for (const auto& worker : workers) {
    result.written += worker->stats.written();
    if (worker->exclude_from_report) {
      background_ops_per_second += worker->stats.OpsPerSecond();
    } else if (merged == nullptr) {
      merged = &worker->stats;
    } else {
      merged->Merge(worker->stats);
    }
  }
  if (merged == nullptr) return std::nullopt;
  result.measured = merged->Measured();
  result.measured.cpu_seconds = after.sum() - before.sum();
  result.measured.background_ops_per_second = background_ops_per_second;
  if (flags.settle && engine != nullptr && result.written > 0) {
    result.measured.settled_seconds = std::chrono::duration<double>(WaitUntilSettled(engine, finished) - start).count();
    result.measured.settled_cpu_seconds = CpuTimeOfProcess().sum() - before.sum();
  }
  result.user_seconds = after.user - before.user;
  result.system_seconds = after.system - before.system;
  result.reader_processes = processes;
  result.demands = shared.sine.demands();
  result.write_demands = shared.write_rate.demands();
  AddResult(flags.threads, &result);
  return result.measured;
}

}  // namespace braiddb::bench
