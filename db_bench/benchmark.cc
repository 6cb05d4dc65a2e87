#include "db_bench/benchmark.h"

#include <cstdio>
#include <latch>
#include <thread>
#include <vector>

#include "db_bench/header.h"

namespace braiddb::bench {

namespace {

bool AllKnown(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (FindWorkload(name) != nullptr) continue;
    std::fprintf(stderr, "db_bench: unknown benchmark '%s'; --benchmarks=help lists what there is\n", name.c_str());
    return false;
  }
  return true;
}

}  // namespace

Benchmark::Benchmark(const Flags& flags) : flags_(flags) {}

int Benchmark::Run() {
  if (flags_.benchmarks == std::vector<std::string>{"help"}) {
    for (const Workload& workload : Workloads()) std::printf("%s\n", workload.name);
    return 0;
  }
  if (!AllKnown(flags_.benchmarks) || !OpenReportFile()) return 1;
  PrintHeader(flags_);
  for (const std::string& name : flags_.benchmarks) RunWorkload(*FindWorkload(name));
  if (flags_.statistics && db_ != nullptr) std::printf("STATISTICS:\n%s", db_->GetStatistics().ToString().c_str());
  CloseDb();
  return 0;
}

bool Benchmark::OpenReportFile() {
  std::FILE* file = nullptr;
  if (flags_.report_interval_seconds > 0) {
    file = std::fopen(flags_.report_file.c_str(), "we");
    if (file == nullptr) {
      std::fprintf(stderr, "db_bench: cannot create --report_file=%s: %m\n", flags_.report_file.c_str());
      return false;
    }
    std::fprintf(file, "secs_elapsed,interval_qps\n");
  }
  report_file_ = std::make_unique<ReportFile>(file);
  return true;
}

// Without --use_existing_db a run owns the directory: it starts empty, and again for each benchmark that wants it so.
void Benchmark::PrepareDb(bool fresh) {
  if (db_ != nullptr && !fresh) return;
  CloseDb();
  if (!flags_.use_existing_db) ExitOnError(DB::Destroy(flags_.options, flags_.db), "destroy");
  OpenDb();
}

void Benchmark::OpenDb() {
  Options options = flags_.options;
  options.create_if_missing = !flags_.use_existing_db;
  ExitOnError(DB::Open(options, flags_.db, &db_), "open");
  std::printf("DB path: [%s]\n", flags_.db.c_str());
  std::fflush(stdout);
}

void Benchmark::CloseDb() {
  if (db_ == nullptr) return;
  ExitOnError(db_->Close(), "close");
  db_.reset();
}

void Benchmark::RunWorkload(const Workload& workload) {
  if (workload.fresh_db && flags_.use_existing_db) {
    std::printf("%-12s : skipped (--use_existing_db is true)\n", workload.name);
    return;
  }
  Flags flags = flags_;
  if (workload.adjust != nullptr) workload.adjust(&flags);
  if (workload.prepare != nullptr) {
    // The memory's limits are those of an idle machine.
    if (db_ != nullptr) ExitOnError(db_->WaitForCompaction(), "waitforcompaction");
    RunThreads(workload.name, flags, workload.prepare(flags), nullptr);
    return;
  }
  PrepareDb(workload.fresh_db);
  RunThreads(workload.name, flags, workload.body, db_.get());
}

void Benchmark::RunThreads(const std::string& name, const Flags& flags, const Body& body, DB* db) {
  std::vector<uint64_t> seeds;
  std::vector<std::vector<uint64_t>> draws;
  for (uint32_t i = 0; i < flags.threads; ++i) {
    seeds.push_back(Mix64(flags.seed ^ Mix64(threads_started_++)));
    draws.push_back(DrawKeys(flags, ~seeds.back()));
  }
  Shared shared(flags);  // its clocks start now
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<const Stats*> all_stats;
  for (uint32_t i = 0; i < flags.threads; ++i) {
    workers.push_back(std::make_unique<Worker>(flags, i, seeds[i], db, &shared));
    workers.back()->draws = std::move(draws[i]);
    all_stats.push_back(&workers.back()->stats);
  }

  std::latch ready(flags.threads + 1);
  std::vector<std::thread> threads;
  for (const auto& worker : workers) {
    threads.emplace_back([&, worker = worker.get()] {
      ready.arrive_and_wait();
      worker->stats.Start();
      body(worker);
      worker->stats.Stop();
      shared.finished.fetch_add(1, std::memory_order_relaxed);
    });
  }
  {
    const Reporter reporter(flags, name, all_stats, report_file_.get());
    ready.arrive_and_wait();
    for (std::thread& thread : threads) thread.join();
  }

  Stats* merged = nullptr;
  for (const auto& worker : workers) {
    if (worker->exclude_from_report) continue;
    if (merged == nullptr) {
      merged = &worker->stats;
    } else {
      merged->Merge(worker->stats);
    }
  }
  if (merged != nullptr) merged->Print(name);
  for (const auto& worker : workers) {
    if (!worker->exclude_from_report || worker->stats.done() == 0) continue;
    std::printf("%-12s   (beside them one writer: %.0f ops/sec)\n", "", worker->stats.OpsPerSecond());
  }
  std::fflush(stdout);
}

}  // namespace braiddb::bench
