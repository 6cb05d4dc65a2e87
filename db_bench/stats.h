// Stats: the counts of one benchmark thread, and the report that merges the counts of all threads.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "db_bench/flags.h"
#include "db_bench/perf_counters.h"
#include "db_bench/rate.h"
#include "util/histogram.h"

namespace braiddb::bench {

enum class Operation : uint8_t { kRead, kWrite, kDelete, kSeek, kUpdate, kInsert, kScan, kReadModifyWrite, kMerge, kOther };
inline constexpr size_t kOperations = 10;
// The name in RocksDB's db_bench, or in YCSB.
const char* NameOf(Operation operation);

// The measurement of one run of one benchmark.
struct Measurement {
  uint64_t operations = 0;
  double seconds = 0;
  double micros_per_operation = 0;  // per thread
  uint64_t bytes = 0;
  std::optional<uint64_t> found;
  uint64_t looked_up = 0;
  std::string message;
  std::array<Histogram, kOperations> latencies_ns;  // empty without --histogram
  double cpu_seconds = 0;                           // user and system time of the process during the run, with background threads
  // With --settle, for a benchmark that writes: from its start until all its data were merged. 0: not measured.
  double settled_seconds = 0;
  double settled_cpu_seconds = 0;
  double background_ops_per_second = 0;  // of the background writer, merger, or scanner; 0: none
  uint64_t verified = 0;                 // number of values that --verify has compared
  PerfCounters perf;                     // with --perf_level, of all threads

  double OperationsPerSecond() const { return static_cast<double>(operations) / seconds; }
  double MegabytesPerSecond() const { return static_cast<double>(bytes) / 1048576.0 / seconds; }
  double CpuMicrosPerOperation() const { return cpu_seconds * 1e6 / static_cast<double>(operations); }
  double SettledOperationsPerSecond() const {
    return settled_seconds > 0 ? static_cast<double>(operations) / settled_seconds : 0;
  }
  double SettledCpuMicrosPerOperation() const { return settled_cpu_seconds * 1e6 / static_cast<double>(operations); }
};

// Thread safety: one thread at a time, except done() and Progress().
class Stats {
 public:
  Stats(const Flags& flags, uint32_t thread);

  void Start();
  void Stop();

  // Costs a store and a comparison. Reads the clock only with --histogram.
  void FinishedOps(uint64_t count, Operation operation) {
    if (histogram_) AddLatency(operation);
    const uint64_t done = done_.load(std::memory_order_relaxed) + count;
    done_.store(done, std::memory_order_relaxed);
    if (__builtin_expect(done >= next_report_, 0)) ReportInterval(done);
  }
  // Excludes a pause before the next operation from its latency.
  void ResetLastOpTime() {
    if (histogram_) last_op_ = Clock::now();
  }
  void StartNextOpAt(Clock::time_point time) { last_op_ = time; }
  void AddBytes(uint64_t bytes) { bytes_ += bytes; }
  // User bytes of keys and values that were written or deleted. Includes threads that are not reported.
  void AddWritten(uint64_t bytes) { written_ += bytes; }
  void AddFound(uint64_t found, uint64_t looked_up) {
    found_ += found;
    looked_up_ += looked_up;
    has_found_ = true;
  }
  void AddVerified() { ++verified_; }
  void AddPerf(std::string_view report) { perf_.Add(report); }
  void AddMessage(const std::string& message) { message_ = message; }

  // Announces the number of operations, or the seconds if not 0. Without a call the progress is unknown.
  void Expect(uint64_t operations, int64_t seconds) {
    expected_seconds_.store(seconds, std::memory_order_relaxed);
    expected_.store(operations, std::memory_order_relaxed);
  }
  // The share that is done after `seconds`, from 0 to 1. Negative: unknown.
  double Progress(double seconds) const;

  uint64_t done() const { return done_.load(std::memory_order_relaxed); }
  uint64_t written() const { return written_; }
  double OpsPerSecond() const;

  void Merge(const Stats& other);
  Measurement Measured() const;
  // Calls pass(&field) for each field of the counts, which `pass` may change: for their way to another process of this machine.
  template <class Pass>
  void PassFields(const Pass& pass) {
    uint64_t finished = done();
    pass(&finished);
    done_.store(finished, std::memory_order_relaxed);
    for (uint64_t* count : {&bytes_, &written_, &verified_, &found_, &looked_up_}) pass(count);
    pass(&has_found_);
    pass(&message_);
    for (Clock::time_point* time : {&start_, &finish_}) pass(time);
    pass(&busy_);
    pass(&latencies_);
    pass(perf_.mutable_figures());
  }

 private:
  void AddLatency(Operation operation);
  void ReportInterval(uint64_t done);

  const bool histogram_;
  const uint32_t thread_;
  const uint64_t stats_interval_;
  const int64_t stats_interval_seconds_;

  alignas(64) std::atomic<uint64_t> done_{0};  // written by the owner, read by the reporter
  std::atomic<uint64_t> expected_{0};
  std::atomic<int64_t> expected_seconds_{0};
  uint64_t next_report_ = UINT64_MAX;
  uint64_t bytes_ = 0;
  uint64_t written_ = 0;
  uint64_t verified_ = 0;
  uint64_t found_ = 0;
  uint64_t looked_up_ = 0;
  bool has_found_ = false;
  std::string message_;
  Clock::time_point start_;
  Clock::time_point finish_;
  Clock::time_point last_op_;
  Clock::duration busy_{};  // summed over threads
  Clock::time_point last_report_;
  uint64_t last_report_done_ = 0;
  std::array<Histogram, kOperations> latencies_;
  PerfCounters perf_;
};

// Prints the line of RocksDB's db_bench, with --histogram a histogram for each kind of operation, and with --perf_level the
// counters.
void Print(const std::string& name, const Measurement& measurement);

}  // namespace braiddb::bench
