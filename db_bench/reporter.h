// Reporter: a thread that observes a running benchmark. Output: a progress line on a terminal, --report_file, and the curves for
// --json.
#pragma once

#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "db_bench/figure.h"
#include "db_bench/flags.h"
#include "db_bench/stats.h"

namespace braiddb::bench {

// The CSV file of one process. secs_elapsed counts from the start of the first benchmark.
class ReportFile {
 public:
  // Null: no output.
  explicit ReportFile(std::FILE* file) : file_(file) {}
  ~ReportFile();
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;

  bool active() const { return file_ != nullptr; }
  // Called at the start of each benchmark. The first call starts the clock of secs_elapsed.
  void Begin();
  // RocksDB's interval_qps is a count, for any interval length.
  void Add(uint64_t operations);

 private:
  std::FILE* const file_;
  std::optional<Clock::time_point> start_;
};

// The progress of a benchmark and the engine's state at one time.
struct Sample {
  double seconds = 0;           // since the benchmark's start
  uint64_t operations = 0;      // of all threads together
  std::vector<uint64_t> state;  // without names, because an hour has 36,000 samples
};
struct Samples {
  std::vector<std::string> names;  // of each sample's state
  std::vector<Sample> list;

  void Add(double seconds, uint64_t operations, const std::vector<Figure>& state);
};

class Reporter {
 public:
  // `stats` and `samples` must outlive the reporter. *samples gets one sample at the start, ten per second, and one at the end.
  // It is complete when the reporter is destroyed. May be null. `observe` returns the state of a sample. If nothing must be
  // reported, no thread is started.
  Reporter(const Flags& flags, std::string name, std::vector<const Stats*> stats, ReportFile* file,
           std::function<std::vector<Figure>()> observe, Samples* samples);
  ~Reporter();
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

 private:
  void Run();
  void TakeSample();
  uint64_t Done() const;
  // Returns ", 34 %, 12 s left", or an empty text if the progress is unknown.
  std::string Rest(double seconds) const;
  void ShowProgress(uint64_t done, double seconds);

  const std::string name_;
  const std::vector<const Stats*> stats_;
  ReportFile* const file_;
  const std::function<std::vector<Figure>()> observe_;
  Samples* const samples_;
  Clock::time_point start_;
  const Clock::duration file_interval_;
  const bool progress_;
  bool shown_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace braiddb::bench
