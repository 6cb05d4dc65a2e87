#include "db_bench/stats.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "util/format.h"

namespace braiddb::bench {

namespace {

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

uint64_t StatsInterval(const Flags& flags) {
  if (flags.stats_interval > 0) return static_cast<uint64_t>(flags.stats_interval);
  // With seconds only: checks the clock every 1000 operations.
  return flags.stats_interval_seconds > 0 ? 1000 : 0;
}

}  // namespace

const char* NameOf(Operation operation) {
  switch (operation) {
    case Operation::kRead:
      return "read";
    case Operation::kWrite:
      return "write";
    case Operation::kDelete:
      return "delete";
    case Operation::kSeek:
      return "seek";
    case Operation::kUpdate:
      return "update";
    case Operation::kInsert:
      return "insert";
    case Operation::kScan:
      return "scan";
    case Operation::kReadModifyWrite:
      return "read-modify-write";
    case Operation::kMerge:
      return "merge";
    case Operation::kOther:
      return "op";
  }
  return "unknown";
}

Stats::Stats(const Flags& flags, uint32_t thread)
    : histogram_(flags.histogram),
      thread_(thread),
      stats_interval_(StatsInterval(flags)),
      stats_interval_seconds_(flags.stats_interval_seconds) {}

void Stats::Start() {
  if (stats_interval_ > 0) next_report_ = stats_interval_;
  start_ = finish_ = last_op_ = last_report_ = Clock::now();
}

void Stats::Stop() {
  finish_ = Clock::now();
  busy_ = finish_ - start_;
}

void Stats::AddLatency(Operation operation) {
  const Clock::time_point now = Clock::now();
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now - last_op_).count();
  latencies_[static_cast<size_t>(operation)].Add(static_cast<uint64_t>(ns));
  last_op_ = now;
}

void Stats::ReportInterval(uint64_t done) {
  next_report_ = done + stats_interval_;
  const Clock::time_point now = Clock::now();
  const double since_last = Seconds(now - last_report_);
  if (since_last < static_cast<double>(stats_interval_seconds_)) return;
  const double since_start = Seconds(now - start_);
  const std::time_t wall = std::time(nullptr);
  std::tm local;
  localtime_r(&wall, &local);
  char time[32];
  std::strftime(time, sizeof time, "%Y/%m/%d-%H:%M:%S", &local);
  const uint64_t in_interval = done - last_report_done_;
  std::fprintf(stderr, "%s ... thread %u: (%llu,%llu) ops and (%.1f,%.1f) ops/second in (%.6f,%.6f) seconds\n", time, thread_,
               static_cast<unsigned long long>(in_interval), static_cast<unsigned long long>(done),
               static_cast<double>(in_interval) / since_last, static_cast<double>(done) / since_start, since_last, since_start);
  last_report_ = now;
  last_report_done_ = done;
}

double Stats::Progress(double seconds) const {
  const uint64_t expected = expected_.load(std::memory_order_relaxed);
  const int64_t expected_seconds = expected_seconds_.load(std::memory_order_relaxed);
  if (expected_seconds > 0) return std::min(seconds / static_cast<double>(expected_seconds), 1.0);
  return expected > 0 ? std::min(static_cast<double>(done()) / static_cast<double>(expected), 1.0) : -1;
}

double Stats::OpsPerSecond() const {
  const double elapsed = Seconds(finish_ - start_);
  return elapsed > 0 ? static_cast<double>(done()) / elapsed : 0;
}

void Stats::Merge(const Stats& other) {
  done_.store(done() + other.done(), std::memory_order_relaxed);
  bytes_ += other.bytes_;
  found_ += other.found_;
  verified_ += other.verified_;
  looked_up_ += other.looked_up_;
  has_found_ |= other.has_found_;
  busy_ += other.busy_;
  start_ = std::min(start_, other.start_);
  finish_ = std::max(finish_, other.finish_);
  if (message_.empty()) message_ = other.message_;
  for (size_t i = 0; i < kOperations; ++i) latencies_[i].Merge(other.latencies_[i]);
  perf_.Merge(other.perf_);
}

Measurement Stats::Measured() const {
  Measurement measured;
  // At least one, so that a benchmark with a single action (compact) reports its duration.
  measured.operations = std::max<uint64_t>(done(), 1);
  measured.seconds = std::max(Seconds(finish_ - start_), 1e-9);
  measured.micros_per_operation = Seconds(busy_) * 1e6 / static_cast<double>(measured.operations);
  measured.bytes = bytes_;
  if (has_found_) measured.found = found_;
  measured.looked_up = looked_up_;
  measured.verified = verified_;
  measured.message = message_;
  measured.latencies_ns = latencies_;
  measured.perf = perf_;
  return measured;
}

void Print(const std::string& name, const Measurement& measurement) {
  std::string extra;
  if (measurement.bytes > 0) extra += Format(" %6.1f MB/s", measurement.MegabytesPerSecond());
  if (measurement.found) {
    extra += Format(" (%llu of %llu found)", static_cast<unsigned long long>(*measurement.found),
                    static_cast<unsigned long long>(measurement.looked_up));
  }
  if (!measurement.message.empty()) extra += " " + measurement.message;
  std::printf("%-12s : %11.3f micros/op %ld ops/sec %.3f seconds %llu operations;%s\n", name.c_str(),
              measurement.micros_per_operation, static_cast<long>(measurement.OperationsPerSecond()), measurement.seconds,
              static_cast<unsigned long long>(measurement.operations), extra.c_str());
  std::printf("%-12s   (CPU %.3f micros/op", "", measurement.CpuMicrosPerOperation());
  if (measurement.settled_seconds > 0) {
    std::printf("; settled %ld ops/sec, %.3f seconds, CPU %.3f micros/op",
                static_cast<long>(measurement.SettledOperationsPerSecond()), measurement.settled_seconds,
                measurement.SettledCpuMicrosPerOperation());
  }
  if (measurement.background_ops_per_second > 0) {
    std::printf("; beside them in the background %.0f ops/sec", measurement.background_ops_per_second);
  }
  if (measurement.verified > 0) std::printf("; %llu values verified", static_cast<unsigned long long>(measurement.verified));
  std::printf(")\n");
  for (size_t i = 0; i < kOperations; ++i) {
    const Histogram& latencies = measurement.latencies_ns[i];
    if (latencies.count() == 0) continue;
    std::printf("Microseconds per %s:\n%s\n", NameOf(static_cast<Operation>(i)), latencies.ToString(1000).c_str());
  }
  if (!measurement.perf.figures().empty()) std::printf("PERF_CONTEXT:\n");
  measurement.perf.Print(measurement.operations);
  std::fflush(stdout);
}

}  // namespace braiddb::bench
