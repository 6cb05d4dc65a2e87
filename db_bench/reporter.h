// Reporter: a thread that watches a running benchmark: a line of progress on a terminal, --report_file, and the curves
// for --json.
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

// The CSV file of one process; secs_elapsed counts from the first benchmark's start.
class ReportFile {
 public:
  // Null file: nothing is written.
  explicit ReportFile(std::FILE* file) : file_(file) {}
  ~ReportFile();
  ReportFile(const ReportFile&) = delete;
  ReportFile& operator=(const ReportFile&) = delete;

  bool active() const { return file_ != nullptr; }
  // A benchmark starts; the clock of secs_elapsed with the first.
  void Begin();
  // RocksDB's interval_qps is a count, whatever the interval.
  void Add(uint64_t operations);

 private:
  std::FILE* const file_;
  std::optional<Clock::time_point> start_;
};

// How far a benchmark had come, and what was to be seen then.
struct Sample {
  double seconds = 0;           // since its start
  uint64_t operations = 0;      // of all threads together
  std::vector<uint64_t> state;  // without the names: an hour has 36,000 samples
};
struct Samples {
  std::vector<std::string> names;  // of each sample's state
  std::vector<Sample> list;

  void Add(double seconds, uint64_t operations, const std::vector<Figure>& state);
};

class Reporter {
 public:
  // `stats` must outlive the reporter, and so must `samples`, which gets one at the start, ten a second, and one at the end, and
  // is complete when the reporter is gone; null: none. `observe` gives their state. With nothing to report there is no thread.
  Reporter(const Flags& flags, std::string name, std::vector<const Stats*> stats, ReportFile* file,
           std::function<std::vector<Figure>()> observe, Samples* samples);
  ~Reporter();
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

 private:
  void Run();
  void TakeSample();
  uint64_t Done() const;
  // ", 34 %, 12 s left", or nothing if that is not known.
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
