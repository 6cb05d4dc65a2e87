#include "db_bench/reporter.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "util/format.h"

namespace braiddb::bench {

namespace {

constexpr auto kProgressInterval = std::chrono::milliseconds(500);
constexpr auto kSampleInterval = std::chrono::milliseconds(100);
constexpr auto kNever = Clock::duration::max() / 4;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

void Samples::Add(double seconds, uint64_t operations, const std::vector<Figure>& state) {
  Sample sample{seconds, operations, {}};
  sample.state.reserve(state.size());
  for (const Figure& figure : state) {
    if (list.empty()) names.push_back(figure.name);
    sample.state.push_back(figure.value);
  }
  sample.state.resize(names.size());  // all rows have the length of the first
  list.push_back(std::move(sample));
}

ReportFile::~ReportFile() {
  if (file_ != nullptr) std::fclose(file_);
}

void ReportFile::Begin() {
  if (!start_) start_ = Clock::now();
}

void ReportFile::Add(uint64_t operations) {
  std::fprintf(file_, "%.0f,%llu\n", Seconds(Clock::now() - *start_), static_cast<unsigned long long>(operations));
  std::fflush(file_);
}

Reporter::Reporter(const Flags& flags, std::string name, std::vector<const Stats*> stats, ReportFile* file,
                   std::function<std::vector<Figure>()> observe, Samples* samples)
    : name_(std::move(name)),
      stats_(std::move(stats)),
      file_(file),
      observe_(std::move(observe)),
      samples_(samples),
      file_interval_(std::chrono::seconds(flags.report_interval_seconds)),
      progress_(isatty(STDERR_FILENO) != 0 && flags.stats_interval == 0 && flags.stats_interval_seconds == 0) {
  file_->Begin();
  start_ = Clock::now();
  if (samples_ != nullptr) TakeSample();
  if (progress_ || file_->active() || samples_ != nullptr) thread_ = std::thread(&Reporter::Run, this);
}

Reporter::~Reporter() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
  if (samples_ != nullptr) TakeSample();
  if (shown_) std::fprintf(stderr, "\r\033[K");
}

uint64_t Reporter::Done() const {
  uint64_t done = 0;
  for (const Stats* stats : stats_) done += stats->done();
  return done;
}

void Reporter::TakeSample() {
  const double seconds = Seconds(Clock::now() - start_);
  const uint64_t done = Done();
  samples_->Add(seconds, done, observe_());
}

// The progress of the slowest thread: the others wait for it, or run as long as it.
std::string Reporter::Rest(double seconds) const {
  double least = 2;
  for (const Stats* stats : stats_) {
    const double progress = stats->Progress(seconds);
    if (progress >= 0) least = std::min(least, progress);
  }
  if (least <= 0 || least > 1) return {};
  return Format(", %.0f %%, %.0f s left", 100 * least, seconds / least - seconds);
}

void Reporter::ShowProgress(uint64_t done, double seconds) {
  shown_ = true;
  std::fprintf(stderr, "\r... %s: %llu ops, %.0f ops/sec%s\033[K", name_.c_str(), static_cast<unsigned long long>(done),
               static_cast<double>(done) / seconds, Rest(seconds).c_str());
}

void Reporter::Run() {
  const Clock::time_point start = start_;
  Clock::time_point next_line = start + (file_->active() ? file_interval_ : kNever);
  Clock::time_point next_progress = start + (progress_ ? Clock::duration(kProgressInterval) : kNever);
  Clock::time_point next_sample = start + (samples_ != nullptr ? Clock::duration(kSampleInterval) : kNever);
  uint64_t last_done = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!wake_.wait_until(lock, std::min({next_line, next_progress, next_sample}), [this] { return stop_; })) {
    const Clock::time_point now = Clock::now();
    const uint64_t done = Done();
    if (now >= next_line) {
      file_->Add(done - last_done);
      last_done = done;
      next_line += file_interval_;
    }
    if (now >= next_sample) {
      TakeSample();
      // Samples that were missed while this thread did not run are skipped.
      next_sample = std::max(next_sample + kSampleInterval, Clock::now());
    }
    if (now >= next_progress) {
      ShowProgress(done, Seconds(now - start));
      next_progress = now + kProgressInterval;
    }
  }
}

}  // namespace braiddb::bench
