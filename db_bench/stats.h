// Stats: what one thread of a benchmark counts, and the report that the threads' counts merge into.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "db_bench/flags.h"
#include "db_bench/rate.h"
#include "util/histogram.h"

namespace braiddb::bench {

enum class Operation : uint8_t { kRead, kWrite, kDelete, kSeek, kUpdate, kInsert, kScan, kReadModifyWrite, kMerge, kOther };
inline constexpr size_t kOperations = 10;
// As RocksDB's db_bench calls it, or YCSB.
const char* NameOf(Operation operation);

// What was measured of one run of one benchmark.
struct Measurement {
  uint64_t operations = 0;
  double seconds = 0;
  double micros_per_operation = 0;  // of one thread
  uint64_t bytes = 0;
  std::optional<uint64_t> found;
  uint64_t looked_up = 0;
  std::string message;
  std::array<Histogram, kOperations> latencies_ns;  // empty without --histogram
  double cpu_seconds = 0;                           // user and system, of the process meanwhile, background threads included
  // With --settle, of a benchmark that writes: from its start until all that it left to be merged was merged. 0: not measured.
  double settled_seconds = 0;
  double settled_cpu_seconds = 0;
  double background_ops_per_second = 0;  // of the writer, merger or scanner beside what is measured; 0: there is none
  uint64_t verified = 0;                 // values that --verify has compared

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

  // Costs a store and a comparison, and no reading of the clock unless --histogram.
  void FinishedOps(uint64_t count, Operation operation) {
    if (histogram_) AddLatency(operation);
    const uint64_t done = done_.load(std::memory_order_relaxed) + count;
    done_.store(done, std::memory_order_relaxed);
    if (__builtin_expect(done >= next_report_, 0)) ReportInterval(done);
  }
  // So that a pause before the next operation is not part of its latency.
  void ResetLastOpTime() {
    if (histogram_) last_op_ = Clock::now();
  }
  void StartNextOpAt(Clock::time_point time) { last_op_ = time; }
  void AddBytes(uint64_t bytes) { bytes_ += bytes; }
  // User bytes, of keys and values, that were handed over to be written or deleted; also of threads that are not reported.
  void AddWritten(uint64_t bytes) { written_ += bytes; }
  void AddFound(uint64_t found, uint64_t looked_up) {
    found_ += found;
    looked_up_ += looked_up;
    has_found_ = true;
  }
  void AddVerified() { ++verified_; }
  void AddMessage(const std::string& message) { message_ = message; }

  // So many operations are to come, or so many seconds if these are not 0. Without there is no progress to tell.
  void Expect(uint64_t operations, int64_t seconds) {
    expected_seconds_.store(seconds, std::memory_order_relaxed);
    expected_.store(operations, std::memory_order_relaxed);
  }
  // How much of it is done after so many seconds, from 0 to 1; negative: not known.
  double Progress(double seconds) const;

  uint64_t done() const { return done_.load(std::memory_order_relaxed); }
  uint64_t written() const { return written_; }
  double OpsPerSecond() const;

  void Merge(const Stats& other);
  Measurement Measured() const;

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
};

// The line of RocksDB's db_bench and, with --histogram, a histogram per kind of operation.
void Print(const std::string& name, const Measurement& measurement);

}  // namespace braiddb::bench
